"""Sets of tasks that end together, and the first error of an exception group."""

import asyncio
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import TracebackType
from typing import Any, Self


@contextmanager
def ungrouped() -> Iterator[None]:
    """Raises the first error inside of an exception group instead of the group, with the group as its cause."""
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from group


CLEAN_UP = timedelta(seconds=3)
"""How long a cancelled task may take to clean up before it is cancelled once more."""
LAST_CHANCE = timedelta(seconds=1)
"""How long it may take after that."""


class TaskSet:
    """Owns tasks, from before its block is entered. Left normally it waits for them, left by an exception it cancels them.

    What does not end when it is cancelled, and cancelled again after `CLEAN_UP`, is abandoned, so that leaving the block takes
    a bounded time: `abandoned` says how many tasks that were. Unlike in a task group, an error in one task leaves the others in
    peace: `alarm` is called, and the first error is raised when the block is left.
    """

    def __init__(self, alarm: Callable[[], None]) -> None:
        self._alarm = alarm
        self._tasks: set[asyncio.Task[None]] = set()
        self._error: BaseException | None = None
        self.abandoned = 0

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Begins `work`."""
        unclosed: Any = _Unclosed(work)  # a Coroutine in all but its base class, which would make each step slower
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(unclosed)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    @property
    def size(self) -> int:
        """How many tasks there are now."""
        return len(self._tasks)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if error is not None:
            await self._cancel()
            return
        try:
            while self._tasks:
                await asyncio.wait(self._tasks)
        except asyncio.CancelledError:
            await self._cancel()
            raise
        if self._error is not None:
            raise self._error

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._error = self._error or error
            self._alarm()

    async def _cancel(self) -> None:
        try:
            for limit in (CLEAN_UP, LAST_CHANCE):
                for task in self._tasks:
                    task.cancel()
                if self._tasks:
                    await asyncio.wait(self._tasks, timeout=limit.total_seconds())
        finally:
            self.abandoned += len(self._tasks)
            for task in self._tasks:
                task.remove_done_callback(self._ended)
                # Whatever it ends with is looked at, so that asyncio does not complain that nothing did.
                task.add_done_callback(lambda task: task.cancelled() or task.exception())
                # `asyncio.run` waits without a limit for each task that is registered, and so does a server's lifespan.
                asyncio.tasks._unregister_task(task)  # noqa: SLF001  documented for who implements tasks
            self._tasks.clear()


class _Unclosed:
    """The coroutine `work`, which a `GeneratorExit` that comes from an awaited future does not close.

    A task throws into its coroutine what the future raised. Thrown a `GeneratorExit`, a coroutine first closes what it awaits,
    so that nothing on the way can roll back, or settle. As a `RuntimeError` it is an error like any other.
    """

    __slots__ = ("_work", "close", "send")

    def __init__(self, work: Coroutine[Any, Any, None]) -> None:
        self._work = work
        # Called for each step of each task: bound once, they cost nothing.
        self.send = work.send
        self.close = work.close

    def throw(self, error: BaseException) -> Any:
        if isinstance(error, GeneratorExit):
            failure = RuntimeError("something that was awaited raised GeneratorExit")
            failure.__cause__ = error
            return self._work.throw(failure)
        return self._work.throw(error)

    def __await__(self) -> Generator[Any, Any, None]:
        return self._work.__await__()
