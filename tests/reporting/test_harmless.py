"""Problems of reporting affect nothing else: no tables, no privileges, no room, no database."""

import asyncio
import json
import logging
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from outbox import MessageRelay, Worker, ensure_outbox_schema_async, ensure_outbox_table_async
from outbox.core.events import Event, HistoryLost, Processed, ProcessingStatus
from outbox.core.message import Message
from outbox.core.outcome import DONE, Cause, Dead, Failure
from outbox.engine.lifecycle import Stopping
from outbox.postgres.pool import connect_to
from outbox.postgres.queries import TableName
from outbox.reporting import Component, ComponentKind, ReportingSettings, reporting
from outbox.reporting.facts import MOST_MESSAGE, FactQueue
from outbox.transports.memory import MemoryBroker
from tests.reporting.support import Box, at_work, published
from tests.servers.postgres import OwnPostgres
from tests.support import eventually

COMPONENT = Component(kind=ComponentKind.WORKER, name="worker-1")
TABLE = TableName("outbox_table")


class EventRecorder:
    """An observer that records its events."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def notify(self, event: Event) -> None:
        self.events.append(event)

    @property
    def lost(self) -> int:
        return sum(event.count for event in self.events if isinstance(event, HistoryLost))


def handled(id_: str = "1", *, failure: Failure | None = None) -> Processed:
    message = Message(id=id_, routing_key="order.placed", body=b"", created_at=datetime.now(UTC), tracking_ids=("r", "p", id_))
    return Processed(
        queue="mail",
        exchange_name="o",
        message=message,
        attempt=1,
        status=ProcessingStatus.SUCCESS,
        outcome=DONE if failure is None else Dead(Cause.EXHAUSTED, failure),
        duration=timedelta(seconds=1),
    )


async def test_a_relay_needs_its_one_table_only(database_url: str, caplog: pytest.LogCaptureFixture) -> None:
    await ensure_outbox_table_async(database_url)
    broker = MemoryBroker()
    connection = await asyncpg.connect(database_url)
    caplog.set_level(logging.INFO, logger="outbox")
    try:
        async with at_work(MessageRelay(database_url, broker=broker, on_unroutable="drop")):
            await published(connection)
            await eventually(lambda: connection.fetchval("select not exists(select from outbox_table)"))
            await eventually(lambda: "missing, or not accessible to the user" in caplog.text)
    finally:
        await connection.close()
    assert not [record for record in caplog.records if "reports" in record.getMessage() and record.levelno > logging.INFO]


async def test_facts_without_room_are_dropped_and_counted() -> None:
    queue = FactQueue(clock=lambda: 0.0, now=lambda: 0.0, capacity=3)
    for number in range(5):
        queue.record(handled(str(number)))
    assert (len(queue), queue.lost) == (3, 2)
    batch = queue.batch(2)
    queue.record(handled("5"))
    queue.put_back(batch)
    assert [fact.message_id for fact in queue.batch(9)] == ["1", "2", "5"]
    assert queue.lost == 3


async def test_facts_wait_for_a_database_that_is_away_and_are_counted_when_there_are_too_many(
    own_postgres: OwnPostgres,
) -> None:
    await ensure_outbox_schema_async(own_postgres.url)
    recorder, settings = EventRecorder(), ReportingSettings(capacity=100, tick=timedelta(milliseconds=50))
    connect = connect_to(own_postgres.url, application_name="test")
    async with reporting(connect, TABLE, COMPONENT, recorder, Stopping(), settings) as reporter:
        reporter.notify(handled("before"))
        connection = await asyncpg.connect(own_postgres.url)
        await eventually(lambda: connection.fetchval("select count(*) = 1 from outbox_history"))
        await connection.close()
        await asyncio.to_thread(own_postgres.stop)
        for number in range(150):
            reporter.notify(handled(str(number)))
        await asyncio.to_thread(own_postgres.start)
        connection = await asyncpg.connect(own_postgres.url)
        written = "select count(*) from outbox_history"
        await eventually(lambda: recorder.lost >= 50)
        await eventually(lambda: _adds_up(connection, written, recorder))
        await connection.close()
    assert recorder.lost in (50, 150)


async def _adds_up(connection: asyncpg.Connection, written: str, recorder: EventRecorder) -> bool:
    return bool(await connection.fetchval(written) + recorder.lost == 151)


async def test_a_burst_of_facts_is_written_in_one_statement(connection: asyncpg.Connection, database_url: str) -> None:
    connect = connect_to(database_url, application_name="test")
    async with reporting(connect, TABLE, COMPONENT, EventRecorder(), Stopping()) as reporter:
        for number in range(5_000):
            reporter.notify(handled(str(number)))
        await eventually(lambda: connection.fetchval("select count(*) = 5000 from outbox_history"))
    assert await connection.fetchval("select count(distinct xmin::text) from outbox_history") == 1


async def test_facts_that_take_too_long_together_are_written_in_parts(
    connection: asyncpg.Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.reporting.tables.STATEMENT_TIMEOUT", timedelta(seconds=1))
    await connection.execute(
        "create function hesitate() returns trigger language plpgsql as "
        "$$begin perform pg_sleep(10) where (select count(*) > 1000 from written); return null; end$$"
    )
    await connection.execute(
        "create trigger hesitate after insert on outbox_history referencing new table as written "
        "for each statement execute function hesitate()"
    )
    recorder, connect = EventRecorder(), connect_to(database_url, application_name="test")
    async with reporting(connect, TABLE, COMPONENT, recorder, Stopping()) as reporter:
        for number in range(1_500):
            reporter.notify(handled(str(number)))
        await eventually(lambda: connection.fetchval("select count(*) = 1500 from outbox_history"))
    assert await connection.fetchval("select count(distinct message_id) from outbox_history") == 1_500
    assert recorder.lost == 0


async def test_text_that_a_database_cannot_store_is_escaped(connection: asyncpg.Connection, database_url: str) -> None:
    recorder = EventRecorder()
    connect = connect_to(database_url, application_name="test")
    failure = Failure("ValueError", "half a pair \ud800 and \0, and é" + "x" * 10_000)
    async with reporting(connect, TABLE, COMPONENT, recorder, Stopping()) as reporter:
        reporter.notify(handled("a\0b"))
        reporter.notify(handled("c", failure=failure))
    rows = await connection.fetch("select * from outbox_history order by message_id")
    assert [row["message_id"] for row in rows] == ["a\\u2400b", "c"]
    assert len(rows[1]["error_message"]) <= MOST_MESSAGE + 40
    assert (rows[0]["root_id"], rows[0]["parent_id"]) == ("r", "p")
    assert recorder.lost == 0
    # The heartbeat has the failure, too. Without it, the component would count as lost.
    activity = json.loads(await connection.fetchval("select activity from outbox_component where stopped_at is not null"))
    assert activity["last_failure"]["text"].startswith("ValueError: half a pair ? and ?, and ?xxx")


async def test_a_lock_on_the_history_delays_no_pause_and_no_handler(connection: asyncpg.Connection, database_url: str) -> None:
    box = Box()
    worker = Worker(broker=database_url, consumers=[box.consumer], name="worker-1")
    async with at_work(MessageRelay(database_url, broker=database_url), worker):
        await eventually(lambda: connection.fetchval("select exists(select from outbox_subscription)"))
        await eventually(lambda: connection.fetchval("select count(*) = 2 from outbox_component"))
        async with connection.transaction():
            await connection.execute("lock table outbox_stats, outbox_component in access exclusive mode")
            other = await asyncpg.connect(database_url)
            try:
                await published(other, body=1)
                await eventually(lambda: box.bodies == [1])
                await eventually(lambda: other.fetchval("select exists(select from outbox_history where queue = 'mail')"))
            finally:
                await other.close()


async def test_nothing_is_reported_if_reporting_is_off(connection: asyncpg.Connection, database_url: str) -> None:
    box = Box()
    relay = MessageRelay(database_url, broker=database_url, reporting=False)
    worker = Worker(broker=database_url, consumers=[box.consumer], reporting=False)
    async with at_work(relay, worker):
        await published(connection, body=1)
        await eventually(lambda: box.bodies == [1])
    for table in ("component", "stats"):
        assert await connection.fetchval(f"select count(*) from outbox_{table}") == 0
    assert await connection.fetchval("select count(*) from outbox_history where queue is not null") == 0


async def test_a_given_pool_is_borrowed_from_and_left_open(connection: asyncpg.Connection, database_url: str) -> None:
    box = Box()
    async with asyncpg.create_pool(database_url, min_size=0, max_size=8) as pool:
        relay = MessageRelay(db_pool=pool, broker=database_url, name="relay-1")
        worker = Worker(broker=MemoryBroker(), db_pool=pool, consumers=[box.consumer], name="worker-1")
        async with at_work(relay, worker):
            running = "select count(*) = 2 from outbox_component where activity ->> 'state' = 'running'"
            await eventually(lambda: connection.fetchval(running))
        assert await pool.fetchval("select count(*) from outbox_component where stopped_at is not null") == 2
