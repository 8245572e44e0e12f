"""Runs a relay or a worker until a call, a signal or a cancellation stops it, then drains it. Backoff, outages, pauses."""

import asyncio
import logging
import signal
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from random import Random
from types import FrameType
from typing import Any, TypeVar

from outbox.core.events import Dependency, DependencyLost, DependencyRestored
from outbox.errors import BrokerUnavailableError, DatabaseUnavailableError, OutboxError, StatementTimeoutError
from outbox.ports import Gate, Observer

_T = TypeVar("_T")

GRACE_PERIOD = timedelta(seconds=30)
"""Default time limit for draining. Then the remaining work is cancelled."""

_CANCEL_LIMIT_SECONDS = 10.0
"""How long cancelled work may take to clean up before it is abandoned. A worker gives its handlers 4 s of it."""

_REPEATED_SIGNAL_SECONDS = 0.5
"""A signal this soon after the first repeats it: a terminal and a supervisor often both forward one Ctrl-C."""

_logger = logging.getLogger("outbox")


class Stopping:
    """A request to stop, made once, by a signal handler, any thread or any task, before or while a task waits for it."""

    __slots__ = ("_listeners", "_requested")

    def __init__(self) -> None:
        self._requested = False
        self._listeners: list[Callable[[], None]] = []

    @property
    def requested(self) -> bool:
        """Whether the request was made."""
        return self._requested

    def request(self) -> None:
        """Makes the request. Repeating it has no effect."""
        # Takes no lock and never waits, because signal handlers call it.
        if not self._requested:
            self._requested = True
            for listener in tuple(self._listeners):
                listener()

    async def wait(self, timeout: timedelta | None = None) -> bool:
        """Waits for the request, at most for `timeout`. Returns whether it was made."""
        with self.future() as future:
            await asyncio.wait({future}, timeout=timeout.total_seconds() if timeout is not None else None)
        return self._requested

    @contextmanager
    def listen(self, listener: Callable[[], None]) -> Iterator[None]:
        """Calls `listener` when the request is made within the block, or at once if it was made before. May call it twice."""
        # Add first, check second: if another thread makes the request in between, at least one of the two calls it.
        self._listeners.append(listener)
        try:
            if self._requested:
                listener()
            yield
        finally:
            self._listeners.remove(listener)

    @contextmanager
    def future(self) -> Iterator[asyncio.Future[None]]:
        """Yields a future of the running loop that is resolved when the request is made."""
        loop = asyncio.get_running_loop()
        future = loop.create_future()

        def resolve() -> None:
            if not future.done():
                future.set_result(None)

        def resolve_soon() -> None:
            with suppress(RuntimeError):  # the loop is closed: no task waits any more
                loop.call_soon_threadsafe(resolve)

        with self.listen(resolve_soon):
            try:
                yield future
            finally:
                future.cancel()


Work = Callable[[Stopping], Coroutine[Any, Any, None]]
"""Works until it is asked to stop, then finishes what it has begun and returns. Cancelled, it ends at once."""


async def run_until_stopped(
    work: Work, stop: Stopping, *, grace_period: timedelta = GRACE_PERIOD, handle_signals: bool = True
) -> None:
    """Runs `work` until it ends, or until `stop`, a signal or a cancellation asks it to stop.

    Work that is asked to stop has the grace period to drain; then it is cancelled. After `stop` or a signal this returns
    normally. After a cancellation it drains too, then re-raises; a second cancellation cancels the work. A second signal, at
    least half a second after the first, also cancels the work. Cancelled work has 10 s to clean up. Errors of `work` are
    raised. If `stop` was requested before, this returns without starting `work`.

    SIGINT and SIGTERM are handled only in the main thread, and only if no handlers are installed but those of Python,
    `asyncio.run` and other calls of this function. The previous handlers are restored.
    """
    drain, abort = Stopping(), Stopping()
    with ExitStack() as stack:
        stack.enter_context(stop.listen(drain.request))
        if drain.requested:
            return
        if handle_signals:
            stack.enter_context(_signals_to(_SignalListener(drain, abort)))
        task = asyncio.create_task(work(drain))
        interruption = await _wait_until_done_or_due(task, drain, abort, grace_period)
        interruption = await _cancel_and_wait(task) or interruption
    if interruption is not None:
        raise interruption from (task.exception() if task.done() and not task.cancelled() else None)
    if task.done() and not task.cancelled():
        task.result()


async def _wait_until_done_or_due(
    task: asyncio.Task[None], drain: Stopping, abort: Stopping, grace_period: timedelta
) -> asyncio.CancelledError | None:
    """Waits until `task` is done or has to be cancelled. Returns the cancellation to re-raise, if there was one."""
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


async def _first(task: asyncio.Task[None], request: Stopping, *, timeout: float | None) -> None:
    with request.future() as future:
        # Unlike `await task`, this leaves the task running if the caller is cancelled: it is to drain.
        await asyncio.wait({task, future}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)


async def _cancel_and_wait(task: asyncio.Task[None]) -> asyncio.CancelledError | None:
    """Cancels `task` if it still runs and waits for its end, within a limit. Returns a cancellation that came meanwhile."""
    interruption: asyncio.CancelledError | None = None
    if task.done():
        return None
    _logger.warning("the grace period has ended, or a second signal came: cancelling the work that still runs")
    task.cancel()
    deadline = time.monotonic() + _CANCEL_LIMIT_SECONDS
    while not task.done() and time.monotonic() < deadline:
        try:
            await asyncio.wait({task}, timeout=deadline - time.monotonic())
        except asyncio.CancelledError as cancellation:
            # Keep waiting: until `task` has abandoned its handlers, `asyncio.run` would wait for them without a limit.
            interruption = cancellation
    if not task.done():
        _logger.error("work did not end within %g s after it was cancelled, and is abandoned", _CANCEL_LIMIT_SECONDS)
    return interruption


# --- signals -----------------------------------------------------------------------------------------------------------

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class _SignalListener:
    """Called for each signal: the first drains, a later one aborts."""

    def __init__(self, drain: Stopping, abort: Stopping) -> None:
        self._drain = drain
        self._abort = abort
        self._first_at: float | None = None

    def __call__(self) -> None:
        now = time.monotonic()
        if self._first_at is None:
            self._first_at = now
            self._drain.request()
        elif now - self._first_at >= _REPEATED_SIGNAL_SECONDS:
            self._abort.request()


class _SharedHandler:
    """One signal handler for all runs in the process. The last run to end restores `previous`."""

    def __init__(self, previous: Any) -> None:
        self.previous = previous
        self.listeners: list[Callable[[], None]] = []

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        for listener in tuple(self.listeners):
            listener()


@contextmanager
def _signals_to(listener: Callable[[], None]) -> Iterator[None]:
    """Calls `listener` for each signal within the block, unless the host has installed signal handlers."""
    current: dict[signal.Signals, Any] = {number: signal.getsignal(number) for number in _SIGNALS}
    defaults = (signal.SIG_DFL, signal.SIG_IGN, signal.default_int_handler)
    # `asyncio.run` installs a method of its runner for SIGINT, which counts as a default.
    if threading.current_thread() is not threading.main_thread() or not all(
        handler in defaults
        or isinstance(handler, _SharedHandler)
        or (isinstance(handler, partial) and isinstance(getattr(handler.func, "__self__", None), asyncio.Runner))
        for handler in current.values()
    ):
        yield
        return
    shared: dict[signal.Signals, _SharedHandler] = {}
    for number, handler in current.items():
        if handler is not signal.SIG_IGN:  # ignored on behalf of the parent process, such as nohup
            shared[number] = handler if isinstance(handler, _SharedHandler) else _SharedHandler(handler)
            shared[number].listeners.append(listener)
            signal.signal(number, shared[number])
    try:
        yield
    finally:
        for number, ours in shared.items():
            ours.listeners.remove(listener)
            # The host may have installed a handler meanwhile, which stays.
            is_still_ours = signal.getsignal(number) is ours
            if is_still_ours and not ours.listeners:
                signal.signal(number, ours.previous)


_SHORTEST_ROUNDED = 4.0
"""Seconds."""
_STARTED = time.monotonic()
"""Processes of a host start at different times, so they do not wake up together."""


def pause_before_next(interval: timedelta) -> float:
    """Returns the seconds to sleep before work that is repeated every `interval`: up to half a second less or more.

    The periodic tasks of a process wake it up together, once a second: one that wakes it up alone takes more processor time,
    because all that it needs has left the processor's caches. This matters to a process that serves many idle databases.
    """
    seconds = interval.total_seconds()
    if seconds < _SHORTEST_ROUNDED:
        return seconds
    now = time.monotonic() - _STARTED
    return round(now + seconds) - now


@dataclass(slots=True, kw_only=True)
class Pauses:
    """Pauses that double from `first` to `longest`, each shortened by up to half at random, to spread retries."""

    first: timedelta = timedelta(milliseconds=100)
    longest: timedelta = timedelta(seconds=5)
    random: Random = field(default_factory=Random)
    _taken: int = 0

    def next(self) -> timedelta:
        """Returns the length of the next pause."""
        # In a long outage the doubled time would otherwise leave the range of `timedelta`.
        pause: timedelta = min(self.first * 2 ** min(self._taken, 30), self.longest)
        self._taken += 1
        return pause * self.random.uniform(0.5, 1.0)

    def reset(self) -> None:
        """Starts over with `first`."""
        self._taken = 0


LONGEST_PAUSE = {
    Dependency.BROKER: timedelta(seconds=5),
    Dependency.DATABASE: timedelta(seconds=1),
    Dependency.BODY_STORE: timedelta(seconds=5),
}
"""Longest pause before the next attempt to reach a lost server."""
MOST_REASONS = 10
"""How many different reasons for one outage are reported, each once."""


class Outage:
    """Tracks and reports whether one server is available."""

    def __init__(self, dependency: Dependency, observer: Observer) -> None:
        self._dependency = dependency
        self._observer = observer
        self._pauses = Pauses(longest=LONGEST_PAUSE[dependency])
        self._reasons: set[str] = set()
        self.waiting: set[object] = set()
        """Those that still find the server away, each on a connection of its own. Until none does, it is not back."""

    def lost(self, error: OutboxError) -> timedelta:
        """Records that the server is unavailable, refuses or takes too long. Returns how long to wait before the next attempt.

        Reports each new reason.
        """
        reason = str(error)
        # Not only the first reason: an outage may continue as a missing table or permission, which an operator has to add.
        if reason not in self._reasons and len(self._reasons) < MOST_REASONS:
            self._reasons.add(reason)
            timed_out = isinstance(error, StatementTimeoutError)
            self._observer.notify(DependencyLost(dependency=self._dependency, reason=reason, timed_out=timed_out))
        return self._pauses.next()

    def answers(self) -> None:
        """Records that the server is available."""
        if self._reasons and not self.waiting:
            self._reasons.clear()
            self._observer.notify(DependencyRestored(dependency=self._dependency))
        self._pauses.reset()


async def wait_until_available(attempt: Callable[[], Awaitable[None]], stopping: Stopping, observer: Observer) -> bool:
    """Calls `attempt` until broker and database are available. Returns False if `stopping` was requested before that.

    Raises any other error of `attempt`, since waiting would not help.
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
    """A Gate that is never closed."""

    closed = False

    async def wait_until_open(self) -> None:
        """See `outbox.ports.Gate.wait_until_open`."""

    async def wait_until_closed(self) -> None:
        """See `outbox.ports.Gate.wait_until_closed`. Never returns."""
        await asyncio.get_running_loop().create_future()


OPEN: Gate = OpenGate()


def never_closed(_queue: str) -> Gate:
    """Returns a gate that is always open, for any queue."""
    return OPEN


async def until_open(gate: Gate, stopping: Stopping) -> None:
    """Waits until the gate is open or `stopping` is requested."""
    if gate.closed:
        async with interrupted_by(stopping):
            await gate.wait_until_open()


async def until_closed(gate: Gate, stopping: Stopping) -> None:
    """Waits until the gate is closed or `stopping` is requested."""
    async with interrupted_by(stopping):
        await gate.wait_until_closed()


@asynccontextmanager
async def interrupted_by(stopping: Stopping) -> AsyncIterator[None]:
    """Cancels the block when `stopping` is requested, and then goes on after it."""
    loop, limit = asyncio.get_running_loop(), asyncio.timeout(None)

    def expire() -> None:
        with suppress(RuntimeError):  # the block has ended meanwhile
            limit.reschedule(loop.time())

    def expire_soon() -> None:
        loop.call_soon_threadsafe(expire)

    try:
        async with limit:
            with stopping.listen(expire_soon):
                yield
    except TimeoutError:
        if not limit.expired():
            raise


@asynccontextmanager
async def entered(manager: AbstractAsyncContextManager[_T], stopping: Stopping) -> AsyncIterator[_T | None]:
    """Enters `manager`, which may connect to a server for longer than a stop may take.

    Yields None, with nothing entered, if `stopping` is requested before.
    """
    async with AsyncExitStack() as stack:
        found = None
        async with interrupted_by(stopping):
            found = await stack.enter_async_context(manager)
        yield found


async def until_set(event: asyncio.Event, stopping: Stopping, *, seconds: float | None) -> None:
    """Waits until `event` is set or `stopping` is requested, at most for `seconds`."""
    waiting: asyncio.Future[Any] = asyncio.ensure_future(event.wait())
    try:
        with stopping.future() as stop:
            await asyncio.wait({waiting, stop}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
