"""The owner of tasks that come and go: one for each delivery in hand."""

import asyncio
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self


class Crew:
    """Owns tasks, from before its block is entered. Left normally it waits for them, left by an exception it cancels them.

    Unlike in a task group, an error in one task leaves the others in peace: `alarm` is called, and the first error is raised
    when the block is left.
    """

    def __init__(self, alarm: Callable[[], None]) -> None:
        self._alarm = alarm
        self._tasks: set[asyncio.Task[None]] = set()
        self._error: BaseException | None = None

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Begins `work`."""
        task = asyncio.get_running_loop().create_task(work)
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
            await self._finished()
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

    async def _finished(self) -> None:
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _cancel(self) -> None:
        for task in self._tasks:
            task.cancel()
        await self._finished()
