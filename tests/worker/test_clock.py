"""A worker's clock: a handler's messages get later timestamps than the one it handles, on whatever machine."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from outbox import BoundPublisher, HybridClock, MessageRelay, Publisher, Worker, consume, ensure_outbox_schema_async
from outbox.core.message import Message
from outbox.errors import ConfigurationError
from outbox.transports.memory import MemoryBroker
from tests.servers.postgres import PostgresServer, fresh_database, with_database
from tests.support.eventually import eventually

HOUR = 3_600_000_000


def off_by(seconds: float) -> HybridClock:
    """The clock of a machine whose wall clock is wrong, and stands still, so that a test's own duration changes nothing."""
    stands = time.time_ns() // 1_000 + int(seconds * 1e6)
    return HybridClock(wall_clock=lambda: stands)


@pytest.fixture
def other_database_url(postgres_server: PostgresServer) -> Iterator[str]:
    with fresh_database(postgres_server.url) as name:
        yield with_database(postgres_server.url, name)


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


async def test_an_effect_sorts_after_its_cause_across_machines_whose_clocks_differ_by_seconds(
    database_url: str, other_database_url: str
) -> None:
    """Machine A, half a second ahead, sends to machine B, two and a half behind, which has a database of its own."""
    for url in (database_url, other_database_url):
        await ensure_outbox_schema_async(url)
    at_a, at_b = await asyncpg.connect(database_url), await asyncpg.connect(other_database_url)
    clock_of_a, clock_of_b = off_by(0.5), off_by(-2.5)
    broker = MemoryBroker()

    @consume("cause", queue="at b")
    async def react(body: object, publisher: BoundPublisher["asyncpg.Connection[asyncpg.Record]"]) -> None:
        await publisher.publish("effect", {})

    async with at_a.transaction():
        await Publisher(clock=clock_of_a).publish(at_a, "cause", {})
    cause = await at_a.fetchval("select hlc from outbox_table")
    worker = Worker(broker=broker, consumers=[react], db_engine_url=other_database_url, clock=clock_of_b)
    async with running(MessageRelay(db_engine_url=database_url, broker=broker), worker):
        row = await eventually(lambda: at_b.fetchrow("select hlc, send_after from outbox_table"))
    assert row is not None
    effect, due = row

    assert clock_of_b._wall_clock() < cause
    assert effect > cause
    assert due >= datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=effect)
    assert clock_of_b.ignored == 0
    await at_a.close()
    await at_b.close()


async def test_a_timestamp_of_a_machine_that_is_an_hour_ahead_is_not_followed(database_url: str) -> None:
    await ensure_outbox_schema_async(database_url)
    connection = await asyncpg.connect(database_url)
    broker, clock = MemoryBroker(), HybridClock()

    @consume("cause", queue="here")
    async def react(body: object, publisher: BoundPublisher["asyncpg.Connection[asyncpg.Record]"]) -> None:
        await publisher.publish("effect", {})

    async with running(Worker(broker=broker, consumers=[react], db_engine_url=database_url, clock=clock)):
        await eventually(lambda: broker._queues)
        now = time.time_ns() // 1_000
        message = Message(
            id="1", routing_key="cause", body=b"{}", created_at=datetime.now(UTC), tracking_ids=("1",), hlc=now + HOUR
        )
        await broker.send([message], timeout=timedelta(seconds=5))
        effect = await eventually(lambda: connection.fetchval("select hlc from outbox_table"))

    assert now <= effect < now + HOUR // 2
    assert clock.ignored == 1
    await connection.close()


async def test_without_a_clock_nothing_is_stamped(database_url: str) -> None:
    await ensure_outbox_schema_async(database_url)
    connection = await asyncpg.connect(database_url)
    broker = MemoryBroker()

    @consume("cause", queue="here")
    async def react(body: object, publisher: BoundPublisher["asyncpg.Connection[asyncpg.Record]"]) -> None:
        await publisher.publish("effect", {})

    async with running(Worker(broker=broker, consumers=[react], db_engine_url=database_url)):
        await eventually(lambda: broker._queues)
        message = Message(id="1", routing_key="cause", body=b"{}", created_at=datetime.now(UTC), tracking_ids=("1",), hlc=5)
        await broker.send([message], timeout=timedelta(seconds=5))
        await eventually(lambda: connection.fetchval("select count(*) from outbox_table"))

    assert await connection.fetchval("select hlc from outbox_table") is None
    await connection.close()


def test_an_invalid_clock_is_refused() -> None:
    with pytest.raises(ConfigurationError, match='clock must be "hlc"'):
        Worker(broker=MemoryBroker(), clock="atomic")  # type: ignore[arg-type]
