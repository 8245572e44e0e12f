"""A handler's time: when it is over, the handler is cancelled, and cancelled again if it goes on all the same."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from outbox.errors import HandlerTimeoutError

AGAIN = timedelta(seconds=5)
"""How long a cancelled handler may take to clean up before it is cancelled once more."""


@contextmanager
def time_limit(limit: timedelta) -> Iterator[None]:
    """What is awaited in the block is cancelled when `limit` is over, and then every `AGAIN` until the block ends.

    However it ends after that, normally or with whatever error, `HandlerTimeoutError` is raised; only a cancellation that
    somebody else asked for passes through. Before that nothing is changed: a `TimeoutError` from within stays what it is.
    """
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("only a task can be cancelled")
    limiter = _Limiter(task, limit)
    try:
        yield
    except BaseException as error:
        if limiter.ended() and not (isinstance(error, asyncio.CancelledError) and task.cancelling()):
            raise HandlerTimeoutError(_says(limit)) from error
        raise
    else:
        if limiter.ended():
            raise HandlerTimeoutError(_says(limit))


class _Limiter:
    """Cancels `task` when its time is over."""

    def __init__(self, task: "asyncio.Task[object]", limit: timedelta) -> None:
        self._task = task
        self._loop = asyncio.get_running_loop()
        self._cancellations = 0
        self._next = self._loop.call_later(limit.total_seconds(), self._cancel)

    def ended(self) -> bool:
        """Cancels no more, and takes back the requests; whether the time was over."""
        self._next.cancel()
        for _ in range(self._cancellations):
            self._task.uncancel()
        return self._cancellations > 0

    def _cancel(self) -> None:
        self._cancellations += 1
        self._task.cancel()
        self._next = self._loop.call_later(AGAIN.total_seconds(), self._cancel)


def _says(limit: timedelta) -> str:
    return f"the handler ran for longer than its timeout of {limit.total_seconds():g} s, and was cancelled"
