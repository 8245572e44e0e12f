"""The reporter of one relay, worker or archiver: an observer, and one task that writes what it was told of."""

import asyncio
import logging
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

import asyncpg

from outbox import __version__
from outbox.engine.backoff import Pauses
from outbox.engine.lifecycle import Stopping
from outbox.events import BacklogMeasured, BatchSent, Duplicate, Event, HistoryLost, Processed
from outbox.ports import Gate, Observer
from outbox.postgres.names import TableName
from outbox.postgres.pool import DRIVER_ERRORS, Connect, Connection, reason_of
from outbox.postgres.reporting.activity import Activity
from outbox.postgres.reporting.component import Component, ComponentKind, ReportingSettings
from outbox.postgres.reporting.database_clock import DatabaseClock
from outbox.postgres.reporting.duplicates import Duplicates
from outbox.postgres.reporting.facts import FactQueue
from outbox.postgres.reporting.gates import Gates, Heeded, Wish
from outbox.postgres.reporting.statistics import Statistics
from outbox.postgres.reporting.tables import ReportingTables, as_json

LARGEST_BATCH = 1_000
"""Facts that are written at once."""
MOST_BATCHES = 20
"""Batches that are written before pauses are looked at again."""
LOOK_AGAIN = timedelta(seconds=30)
"""How often tables that were not there are looked for."""
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
_log = logging.getLogger("outbox")


class Reporter:
    """Implements the Observer port. Being told costs no more than counting; everything else is done by `run`."""

    def __init__(
        self,
        connect: Connect,
        table: TableName,
        component: Component,
        observer: Observer,
        stopping: Stopping,
        settings: ReportingSettings,
    ) -> None:
        self._connect = connect
        self._tables = ReportingTables(table)
        self._component = component
        self._observer = observer
        self._settings = settings
        self._clock = DatabaseClock()
        self._facts = FactQueue(clock=time.monotonic, now=self._clock.seconds, capacity=settings.capacity)
        self._statistics = Statistics(self._clock.seconds)
        at_first = _AT_FIRST.get(component.kind, "starting")
        self.activity = Activity(stopping, time.monotonic, self._clock.now, at_first)
        self._gates = Gates(component.kind.value, component.name, now=time.monotonic)
        self._looked = asyncio.Event()
        self._finishing = asyncio.Event()
        self._duplicates = Duplicates()
        self._usable: frozenset[str] = frozenset()
        self._done = False
        self._due = {"tables": 0.0, "beat": 0.0, "stats": time.monotonic() + settings.add_up_every.total_seconds()}
        self._heeded = Heeded()
        self._problems: dict[str, str] = {}
        self._lost_because = "they came faster than they could be written"
        self._lost_told = 0.0
        self._writes_history = settings.history
        self._adds_up = True
        self._take_note = self.activity.take_note
        self._reactions: Mapping[type, Callable[[Any], None]] = {
            BacklogMeasured: self._measured,
            BatchSent: self._sent,
            Duplicate: self._found_duplicate,
            Processed: self._processed,
        }

    def notify(self, event: Event) -> None:
        """See `outbox.ports.Observer`."""
        react = self._reactions.get(type(event))
        if react is not None:
            react(event)
        self._take_note(event)

    def _sent(self, event: BatchSent) -> None:
        if self._adds_up:
            self._statistics.sent(event)

    def _measured(self, event: BacklogMeasured) -> None:
        if self._adds_up:
            self._statistics.measured(event)

    def _found_duplicate(self, event: Duplicate) -> None:
        self._duplicates.add(event.queue, event.message.id)

    def _processed(self, event: Processed) -> None:
        duplicate = bool(self._duplicates) and self._duplicates.discard(event.queue, event.message.id)
        if self._writes_history:
            self._facts.take_note(event, duplicate=duplicate)
        if self._adds_up:
            self._statistics.processed(event, duplicate=duplicate)

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

    async def run(self) -> None:
        """Reports until `finish`. While the database is away it waits, and what there is no room for is counted as lost."""
        pauses = Pauses(longest=LONGEST_PAUSE)
        while not self._done:
            try:
                async with self._connect() as connection:
                    self._answers("database")
                    pauses.reset()
                    await self._report(connection)
                pause = self._settings.tick if self._usable else LOOK_AGAIN
            except DRIVER_ERRORS as error:
                self._fails("database", reason_of(error), level=logging.INFO)
                self._lost_because = f"the database is away: {reason_of(error)}"
                pause = pauses.next()
            self._looked.set()
            if self._finishing.is_set():
                return
            await self._rest(pause)

    # --- rounds --------------------------------------------------------------------------------------------------------

    async def _report(self, connection: Connection) -> None:
        """Rounds over one connection, until it is lost, or until the end; one only if the connection is somebody else's."""
        await self._look_for_tables(connection)
        while self._usable and not self._done:
            self._done = self._finishing.is_set()
            await self._round(connection, self._usable, last=self._done)
            if self._settings.borrows:
                return
            await self._rest(self._settings.tick)

    async def _look_for_tables(self, connection: Connection) -> None:
        if time.monotonic() < self._due["tables"]:
            return
        self._due["tables"] = time.monotonic() + LOOK_AGAIN.total_seconds()
        self._usable = await self._tables.usable(connection)
        self._writes_history = self._settings.history and "history" in self._usable
        self._adds_up = "stats" in self._usable
        missing = ", ".join(sorted(_ALL_TABLES - self._usable))
        if missing:
            self._fails("tables", f"missing, or closed to the user: {missing}", level=logging.INFO)

    async def _round(self, connection: Connection, usable: frozenset[str], *, last: bool) -> None:
        if "control" in usable:
            await self._attempt("pauses", self._look(connection), connection)
        self._looked.set()
        if "history" in usable:
            await self._attempt("history", self._write_history(connection), connection)
        self.tell_lost(at_once=last)
        if "stats" in usable and (last or self._is_due("stats", self._settings.add_up_every)):
            await self._attempt("statistics", self._add_stats(connection), connection)
        if "component" in usable and self._has_news(last=last):
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
        now, wanted = await self._tables.pauses(connection)
        self._clock.is_now(now)
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
            self._settings.heartbeat,
            activity.as_json(pausing=_as_objects(self._heeded.pending)),
            as_json(list(component.consumers)),
            as_json(_as_objects(self._heeded.applied)),
            stopped,
        )

    # --- when, and what went wrong -------------------------------------------------------------------------------------

    def _has_news(self, *, last: bool) -> bool:
        due = self._is_due("beat", self._settings.heartbeat)
        return last or due or self.activity.changed or self._heeded != self._gates.heeded(self.activity.paused)

    def _is_due(self, duty: str, every: timedelta) -> bool:
        now = time.monotonic()
        if now < self._due[duty]:
            return False
        self._due[duty] = now + every.total_seconds()
        return True

    async def _rest(self, pause: timedelta) -> None:
        """Waits, and lets pauses end whose time is over."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._finishing.wait(), pause.total_seconds())
        self._gates.tick()

    def tell_lost(self, *, at_once: bool = True) -> None:
        """Tells how many facts were lost since it was last told, from time to time."""
        if at_once:
            self._facts.lost += len(self._facts.batch(len(self._facts)))
        if self._facts.lost and (at_once or time.monotonic() - self._lost_told >= TELL_LOST_EVERY.total_seconds()):
            lost, self._facts.lost, self._lost_told = self._facts.lost, 0, time.monotonic()
            self._observer.notify(HistoryLost(count=lost, reason=self._lost_because))

    def _fails(self, what: str, reason: str, *, level: int = logging.WARNING) -> None:
        """Said once for each reason in a row: it goes on without."""
        if self._problems.get(what) != reason:
            self._problems[what] = reason
            _log.log(level, "reports: %s: %s", what, reason)

    def _answers(self, what: str) -> None:
        if self._problems.pop(what, None) is not None:
            _log.info("reports: %s: well again", what)


def _as_objects(wishes: Sequence[Wish]) -> list[dict[str, str]]:
    return [{"scope": scope, "name": name} for scope, name in wishes]
