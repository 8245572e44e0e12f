"""Relays and operators mark and release rows that no relay is sending: publishers do not take these for rows in flight."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from outbox import Publisher
from outbox.core.outcome import DONE
from outbox.dead_letters import DeadLetters
from outbox.engine.ordering import OrderingRules
from outbox.postgres.ordering import Lanes
from outbox.postgres.store import PostgresStore
from tests.relay.support import TABLE
from tests.support.eventually import eventually

publisher = Publisher()


@dataclass
class Gate:
    """Where the relay's side stops before it commits, once `closed`; `reached` says that it has come there."""

    closed: bool = False
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    opened: asyncio.Event = field(default_factory=asyncio.Event)


class Stage:
    """A relay's store and an operator's tools on a pool whose commits a test can delay, and concurrent publishers."""

    def __init__(self, url: str, connection: asyncpg.Connection, pool: asyncpg.Pool, gate: Gate) -> None:
        self.url, self.connection, self.pool, self.gate = url, connection, pool, gate

    def store(self, policy: str = "block") -> PostgresStore:
        return PostgresStore(
            self.pool, TABLE, keep_sent=False, longest_send=timedelta(seconds=10), ordering=OrderingRules.of(policy)
        )

    async def rows(self, *rows: str) -> None:
        columns = "routing_key, body, ordering_key, dedup_key, send_after, last_error, failed_at"
        for row in rows:
            await self.connection.execute(f"insert into outbox_table ({columns}) values ({row})")

    async def pending(self) -> list[str]:
        """The routing keys of what is pending with the dedup key."""
        return [
            row["routing_key"]
            for row in await self.connection.fetch(
                "select routing_key from outbox_table "
                "where dedup_key = 'd' and sent_at is null and failed_at is null order by id"
            )
        ]

    async def waiting_for_a_lock(self) -> bool:
        found: bool = await self.connection.fetchval(
            "select exists(select from pg_stat_activity "
            "where datname = current_database() and application_name = 'publisher' and wait_event_type = 'Lock')"
        )
        return found

    @asynccontextmanager
    async def held_before_its_commit(self, work: Awaitable[Any]) -> AsyncIterator[None]:
        """`work` has done everything but commit; it commits when the block ends."""
        self.gate.closed = True
        task = asyncio.ensure_future(work)
        try:
            async with asyncio.timeout(30):
                reached = asyncio.ensure_future(self.gate.reached.wait())
                await asyncio.wait([task, reached], return_when=asyncio.FIRST_COMPLETED)
                reached.cancel()
            assert not task.done(), "it came to its end without a commit"
            yield
        finally:
            self.gate.opened.set()
            await asyncio.wait_for(task, 30)

    @asynccontextmanager
    async def publishing(self) -> AsyncIterator[asyncpg.Connection]:
        connection = await asyncpg.connect(self.url, server_settings={"application_name": "publisher"})
        try:
            async with connection.transaction():
                yield connection
        finally:
            await connection.close()

    async def cancelled(self) -> bool:
        async with self.publishing() as connection:
            return await publisher.cancel_async(connection, "d")

    async def replaced(self) -> str | None:
        async with self.publishing() as connection:
            return await publisher.publish_async(
                connection, "new", b"", dedup_key="d", ordering_key="k", eta=timedelta(days=1), on_conflict="replace"
            )

    async def ignored(self) -> str | None:
        async with self.publishing() as connection:
            return await publisher.publish_async(connection, "new", b"", dedup_key="d", ordering_key="k")

    async def done_or_waiting(self, task: asyncio.Task[Any]) -> None:
        async def so() -> bool:
            return task.done() or await self.waiting_for_a_lock()

        await eventually(so)


@pytest.fixture
async def stage(url: str, connection: asyncpg.Connection) -> AsyncIterator[Stage]:
    gate = Gate()

    class Gated(asyncpg.Connection):
        async def execute(self, query: str, *args: object, timeout: float | None = None) -> str:
            if gate.closed and query.startswith("set transaction"):  # a transaction in one message
                status = await super().execute(f"begin; {query}", timeout=timeout)
                await self.execute("commit", timeout=timeout)
                return status
            if query == "commit" and gate.closed:
                gate.reached.set()
                await gate.opened.wait()
            return await super().execute(query, *args, timeout=timeout)

    pool = await asyncpg.create_pool(url, min_size=2, max_size=2, connection_class=Gated)
    yield Stage(url, connection, pool, gate)
    pool.terminate()


Work = Callable[[Stage], Awaitable[Any]]
"""Prepares rows; what it returns does the bookkeeping, whose commit can be held up."""
TOMORROW = "now() + interval '1 day', null, null"
DUE = "now(), null, null"
BLOCKED = "'infinity', 'blocked', null"
HELD = "'infinity', 'unroutable', null"


async def _seen(lanes: Lanes, connection: asyncpg.Connection) -> None:
    """What a claim sees and makes way for afterwards."""
    await connection.execute(lanes.sql["begin"])
    await lanes.take(connection, 10)
    await connection.execute("rollback")


async def _make_way(stage: Stage, policy: str = "block") -> Awaitable[Any]:
    lanes = Lanes(TABLE, OrderingRules.of(policy))
    await _seen(lanes, stage.connection)
    assert lanes.has_waiting

    async def work() -> None:
        async with stage.pool.acquire() as connection:
            await lanes.mark_waiting(connection)

    return work()


async def a_timer_that_others_are_marked_as_waiting_for(stage: Stage) -> Awaitable[Any]:
    await stage.rows(f"'timer', '', 'k', 'd', {TOMORROW}", f"'behind', '', 'k', null, {DUE}")
    return await _make_way(stage)


async def a_message_that_is_marked_as_waiting(stage: Stage) -> Awaitable[Any]:
    await stage.rows(f"'first', '', 'k', null, {TOMORROW}", f"'second', '', 'k', 'd', {DUE}")
    return await _make_way(stage)


async def a_message_that_is_released_when_the_one_before_it_is_settled(stage: Stage) -> Awaitable[Any]:
    await stage.rows(f"'first', '', 'k', null, {DUE}", f"'second', '', 'k', 'd', {BLOCKED}")
    claim = await stage.store().claim(1)
    assert claim is not None

    async def work() -> None:
        async with claim:
            await claim.settle([DONE] * len(claim.messages))

    return work()


async def a_message_whose_key_has_no_earlier_message(stage: Stage) -> Awaitable[Any]:
    await stage.rows(f"'second', '', 'k', 'd', {BLOCKED}")
    return stage.store().repair_lanes()


async def a_held_message_that_is_released(stage: Stage) -> Awaitable[Any]:
    await stage.rows(f"'held', '', null, 'd', {HELD}")
    return stage.store().release_held("held", None, 100)


async def a_held_message_that_becomes_the_probe(stage: Stage) -> Awaitable[Any]:
    await stage.rows(f"'held', '', null, 'd', {HELD}")
    return stage.store().ensure_probes()


async def a_message_that_an_operator_releases(stage: Stage) -> Awaitable[Any]:
    await stage.rows("'first', '', 'k', null, now(), 'refused', now()", f"'second', '', 'k', 'd', {BLOCKED}")
    dead_letters = DeadLetters(db_pool=stage.pool)
    first = await stage.connection.fetchval("select 'outbox-' || id from outbox_table where routing_key = 'first'")
    return dead_letters.discard(first)


@pytest.fixture(
    params=[
        a_timer_that_others_are_marked_as_waiting_for,
        a_message_that_is_marked_as_waiting,
        a_message_that_is_released_when_the_one_before_it_is_settled,
        a_message_whose_key_has_no_earlier_message,
        a_held_message_that_is_released,
        a_held_message_that_becomes_the_probe,
        a_message_that_an_operator_releases,
    ],
    ids=lambda work: work.__name__,
)
def bookkeeping(request: pytest.FixtureRequest) -> Work:
    work: Work = request.param
    return work


async def test_what_is_only_being_marked_or_released_can_be_cancelled(bookkeeping: Work, stage: Stage) -> None:
    async with stage.held_before_its_commit(await bookkeeping(stage)):
        cancelling = asyncio.create_task(stage.cancelled())
        await stage.done_or_waiting(cancelling)
    assert await cancelling is True
    assert await stage.pending() == []


async def test_what_is_only_being_marked_or_released_can_be_replaced(bookkeeping: Work, stage: Stage) -> None:
    async with stage.held_before_its_commit(await bookkeeping(stage)):
        replacing = asyncio.create_task(stage.replaced())
        await stage.done_or_waiting(replacing)
    assert await replacing is not None
    assert await stage.pending() == ["new"]


async def test_what_is_only_being_marked_or_released_is_met_without_waiting_and_not_claimed_before_the_commit(
    bookkeeping: Work, stage: Stage
) -> None:
    claimable = "select from outbox_table where dedup_key = 'd' for update skip locked"
    work = await bookkeeping(stage)
    async with stage.publishing() as connection:
        async with stage.held_before_its_commit(work):
            assert await publisher.publish_async(connection, "new", b"", dedup_key="d", ordering_key="k") is None
        assert await stage.connection.fetch(claimable) == []
    assert len(await stage.connection.fetch(claimable)) == 1


async def test_what_was_just_marked_as_waiting_for_a_withdrawn_timer_is_found_by_housekeeping(stage: Stage) -> None:
    async with stage.held_before_its_commit(await a_timer_that_others_are_marked_as_waiting_for(stage)):
        cancelling = asyncio.create_task(stage.cancelled())
        await stage.done_or_waiting(cancelling)
    assert await cancelling is True
    assert await stage.store().repair_lanes() == 1
    assert await stage.connection.fetchval("select send_after <= now() and last_error is null from outbox_table")


async def test_a_relay_that_dies_while_it_marks_a_timer_changes_nothing_for_who_cancels_it(stage: Stage) -> None:
    work = asyncio.ensure_future(await a_timer_that_others_are_marked_as_waiting_for(stage))
    stage.gate.closed = True
    await asyncio.wait_for(stage.gate.reached.wait(), 30)
    cancelling = asyncio.create_task(stage.cancelled())
    await stage.done_or_waiting(cancelling)
    stage.pool.terminate()
    assert await asyncio.wait_for(cancelling, 30) is True
    stage.gate.opened.set()
    await asyncio.gather(work, return_exceptions=True)
    assert await stage.pending() == []


async def test_what_is_parked_with_the_one_before_it_is_not_pending_any_more(stage: Stage) -> None:
    await stage.rows("'first', '', 'k', null, now(), 'refused', now()", f"'second', '', 'k', 'd', {DUE}")
    async with stage.held_before_its_commit(await _make_way(stage, "park")):
        cancelling = asyncio.create_task(stage.cancelled())
        await stage.done_or_waiting(cancelling)
    assert await cancelling is False
    assert await stage.connection.fetchval("select count(*) from outbox_table where failed_at is not null") == 2


@pytest.mark.parametrize("ends", ["commit", "rollback"])
async def test_what_another_publisher_released_can_be_cancelled_when_that_one_has_ended(ends: str, stage: Stage) -> None:
    await stage.rows(f"'first', '', 'k', 'e', {TOMORROW}", f"'second', '', 'k', 'd', {BLOCKED}")
    async with stage.pool.acquire() as other:
        await other.execute("begin")
        assert await publisher.cancel_async(other, "e") is True
        cancelling = asyncio.create_task(stage.cancelled())
        await stage.done_or_waiting(cancelling)
        assert not cancelling.done()
        await other.execute(ends)
    assert await cancelling is True
    assert await stage.pending() == []


KEYS = 3
ROUNDS = 100
TWICE_PENDING = """
    select dedup_key from outbox_table
    where dedup_key is not null and sent_at is null and failed_at is null group by dedup_key having count(*) > 1
"""


class Traffic:
    """Publishers of ordering keys, and claims that mark what is published behind their timers, and send what may go."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self.pool = pool
        self.over = asyncio.Event()
        self.sent: list[str] = []
        self.wrong: list[str] = []

    async def relay(self) -> None:
        store = PostgresStore(self.pool, TABLE, keep_sent=False, longest_send=timedelta(seconds=10))
        while not self.over.is_set():
            if claim := await store.claim(10):
                async with claim:
                    self.sent.extend(pending.message.routing_key for pending in claim.messages)
                    await claim.settle([DONE] * len(claim.messages))
            await store.repair_lanes()

    async def publish(self, name: str, **options: Any) -> None:
        async with self.pool.acquire() as connection, connection.transaction():
            await publisher.publish_async(connection, name, b"", **options)

    async def events(self, key: str) -> None:
        while not self.over.is_set():
            await self.publish("event", ordering_key=key)

    async def timers(self, key: str) -> None:
        for number in range(ROUNDS):
            timer = f"{key} {number}"
            await self.publish("timer", ordering_key=key, dedup_key=timer, eta=timedelta(days=1))
            await self.publish("event", ordering_key=key)
            await self.publish("moved", ordering_key=key, dedup_key=timer, eta=timedelta(days=2), on_conflict="replace")
            if timer in [row["dedup_key"] for row in await self.pool.fetch(TWICE_PENDING)]:
                self.wrong.append(f"twice: {timer}")
            await self.publish("event", ordering_key=key)
            async with self.pool.acquire() as connection, connection.transaction():
                if not await publisher.cancel_async(connection, timer):
                    self.wrong.append(f"not withdrawn: {timer}")


async def test_under_traffic_every_timer_can_be_moved_and_withdrawn(url: str, connection: asyncpg.Connection) -> None:
    async with asyncpg.create_pool(url, min_size=3 * KEYS + 1, max_size=3 * KEYS + 1) as pool:
        traffic = Traffic(pool)
        keys = [f"k{number}" for number in range(KEYS)]
        async with asyncio.TaskGroup() as tasks:
            for key in keys:
                tasks.create_task(traffic.relay())
                tasks.create_task(traffic.events(key))
            try:
                await asyncio.gather(*map(traffic.timers, keys))
            finally:
                traffic.over.set()
    assert traffic.wrong == []
    assert set(traffic.sent) == {"event"}
