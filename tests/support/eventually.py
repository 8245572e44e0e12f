"""Waits for a condition, and fails with the last value if it does not become true."""

import asyncio
import inspect
import textwrap
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

T = TypeVar("T")

_FIRST_PAUSE, _LONGEST_PAUSE, _GROWTH = 0.02, 0.1, 1.25
"""Seconds between two calls of a predicate. Many of them connect to a server, which costs it more than what is asked."""


@overload
async def eventually(
    predicate: Callable[[], Awaitable[T]], *, timeout: float = ..., message: str = ..., interval: float | None = ...
) -> T: ...
@overload
async def eventually(
    predicate: Callable[[], T], *, timeout: float = ..., message: str = ..., interval: float | None = ...
) -> T: ...
async def eventually(
    predicate: Callable[[], Any], *, timeout: float = 30.0, message: str = "", interval: float | None = None
) -> Any:
    """Call the predicate, sync or async, until it returns something truthy, and return it.

    An AssertionError in the predicate counts as "not yet". After `timeout` seconds the test fails with the last value or
    assertion. The predicate is called every `interval` seconds; by default at growing intervals.
    """
    attempt = _Attempt(predicate, timeout, message, interval)
    while True:
        try:
            answer = predicate()
            attempt.last = await answer if inspect.isawaitable(answer) else answer
            if attempt.last:
                return attempt.last
        except AssertionError as error:
            attempt.last = error
        await asyncio.sleep(attempt.pause_unless_late())


def eventually_sync(
    predicate: Callable[[], T], *, timeout: float = 30.0, message: str = "", interval: float | None = None
) -> T:
    """Like `eventually`, without an event loop."""
    attempt = _Attempt(predicate, timeout, message, interval)
    while True:
        try:
            answer = predicate()
            attempt.last = answer
            if answer:
                return answer
        except AssertionError as error:
            attempt.last = error
        time.sleep(attempt.pause_unless_late())


class _Attempt:
    def __init__(self, predicate: Callable[[], object], timeout: float, message: str, interval: float | None) -> None:
        self.last: object = None
        self._predicate = predicate
        self._timeout = timeout
        self._message = message
        self._deadline = time.monotonic() + timeout
        self._pause = _FIRST_PAUSE if interval is None else interval
        self._longest_pause = max(_LONGEST_PAUSE if interval is None else interval, self._pause)

    def pause_unless_late(self) -> float:
        if time.monotonic() < self._deadline:
            pause, self._pause = self._pause, min(self._pause * _GROWTH, self._longest_pause)
            return pause
        what = self._message or _source(self._predicate)
        failed = isinstance(self.last, AssertionError)
        seen = f"last failure: {self.last}" if failed else f"last value: {self.last!r}"
        raise AssertionError(f"not within {self._timeout:g} s: {what}\n{seen}")


def _source(predicate: Callable[[], object]) -> str:
    try:
        return textwrap.dedent(inspect.getsource(predicate)).strip()
    except (OSError, TypeError):
        return repr(predicate)
