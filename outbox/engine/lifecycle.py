"""Runs a relay or a worker until a call, a signal or a cancellation stops it, then drains; backoff, outages and pauses."""

import asyncio
import logging
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from random import Random
from types import FrameType
from typing import Any

from outbox.core.events import Dependency, DependencyLost, DependencyRestored
from outbox.errors import BrokerUnavailableError, DatabaseUnavailableError, OutboxError, StatementTimeoutError
from outbox.ports import Gate, Observer

GRACE_PERIOD = timedelta(seconds=30)
"""How long draining may take before what still runs is cancelled, by default."""

_CANCEL_LIMIT_SECONDS = 10.0
"""How long cancelled work may take to clean up before it is abandoned; a worker gives its handlers 4 s of it."""

_SAME_WISH_SECONDS = 0.5
"""Signals this close to the first are the same wish: a terminal and a supervisor often both pass on one Ctrl-C."""

_logger = logging.getLogger("outbox")


class Stopping:
    """The wish to stop: made once, from a signal handler, any thread or any task, before or while a task waits for it."""

    __slots__ = ("_listeners", "_requested")

    def __init__(self) -> None:
        self._requested = False
        self._listeners: list[Callable[[], None]] = []

    @property
    def requested(self) -> bool:
        """Whether the wish was made."""
        return self._requested

    def request(self) -> None:
        """Makes the wish. Takes no lock and never waits, so that a signal handler may call it; repeating it does nothing."""
        if not self._requested:
            self._requested = True
            for listener in tuple(self._listeners):
                listener()

    async def wait(self, timeout: timedelta | None = None) -> bool:
        """Returns when the wish is made, or after `timeout`; whether it was made."""
        with self.future() as future:
            await asyncio.wait({future}, timeout=timeout.total_seconds() if timeout is not None else None)
        return self._requested

    @contextmanager
    def telling(self, listener: Callable[[], None]) -> Iterator[None]:
        """Within the block `listener` is called when the wish is made, at once if that was before. It may be called twice."""
        # Listen first and look afterwards: whichever of two threads comes second sees what the first did.
        self._listeners.append(listener)
        try:
            if self._requested:
                listener()
            yield
        finally:
            self._listeners.remove(listener)

    @contextmanager
    def future(self) -> Iterator[asyncio.Future[None]]:
        """Within the block, a future of the running loop that is resolved when the wish is made."""
        loop = asyncio.get_running_loop()
        future = loop.create_future()

        def resolve() -> None:
            if not future.done():
                future.set_result(None)

        def ring() -> None:
            with suppress(RuntimeError):  # the loop was closed meanwhile: nothing waits any more
                loop.call_soon_threadsafe(resolve)

        with self.telling(ring):
            try:
                yield future
            finally:
                future.cancel()


Work = Callable[[Stopping], Coroutine[Any, Any, None]]
"""Works until the wish to stop is made, then finishes what it has begun and returns. Cancelled, it ends at once."""


async def run_until_stopped(
    work: Work, stop: Stopping, *, grace_period: timedelta = GRACE_PERIOD, handle_signals: bool = True
) -> None:
    """Runs `work` until it ends by itself or is asked to; it is asked by `stop`, a signal or a cancellation.

    Asked, it has the grace period to drain; then it is cancelled. After `stop` or a signal this returns normally. Cancelled,
    it drains all the same and re-raises; cancelled twice, it cancels the work and ends at once. A second signal, half a
    second after the first or later, also cancels the work. Cancelled work has 10 s to clean up. What it raises is raised. A
    wish made before makes it return without beginning.

    SIGINT and SIGTERM are handled only in the main thread, and only if nothing but `asyncio.run` and other runs of this kind
    handles them; the previous handlers are put back.
    """
    drain, abort = Stopping(), Stopping()
    with ExitStack() as stack:
        stack.enter_context(stop.telling(drain.request))
        if drain.requested:
            return
        if handle_signals:
            stack.enter_context(_signals_to(_Wishes(drain, abort)))
        task = asyncio.create_task(work(drain))
        interruption = await _until_done_or_over(task, drain, abort, grace_period)
        interruption = await _cancelled(task) or interruption
    if interruption is not None:
        raise interruption from (task.exception() if task.done() and not task.cancelled() else None)
    if task.done() and not task.cancelled():
        task.result()


async def _until_done_or_over(
    task: asyncio.Task[None], drain: Stopping, abort: Stopping, grace_period: timedelta
) -> asyncio.CancelledError | None:
    """Returns when `task` is done, or must be cancelled; with the cancellation that is to be re-raised, if there was one."""
    interruption: asyncio.CancelledError | None = None
    deadline: float | None = None
    while not task.done():
        if drain.requested and deadline is None:
            deadline = time.monotonic() + grace_period.total_seconds()
        try:
            if deadline is None:
                await _first(task, drain, timeout=None)
            elif abort.requested or time.monotonic() >= deadline:
                break
            else:
                await _first(task, abort, timeout=deadline - time.monotonic())
        except asyncio.CancelledError as cancellation:
            if interruption is not None:
                break
            interruption = cancellation
            drain.request()
    return interruption


async def _first(task: asyncio.Task[None], wish: Stopping, *, timeout: float | None) -> None:
    with wish.future() as future:
        await asyncio.wait({task, future}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)


async def _cancelled(task: asyncio.Task[None]) -> asyncio.CancelledError | None:
    """Cancels `task` if it still runs, and sees it end within a limit; a further cancellation is returned, and changes nothing.

    If that ended the wait, `asyncio.run` would find the handlers that do not end still in the task's care, and wait for them.
    """
    interruption: asyncio.CancelledError | None = None
    if task.done():
        return None
    _logger.warning("the grace period is over, or its end was asked for: what still runs is cancelled")
    task.cancel()
    deadline = time.monotonic() + _CANCEL_LIMIT_SECONDS
    while not task.done() and time.monotonic() < deadline:
        try:
            await asyncio.wait({task}, timeout=deadline - time.monotonic())
        except asyncio.CancelledError as cancellation:
            interruption = cancellation
    if not task.done():
        _logger.error("something did not end within %g s of being cancelled and is left behind", _CANCEL_LIMIT_SECONDS)
    return interruption


# --- signals -----------------------------------------------------------------------------------------------------------

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class _Wishes:
    """What signals ask for: the first to drain, a later one to end at once."""

    def __init__(self, drain: Stopping, abort: Stopping) -> None:
        self._drain = drain
        self._abort = abort
        self._first_at: float | None = None

    def __call__(self) -> None:
        now = time.monotonic()
        if self._first_at is None:
            self._first_at = now
            self._drain.request()
        elif now - self._first_at >= _SAME_WISH_SECONDS:
            self._abort.request()


class _SharedHandler:
    """A signal handler for every run of this kind in the process; the last to leave puts `previous` back."""

    def __init__(self, previous: Any) -> None:
        self.previous = previous
        self.listeners: list[Callable[[], None]] = []

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        for listener in tuple(self.listeners):
            listener()


@contextmanager
def _signals_to(listener: Callable[[], None]) -> Iterator[None]:
    """Within the block `listener` is called with each signal, if only Python, `asyncio.run` or other runs handle them."""
    current: dict[signal.Signals, Any] = {number: signal.getsignal(number) for number in _SIGNALS}
    pythons = (signal.SIG_DFL, signal.SIG_IGN, signal.default_int_handler)
    if threading.current_thread() is not threading.main_thread() or not all(
        handler in pythons
        or isinstance(handler, _SharedHandler)
        or (isinstance(handler, partial) and isinstance(getattr(handler.func, "__self__", None), asyncio.Runner))
        for handler in current.values()
    ):
        yield
        return
    shared: dict[signal.Signals, _SharedHandler] = {}
    for number, handler in current.items():
        if handler is not signal.SIG_IGN:  # the parent process wants it ignored, as nohup does
            shared[number] = handler if isinstance(handler, _SharedHandler) else _SharedHandler(handler)
            shared[number].listeners.append(listener)
            signal.signal(number, shared[number])
    try:
        yield
    finally:
        for number, ours in shared.items():
            ours.listeners.remove(listener)
            is_still_ours = signal.getsignal(number) is ours
            if is_still_ours and not ours.listeners:
                signal.signal(number, ours.previous)


@dataclass(slots=True, kw_only=True)
class Pauses:
    """Pauses that double from `first` to `longest`, each shortened by up to half at random; `reset` starts over."""

    first: timedelta = timedelta(milliseconds=100)
    longest: timedelta = timedelta(seconds=5)
    random: Random = field(default_factory=Random)
    _taken: int = 0

    def next(self) -> timedelta:
        """The length of the next pause."""
        pause: timedelta = min(self.first * 2 ** min(self._taken, 30), self.longest)
        self._taken += 1
        return pause * self.random.uniform(0.5, 1.0)

    def reset(self) -> None:
        """The next pause is a first one."""
        self._taken = 0


LONGEST_PAUSE = {Dependency.BROKER: timedelta(seconds=5), Dependency.DATABASE: timedelta(seconds=1)}
"""How long to wait at most before a lost server is tried again."""
MOST_REASONS = 10
"""How many different reasons of one outage are reported, each once."""


class Outage:
    """Whether one server answers."""

    def __init__(self, dependency: Dependency, observer: Observer) -> None:
        self._dependency = dependency
        self._observer = observer
        self._pauses = Pauses(longest=LONGEST_PAUSE[dependency])
        self._reasons: set[str] = set()

    def lost(self, error: OutboxError) -> timedelta:
        """Notes that the server is away, refuses or takes too long; how long to wait before trying it again.

        A new reason is reported: what began as an outage may go on as a missing table or right, which an operator has to add.
        """
        reason = str(error)
        if reason not in self._reasons and len(self._reasons) < MOST_REASONS:
            self._reasons.add(reason)
            timed_out = isinstance(error, StatementTimeoutError)
            self._observer.notify(DependencyLost(dependency=self._dependency, reason=reason, timed_out=timed_out))
        return self._pauses.next()

    def answers(self) -> None:
        """Notes that the server answers."""
        if self._reasons:
            self._reasons.clear()
            self._observer.notify(DependencyRestored(dependency=self._dependency))
        self._pauses.reset()


async def until_it_answers(attempt: Callable[[], Awaitable[None]], stopping: Stopping, observer: Observer) -> bool:
    """Makes `attempt` until nothing is unavailable any more; False if `stopping` was requested before that.

    Any other error of `attempt` is raised: it does not pass by waiting.
    """
    outages = {dependency: Outage(dependency, observer) for dependency in Dependency}
    while not stopping.requested:
        try:
            await attempt()
        except DatabaseUnavailableError as error:
            await stopping.wait(outages[Dependency.DATABASE].lost(error))
        except BrokerUnavailableError as error:
            await stopping.wait(outages[Dependency.BROKER].lost(error))
        else:
            for outage in outages.values():
                outage.answers()
            return True
    return False


class OpenGate:
    """Implements the Gate port where no pause can be asked for."""

    closed = False

    async def opened(self) -> None:
        """See `outbox.ports.Gate.opened`."""

    async def closing(self) -> None:
        """See `outbox.ports.Gate.closing`; waits for ever."""
        await asyncio.get_running_loop().create_future()


OPEN: Gate = OpenGate()


def never_closed(_queue: str) -> Gate:
    """The gate of every queue where no pause can be asked for."""
    return OPEN


async def until_opened(gate: Gate, stopping: Stopping) -> None:
    """Returns once no pause is wanted, or when it is time to stop."""
    if gate.closed:
        await _unless_stopping(gate.opened(), stopping)


async def until_closing(gate: Gate, stopping: Stopping) -> None:
    """Returns once a pause is wanted, or when it is time to stop."""
    await _unless_stopping(gate.closing(), stopping)


async def _unless_stopping(waiting: Coroutine[Any, Any, None], stopping: Stopping) -> None:
    task = asyncio.create_task(waiting)
    try:
        with stopping.future() as stop:
            await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        task.cancel()


async def until_set(event: asyncio.Event, stopping: Stopping, *, seconds: float | None) -> None:
    """Returns once `event` is set, when it is time to stop, or after so many seconds."""
    waiting: asyncio.Future[Any] = asyncio.ensure_future(event.wait())
    try:
        with stopping.future() as stop:
            await asyncio.wait({waiting, stop}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
