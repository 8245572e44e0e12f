"""Timers with a sleeping relay: they fire when due, can be moved and withdrawn, and callers do not wait for the relay."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import asyncpg
import pytest

from outbox import BoundPublisher, Consumer, MessageRelay, Publisher, Worker, ensure_outbox_schema_async
from outbox.ports import Broker
from outbox.transports.memory import MemoryBroker
from tests.publisher.onlooker import BELL
from tests.servers.proxy import Proxy
from tests.support.eventually import eventually

publisher = Publisher()

SOON_ENOUGH = timedelta(seconds=20)
"""How late is still in time on a busy machine. A relay that is not woken would come after a minute."""


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Any]:
    """To a database with every table of Outbox."""
    await ensure_outbox_schema_async(database_url)
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


@asynccontextmanager
async def running(*parts: MessageRelay | Worker) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as tasks:
        for part in parts:
            tasks.create_task(part.run(handle_signals=False))
        try:
            yield
        finally:
            for part in parts:
                part.stop()


async def _sleeps(connection: Any) -> bool:
    """Whether a relay holds the doorbell's locks, and will not look before it rings."""
    held: bool = await connection.fetchval(
        "select exists (select from pg_locks where locktype = 'advisory' and mode = 'ShareLock' and granted "
        "and database = (select oid from pg_database where datname = current_database()) "
        "and (classid::bigint << 32 | objid::bigint) = $1)",
        BELL.asleep_keys[0],
    )
    return held


@pytest.mark.parametrize("kind", ["memory", "postgres"])
async def test_timers_fire_when_they_are_due_also_when_they_were_moved_and_not_when_they_were_withdrawn(
    kind: str, database_url: str, connection: Any
) -> None:
    fired: dict[str, datetime] = {}

    async def fire(name: str) -> None:
        fired[name] = await connection.fetchval("select clock_timestamp()")

    broker: str | Broker = database_url if kind == "postgres" else MemoryBroker()
    worker = Worker(broker=broker, consumers=[Consumer("timer", fire, queue="timers", retry_delays=())])
    async with running(MessageRelay(db_engine_url=database_url, broker=broker), worker):
        await eventually(lambda: _sleeps(connection))
        async with connection.transaction():
            timers = BoundPublisher(publisher, connection)
            await timers.publish("timer", "as set", eta=timedelta(seconds=0.6), dedup_key="as set")
            await timers.publish("timer", "sooner", eta=timedelta(minutes=10), dedup_key="sooner")
            await timers.publish("timer", "later", eta=timedelta(seconds=5), dedup_key="later")
            await timers.publish("timer", "withdrawn", eta=timedelta(seconds=5), dedup_key="withdrawn")
        await eventually(lambda: _sleeps(connection))
        async with connection.transaction():
            moved = {"eta": timedelta(seconds=0.3), "dedup_key": "sooner", "on_conflict": "replace"}
            await timers.publish("timer", "sooner", **moved)  # type: ignore[call-overload]
        async with connection.transaction():
            moved = {"eta": timedelta(seconds=6), "dedup_key": "later", "on_conflict": "replace"}
            await timers.publish("timer", "later", **moved)  # type: ignore[call-overload]
        async with connection.transaction():
            assert await timers.cancel("withdrawn") is True
        due = dict(await connection.fetch("select dedup_key, send_after from outbox_table where dedup_key <> 'as set'"))
        await eventually(lambda: "later" in fired)

    assert set(fired) == {"as set", "sooner", "later"}
    for name, time in due.items():
        assert time <= fired[name] <= time + SOON_ENOUGH, name
    assert await connection.fetchval("select count(*) from outbox_table") == 0


# --- a broker that does not answer -------------------------------------------------------------------------------------


async def _in_flight(connection: Any) -> Sequence[str]:
    """The messages whose rows are locked."""
    rows = await connection.fetch(
        "select body from outbox_table where id <> all(array(select id from outbox_table for update skip locked))"
    )
    return [json.loads(row["body"]) for row in rows]


async def test_publishers_do_not_wait_for_a_relay_whose_broker_does_not_answer(
    database_url: str, connection: Any, broker_url: str, proxied: Callable[[str], Proxy]
) -> None:
    arrived: list[str] = []

    async def note(name: str) -> None:
        arrived.append(name)

    proxy = proxied(broker_url)
    relay = MessageRelay(db_engine_url=database_url, rmq_connection_url=proxy.url, publish_timeout=60)
    worker = Worker(rmq_connection_url=broker_url, consumers=[Consumer("#", note, queue="all", retry_delays=())])
    async with running(relay, worker):
        bound = BoundPublisher(publisher, connection)
        async with connection.transaction():
            await bound.publish("timer", "at the beginning")
        await eventually(lambda: connection.fetchval("select count(*) = 0 from outbox_table"))
        assert arrived

        proxy.swallow()  # from now on no confirm comes
        async with connection.transaction():
            for name in ("replaced", "ignoring", "cancelled"):
                await bound.publish("timer", name, dedup_key=name)
        await eventually(lambda: len(arrived) == 4)
        assert sorted(await _in_flight(connection)) == ["cancelled", "ignoring", "replaced"]

        async with connection.transaction():
            assert await bound.publish("timer", "replaced again", dedup_key="replaced", on_conflict="replace") is not None
            assert await bound.publish("timer", "ignoring again", dedup_key="ignoring") is not None
            assert await bound.cancel("cancelled") is False
        # Had any of these waited for the relay, it would have done so until it let go of its rows; it has not.
        assert set(await _in_flight(connection)) >= {"cancelled", "ignoring", "replaced"}

        proxy.refuse()
        proxy.resume()

        async def given_back() -> bool:
            return not await _in_flight(connection)

        await eventually(given_back, timeout=60)
        proxy.accept()
        await eventually(lambda: connection.fetchval("select count(*) = 0 from outbox_table"), timeout=60)
        await eventually(lambda: {"replaced again", "ignoring again"} <= set(arrived))

    # What came back unsent has been superseded, but for the one that nothing else stands for, whose confirm was lost.
    assert arrived.count("replaced") == 1
    assert arrived.count("ignoring") == 1
    assert arrived.count("cancelled") == 2
