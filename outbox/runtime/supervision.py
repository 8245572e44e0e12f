"""Keeps components running, each in a task of its own: with restarts, backoff and an orderly shutdown."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from functools import partial
from typing import Protocol

from outbox.core.outcome import Failure
from outbox.core.urls import redacted
from outbox.errors import ConfigurationError, HandlersAbandonedError, OutboxError
from outbox.runtime.health import HealthChecks
from outbox.runtime.shutdown import running_server, wait_for_exit, wait_for_forced_exit

logger = logging.getLogger("outbox")

FIRST_PAUSE = timedelta(seconds=1)
"""Pause between a part's first crash and its restart; doubles with each further crash."""
LONGEST_PAUSE = timedelta(seconds=30)
PROVEN_AFTER = timedelta(seconds=10)
"""Time after which a restarted part counts as healthy again."""
CANCEL_TIMEOUT = timedelta(seconds=2)
"""Time between the first cancellation of a part, which lets it drain, and the second, which ends it."""


class Part(Protocol):
    """A component, such as a `MessageRelay` or a `Worker`."""

    async def run(self, *, handle_signals: bool = True) -> None:
        """Runs until `stop`, then drains and returns."""
        ...

    def stop(self) -> None:
        """Asks `run` to drain and return."""
        ...


MakePart = Callable[[], Part | None]


class SupervisedPart:
    """Keeps one part running; after each crash `make` creates a new one.

    `first`, if given, is the part of the first run. `longest_pause` is the longest pause before a restart.
    """

    def __init__(self, name: str, first: Part | None, make: MakePart, *, longest_pause: timedelta | None = None) -> None:
        self.name = name
        self._make = make
        self._part = first
        self._problem: str | None = None
        self._started_at = 0.0
        self._pause = FIRST_PAUSE
        self._longest_pause = LONGEST_PAUSE if longest_pause is None else longest_pause
        self._stopping = asyncio.Event()
        self.abandoned: HandlersAbandonedError | None = None
        """Set if the part has ended, but some of its handlers still run."""

    @property
    def problem(self) -> str | None:
        """The last crash, until a restarted run has lasted for `PROVEN_AFTER`; None if the part is healthy."""
        return None if self._is_healthy() else self._problem

    def stop(self) -> None:
        """Asks the running part to drain. It is not started again."""
        self._stopping.set()
        if self._part is not None:
            self._part.stop()

    async def keep_running(self) -> None:
        """Runs the part, and restarts it after each crash, until it was asked to stop and has drained."""
        while not self._stopping.is_set():
            try:
                await self._run_once()
            # Abandoned handlers were logged, and are no reason to end the server.
            except HandlersAbandonedError as error:
                self.abandoned = error
                return
            # No error of a part may end the application.
            except Exception as error:  # noqa: BLE001
                # No traceback for our own errors, whose text says what to do, nor for the same crash as before.
                crash = redacted(str(error) if isinstance(error, OutboxError) else str(Failure.of(error)))
                known = isinstance(error, OutboxError) or crash == self._problem
                self._record_crash(crash, traceback=None if known else error)
            else:
                if self._stopping.is_set():
                    return
                self._record_crash("it ended without being asked to")
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), self._pause.total_seconds())

    async def _run_once(self) -> None:
        part = self._part or self._make()
        if part is None:
            raise RuntimeError("its maker returned None for a restart, although it returned a part at the start")
        self._part = part
        self._started_at = time.monotonic()
        try:
            await part.run(handle_signals=False)
        finally:
            # After a healthy run, the next crash counts as the first one: it restarts after the shortest pause.
            if self._is_healthy():
                self._problem = None
            self._part = None

    def _record_crash(self, crash: str, traceback: Exception | None = None) -> None:
        self._pause = (
            min(FIRST_PAUSE, self._longest_pause) if self._problem is None else min(self._pause * 2, self._longest_pause)
        )
        self._problem = crash
        pause = _format_seconds(self._pause)
        logger.error("The %s has failed and is restarted in %s: %s", self.name, pause, crash, exc_info=traceback)

    def _is_healthy(self) -> bool:
        running = self._part is not None
        return self._problem is None or (running and time.monotonic() - self._started_at > PROVEN_AFTER.total_seconds())


class Supervision:
    """The parts that run next to an application, with their health and shutdown."""

    def __init__(self, parts: Sequence[SupervisedPart], grace_period: timedelta) -> None:
        self._parts = parts
        self._grace_period = grace_period
        self._stopping = asyncio.Event()
        self._deadline: float | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parts."""
        return tuple(part.name for part in self._parts)

    @property
    def stopping(self) -> bool:
        """Whether the shutdown has begun."""
        return self._stopping.is_set()

    def problem(self, name: str) -> str | None:
        """Returns the problem of the part with that name; None if it is healthy."""
        return next((part.problem for part in self._parts if part.name == name), None)

    def stop(self) -> None:
        """Asks every part to drain, and starts the grace period. Idempotent; may be called from a signal handler."""
        if self._stopping.is_set():
            return
        self._deadline = time.monotonic() + self._grace_period.total_seconds()
        self._stopping.set()
        for part in self._parts:
            part.stop()

    async def end_with_server(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        """Stops when the server of this process is asked to exit, and cancels `tasks` when it is asked again.

        Returns at once if no known server runs this process.
        """
        server = running_server()
        if server is None:
            return
        await wait_for_exit(server)
        self.stop()
        # While uvicorn waits for the lifespan to end, it does not react to a second Ctrl-C, so this does.
        await wait_for_forced_exit(server)
        await cancel(tasks)

    def start(self, group: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        """Starts a task in `group` for each part."""
        return [group.create_task(part.keep_running(), name=f"outbox {part.name}") for part in self._parts]

    async def drained(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        """Waits until all tasks have ended; cancels those that outlast the grace period."""
        left = timedelta(seconds=(self._deadline or time.monotonic()) - time.monotonic())
        await drain(tasks, self._grace_period, left=left)


@asynccontextmanager
async def supervised(
    makers: Mapping[str, MakePart], *, grace_period: timedelta, health: HealthChecks | None = None
) -> AsyncIterator[Supervision]:
    """Runs the parts that the makers return within the block, each under its name; a maker that returns None is left out.

    A part that crashes is created and started again, with growing pauses. The parts are asked to stop as soon as the server is,
    or at the end of the block; those that still run after `grace_period` are cancelled. An error of a maker at the start is
    raised. `health` reports each part under its name, and the shutdown under `server`.
    """
    if not isinstance(grace_period, timedelta):
        raise ConfigurationError(f"grace_period must be a timedelta, such as timedelta(seconds=30), not {grace_period!r}")
    # All are made before the first one runs: an error of a maker fails the start, and leaves nothing behind.
    created = [(name, make(), make) for name, make in makers.items()]
    for name, first, _ in created:
        if first is not None and not callable(getattr(first, "run", None)):
            raise ConfigurationError(
                f"the function of {name} must return a part such as a MessageRelay or a Worker, or None, not {first!r:.80}"
            )
    parts = [SupervisedPart(name, first, make) for name, first, make in created if first is not None]
    supervision = Supervision(parts, grace_period)

    async def part_is_healthy(name: str) -> None:
        problem = supervision.problem(name)
        if problem is not None:
            raise OutboxError(problem)

    async def is_not_stopping() -> None:
        if supervision.stopping:
            raise OutboxError("the server is shutting down")

    checks = {name: partial(part_is_healthy, name) for name in supervision.names} | {"server": is_not_stopping}
    with (health or HealthChecks()).including(checks), plain_error():
        async with asyncio.TaskGroup() as group:
            tasks = supervision.start(group)
            watch = group.create_task(supervision.end_with_server(tasks))
            try:
                yield supervision
            except BaseException:
                # The server was asked to exit twice, or the application failed: no grace period.
                supervision.stop()
                await cancel(tasks)
                raise
            else:
                supervision.stop()
                await supervision.drained(tasks)
            finally:
                watch.cancel()


@contextmanager
def plain_error() -> Iterator[None]:
    """Raises the only error of a task group in place of the group: an application would not recognise its own in there."""
    try:
        yield
    except BaseExceptionGroup as errors:
        if len(errors.exceptions) > 1:
            raise
        only = errors.exceptions[0]
        context = only.__context__
        try:
            raise only
        finally:
            only.__context__ = context  # it was not raised while the group was handled


async def drain(tasks: Collection[asyncio.Task[None]], grace_period: timedelta, *, left: timedelta | None = None) -> None:
    """Waits until the tasks of parts that were asked to stop have ended; cancels those that outlast the grace period.

    `left` is what is left of it, by default all.
    """
    if not tasks:
        return
    # Parts have the same grace period themselves, so a part that is still late after a margin hangs.
    limit = (grace_period if left is None else left) + CANCEL_TIMEOUT
    _, pending = await asyncio.wait(tasks, timeout=max(limit.total_seconds(), 0))
    if pending:
        logger.warning(
            "%s did not finish within the grace period of %s and is cancelled",
            ", ".join(task.get_name().removeprefix("outbox ") for task in pending),
            _format_seconds(grace_period),
        )
        await cancel(pending)


async def cancel(tasks: Collection[asyncio.Task[None]]) -> None:
    """Cancels tasks, and cancels those again that have not drained in time."""
    for task in tasks:
        task.cancel()
    if tasks:
        _, pending = await asyncio.wait(tasks, timeout=CANCEL_TIMEOUT.total_seconds())
        for task in pending:
            task.cancel()


def _format_seconds(duration: timedelta) -> str:
    return f"{duration.total_seconds():g} s"
