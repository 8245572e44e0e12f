"""An idle component costs almost nothing, and still notices a pause at once."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from outbox import MessageRelay, Worker
from outbox.core.events import Paused
from outbox.engine.lifecycle import Stopping
from outbox.engine.observers import Observers
from outbox.postgres.pool import borrow_from, connect_to
from outbox.postgres.queries import TableName
from outbox.reporting import Component, ComponentKind, Reporter, ReportingSettings, reporting
from outbox.reporting.pauses import Pause, PauseScope, pause, resume
from tests.reporting.support import Box, at_work
from tests.support import eventually

NEVER = timedelta(hours=1)
"""Longer than a test runs."""


@asynccontextmanager
async def reporter_of(url: str, **settings: timedelta) -> AsyncIterator[Reporter]:
    """The reporter of a relay without polls and periodic heartbeats: it acts on notifications and events only."""
    component = Component(kind=ComponentKind.RELAY, name="relay-1")
    given: dict[str, Any] = {"heartbeat": NEVER, "look_every": NEVER, "poll_every": NEVER, **settings}
    seldom = ReportingSettings(**given)
    connect = connect_to(url, application_name="test")
    async with reporting(connect, TableName("outbox_table"), component, Observers(()), Stopping(), seldom) as reporter:
        yield reporter


async def test_idle_relays_and_workers_make_less_than_one_transaction_a_second_each(
    connection: asyncpg.Connection, database_url: str
) -> None:
    relays = [MessageRelay(database_url, broker=database_url, name=f"relay-{number}") for number in range(5)]
    workers = [
        Worker(broker=database_url, consumers=[Box(f"mail-{number}").consumer], name=f"worker-{number}") for number in range(5)
    ]
    components, seconds = len(relays) + len(workers), 11

    async def idle() -> bool:
        # An idle session reports its transactions to the server's statistics after 10 s only, so those of the start come late.
        before = await transactions(connection)
        await asyncio.sleep(seconds)
        return await transactions(connection) - before < components * seconds

    async with at_work(*relays, *workers):
        await eventually(
            lambda: connection.fetchval("select count(*) = $1 from outbox_component where stopped_at is null", components),
        )
        await eventually(idle, timeout=60)


async def transactions(connection: asyncpg.Connection) -> int:
    """Number of transactions that the server has counted in this database."""
    count: int = await connection.fetchval(
        "select xact_commit + xact_rollback from pg_stat_database where datname = current_database()"
    )
    return count


async def test_a_pause_and_its_end_are_notified_and_acknowledged_without_any_poll(
    connection: asyncpg.Connection, database_url: str
) -> None:
    async with reporter_of(database_url) as reporter:
        gate = reporter.gate()
        await pause(connection, Pause(scope=PauseScope.RELAY))
        async with asyncio.timeout(30):
            await gate.wait_until_closed()
        reporter.notify(Paused(exchange_name="outbox"))
        await eventually(lambda: connection.fetchval("select applied <> '[]' from outbox_component"))
        await resume(connection, PauseScope.RELAY)
        async with asyncio.timeout(30):
            await gate.wait_until_open()
        # Also what was not requested through the library.
        await connection.execute("insert into outbox_control (scope) values ('relay')")
        async with asyncio.timeout(30):
            await gate.wait_until_closed()
        await connection.execute("truncate outbox_control")
        async with asyncio.timeout(30):
            await gate.wait_until_open()


async def test_a_pause_expires_without_a_read(connection: asyncpg.Connection, database_url: str) -> None:
    async with reporter_of(database_url) as reporter:
        gate = reporter.gate()
        for later, passed in ((NEVER, gate.wait_until_closed), (timedelta(seconds=1), gate.wait_until_open)):
            await pause(connection, Pause(scope=PauseScope.RELAY, until=datetime.now(UTC) + later))
            async with asyncio.timeout(30):
                await passed()


async def test_a_listener_whose_connection_was_lost_notices_the_next_pause(
    connection: asyncpg.Connection, database_url: str
) -> None:
    async with reporter_of(database_url) as reporter:
        gate = reporter.gate()
        # What it said last is the loop-back test's, so from here on it listens, and waits.
        await eventually(
            lambda: connection.fetchval(
                "select bool_or(pg_terminate_backend(pid)) from pg_stat_activity"
                " where application_name = 'test' and state = 'idle' and backend_start < now() - interval '1 second'"
            )
        )
        await pause(connection, Pause(scope=PauseScope.RELAY))
        async with asyncio.timeout(30):
            await gate.wait_until_closed()


async def test_a_pause_whose_notification_never_comes_is_found_by_looking(
    connection: asyncpg.Connection, database_url: str
) -> None:
    async with reporter_of(database_url, look_every=timedelta(milliseconds=100)) as reporter:
        gate = reporter.gate()
        await eventually(lambda: reporter._listening)
        async with connection.transaction():
            await connection.execute("alter table outbox_control disable trigger user")
            await pause(connection, Pause(scope=PauseScope.RELAY))
            await connection.execute("alter table outbox_control enable trigger user")
        async with asyncio.timeout(30):
            await gate.wait_until_closed()


async def test_without_the_trigger_pauses_are_polled(
    connection: asyncpg.Connection, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="outbox")
    await connection.execute("alter table outbox_control disable trigger user")
    async with reporter_of(database_url, poll_every=timedelta(milliseconds=100)) as reporter:
        gate = reporter.gate()
        await eventually(lambda: "pauses are polled: their table's trigger is missing" in caplog.text)
        await pause(connection, Pause(scope=PauseScope.RELAY))
        async with asyncio.timeout(30):
            await gate.wait_until_closed()


async def test_over_a_borrowed_connection_pauses_are_polled(connection: asyncpg.Connection, database_url: str) -> None:
    component = Component(kind=ComponentKind.RELAY, name="relay-1")
    settings = ReportingSettings(borrows=True, heartbeat=NEVER, look_every=NEVER)
    async with (
        asyncpg.create_pool(database_url, min_size=0, max_size=1) as pool,
        reporting(borrow_from(pool), TableName("outbox_table"), component, Observers(()), Stopping(), settings) as reporter,
    ):
        gate = reporter.gate()
        await pause(connection, Pause(scope=PauseScope.RELAY))
        async with asyncio.timeout(30):
            await gate.wait_until_closed()
