"""The relay: lanes that claim rounds of messages from the outbox and send them, and sleep while none is due."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from time import perf_counter

from outbox.core.events import (
    BacklogMeasured,
    BatchSent,
    CleanedUp,
    Dependency,
    Paused,
    RelayStarted,
    RelayStopped,
    Resumed,
    RoundFinished,
    RouteResumed,
)
from outbox.core.message import Way
from outbox.engine.lifecycle import OPEN, Outage, Pauses, Stopping, interrupted_by, until_closed, until_open
from outbox.engine.rounds import Round, RoundReport, Rounds
from outbox.errors import BrokerUnavailableError, DatabaseUnavailableError, OutboxError
from outbox.ports import Doorbell, Gate, Observer, Store

SMALLEST_BATCH = 50
LARGEST_BATCH = 500
RELEASE_BATCH = 1_000
CLEAN_UP_BATCH = 1_000
CLEAN_UP_EVERY = timedelta(seconds=10)
LOOK_EVERY = timedelta(seconds=15)
"""How often the backlog is measured, and what waits for nothing is made due."""
REPAIRS_PER_LOOKUP = 4
"""Stalled routes are looked up once in this many repairs: a relay already knows the routes it found itself."""
FIRST_RETRY = timedelta(milliseconds=5)
"""First pause before looking again for a due row that could not be claimed. It doubles up to `poll_interval`."""
# Waking a moment too early would find nothing due, and cost another query.
_EARLY = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelaySettings:
    """Settings of a relay. `batch_size` None adapts to the backlog. `retention` None: never clean up sent rows."""

    exchange_name: str
    table: str
    batch_size: int | None
    lanes: int
    longest_nap: timedelta
    poll_interval: timedelta
    retention: timedelta | None
    destination: str = ""
    """Where it sends, in words."""


class Relay:
    """Moves committed messages from the outbox to the broker, until it is asked to stop."""

    def __init__(
        self,
        rounds: Rounds,
        store: Store,
        doorbell: Doorbell,
        observer: Observer,
        settings: RelaySettings,
        gate: Gate = OPEN,
    ) -> None:
        self._rounds = rounds
        self._store = store
        self._doorbell = doorbell
        self._observer = observer
        self._settings = settings
        self._gate = gate
        self._batch = _BatchSize(settings.batch_size)
        self._retry_pauses = Pauses(first=FIRST_RETRY, longest=settings.poll_interval)
        self._claim_lock = asyncio.Lock()
        self._failing: set[Dependency] = set()
        self._repairs = 0
        self._stopping = Stopping()
        self._outages = {dependency: Outage(dependency, observer) for dependency in Dependency}

    async def run(self, stopping: Stopping) -> None:
        """Relays until `stopping` is requested; then finishes the rounds in flight and returns.

        While its gate is closed it claims nothing; housekeeping continues. Waits during outages. Raises `TopologyError`, and
        other errors that need a fix.
        """
        self._stopping = stopping
        duties = [self._run_every(LOOK_EVERY, self._look_after)]
        if self._settings.retention is not None:
            duties.append(self._run_every(CLEAN_UP_EVERY, self._clean_up))
        settings = self._settings
        self._observer.notify(
            RelayStarted(exchange_name=settings.exchange_name, table=settings.table, destination=settings.destination)
        )
        # Two groups: lanes end by themselves, after their last rounds; companions run for ever, and are cancelled once no lane
        # needs them. An error in either group ends both.
        async with asyncio.TaskGroup() as companions:
            tasks = [
                companions.create_task(task)
                for task in (self._wake_to_stop(), self._follow_gate(), self._probe_stalled(), *duties)
            ]
            async with asyncio.TaskGroup() as lanes:
                for _ in range(self._settings.lanes):
                    lanes.create_task(self._lane())
            for task in tasks:
                task.cancel()
        self._observer.notify(RelayStopped(exchange_name=self._settings.exchange_name, table=self._settings.table))

    async def _wake_to_stop(self) -> None:
        await self._stopping.wait()
        # A sleeping lane waits for the doorbell only, and sees the request when it wakes.
        self._doorbell.ring()

    async def _follow_gate(self) -> None:
        """Reports when a pause begins and ends. A pause has begun when no lane is claiming any more."""
        exchange_name = self._settings.exchange_name
        while not self._stopping.requested:
            await until_closed(self._gate, self._stopping)
            # Wakes a sleeping lane, which holds the lock. A lane that gets the lock later sees the closed gate.
            self._doorbell.ring()
            async with self._claim_lock:
                pass
            if self._gate.closed and not self._stopping.requested:
                self._observer.notify(Paused(exchange_name=exchange_name))
                await until_open(self._gate, self._stopping)
                self._observer.notify(Resumed(exchange_name=exchange_name, stopping=self._gate.closed))

    # --- lanes ---------------------------------------------------------------------------------------------------------

    async def _lane(self) -> None:
        """Claims a round, finishes it, and claims the next."""
        while not self._stopping.requested:
            await until_open(self._gate, self._stopping)
            try:
                # One lane at a time claims or sleeps: more would compete for the same rows and double the polling.
                async with self._claim_lock:
                    taken = await self._next_round()
                if taken is not None:
                    self._batch.note(asked=taken.asked, taken=(await self._settle(taken)).taken)
            except BrokerUnavailableError as error:
                await self._wait_for(Dependency.BROKER, error)
            except DatabaseUnavailableError as error:
                await self._wait_for(Dependency.DATABASE, error)

    async def _probe_stalled(self) -> None:
        """Probes stalled routes. A task apart from the lanes, because probes of a stalled route wait for their timeout."""
        while True:
            await until_open(self._gate, self._stopping)
            try:
                round_ = await self._rounds.start_probe()
                if round_ is not None:
                    await self._settle(_StartedRound(round_, perf_counter()))
            except BrokerUnavailableError as error:
                await self._wait_for(Dependency.BROKER, error)
            except DatabaseUnavailableError as error:
                await self._wait_for(Dependency.DATABASE, error)

    async def _next_round(self) -> "_StartedRound | None":
        """Returns the next round, after sleeping if nothing is due. None when the relay stops or pauses."""
        if self._stopping.requested or self._gate.closed:
            return None
        # Look once before falling asleep, which takes locks at the server: while they are held, every commit notifies.
        taken = await self._start()
        if taken is not None:
            return taken
        try:
            async with self._doorbell.asleep() as nap:
                # Keep listening between looks: a commit wakes all relays, and only one of them gets the row.
                while (taken := await self._start()) is None and not self._stopping.requested and not self._gate.closed:
                    due = await self._store.next_due()
                    if due is None:
                        await nap.wait(self._settings.longest_nap)
                    elif due <= timedelta(0):
                        # It became due just now, or another relay has claimed it: look again soon, then less often.
                        await nap.wait(self._retry_pauses.next())
                    else:
                        await nap.wait(min(due + _EARLY, self._settings.longest_nap))
        except BaseException:
            # Leaving `asleep` awaits, too: a cancellation there must not lose a claimed round.
            if taken is not None:
                await taken.round.abandon()
            raise
        return taken

    async def _start(self) -> "_StartedRound | None":
        began = perf_counter()
        # Connecting may take longer than a stop.
        async with interrupted_by(self._stopping):
            await self._rounds.connect()
        if self._stopping.requested:
            return None
        asked = self._batch.size
        round_ = await self._rounds.start(asked)
        # A server that accepts connections while its rounds still fail must not be reported as restored.
        for dependency in set(Dependency) - self._failing:
            self._outages[dependency].answers()
        if round_ is None:
            self._batch.note(asked=asked, taken=0)
            return None
        self._retry_pauses.reset()
        return _StartedRound(round_, began, asked)

    async def _settle(self, taken: "_StartedRound") -> RoundReport:
        try:
            report = await taken.round.finish()
        except DatabaseUnavailableError:
            self._failing.add(Dependency.DATABASE)
            raise
        self._failing.discard(Dependency.DATABASE)
        self._outages[Dependency.DATABASE].answers()
        exchange_name, duration = self._settings.exchange_name, timedelta(seconds=perf_counter() - taken.began)
        if report.sent:
            self._observer.notify(BatchSent(exchange_name=exchange_name, messages=report.sent))
        for failed in report.failed:
            self._observer.notify(failed)
        for stalled in report.stalled:
            self._observer.notify(stalled)
        self._observer.notify(
            RoundFinished(
                exchange_name=exchange_name, taken=report.taken, duration=duration, sent=report.sent, failed=report.failed
            )
        )
        # After the commit, in transactions of their own: the messages may be many, and would keep the claimed rows locked.
        for way in report.released:
            await self._release(partial(self._store.release_held, way.routing_key, way.queue))
        for way in report.resumed:
            self._notify_resumed(way)
            await self._release(partial(self._store.release_stalled, way))
        if report.failed or report.ordered:
            # Settling made rows due at times that a sleeping lane has not read.
            self._doorbell.ring()
        if report.unavailable is not None:
            self._failing.add(Dependency.BROKER)
            # Raised at the end: what was sent before the broker was lost is committed, and reported.
            raise BrokerUnavailableError(str(report.unavailable))
        self._failing.discard(Dependency.BROKER)
        self._outages[Dependency.BROKER].answers()
        return report

    async def _release(self, release: Callable[[int], Awaitable[int]]) -> None:
        while await release(RELEASE_BATCH) == RELEASE_BATCH and not self._stopping.requested:
            # After each batch, so that other lanes send it while the next one is made due.
            self._doorbell.ring()
        self._doorbell.ring()

    def _notify_resumed(self, way: Way) -> None:
        exchange_name = self._settings.exchange_name
        self._observer.notify(RouteResumed(exchange_name=exchange_name, routing_key=way.routing_key, queue=way.queue))

    async def _wait_for(self, dependency: Dependency, error: OutboxError) -> None:
        await self._stopping.wait(self._outages[dependency].lost(error))
        # Unsent rows are due again, and another lane may be sleeping for longer than this pause.
        self._doorbell.ring()

    # --- housekeeping --------------------------------------------------------------------------------------------------

    async def _run_every(self, interval: timedelta, duty: Callable[[], Awaitable[None]]) -> None:
        """Calls `duty` now and every `interval`. Skips it while the database is unavailable."""
        while True:
            try:
                await duty()
            except DatabaseUnavailableError as error:
                self._outages[Dependency.DATABASE].lost(error)
            await asyncio.sleep(interval.total_seconds())

    async def _clean_up(self) -> None:
        retention = self._settings.retention or timedelta(0)
        total, deleted = 0, CLEAN_UP_BATCH
        while deleted == CLEAN_UP_BATCH:
            # In small transactions: a long one would keep vacuum from removing the index entries that claims have to read past.
            deleted = await self._store.delete_sent(retention, CLEAN_UP_BATCH)
            total += deleted
        if total:
            self._observer.notify(CleanedUp(table=self._settings.table, deleted=total))

    async def _look_after(self) -> None:
        """Measures the backlog, then repairs. One after the other, so that an idle relay needs one connection for both."""
        backlog = await self._store.backlog()
        self._observer.notify(
            BacklogMeasured(exchange_name=self._settings.exchange_name, unsent=backlog.unsent, oldest_due=backlog.oldest_due)
        )
        if backlog.unsent and await self._store.repair():  # what would wait forever is unsent
            self._doorbell.ring()
        if self._repairs % REPAIRS_PER_LOOKUP == 0:
            # Finds routes that another relay left stalled, and those that no message waits for any more.
            routes = await self._rounds.find_stalled()
            for found in routes.found:
                self._observer.notify(found)
            for way in routes.gone:
                self._notify_resumed(way)
        self._repairs += 1


@dataclass(frozen=True, slots=True)
class _StartedRound:
    """A claimed round, when claiming it began, and for how many messages it asked."""

    round: Round
    began: float
    asked: int = 0


class _BatchSize:
    """The batch size: fixed, or doubling from `SMALLEST_BATCH` to `LARGEST_BATCH` while claims are full."""

    def __init__(self, fixed: int | None) -> None:
        self._fixed = fixed
        self.size = fixed or SMALLEST_BATCH

    def note(self, *, asked: int, taken: int) -> None:
        """Records that a claim of up to `asked` messages got `taken`."""
        if self._fixed is None:
            # Not compared with the size now: the rounds of other lanes may have changed it since this one was claimed.
            if taken >= asked:
                self.size = max(self.size, min(asked * 2, LARGEST_BATCH))
            else:
                self.size = max(SMALLEST_BATCH, 1 << math.floor(math.log2(taken or 1)))
