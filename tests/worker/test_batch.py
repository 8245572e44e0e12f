"""Batch consumers: messages that have arrived are handled by one call and committed by one transaction."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import asyncpg
import pytest
from pydantic import BaseModel

from outbox import Consumer, Reject, RetryAfter, Worker, ensure_outbox_schema_async, get_tracking_ids
from outbox.core.message import Message
from outbox.core.outcome import Cause
from outbox.engine.lifecycle import Stopping, run_until_stopped
from outbox.engine.worker import WorkerRunner, WorkSettings
from outbox.errors import DatabaseUnavailableError, SignatureError
from outbox.ports import Ending, Marks, Unit
from outbox.publisher import BoundPublisher
from outbox.transports.memory import MemoryBroker
from tests.contract.harness import Recorder
from tests.contract.support import existing, message
from tests.support import eventually
from tests.worker.support import SOON, TIMEOUT, running

Connection = Any
QUEUE = "mail"


class Order(BaseModel):
    id: int


@pytest.fixture
async def shop(database_url: str) -> str:
    """A database with all tables and one business table, where an id cannot be sold twice."""
    await ensure_outbox_schema_async(database_url)
    connection = await asyncpg.connect(database_url)
    await connection.execute("create table sale (id int primary key)")
    await connection.close()
    return database_url


@pytest.fixture
async def db(shop: str) -> AsyncIterator[Connection]:
    """A connection that sees committed data."""
    connection = await asyncpg.connect(shop)
    yield connection
    await connection.close()


@pytest.fixture
def broker() -> MemoryBroker:
    return MemoryBroker(exchange_name="shop")


@asynccontextmanager
async def consuming(
    broker: MemoryBroker, callback: Any, *, inbox: bool = False, retry_delays: tuple[str, ...] = (), **options: Any
) -> AsyncIterator[Worker]:
    """Runs a worker with one batch consumer."""
    consumer = Consumer("order.*", callback, queue=QUEUE, retry_delays=retry_delays, inbox=inbox, batch=True)
    given: dict[str, Any] = {"enable_metrics": False, "exchange_name": "shop"} | options
    await existing(broker, QUEUE, "order.*")
    worker = Worker(broker=broker, consumers=[consumer], **given)
    async with running(worker):
        yield worker


async def handled(broker: MemoryBroker, *messages: Message) -> None:
    """Sends messages and waits until all are handled."""
    await broker.send(messages, timeout=TIMEOUT)
    await eventually(lambda: broker.is_idle(QUEUE), timeout=SOON)


def orders(*ids: int) -> list[Message]:
    return [message("order.placed", json.dumps({"id": id_}).encode()) for id_ in ids]


async def sales(db: Connection) -> list[int]:
    return [row["id"] for row in await db.fetch("select id from sale order by id")]


# --- what the callback gets --------------------------------------------------------------------------------------------


async def test_messages_that_have_arrived_are_handled_by_one_call(broker: MemoryBroker) -> None:
    calls: list[list[Order]] = []

    async def handle(orders: list[Order]) -> None:
        calls.append(orders)

    async with consuming(broker, handle):
        await handled(broker, *orders(*range(7)))
    assert [[order.id for order in call] for call in calls] == [list(range(7))]


async def test_messages_that_arrive_while_the_handler_is_busy_are_the_next_batch_up_to_the_prefetch_count(
    broker: MemoryBroker,
) -> None:
    sizes: list[int] = []
    let_go = asyncio.Event()

    async def handle(bodies: list[bytes]) -> None:
        sizes.append(len(bodies))
        await let_go.wait()

    async with consuming(broker, handle, prefetch_count=4):
        await broker.send(orders(1), timeout=TIMEOUT)
        await eventually(lambda: sizes == [1], timeout=SOON)
        await broker.send(orders(*range(6)), timeout=TIMEOUT)
        assert broker.depth(QUEUE) == 3
        let_go.set()
        await eventually(lambda: broker.is_idle(QUEUE), timeout=SOON)
    assert sizes in ([1, 3, 3], [1, 4, 2])  # the end of the first may let another one in


@pytest.mark.parametrize(
    ("annotation", "wanted"),
    [
        (list[Order], [Order(id=1), Order(id=2)]),
        (Sequence[Order], [Order(id=1), Order(id=2)]),
        (list[bytes], [b'{"id": 1}', b'{"id": 2}']),
        (list[dict[str, int]], [{"id": 1}, {"id": 2}]),
        (list[Any], [{"id": 1}, {"id": 2}]),
        (list, [{"id": 1}, {"id": 2}]),
        (Any, [{"id": 1}, {"id": 2}]),
    ],
)
async def test_bodies_are_decoded_by_the_item_type_of_the_list(
    broker: MemoryBroker, annotation: Any, wanted: list[Any]
) -> None:
    calls: list[Any] = []

    async def handle(bodies: Any) -> None:
        calls.append(bodies)

    handle.__annotations__["bodies"] = annotation
    async with consuming(broker, handle):
        await handled(broker, *orders(1, 2))
    assert calls == [wanted]


@pytest.mark.parametrize("annotation", [Order, bytes, set[Order], "list[Order] | None", Annotated[list[Order], 3]])
def test_a_body_that_is_not_a_list_is_refused(annotation: Any) -> None:
    async def handle(body: Any) -> None: ...

    handle.__annotations__["body"] = annotation
    with pytest.raises(SignatureError, match="annotate it with a list"):
        Consumer("order.*", handle, batch=True)


async def test_per_message_parameters_are_lists(broker: MemoryBroker) -> None:
    seen: list[Any] = []

    async def handle(
        bodies: list[bytes],
        message: list[Any],
        attempt_count: list[int],
        routing_key: list[str],
        tracking_ids: list[tuple[str, ...]],
    ) -> None:
        seen.append(([each.message_id for each in message], attempt_count, routing_key, tracking_ids))

    sent = [message("order.placed"), message("order.paid")]
    async with consuming(broker, handle):
        await handled(broker, *sent)
    assert seen == [([each.id for each in sent], [1, 1], ["order.placed", "order.paid"], [each.tracking_ids for each in sent])]


async def test_a_sync_handler_takes_batches_in_a_thread(broker: MemoryBroker) -> None:
    sizes: list[int] = []

    def handle(bodies: list[bytes]) -> None:
        sizes.append(len(bodies))

    async with consuming(broker, handle):
        await handled(broker, *orders(1, 2, 3))
    assert sizes == [3]


async def test_messages_published_by_a_batch_have_the_root_that_its_messages_share(broker: MemoryBroker) -> None:
    chains: list[tuple[str, ...]] = []

    async def handle(bodies: list[bytes]) -> None:
        chains.append(get_tracking_ids())

    one, other = message("order.placed"), message("order.placed")
    async with consuming(broker, handle):
        await handled(broker, one, other)
        await handled(broker, one, replace(other, tracking_ids=("elsewhere", other.id)))
        await handled(broker, one)
    assert chains == [("root",), (), one.tracking_ids]


# --- failures ----------------------------------------------------------------------------------------------------------


async def test_a_batch_is_committed_as_one(shop: str, db: Connection, broker: MemoryBroker) -> None:
    transactions: list[int] = []

    async def handle(orders: list[Order], connection: Connection, publisher: BoundPublisher[Any]) -> None:
        for order in orders:
            await connection.execute("insert into sale values ($1)", order.id)
            await publisher.publish("order.paid", order)
        transactions.append(await connection.fetchval("select txid_current()"))

    async with consuming(broker, handle, db_engine_url=shop):
        await handled(broker, *orders(1, 2, 3))
    assert (await sales(db), len(transactions)) == ([1, 2, 3], 1)
    assert await db.fetchval("select count(*) from outbox_table") == 3


async def test_a_body_that_cannot_be_decoded_fails_alone(broker: MemoryBroker) -> None:
    calls: list[list[int]] = []

    async def handle(orders: list[Order]) -> None:
        calls.append([order.id for order in orders])

    async with consuming(broker, handle, retry_delays=("0",)):
        await handled(broker, *orders(1), message("order.placed", b"no JSON"), *orders(2))
    assert calls == [[1, 2]]
    [dead] = broker.dead_letters(QUEUE)
    assert (dead.cause, dead.message.body, dead.attempt) == (Cause.UNDECODABLE, b"no JSON", 1)


@pytest.mark.parametrize("with_inbox", [True, False])
async def test_a_failed_batch_is_handled_one_by_one_and_a_bad_message_fails_alone(
    shop: str, db: Connection, broker: MemoryBroker, with_inbox: bool, caplog: pytest.LogCaptureFixture
) -> None:
    attempts: dict[int, list[int]] = {}

    async def handle(orders: list[Order], connection: Connection, attempt_count: list[int]) -> None:
        for order, attempt in zip(orders, attempt_count, strict=True):
            await connection.execute("insert into sale values ($1)", order.id)
            if len(orders) == 1:
                attempts.setdefault(order.id, []).append(attempt)
        if any(order.id == 3 for order in orders):
            raise LookupError("no such customer")

    async with consuming(broker, handle, retry_delays=("0", "0"), db_engine_url=shop, inbox=with_inbox):
        await handled(broker, *orders(1, 2, 3, 4, 5))
    assert await sales(db) == [1, 2, 4, 5]
    assert attempts == {1: [1], 2: [1], 3: [1, 2, 3], 4: [1], 5: [1]}
    [dead] = broker.dead_letters(QUEUE)
    assert (dead.cause, dead.message.body, dead.failure.type) == (Cause.EXHAUSTED, b'{"id": 3}', "LookupError")
    assert any("a batch of 5 messages of queue mail failed" in line for line in caplog.messages)


async def test_each_message_chooses_its_outcome_when_it_is_handled_alone(broker: MemoryBroker) -> None:
    done: list[tuple[int, int]] = []

    async def handle(orders: list[Order], attempt_count: list[int]) -> None:
        match [order.id for order in orders], attempt_count:
            case [1], _:
                raise Reject("no such customer")
            case [2], [1]:
                raise RetryAfter(timedelta(milliseconds=1))
            case [id_], [attempt]:
                done.append((id_, attempt))
            case _:
                raise LookupError("too many")

    async with consuming(broker, handle):
        await handled(broker, *orders(1, 2, 3))
    assert sorted(done) == [(2, 2), (3, 1)]
    [dead] = broker.dead_letters(QUEUE)
    assert (dead.cause, dead.failure.message) == (Cause.REJECTED, "no such customer")


async def test_a_poison_message_is_handled_in_its_own_batch(broker: MemoryBroker) -> None:
    calls: list[list[int]] = []
    risky = 0

    async def handle(orders: list[Order]) -> None:
        nonlocal risky
        ids = [order.id for order in orders]
        if 7 in ids and risky < 2:
            risky += 1
            broker.crash(QUEUE)
        else:
            calls.append(ids)

    consumer = Consumer("order.*", handle, queue=QUEUE, batch=True, max_deliveries=1)
    await existing(broker, QUEUE, "order.*")
    worker = Worker(broker=broker, consumers=[consumer], exchange_name="shop", enable_metrics=False)
    async with running(worker):
        await handled(broker, *orders(1, 7, 2))
    assert all(len(call) == 1 for call in calls)
    assert sorted(id_ for [id_] in calls) == [1, 2, 7]


async def test_a_message_that_expired_is_not_in_the_batch(broker: MemoryBroker) -> None:
    calls: list[list[int]] = []

    async def handle(orders: list[Order]) -> None:
        calls.append([order.id for order in orders])

    late = replace(orders(1)[0], expires_at=datetime.now(UTC) - timedelta(seconds=1))
    async with consuming(broker, handle):
        await handled(broker, late, *orders(2, 3))
    assert calls == [[2, 3]]
    assert [dead.cause for dead in broker.dead_letters(QUEUE)] == [Cause.EXPIRED]


async def test_a_message_that_expires_while_it_waits_for_its_batch_is_not_in_it(broker: MemoryBroker) -> None:
    calls: list[list[int]] = []
    let_go = asyncio.Event()

    async def handle(orders: list[Order]) -> None:
        calls.append([order.id for order in orders])
        await let_go.wait()

    late = replace(orders(2)[0], expires_at=datetime.now(UTC) + timedelta(milliseconds=300))
    async with consuming(broker, handle):
        await broker.send(orders(1), timeout=TIMEOUT)
        await eventually(lambda: len(calls) == 1, timeout=SOON)
        await broker.send([late, *orders(3)], timeout=TIMEOUT)
        await eventually(lambda: late.expires_at is not None and datetime.now(UTC) > late.expires_at, timeout=SOON)
        let_go.set()
        await eventually(lambda: broker.is_idle(QUEUE), timeout=SOON)
    assert calls == [[1], [3]]
    assert [dead.cause for dead in broker.dead_letters(QUEUE)] == [Cause.EXPIRED]


@pytest.mark.parametrize("batch", [True, False])
async def test_a_message_that_expires_while_it_waits_for_the_database_is_not_handled(broker: MemoryBroker, batch: bool) -> None:
    calls: list[object] = []
    late = replace(orders(1)[0], expires_at=datetime.now(UTC) + timedelta(milliseconds=300))

    class AwayAtFirst:
        @asynccontextmanager
        async def begin(
            self, wanted: frozenset[str], marks: Marks | None = None, ending: Ending | None = None
        ) -> AsyncIterator[Unit]:
            if datetime.now(UTC) <= (late.expires_at or datetime.now(UTC)):
                raise DatabaseUnavailableError("away")
            yield Unit(resources={}, marked=frozenset(marks.message_ids if marks else ()))

    async def handle(body: Any) -> None:
        calls.append(body)

    await existing(broker, QUEUE, "order.*")
    consumer = Consumer("order.*", handle, QUEUE, batch=batch, inbox=True)
    settings = WorkSettings(exchange_name="shop", retry_delays=(), prefetch_count=10)
    stopping = Stopping()
    work = WorkerRunner(broker, [consumer], AwayAtFirst(), Recorder(), settings)
    task = asyncio.create_task(run_until_stopped(work.run, stopping, handle_signals=False))
    await handled(broker, late, *orders(2))
    stopping.request()
    await asyncio.wait_for(task, SOON)
    assert calls == [[{"id": 2}] if batch else {"id": 2}]
    assert [dead.cause for dead in broker.dead_letters(QUEUE)] == [Cause.EXPIRED]


async def test_a_stop_finishes_the_batch_and_returns_waiting_messages(broker: MemoryBroker) -> None:
    calls: list[list[int]] = []
    let_go = asyncio.Event()

    async def handle(orders: list[Order]) -> None:
        calls.append([order.id for order in orders])
        await let_go.wait()

    async with consuming(broker, handle) as worker:
        await broker.send(orders(1, 2), timeout=TIMEOUT)
        await eventually(lambda: len(calls) == 1, timeout=SOON)
        await broker.send(orders(3, 4), timeout=TIMEOUT)
        worker.stop()
        let_go.set()
    assert calls == [[1, 2]]
    assert broker.depth(QUEUE) == 2


async def test_a_stop_returns_messages_that_wait_for_the_next_batch(broker: MemoryBroker) -> None:
    calls: list[list[int]] = []
    let_go = asyncio.Event()

    async def handle(orders: list[Order]) -> None:
        calls.append([order.id for order in orders])
        await let_go.wait()

    async with consuming(broker, handle) as worker:
        await broker.send(orders(1, 2), timeout=TIMEOUT)
        await eventually(lambda: len(calls) == 1, timeout=SOON)
        await broker.send(orders(3, 4), timeout=TIMEOUT)
        for _ in range(10):  # turns of the loop, in which 3 and 4 join those who wait
            await asyncio.sleep(0)
        worker.stop()
        let_go.set()
    assert calls == [[1, 2]]
    assert broker.depth(QUEUE) == 2


async def test_a_stop_during_a_failing_batch_returns_its_messages(broker: MemoryBroker) -> None:
    calls: list[list[int]] = []
    let_go = asyncio.Event()

    async def handle(orders: list[Order]) -> None:
        calls.append([order.id for order in orders])
        await let_go.wait()
        raise LookupError("no such customer")

    async with consuming(broker, handle) as worker:
        await broker.send(orders(1, 2), timeout=TIMEOUT)
        await eventually(lambda: len(calls) == 1, timeout=SOON)
        worker.stop()
        let_go.set()
    assert calls == [[1, 2]]
    assert broker.depth(QUEUE) == 2


async def test_a_batch_that_exceeds_the_grace_period_is_cancelled_and_redelivered(broker: MemoryBroker) -> None:
    calls: list[list[int]] = []

    async def handle(orders: list[Order]) -> None:
        calls.append([order.id for order in orders])
        await asyncio.Event().wait()

    async with consuming(broker, handle, grace_period=0.1):
        await broker.send(orders(1, 2), timeout=TIMEOUT)
        await eventually(lambda: len(calls) == 1, timeout=SOON)
        await broker.send(orders(3, 4), timeout=TIMEOUT)
    assert calls == [[1, 2]]
    assert broker.depth(QUEUE) == 4


# --- with an inbox -----------------------------------------------------------------------------------------------------


@pytest.fixture
def duplicates(caplog: pytest.LogCaptureFixture) -> Callable[[], int]:
    """Number of messages skipped so far."""
    caplog.set_level("DEBUG", logger="outbox")
    return lambda: sum(line.startswith("skipped") for line in caplog.messages)


@pytest.mark.parametrize("with_session", [True, False])
async def test_duplicates_are_left_out_of_the_list(
    shop: str, db: Connection, broker: MemoryBroker, duplicates: Callable[[], int], with_session: bool
) -> None:
    calls: list[list[int]] = []

    async def for_session(orders: list[Order], session: Any) -> None:
        calls.append([order.id for order in orders])

    async def for_connection(orders: list[Order], connection: Connection) -> None:
        calls.append([order.id for order in orders])

    callback = for_session if with_session else for_connection
    one, two, three = orders(1, 2, 3)
    async with consuming(broker, callback, db_engine_url=shop, inbox=True):
        await handled(broker, one)
        await handled(broker, two, one, two, three)
        await handled(broker, one, two, three)
    assert calls == [[1], [2, 3]]
    assert duplicates() == 5
    assert await db.fetchval("select count(*) from outbox_inbox") == 3
    assert not broker.dead_letters(QUEUE)


async def test_a_batch_goes_on_without_a_message_that_is_being_handled_elsewhere(
    shop: str, db: Connection, broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.engine.transactions.HELD_PAUSE", timedelta(milliseconds=50))
    done: list[int] = []

    async def handle(orders: list[Order]) -> None:
        done.extend(order.id for order in orders)

    one, two, three = orders(1, 2, 3)
    elsewhere = db.transaction()
    await elsewhere.start()
    await db.execute("insert into outbox_inbox (queue, message_id) values ($1, $2)", QUEUE, two.id)
    async with consuming(broker, handle, db_engine_url=shop, inbox=True, inbox_wait=0.05):
        await broker.send([one, two, three], timeout=TIMEOUT)
        await eventually(lambda: sorted(done) == [1, 3], timeout=SOON)
        await elsewhere.rollback()
        await eventually(lambda: broker.is_idle(QUEUE), timeout=SOON)
    assert sorted(done) == [1, 2, 3]
    assert not broker.dead_letters(QUEUE)


async def test_two_workers_with_the_same_messages_in_different_orders_do_not_deadlock(
    shop: str, db: Connection, duplicates: Callable[[], int]
) -> None:
    sent = orders(*range(40))

    async def handle(orders: list[Order], connection: Connection) -> None:
        await connection.executemany("insert into sale values ($1)", [(order.id,) for order in orders])

    async def work(messages: list[Message]) -> None:
        broker = MemoryBroker(exchange_name="shop")
        async with consuming(broker, handle, db_engine_url=shop, inbox=True, prefetch_count=40):
            await handled(broker, *messages)
        assert not broker.dead_letters(QUEUE)

    async with asyncio.TaskGroup() as workers:
        workers.create_task(work(sent))
        workers.create_task(work(sent[::-1]))
    assert (await sales(db), duplicates()) == (list(range(40)), 40)


@pytest.mark.parametrize("fails", [True, False])
async def test_a_batch_that_commits_by_hand_is_not_taken_for_one_that_has_succeeded(
    shop: str, db: Connection, broker: MemoryBroker, fails: bool
) -> None:
    sizes: list[int] = []

    async def handle(orders: list[Order], connection: Connection) -> None:
        sizes.append(len(orders))
        await connection.execute("insert into sale values (1); commit")
        if fails:
            raise ConnectionError

    async with consuming(broker, handle, retry_delays=("0",), inbox=True, db_engine_url=shop):
        await handled(broker, *orders(1, 2))
    assert (sizes, await sales(db)) == ([2], [1])
    assert [dead.cause for dead in broker.dead_letters(QUEUE)] == [Cause.REJECTED] * 2
    assert all("ended its transaction itself" in dead.failure.message for dead in broker.dead_letters(QUEUE))
