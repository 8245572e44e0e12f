"""Circuit breaker of a consumer: pauses it after repeated failures of given kinds, and probes before it resumes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, auto
from time import monotonic
from typing import assert_never

from outbox.core.outcome import Cause, Dead, DeliveryOutcome, Done, Postponed, Retry, Returned
from outbox.engine.consumer import Pausing
from outbox.engine.lifecycle import Stopping, until_set

LONGEST_WAIT = timedelta(minutes=5)
"""How long a message waits in flight for a paused consumer before it is postponed. Brokers limit how long one may wait."""


class ProbeResult(Enum):
    """What an attempt shows about the dependency that the consumer pauses for."""

    SUCCESS = auto()
    PAUSING_FAILURE = auto()
    """The handler failed with an error in `pause_on`."""
    OTHER_FAILURE = auto()
    """The handler failed with another error."""
    INCONCLUSIVE = auto()
    """The handler did not run, or chose the outcome itself."""


def probe_result(outcome: DeliveryOutcome) -> ProbeResult:
    """Returns what an attempt with this outcome shows."""
    match outcome:
        case Done():
            return ProbeResult.SUCCESS
        case Dead(Cause.REJECTED | Cause.UNDECODABLE) | Returned() | Postponed():
            return ProbeResult.INCONCLUSIVE
        case Retry() | Dead():
            return ProbeResult.OTHER_FAILURE
        case _:
            assert_never(outcome)


@dataclass(frozen=True, slots=True)
class Permit:
    """Permission to run one handler. `round` distinguishes results from before a pause from those after it."""

    round: int
    probe: bool


class Breaker:
    """Decides which handlers may run. Never waits; reads the time from `clock` (seconds).

    Counts the failures of `rule.kinds` since the last success; other failures are ignored. While paused, no handler runs until
    `rule.pause` is over; then one message runs as a probe. A success ends the pause, a failure of any kind begins another, and
    after an inconclusive probe the next message probes.
    """

    def __init__(self, rule: Pausing, clock: Callable[[], float]) -> None:
        self._rule = rule
        self._clock = clock
        self._failures = 0
        self._round = 0
        self._resumes_at: float | None = None
        self._probing = False

    @property
    def paused(self) -> bool:
        """Whether handlers have to wait, except for a probe."""
        return self._resumes_at is not None

    def request_permit(self) -> Permit | timedelta | None:
        """Returns a permit, or how long to wait before asking again. None: ask again when the running probe has ended."""
        if self._resumes_at is None:
            return Permit(self._round, probe=False)
        if self._probing:
            return None
        seconds_left = self._resumes_at - self._clock()
        if seconds_left > 0:
            return timedelta(seconds=seconds_left)
        self._probing = True
        return Permit(self._round, probe=True)

    def record(self, permit: Permit, result: ProbeResult) -> bool:
        """Records the result of a run. Returns whether a pause began or ended, or a probe ended."""
        if permit.probe:
            self._probing = False
            match result:
                case ProbeResult.SUCCESS:
                    self._failures = 0
                    self._resumes_at = None
                case ProbeResult.PAUSING_FAILURE | ProbeResult.OTHER_FAILURE:
                    self._pause()
                case ProbeResult.INCONCLUSIVE:
                    pass
                case _:
                    assert_never(result)
            return True
        # Handlers that began before the pause say nothing about the time after it.
        if self.paused or permit.round != self._round:
            return False
        if result is ProbeResult.SUCCESS:
            self._failures = 0
        elif result is ProbeResult.PAUSING_FAILURE:
            self._failures += 1
            if self._failures >= self._rule.failures:
                self._pause()
                return True
        return False

    def _pause(self) -> None:
        self._round += 1
        self._resumes_at = self._clock() + self._rule.pause.total_seconds()


class Circuit:
    """Makes the messages of one consumer wait while it is paused. Calls `paused` and `resumed` on each change.

    Creates no task and does not wait unless the consumer is paused.
    """

    def __init__(
        self,
        rule: Pausing,
        *,
        paused: Callable[[timedelta], None],
        resumed: Callable[[], None],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.pause = rule.pause
        self._breaker = Breaker(rule, clock)
        self._notify_paused = paused
        self._notify_resumed = resumed
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def permit(self, leaving: Stopping, *, unlimited: bool = False) -> AsyncIterator["PermitHandle | None"]:
        """Enters the block when the message may run. Yields None on `leaving`, or after waiting for `LONGEST_WAIT`.

        `unlimited`: wait without a limit, because no later message may overtake this one.
        """
        permit = self._breaker.request_permit()
        wait_ends: float | None = None
        while not isinstance(permit, Permit) and not leaving.requested:
            waits = [] if permit is None else [permit.total_seconds()]
            if not unlimited:
                wait_ends = wait_ends or monotonic() + LONGEST_WAIT.total_seconds()
                waits.append(wait_ends - monotonic())
                if waits[-1] <= 0:
                    break
            await until_set(self._changed, leaving, seconds=min(waits, default=None))
            # A permit may be the only probe, and has to be reported: a worker that stops takes none.
            permit = None if leaving.requested else self._breaker.request_permit()
        if not isinstance(permit, Permit):
            yield None
            return
        handle = PermitHandle(permit, self._record)
        try:
            yield handle
        finally:
            # A probe that ended without a report, as by a cancellation, must not block the circuit.
            handle.report(ProbeResult.INCONCLUSIVE)

    def _record(self, permit: Permit, result: ProbeResult) -> None:
        if not self._breaker.record(permit, result):
            return
        if not self._breaker.paused:
            self._notify_resumed()
        elif result is not ProbeResult.INCONCLUSIVE:
            self._notify_paused(self.pause)
        # A new event for each change: set and clear on one event could miss a task that has not started to wait.
        self._changed.set()
        self._changed = asyncio.Event()


class PermitHandle:
    """One message's permit. Reports its first result to the circuit and ignores later ones."""

    __slots__ = ("_ended", "_permit")

    def __init__(self, permit: Permit, ended: Callable[[Permit, ProbeResult], None]) -> None:
        self._permit = permit
        self._ended: Callable[[Permit, ProbeResult], None] | None = ended

    def report(self, result: ProbeResult) -> None:
        """Reports the result of the run."""
        if self._ended is not None:
            ended, self._ended = self._ended, None
            ended(self._permit, result)
