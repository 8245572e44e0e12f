"""The reporter of one component: observes events, and one task writes them."""

import asyncio
import logging
import math
import os
import platform
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any

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
from outbox.engine.lifecycle import Pauses, Stopping
from outbox.ports import Gate, Observer
from outbox.postgres.doorbell import notifications_arrive
from outbox.postgres.pool import DRIVER_ERRORS, Connect, Connection, reason_of
from outbox.postgres.queries import TableName
from outbox.reporting.components import Activity, Component, ComponentKind, ReportingSettings
from outbox.reporting.facts import FactQueue
from outbox.reporting.pauses import Gates, Heeded, Wish
from outbox.reporting.statistics import Statistics
from outbox.reporting.tables import ReportingTables, as_json, measure

MOST_DUPLICATES = 10_000


class Duplicates:
    """Deliveries that were found to be duplicates, until they are settled, which is reported like that of any other."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], None] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, queue: str, message_id: str) -> None:
        """Takes note of one; forgets the oldest of those that were never settled."""
        self._found[queue, message_id] = None
        if len(self._found) > MOST_DUPLICATES:
            self._found.pop(next(iter(self._found)))

    def discard(self, queue: str, message_id: str) -> bool:
        """Whether it was one; it is not any more."""
        known = (queue, message_id) in self._found
        self._found.pop((queue, message_id), None)
        return known


LARGEST_BATCH = 1_000
"""Facts that are written at once."""
MOST_BATCHES = 20
"""Batches that are written before pauses are looked at again."""
LOOK_AGAIN = timedelta(seconds=30)
"""How often tables that were not there are looked for."""
LISTEN_AGAIN = timedelta(seconds=30)
"""How often LISTEN is tried again where it does not deliver."""
HEARING_TIMEOUT = timedelta(milliseconds=500)
"""Longest wait for a notification to oneself; pauses are not looked at meanwhile."""
LONGEST_PAUSE = timedelta(seconds=2)
"""Between two tries to reach a database that is away."""
FIRST_LOOK = timedelta(seconds=2)
"""How long a component waits for the pauses before it begins to work without knowing them."""
TELL_LOST_EVERY = timedelta(seconds=10)

_AT_FIRST = {ComponentKind.MAINTENANCE: "standing by", ComponentKind.ARCHIVER: "running"}
"""The state of those of whom nothing tells that they have started: one may wait for another to end, one is at work at once."""

# What the server says when a statement was rolled back for a reason that passes. After anything else it may have been
# committed, or would fail again.
_PASSING = (
    asyncpg.OperatorInterventionError,
    asyncpg.ObjectNotInPrerequisiteStateError,
    asyncpg.TransactionRollbackError,
    asyncpg.InsufficientResourcesError,
)
_ALL_TABLES = frozenset({"history", "stats", "component", "control"})
_DUTIES = {"look": "control", "stats": "stats", "beat": "component"}
"""What is done from time to time, and the table that it needs."""
_log = logging.getLogger("outbox")


class Reporter:
    """Implements the Observer port. An event costs no more than counting; everything else is done by `run`."""

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
        self._statistics = Statistics(self._clock.seconds)
        at_first = _AT_FIRST.get(component.kind, "starting")
        self.activity = Activity(stopping, time.monotonic, self._clock.now, at_first)
        self._gates = Gates(component.kind.value, component.name, now=time.monotonic)
        self._looked = asyncio.Event()
        self._finishing = asyncio.Event()
        # What ends the rest between two rounds: `_news` after a tick at the earliest, so that facts are written together;
        # `_urgent` at once.
        self._news = asyncio.Event()
        self._urgent = asyncio.Event()
        self._listening = False
        self._changed = False
        self._duplicates = Duplicates()
        self._usable: frozenset[str] = frozenset()
        self._done = False
        self._due = {"tables": 0.0, "look": 0.0, "listen": 0.0, "beat": 0.0}
        self._due["stats"] = time.monotonic() + settings.add_up_every.total_seconds()
        self._heeded = Heeded()
        self._problems: dict[str, str] = {}
        self._lost_because = "they came faster than they could be written"
        self._lost_told = 0.0
        self._writes_history = settings.history
        self._index_keys = settings.index_keys
        self._adds_up = True
        self._take_note = self.activity.take_note

    def notify(self, event: Event) -> None:
        """See `outbox.ports.Observer`."""
        match event:  # the most frequent ones first
            case Processed():
                duplicate = bool(self._duplicates) and self._duplicates.discard(event.queue, event.message.id)
                if self._writes_history:
                    self._facts.take_note(event, duplicate=duplicate, index_keys=self._index_keys.get(event.queue))
                    self._news.set()
                if self._adds_up:
                    self._statistics.processed(event, duplicate=duplicate)
            case BatchSent() if self._adds_up:
                self._statistics.sent(event)
            case Duplicate():
                self._duplicates.add(event.queue, event.message.id)
            case BacklogMeasured() | QueueMeasured() if self._adds_up:
                self._statistics.measured(event)
            case Paused() | Resumed():
                self._hurry()
        self._take_note(event)
        if self.activity.changed:
            self._news.set()

    def gate(self, queue: str = "") -> Gate:
        """The gate of a consumer of `queue`; without one, of the component itself."""
        return self._gates.of(queue)

    async def first_look(self) -> None:
        """Returns when the pauses are known, or after a moment."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._looked.wait(), FIRST_LOOK.total_seconds())

    def finish(self) -> None:
        """Asks `run` to write what is left and to return."""
        self._finishing.set()
        self._hurry()

    async def run(self) -> None:
        """Reports until `finish`. While the database is away it waits, and what there is no room for is counted as lost."""
        pauses = Pauses(longest=LONGEST_PAUSE)
        while not self._done:
            try:
                async with self._connect() as connection:
                    self._answers("database")
                    pauses.reset()
                    await self._report(connection)
                pause = None if self._usable else LOOK_AGAIN
            except DRIVER_ERRORS as error:
                self._fails("database", reason_of(error), level=logging.INFO)
                self._lost_because = f"the database is away: {reason_of(error)}"
                pause = pauses.next()
            self._looked.set()
            if self._done or (pause is not None and self._finishing.is_set()):
                return
            if pause is None:
                await self._rest_until_due()
            else:
                await _wait(self._finishing, pause.total_seconds())
                self._gates.tick()

    # --- rounds --------------------------------------------------------------------------------------------------------

    async def _report(self, connection: Connection) -> None:
        """Rounds over one connection, until it is lost, or until the end; one only if the connection is borrowed."""
        await self._look_for_tables(connection)
        if not self._settings.borrows:
            self._listening = False
            self._due["look"] = self._due["listen"] = 0.0
            connection.add_termination_listener(lambda *_: self._hurry())
        while self._usable and not self._done:
            self._done = self._finishing.is_set()
            self._news.clear()
            self._urgent.clear()
            if connection.is_closed():  # a round with nothing to do would not notice
                raise ConnectionError("the connection was lost")
            await self._round(connection, self._usable, last=self._done)
            if self._settings.borrows or self._done:
                return
            if self._is_to_listen and time.monotonic() >= self._due["listen"]:
                await self._listen(connection)
            await self._rest_until_due()

    @property
    def _is_to_listen(self) -> bool:
        # A connection that is given back each time hears nothing.
        return not (self._listening or self._settings.borrows) and "control" in self._usable

    async def _listen(self, connection: Connection) -> None:
        """Finds out whether changes of pauses are notified here; until they are, pauses are polled."""
        self._due["listen"] = time.monotonic() + LISTEN_AGAIN.total_seconds()
        problem: str | None = "notifications do not arrive (a transaction pooler?)"
        try:
            channel = await self._tables.channel(connection)
            if channel is None:
                problem = "their table's trigger is missing: run `outbox migrate`"
            else:
                # Another connection notifies, because behind a pooler one that notifies itself may hear it by chance.
                async with self._connect() as other:
                    if await notifications_arrive(connection, other, channel, self._control_changed, timeout=HEARING_TIMEOUT):
                        problem = None
        except DRIVER_ERRORS as error:
            if connection.is_closed():
                raise
            problem = reason_of(error)
        self._listening = problem is None
        if problem is None:
            self._answers("pauses are polled")
        else:
            self._fails("pauses are polled", problem, level=logging.INFO)
        self._control_changed()  # what was committed since the last look was not notified here

    def _control_changed(self) -> None:
        self._changed = True
        self._hurry()

    async def _look_for_tables(self, connection: Connection) -> None:
        if time.monotonic() < self._due["tables"]:
            return
        self._due["tables"] = time.monotonic() + LOOK_AGAIN.total_seconds()
        await measure(self._clock, connection)  # where there are no pauses to be looked at, nothing else asks for the time
        self._usable = await self._tables.usable(connection)
        self._writes_history = self._settings.history and "history" in self._usable
        self._adds_up = "stats" in self._usable
        missing = ", ".join(sorted(_ALL_TABLES - self._usable))
        if missing:
            self._fails("tables", f"missing, or closed to the user: {missing}", level=logging.INFO)

    async def _round(self, connection: Connection, usable: frozenset[str], *, last: bool) -> None:
        if "control" in usable and (self._changed or time.monotonic() >= self._due["look"]):
            await self._attempt("pauses", self._look(connection), connection)
        self._looked.set()
        if "history" in usable:
            await self._attempt("history", self._write_history(connection), connection)
        self.tell_lost(at_once=last)
        if "stats" in usable and (last or self._is_due("stats", self._settings.add_up_every)):
            await self._attempt("statistics", self._add_stats(connection), connection)
        if "component" in usable:
            due = self._is_due("beat", self._settings.heartbeat)
            if last or due or self.activity.changed or self._heeded != self._gates.heeded(self.activity.paused):
                await self._attempt("heartbeat", self._beat(connection, stopped=last), connection)

    async def _attempt(self, what: str, duty: Any, connection: Connection) -> None:
        """One duty that fails leaves the others alone, unless the connection is lost with it."""
        try:
            await duty
        except (asyncpg.PostgresError, TimeoutError, ValueError) as error:
            self._fails(what, reason_of(error))
            if connection.is_closed():
                raise ConnectionError(f"{what}: {reason_of(error)}") from error
        else:
            self._answers(what)

    async def _look(self, connection: Connection) -> None:
        asked = time.monotonic()
        self._changed = False  # a notification from here on is for the next look
        self._due["look"] = asked
        now, wanted = await self._tables.pauses(connection)
        every = self._settings.look_every if self._listening else self._settings.poll_every
        self._due["look"] = asked + every.total_seconds()
        self._clock.measured(now, asked=asked)
        self._gates.heed({wish: None if left is None else asked + left for wish, left in wanted.items()})

    async def _write_history(self, connection: Connection) -> None:
        for _ in range(MOST_BATCHES):
            batch = self._facts.batch(LARGEST_BATCH)
            if not batch:
                return
            try:
                await self._tables.write_history(connection, batch, component=self._component.name, clock=time.monotonic())
            except _PASSING:
                self._facts.put_back(batch)
                raise
            except DRIVER_ERRORS as error:
                self._facts.lost += len(batch)
                self._lost_because = reason_of(error)
                raise

    async def _add_stats(self, connection: Connection) -> None:
        taken = self._statistics.take()
        try:
            await self._tables.add_stats(connection, taken)
        except _PASSING:
            self._statistics.give_back(taken)
            raise

    async def _beat(self, connection: Connection, *, stopped: bool) -> None:
        component, activity = self._component, self.activity
        activity.changed = False
        self._heeded = self._gates.heeded(activity.paused)
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
            activity.as_json(pausing=_as_objects(self._heeded.pending)),
            as_json(list(component.consumers)),
            as_json(_as_objects(self._heeded.applied)),
            stopped,
        )

    # --- when, and what went wrong -------------------------------------------------------------------------------------

    def _is_due(self, duty: str, every: timedelta) -> bool:
        now = time.monotonic()
        if now < self._due[duty]:
            return False
        self._due[duty] = now + every.total_seconds()
        return True

    async def _rest_until_due(self) -> None:
        """Waits until there is something to write or to look at, and lets pauses end whose time is over."""
        tick_ends = time.monotonic() + self._settings.tick.total_seconds()
        if self._facts:  # they could not be written, or there were too many for one round
            self._news.set()
        due = [self._due[duty] for duty, table in _DUTIES.items() if table in self._usable]
        if self._is_to_listen:
            due.append(self._due["listen"])
        if self._gates.next_end is not None:
            due.append(self._gates.next_end)
        await _wait(self._news, min(due, default=math.inf) - time.monotonic())
        await _wait(self._urgent, tick_ends - time.monotonic())
        self._gates.tick()

    def _hurry(self) -> None:
        self._urgent.set()
        self._news.set()

    def tell_lost(self, *, at_once: bool = True) -> None:
        """Reports how many facts were lost since the last report, from time to time."""
        if at_once:
            self._facts.lost += len(self._facts.batch(len(self._facts)))
        if self._facts.lost and (at_once or time.monotonic() - self._lost_told >= TELL_LOST_EVERY.total_seconds()):
            lost, self._facts.lost, self._lost_told = self._facts.lost, 0, time.monotonic()
            self.activity.history_lost(lost)
            self._observer.notify(HistoryLost(count=lost, reason=self._lost_because))

    def _fails(self, what: str, reason: str, *, level: int = logging.WARNING) -> None:
        """Said once for each reason in a row: it goes on without."""
        if self._problems.get(what) != reason:
            self._problems[what] = reason
            _log.log(level, "reports: %s: %s", what, reason)

    def _answers(self, what: str) -> None:
        if self._problems.pop(what, None) is not None:
            _log.info("reports: %s: well again", what)


async def _wait(event: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(max(seconds, 0.0)):
            await event.wait()


def _as_objects(wishes: Sequence[Wish]) -> list[dict[str, str]]:
    return [{"scope": scope, "name": name} for scope, name in wishes]


MEASURE_EVERY, MEASURE_AGAIN = timedelta(minutes=1), timedelta(seconds=5)
LAST_WORDS = timedelta(seconds=2)
"""How long what is left may take to be written at the end."""


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
