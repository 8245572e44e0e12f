"""Sets of tasks that end together, tasks of a block, and unwrapping of exception groups."""

import asyncio
import contextvars
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from types import TracebackType
from typing import Any, Self


@contextmanager
def ungrouped() -> Iterator[None]:
    """Raises the first error of an exception group instead of the group. If there are others, the group is its cause."""
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        is_only = True
        while isinstance(error, BaseExceptionGroup):
            is_only = is_only and len(error.exceptions) == 1
            error = error.exceptions[0]
        raise error from (error.__cause__ if is_only else group)


@asynccontextmanager
async def in_background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Runs `work`, which never returns by itself, for the block, and has cancelled it afterwards. Its error ends the block."""
    with ungrouped():
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(work)
            try:
                yield
            finally:
                task.cancel()


CLEAN_UP = timedelta(seconds=3)
"""How long a cancelled task may take to clean up before it is cancelled again."""
FINAL_CLEAN_UP = timedelta(seconds=1)
"""How long it may take after the second cancellation before it is abandoned."""


class TaskSet:
    """Owns tasks. Its block waits for them when it ends normally, and cancels them when it ends by an exception.

    A task that does not end after two cancellations, `CLEAN_UP` apart, is abandoned and counted in `abandoned`, so that the
    block ends within a limited time. Unlike in a task group, an error in one task does not cancel the others: `on_error` is
    called, and the first error is raised at the end of the block. Tasks may be spawned before the block is entered.
    """

    def __init__(self, on_error: Callable[[], None]) -> None:
        self._on_error = on_error
        # A delivery arrives in the context of its connection, which may be the application's own: a task must not inherit a
        # span from there, nor lose the suppression of instrumentations.
        self._context = contextvars.copy_context()
        self._tasks: set[asyncio.Task[None]] = set()
        self._error: BaseException | None = None
        self.abandoned = 0

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Starts a task, in a copy of the context in which the set was created."""
        # _GeneratorExitGuard does not inherit from Coroutine, which would make each step of the task slower.
        guarded: Any = _GeneratorExitGuard(work)
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(guarded, context=self._context.copy())
        self._tasks.add(task)
        task.add_done_callback(self._on_done)

    @property
    def size(self) -> int:
        """The number of tasks that have not ended."""
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

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._error = self._error or error
            self._on_error()

    async def _cancel(self) -> None:
        try:
            for limit in (CLEAN_UP, FINAL_CLEAN_UP):
                for task in self._tasks:
                    task.cancel()
                if self._tasks:
                    await asyncio.wait(self._tasks, timeout=limit.total_seconds())
        finally:
            self.abandoned += len(self._tasks)
            for task in self._tasks:
                task.remove_done_callback(self._on_done)
                # Retrieve its exception, or asyncio would log that it was never retrieved.
                task.add_done_callback(lambda task: task.cancelled() or task.exception())
                # `asyncio.run`, and a server's lifespan, would wait for a registered task without a limit.
                asyncio.tasks._unregister_task(task)  # noqa: SLF001  documented for implementers of tasks
            self._tasks.clear()


class _GeneratorExitGuard:
    """Wraps the coroutine `work` to turn a `GeneratorExit` raised by an awaited future into a `RuntimeError`.

    A task throws a future's error into its coroutine. A `GeneratorExit` would close the inner coroutines, which could then
    neither roll back nor settle.
    """

    __slots__ = ("_work", "close", "send")

    def __init__(self, work: Coroutine[Any, Any, None]) -> None:
        self._work = work
        # The task calls these for each step: bound once, they cost nothing extra.
        self.send = work.send
        self.close = work.close

    def throw(self, error: BaseException) -> Any:
        if isinstance(error, GeneratorExit):
            failure = RuntimeError("an awaited future raised GeneratorExit")
            failure.__cause__ = error
            return self._work.throw(failure)
        return self._work.throw(error)

    def __await__(self) -> Generator[Any, Any, None]:
        return self._work.__await__()
