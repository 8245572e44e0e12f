"""A reporter at work for as long as a block lasts."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from outbox.engine.lifecycle import Stopping
from outbox.ports import Observer
from outbox.postgres.names import TableName
from outbox.postgres.pool import Connect
from outbox.postgres.reporting.component import Component, ReportingSettings
from outbox.postgres.reporting.reporter import Reporter

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
) -> AsyncIterator[Reporter]:
    """Within the block a reporter is at work, over one connection that `connect` opens.

    Entering waits a moment for the pauses that hold, so that a component that was restarted keeps to them. Leaving writes what
    is left, within a moment. Nothing that goes wrong with the database is raised, or noticed by anybody else.
    """
    reporter = Reporter(connect, table, component, observer, stopping, settings or ReportingSettings())
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


def _tell_end(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("nothing is reported any more: %s", error, exc_info=error)
