"""Reporter of one component: counts events as an observer, and writes reports in a task."""

import asyncio
import logging
import math
import os
import platform
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

import asyncpg

from outbox import __version__
from outbox.core.clock import DatabaseClock
from outbox.core.events import (
    BacklogMeasured,
    BatchSent,
    Duplicate,
    Event,
    HistoryLost,
    Paused,
    Processed,
    QueueMeasured,
    Resumed,
)
from outbox.engine.lifecycle import Pauses, Stopping, pause_before_next
from outbox.ports import Gate, Observer
from outbox.postgres.doorbell import notifications_arrive
from outbox.postgres.pool import DRIVER_ERRORS, Connect, Connection, reason_of
from outbox.postgres.queries import TableName
from outbox.reporting.components import Activity, Component, ComponentKind, ReportingSettings
from outbox.reporting.facts import FactQueue
from outbox.reporting.pauses import Gates, PauseKey, PauseProgress
from outbox.reporting.statistics import Statistics
from outbox.reporting.tables import ReportingTables, as_json, measure

MAX_DUPLICATES = 10_000


class Duplicates:
    """Deliveries known to be duplicates, until they are settled: the event of their settlement does not say so."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], None] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, queue: str, message_id: str) -> None:
        """Adds a delivery, and drops the oldest if too many were never settled."""
        self._found[queue, message_id] = None
        if len(self._found) > MAX_DUPLICATES:
            self._found.pop(next(iter(self._found)))

    def discard(self, queue: str, message_id: str) -> bool:
        """Removes a delivery; returns whether it was a duplicate."""
        known = (queue, message_id) in self._found
        self._found.pop((queue, message_id), None)
        return known


LARGEST_BATCH, SMALLEST_BATCH = 5_000, 500
"""Number of facts written in one statement: many, because the event loop of a busy worker has time for about ten statements a
second; fewer, after one that was too slow for its time limit."""
MAX_BATCHES = 4
"""Number of batches written before pauses are read again."""
TABLE_CHECK_INTERVAL = timedelta(seconds=30)
"""Interval of looking for missing tables."""
LISTEN_RETRY = timedelta(seconds=30)
"""Interval of trying LISTEN again if notifications do not arrive."""
NOTIFY_TIMEOUT = timedelta(milliseconds=500)
"""Longest wait for a test notification. Pauses are not read meanwhile."""
MAX_RECONNECT_PAUSE = timedelta(seconds=2)
"""Longest pause between two attempts to connect."""
START_TIMEOUT = timedelta(seconds=2)
"""Time that a component waits for the current pauses before it starts without them."""
LOSS_REPORT_INTERVAL = timedelta(seconds=10)

_INITIAL_STATES = {ComponentKind.MAINTENANCE: "standing by", ComponentKind.ARCHIVER: "running"}
"""Initial states other than `starting`: maintenance may wait for another process, and no event marks the archiver's start."""

# Errors after which the server has rolled back, for a temporary reason: the same rows can be written again. After any other
# error they may have been committed, or would fail again.
_TRANSIENT_ERRORS = (
    asyncpg.OperatorInterventionError,
    asyncpg.ObjectNotInPrerequisiteStateError,
    asyncpg.TransactionRollbackError,
    asyncpg.InsufficientResourcesError,
    asyncpg.ReadOnlySQLTransactionError,
)
_ALL_TABLES = frozenset({"history", "stats", "component", "control"})
_TABLE_OF_TASK = {"pauses": "control", "stats": "stats", "heartbeat": "component"}
"""Periodic tasks, and the table that each needs."""
_log = logging.getLogger("outbox")


class Reporter:
    """Implements the Observer port. `notify` only counts; `run` does everything else."""

    def __init__(
        self,
        connect: Connect,
        table: TableName,
        component: Component,
        observer: Observer,
        stopping: Stopping,
        settings: ReportingSettings,
        clock: DatabaseClock,
    ) -> None:
        self._connect = connect
        self._tables = ReportingTables(table)
        self._component = component
        self._observer = observer
        self._settings = settings
        self._clock = clock
        self._facts = FactQueue(clock=time.monotonic, now=self._clock.seconds, capacity=settings.capacity)
        self._batch_size = LARGEST_BATCH
        self._statistics = Statistics(self._clock.seconds)
        initial_state = _INITIAL_STATES.get(component.kind, "starting")
        self.activity = Activity(stopping, time.monotonic, self._clock.now, initial_state, component.destination)
        self._gates = Gates(component.kind.value, component.name, now=time.monotonic)
        self._pauses_known = asyncio.Event()
        self._finishing = asyncio.Event()
        # Both end the wait between two rounds: `_urgent` immediately, `_news` after a tick at the earliest, so that facts are
        # written in batches.
        self._news = asyncio.Event()
        self._urgent = asyncio.Event()
        self._listening = False
        self._pauses_changed = False
        self._duplicates = Duplicates()
        self._usable: frozenset[str] = frozenset()
        self._done = False
        self._due = {"tables": 0.0, "pauses": 0.0, "listen": 0.0, "heartbeat": 0.0}
        self._due["stats"] = time.monotonic() + settings.add_up_every.total_seconds()
        self._reported_pauses = PauseProgress()
        self._problems: dict[str, str] = {}
        self._loss_reason = "they arrived faster than they could be written"
        self._loss_reported_at = 0.0
        self._writes_history = settings.history
        self._index_keys = settings.index_keys
        self._writes_stats = True
        self._record = self.activity.record

    def notify(self, event: Event) -> None:
        """See `outbox.ports.Observer`."""
        # The most frequent events come first.
        match event:
            case Processed():
                duplicate = bool(self._duplicates) and self._duplicates.discard(event.queue, event.message.id)
                if self._writes_history:
                    self._facts.record(event, duplicate=duplicate, index_keys=self._index_keys.get(event.queue))
                    self._news.set()
                if self._writes_stats:
                    self._statistics.processed(event, duplicate=duplicate)
            case BatchSent() if self._writes_stats:
                self._statistics.sent(event)
            case Duplicate():
                self._duplicates.add(event.queue, event.message.id)
            case BacklogMeasured() | QueueMeasured() if self._writes_stats:
                self._statistics.measured(event)
            case Paused() | Resumed():
                self._wake_now()
        self._record(event)
        if self.activity.changed:
            self._news.set()

    def gate(self, queue: str = "") -> Gate:
        """Returns the gate of a consumer of `queue`, or of the component itself."""
        return self._gates.of(queue)

    async def wait_for_pauses(self) -> None:
        """Returns when the current pauses are known, or after two seconds."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._pauses_known.wait(), START_TIMEOUT.total_seconds())

    def finish(self) -> None:
        """Asks `run` to write the remaining reports and return."""
        self._finishing.set()
        self._wake_now()

    async def run(self) -> None:
        """Reports until `finish`. While the database is away, buffers facts, and counts those without room as lost."""
        backoff = Pauses(longest=MAX_RECONNECT_PAUSE)
        while not self._done:
            try:
                async with self._connect() as connection:
                    self._log_recovery("database")
                    backoff.reset()
                    await self._report(connection)
                pause = None if self._usable else TABLE_CHECK_INTERVAL
            except DRIVER_ERRORS as error:
                self._log_problem("database", reason_of(error), level=logging.INFO)
                self._loss_reason = f"the database is away: {reason_of(error)}"
                pause = backoff.next()
            # Even without an answer: a component does not wait for its start until the database is back.
            self._pauses_known.set()
            if self._done or (pause is not None and self._finishing.is_set()):
                return
            if pause is None:
                await self._wait_until_due()
            else:
                await _wait(self._finishing, pause.total_seconds())
                self._gates.tick()

    # --- rounds --------------------------------------------------------------------------------------------------------

    async def _report(self, connection: Connection) -> None:
        """Runs rounds over one connection, until it is lost or `finish`; only one round if the connection is borrowed."""
        if time.monotonic() >= self._due["tables"]:
            self._due["tables"] = time.monotonic() + TABLE_CHECK_INTERVAL.total_seconds()
            # Without the table of pauses, this is the only place that reads the database's time.
            await measure(self._clock, connection)
            self._usable = await self._tables.usable(connection)
            self._writes_history = self._settings.history and "history" in self._usable
            self._writes_stats = "stats" in self._usable
            if missing := ", ".join(sorted(_ALL_TABLES - self._usable)):
                self._log_problem("tables", f"missing, or not accessible to the user: {missing}", level=logging.INFO)
        if not self._settings.borrows:
            self._listening = False
            # Notifications may have been missed without a connection: read the pauses and listen at once.
            self._due["pauses"] = self._due["listen"] = 0.0
            connection.add_termination_listener(lambda *_: self._wake_now())
        while self._usable and not self._done:
            self._done = self._finishing.is_set()
            self._news.clear()
            self._urgent.clear()
            # An idle round sends no statement, so it would not notice a closed connection.
            if connection.is_closed():
                raise ConnectionError("the connection was lost")
            await self._round(connection, self._usable, last=self._done)
            if self._settings.borrows or self._done or not self._usable:
                return
            if self._should_listen and time.monotonic() >= self._due["listen"]:
                await self._listen(connection)
            await self._wait_until_due()

    @property
    def _should_listen(self) -> bool:
        # A borrowed connection is returned after each round, and would miss notifications.
        return not (self._listening or self._settings.borrows) and "control" in self._usable

    async def _listen(self, connection: Connection) -> None:
        """Listens for changes of pauses, and checks that notifications arrive. Until they do, pauses are polled."""
        self._due["listen"] = time.monotonic() + LISTEN_RETRY.total_seconds()
        problem: str | None = "notifications do not arrive (a transaction pooler?)"
        try:
            channel = await self._tables.channel(connection)
            if channel is None:
                problem = "their table's trigger is missing: run `outbox migrate`"
            else:
                # Notify from another connection: behind a pooler, a connection may hear its own notification by chance.
                async with self._connect() as other:
                    if await notifications_arrive(connection, other, channel, self._on_pause_change, timeout=NOTIFY_TIMEOUT):
                        problem = None
        except DRIVER_ERRORS as error:
            if connection.is_closed():
                raise
            problem = reason_of(error)
        self._listening = problem is None
        if problem is None:
            self._log_recovery("pauses are polled")
        else:
            self._log_problem("pauses are polled", problem, level=logging.INFO)
        # Changes committed between the last read and LISTEN were not notified.
        self._on_pause_change()

    def _on_pause_change(self) -> None:
        self._pauses_changed = True
        self._wake_now()

    async def _round(self, connection: Connection, usable: frozenset[str], *, last: bool) -> None:
        # Pauses first: they stop messages, while everything else only reports.
        if "control" in usable and (self._pauses_changed or time.monotonic() >= self._due["pauses"]):
            await self._attempt("pauses", self._read_pauses(connection), connection)
        self._pauses_known.set()
        if "history" in usable:
            await self._attempt("history", self._write_history(connection), connection)
        self.report_lost_facts(at_once=last)
        if "stats" in usable and (last or self._is_due("stats", self._settings.add_up_every)):
            await self._attempt("statistics", self._add_stats(connection), connection)
        if "component" in usable:
            due = self._is_due("heartbeat", self._settings.heartbeat)
            if last or due or self.activity.changed or self._reported_pauses != self._gates.progress(self.activity.paused):
                await self._attempt("heartbeat", self._write_heartbeat(connection, stopped=last), connection)

    async def _attempt(self, what: str, task: Awaitable[None], connection: Connection) -> None:
        """Runs one task of a round. Its failure does not affect the others, unless the connection is lost."""
        try:
            await task
        except (asyncpg.PostgresError, TimeoutError, ValueError) as error:
            self._log_problem(what, reason_of(error))
            if connection.is_closed():
                raise ConnectionError(f"{what}: {reason_of(error)}") from error
            if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
                # A server that is writable again may say so to new connections only: this one ends, and the next comes later.
                self._usable = frozenset()
        else:
            self._log_recovery(what)

    async def _read_pauses(self, connection: Connection) -> None:
        asked = time.monotonic()
        # Reset before the read: a notification during it may be for a change that the read does not see.
        self._pauses_changed = False
        # If the read fails, it is due again at once.
        self._due["pauses"] = asked
        now, wanted = await self._tables.pauses(connection, is_direct=self._listening)
        every = self._settings.look_every if self._listening else self._settings.poll_every
        self._due["pauses"] = asked + pause_before_next(every)
        self._clock.measured(now, asked=asked)
        self._gates.update({key: None if left is None else asked + left for key, left in wanted.items()})

    async def _write_history(self, connection: Connection) -> None:
        for _ in range(MAX_BATCHES):
            batch = self._facts.batch(self._batch_size)
            if not batch:
                return
            try:
                await self._tables.write_history(connection, batch, component=self._component.name, clock=time.monotonic())
            except _TRANSIENT_ERRORS:
                self._facts.put_back(batch)
                self._batch_size = max(self._batch_size // 2, SMALLEST_BATCH)
                raise
            except DRIVER_ERRORS as error:
                self._facts.lost += len(batch)
                self._loss_reason = reason_of(error)
                raise
            self._batch_size = min(self._batch_size * 2, LARGEST_BATCH)

    async def _add_stats(self, connection: Connection) -> None:
        taken = self._statistics.take()
        try:
            await self._tables.add_stats(connection, taken)
        except _TRANSIENT_ERRORS:
            self._statistics.give_back(taken)
            raise

    async def _write_heartbeat(self, connection: Connection, *, stopped: bool) -> None:
        component, activity = self._component, self.activity
        # Before the write: a change during it calls for another heartbeat.
        activity.changed = False
        self._reported_pauses = self._gates.progress(activity.paused)
        applied = as_json(_as_objects(self._reported_pauses.applied))
        current = activity.as_json(pausing=_as_objects(self._reported_pauses.pending))
        if await self._tables.beat_again(connection, component.id, activity=current, applied=applied, stopped=stopped):
            return
        await self._tables.beat(
            connection,
            component.id,
            component.kind.value,
            component.name,
            platform.node(),
            os.getpid(),
            __version__,
            component.service_version,
            self._settings.heartbeat,
            current,
            as_json(list(component.consumers)),
            applied,
            stopped,
        )

    # --- timing and problems -------------------------------------------------------------------------------------------

    def _is_due(self, task: str, every: timedelta) -> bool:
        now = time.monotonic()
        if now < self._due[task]:
            return False
        self._due[task] = now + pause_before_next(every)
        return True

    async def _wait_until_due(self) -> None:
        """Waits until there is something to read or write, and ends expired pauses."""
        tick_ends = time.monotonic() + self._settings.tick.total_seconds()
        # Facts are left if a write failed, or if there were too many for one round.
        if self._facts:
            self._news.set()
        due = [self._due[task] for task, table in _TABLE_OF_TASK.items() if table in self._usable]
        if self._should_listen:
            due.append(self._due["listen"])
        if self._gates.next_end is not None:
            due.append(self._gates.next_end)
        await _wait(self._news, min(due, default=math.inf) - time.monotonic())
        if (left := tick_ends - time.monotonic()) > 0:
            await _wait(self._urgent, left)
        self._gates.tick()

    def _wake_now(self) -> None:
        self._urgent.set()
        self._news.set()

    def report_lost_facts(self, *, at_once: bool = True) -> None:
        """Reports the number of facts lost since the last report, at most every ten seconds.

        With `at_once`, reports immediately, and counts all buffered facts as lost.
        """
        if at_once:
            self._facts.lost += len(self._facts.batch(len(self._facts)))
        if self._facts.lost and (at_once or time.monotonic() - self._loss_reported_at >= LOSS_REPORT_INTERVAL.total_seconds()):
            lost, self._facts.lost, self._loss_reported_at = self._facts.lost, 0, time.monotonic()
            self.activity.record_lost_facts(lost)
            self._observer.notify(HistoryLost(count=lost, reason=self._loss_reason))

    def _log_problem(self, what: str, reason: str, *, level: int = logging.WARNING) -> None:
        """Logs a problem, unless it has the same reason as the last time."""
        if self._problems.get(what) != reason:
            self._problems[what] = reason
            _log.log(level, "reports: %s: %s", what, reason)

    def _log_recovery(self, what: str) -> None:
        if self._problems.pop(what, None) is not None:
            _log.info("reports: %s: recovered", what)


async def _wait(event: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(max(seconds, 0.0)):
            await event.wait()


def _as_objects(keys: Sequence[PauseKey]) -> list[dict[str, str]]:
    return [{"scope": scope, "name": name} for scope, name in keys]


CLOCK_INTERVAL, CLOCK_RETRY = timedelta(minutes=1), timedelta(seconds=5)
FLUSH_TIMEOUT = timedelta(seconds=2)
"""Time limit for writing the remaining reports at the end."""


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
    """Runs a reporter within the block, over one connection that `connect` opens, and keeps `clock` set.

    Entering waits up to two seconds for the current pauses, so that a restarted component follows them from the start. Leaving
    writes the remaining reports within two seconds. Problems with the database are logged, never raised.
    """
    settings, clock = settings or ReportingSettings(), clock or DatabaseClock()
    reporter = Reporter(connect, table, component, observer, stopping, settings, clock)
    task = asyncio.create_task(reporter.run())
    task.add_done_callback(_log_crash)
    try:
        await reporter.wait_for_pauses()
        yield reporter
    finally:
        reporter.finish()
        try:
            await asyncio.wait([task], timeout=FLUSH_TIMEOUT.total_seconds())
        finally:
            task.cancel()
            # What could not be written within the time limit is counted as lost.
            reporter.report_lost_facts()


@asynccontextmanager
async def synchronizing(connect: Connect, clock: DatabaseClock) -> AsyncIterator[None]:
    """Sets `clock` every minute within the block, over a new connection each time.

    Entering waits up to two seconds for the first answer. If the database does not answer, it is asked again after five
    seconds; nothing is raised.
    """
    measured = asyncio.Event()
    task = asyncio.create_task(_synchronize(connect, clock, measured))
    task.add_done_callback(_log_crash)
    try:
        with suppress(TimeoutError):
            await asyncio.wait_for(measured.wait(), START_TIMEOUT.total_seconds())
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _synchronize(connect: Connect, clock: DatabaseClock, measured: asyncio.Event) -> None:
    while True:
        pause = CLOCK_INTERVAL
        try:
            async with connect() as connection:
                await measure(clock, connection)
        except DRIVER_ERRORS:
            pause = CLOCK_RETRY
        measured.set()
        await asyncio.sleep(pause.total_seconds())


def _log_crash(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("reports: stopped by an unexpected error: %s", error, exc_info=error)
