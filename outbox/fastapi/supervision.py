"""Runs relay and worker next to the application: one task group, restarts with backoff, one orderly end."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from functools import partial
from typing import Protocol

from outbox.core.outcome import Failure
from outbox.core.urls import redacted
from outbox.errors import HandlersAbandonedError, OutboxError
from outbox.runtime.health import HealthChecks
from outbox.runtime.shutdown import running_server, wait_for_exit, wait_for_forced_exit

logger = logging.getLogger("outbox")

FIRST_PAUSE = timedelta(seconds=1)
"""Between a part's first crash and its restart; doubles with each further one."""
LONGEST_PAUSE = timedelta(seconds=30)
PROVEN_AFTER = timedelta(seconds=10)
"""A restarted part that ran for so long counts as well again."""
LAST_WORDS = timedelta(seconds=2)
"""What a part has between being cancelled and being cancelled for good."""


class Part(Protocol):
    """What runs next to an application: a `MessageRelay`, a `Worker`."""

    async def run(self, *, handle_signals: bool = True) -> None:
        """Works until `stop`, then drains and returns."""
        ...

    def stop(self) -> None:
        """Asks `run` to drain and return."""
        ...


MakePart = Callable[[], Part | None]


class SupervisedPart:
    """One part: kept running, made again by `make` after each crash of the one before."""

    def __init__(self, name: str, first: Part, make: MakePart) -> None:
        self.name = name
        self._make = make
        self._part: Part | None = first
        self._problem: str | None = None
        self._started_at = 0.0
        self._pause = FIRST_PAUSE

    @property
    def problem(self) -> str | None:
        """Why the part is not well: its last crash, until a restarted run has lasted for `PROVEN_AFTER`."""
        return None if self._proven() else self._problem

    def stop(self) -> None:
        """Asks the running part to drain."""
        if self._part is not None:
            self._part.stop()

    async def keep_running(self, stopping: asyncio.Event) -> None:
        """Runs the part, again after each crash, until `stopping` is set and it has drained."""
        while not stopping.is_set():
            try:
                await self._run_once()
            except HandlersAbandonedError:  # each of them was logged; a server is not ended by them
                return
            # Whatever ended the part, the application goes on and the part is started again.
            except Exception as error:  # noqa: BLE001
                # An error of ours says in its sentence what to do; where a traceback was seen before, it says nothing new.
                crash = redacted(str(error) if isinstance(error, OutboxError) else str(Failure.of(error)))
                known = isinstance(error, OutboxError) or crash == self._problem
                self._note(crash, traceback=None if known else error)
            else:
                if stopping.is_set():
                    return
                self._note("it ended without being asked to")
            with suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), self._pause.total_seconds())

    async def _run_once(self) -> None:
        part = self._part or self._make()
        if part is None:
            raise RuntimeError("the application wants this part no more, though it did at the start")
        self._part = part
        self._started_at = time.monotonic()
        try:
            await part.run(handle_signals=False)
        finally:
            if self._proven():
                self._problem = None  # what comes next is a first crash again
            self._part = None

    def _note(self, crash: str, traceback: Exception | None = None) -> None:
        self._pause = FIRST_PAUSE if self._problem is None else min(self._pause * 2, LONGEST_PAUSE)
        self._problem = crash
        pause = _in_words(self._pause)
        logger.error("The %s has failed and is restarted in %s: %s", self.name, pause, crash, exc_info=traceback)

    def _proven(self) -> bool:
        running = self._part is not None
        return self._problem is None or (running and time.monotonic() - self._started_at > PROVEN_AFTER.total_seconds())


class Supervision:
    """The parts that run next to an application, and the way to end them."""

    def __init__(self, parts: Sequence[SupervisedPart], grace_period: timedelta) -> None:
        self._parts = parts
        self._grace_period = grace_period
        self._stopping = asyncio.Event()
        self._deadline: float | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Which parts are run."""
        return tuple(part.name for part in self._parts)

    @property
    def stopping(self) -> bool:
        """Whether the end has begun."""
        return self._stopping.is_set()

    def problem(self, name: str) -> str | None:
        """Why the part of that name is not well; None if it is."""
        return next((part.problem for part in self._parts if part.name == name), None)

    def stop(self) -> None:
        """Asks every part to drain; the grace period begins. Idempotent, and callable from a signal handler."""
        if self._stopping.is_set():
            return
        self._deadline = time.monotonic() + self._grace_period.total_seconds()
        self._stopping.set()
        for part in self._parts:
            part.stop()

    async def end_with_server(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        """Stops when the server that runs this process is asked to; cancels `tasks` when it is asked twice.

        Returns at once if there is no such server.
        """
        server = running_server()
        if server is None:
            return
        await wait_for_exit(server)
        self.stop()
        # While uvicorn waits for the lifespan it looks at nothing, so that a second Ctrl-C has to be noticed here.
        await wait_for_forced_exit(server)
        await _cancel(set(tasks))

    def start(self, group: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        """One task a part, in `group`."""
        return [group.create_task(part.keep_running(self._stopping), name=f"outbox {part.name}") for part in self._parts]

    async def drained(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        """Returns when all tasks have ended: by themselves in the grace period, cancelled after it."""
        if not tasks:
            return
        # Parts keep to the same grace period by themselves; who is later than that, and some, does not listen.
        deadline = (self._deadline or time.monotonic()) + LAST_WORDS.total_seconds()
        _, pending = await asyncio.wait(tasks, timeout=max(deadline - time.monotonic(), 0))
        if pending:
            logger.warning(
                "%s did not finish within the grace period of %s and is cancelled",
                ", ".join(task.get_name().removeprefix("outbox ") for task in pending),
                _in_words(self._grace_period),
            )
            await _cancel(pending)


@asynccontextmanager
async def supervised(
    makers: Mapping[str, MakePart], *, grace_period: timedelta, health: HealthChecks | None = None
) -> AsyncIterator[Supervision]:
    """Within the block each part runs, made by its maker, under its name; where a maker returns None, nothing does.

    A part that crashes is made again and started again, with growing pauses. The parts are asked to stop as soon as the server
    is, or at the end of the block; after `grace_period` the rest is cancelled. A maker that raises at once raises here.
    `health` reports how the parts are, under their names, and that the end has begun, under `server`.
    """
    made = [(name, make(), make) for name, make in makers.items()]
    parts = [SupervisedPart(name, first, make) for name, first, make in made if first is not None]
    supervision = Supervision(parts, grace_period)

    async def part_is_well(name: str) -> None:
        problem = supervision.problem(name)
        if problem is not None:
            raise OutboxError(problem)

    async def is_not_stopping() -> None:
        if supervision.stopping:
            raise OutboxError("the server is shutting down")

    checks = {name: partial(part_is_well, name) for name in supervision.names} | {"server": is_not_stopping}
    with (health or HealthChecks()).including(checks):
        async with asyncio.TaskGroup() as group:
            tasks = supervision.start(group)
            watch = group.create_task(supervision.end_with_server(tasks))
            try:
                yield supervision
            except BaseException:
                # The server was asked twice, or the application failed: no time for grace.
                supervision.stop()
                await _cancel(set(tasks))
                raise
            else:
                supervision.stop()
                await supervision.drained(tasks)
            finally:
                watch.cancel()


async def _cancel(tasks: set[asyncio.Task[None]]) -> None:
    """Cancelled once, a part may drain; cancelled twice, it ends."""
    for task in tasks:
        task.cancel()
    if tasks:
        _, pending = await asyncio.wait(tasks, timeout=LAST_WORDS.total_seconds())
        for task in pending:
            task.cancel()


def _in_words(time_: timedelta) -> str:
    return f"{time_.total_seconds():g} s"
