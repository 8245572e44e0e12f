"""The circuit of a consumer: after repeated failures of named kinds it pauses, and probes before it goes on."""

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

PATIENCE = timedelta(minutes=5)
"""How long a message waits in flight for a paused consumer before it goes away for a while: brokers set limits to that."""


class ProbeResult(Enum):
    """What the attempt of one message says about the thing that was away."""

    SUCCESS = auto()
    TROUBLE = auto()
    """It failed with one of the named kinds."""
    FAILURE = auto()
    """It failed otherwise."""
    NOTHING = auto()
    """Its handler did not run, or chose the outcome itself."""


def probe_result(outcome: DeliveryOutcome) -> ProbeResult:
    """What an attempt with this outcome says."""
    match outcome:
        case Done():
            return ProbeResult.SUCCESS
        case Dead(Cause.REJECTED | Cause.UNDECODABLE) | Returned() | Postponed():
            return ProbeResult.NOTHING
        case Retry() | Dead():
            return ProbeResult.FAILURE
        case _:
            assert_never(outcome)


@dataclass(frozen=True, slots=True)
class Permit:
    """Lets one handler run. `round` distinguishes results from before a pause from those after it."""

    round: int
    probe: bool


class Breaker:
    """Decides who may run. Pure: it waits for nothing, and knows the time from `clock` (seconds).

    Counted are failures of the named kinds since the last success; other failures change nothing. While it is paused none
    runs, until `rule.pause` is over; then one message does, as a probe. Its success ends the pause, and its failure, whatever
    the kind, begins another; if it says nothing, the next one probes.
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
        """Whether most have to wait."""
        return self._resumes_at is not None

    def ask(self) -> Permit | timedelta | None:
        """The permit to run; or how long until it makes sense to ask again, None for as long as nothing has changed."""
        if self._resumes_at is None:
            return Permit(self._round, probe=False)
        if self._probing:
            return None
        seconds_left = self._resumes_at - self._clock()
        if seconds_left > 0:
            return timedelta(seconds=seconds_left)
        self._probing = True
        return Permit(self._round, probe=True)

    def ended(self, permit: Permit, result: ProbeResult) -> bool:
        """Takes note of the result of a run; whether a pause began or ended by that, or its probe is over."""
        if permit.probe:
            self._probing = False
            match result:
                case ProbeResult.SUCCESS:
                    self._failures = 0
                    self._resumes_at = None
                case ProbeResult.TROUBLE | ProbeResult.FAILURE:
                    self._pause()
                case ProbeResult.NOTHING:
                    pass
                case _:
                    assert_never(result)
            return True
        if self.paused or permit.round != self._round:
            return False
        if result is ProbeResult.SUCCESS:
            self._failures = 0
        elif result is ProbeResult.TROUBLE:
            self._failures += 1
            if self._failures >= self._rule.failures:
                self._pause()
                return True
        return False

    def _pause(self) -> None:
        self._round += 1
        self._resumes_at = self._clock() + self._rule.pause.total_seconds()


class Circuit:
    """Holds the messages of one consumer back while it is paused. `paused` and `resumed` are called with each change.

    Without a pause, passing costs no waiting and no task.
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
    async def passing(self, leaving: Stopping, *, in_place: bool = False) -> AsyncIterator["PermitHandle | None"]:
        """Enters the block when the message may run; with None on `leaving`, or when it has waited for as long as one may.

        `in_place`: it waits for as long as it takes, because it must not be overtaken.
        """
        permit = self._breaker.ask()
        patience_ends: float | None = None
        while not isinstance(permit, Permit) and not leaving.requested:
            waits = [] if permit is None else [permit.total_seconds()]
            if not in_place:
                patience_ends = patience_ends or monotonic() + PATIENCE.total_seconds()
                waits.append(patience_ends - monotonic())
                if waits[-1] <= 0:
                    break
            await until_set(self._changed, leaving, seconds=min(waits, default=None))
            permit = None if leaving.requested else self._breaker.ask()
        if not isinstance(permit, Permit):
            yield None
            return
        handle = PermitHandle(permit, self._ended)
        try:
            yield handle
        finally:
            handle.report(ProbeResult.NOTHING)

    def _ended(self, permit: Permit, result: ProbeResult) -> None:
        if not self._breaker.ended(permit, result):
            return
        if not self._breaker.paused:
            self._notify_resumed()
        elif result is not ProbeResult.NOTHING:
            self._notify_paused(self.pause)
        self._changed.set()
        self._changed = asyncio.Event()


class PermitHandle:
    """One message's permit to run. Its first result counts; the rest is ignored."""

    __slots__ = ("_ended", "_permit")

    def __init__(self, permit: Permit, ended: Callable[[Permit, ProbeResult], None]) -> None:
        self._permit = permit
        self._ended: Callable[[Permit, ProbeResult], None] | None = ended

    def report(self, result: ProbeResult) -> None:
        """The result of its run."""
        if self._ended is not None:
            ended, self._ended = self._ended, None
            ended(self._permit, result)
