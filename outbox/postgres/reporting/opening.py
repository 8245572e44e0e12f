"""A reporter at work for as long as a block lasts."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

from outbox.core.clock import DatabaseClock
from outbox.engine.lifecycle import Stopping
from outbox.ports import Observer
from outbox.postgres.names import TableName
from outbox.postgres.pool import DRIVER_ERRORS, Connect
from outbox.postgres.reporting.component import Component, ReportingSettings
from outbox.postgres.reporting.reporter import FIRST_LOOK, Reporter
from outbox.postgres.reporting.tables import measure

MEASURE_EVERY, MEASURE_AGAIN = timedelta(minutes=1), timedelta(seconds=5)
LAST_WORDS = timedelta(seconds=2)
"""How long what is left may take to be written at the end."""
_log = logging.getLogger("outbox")


@asynccontextmanager
async def reporting(
    connect: Connect,
    table: TableName,
    component: Component,
    observer: Observer,
    stopping: Stopping,
    settings: ReportingSettings | None = None,
    clock: DatabaseClock | None = None,
) -> AsyncIterator[Reporter]:
    """Within the block a reporter is at work, over one connection that `connect` opens, and sets `clock`.

    Entering waits a moment for the pauses that hold, so that a component that was restarted keeps to them. Leaving writes what
    is left, within a moment. Nothing that goes wrong with the database is raised, or noticed by anybody else.
    """
    settings, clock = settings or ReportingSettings(), clock or DatabaseClock()
    reporter = Reporter(connect, table, component, observer, stopping, settings, clock)
    task = asyncio.create_task(reporter.run())
    task.add_done_callback(_tell_end)
    try:
        await reporter.first_look()
        yield reporter
    finally:
        reporter.finish()
        try:
            await asyncio.wait([task], timeout=LAST_WORDS.total_seconds())
        finally:
            task.cancel()
            reporter.tell_lost()


@asynccontextmanager
async def keeping_time(connect: Connect, clock: DatabaseClock) -> AsyncIterator[None]:
    """Within the block `clock` is set every minute, over a connection that is opened for it.

    Entering waits a moment for the first answer. A database that does not answer is asked again sooner, and hinders nothing.
    """
    measured = asyncio.Event()
    task = asyncio.create_task(_keep_time(connect, clock, measured))
    task.add_done_callback(_tell_end)
    try:
        with suppress(TimeoutError):
            await asyncio.wait_for(measured.wait(), FIRST_LOOK.total_seconds())
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _keep_time(connect: Connect, clock: DatabaseClock, measured: asyncio.Event) -> None:
    while True:
        pause = MEASURE_EVERY
        try:
            async with connect() as connection:
                await measure(clock, connection)
        except DRIVER_ERRORS:
            pause = MEASURE_AGAIN
        measured.set()
        await asyncio.sleep(pause.total_seconds())


def _tell_end(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("nothing is reported any more: %s", error, exc_info=error)
