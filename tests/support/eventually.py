"""Waits for a condition, and fails with the last value if it does not become true."""

import asyncio
import inspect
import textwrap
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

T = TypeVar("T")

_INTERVAL_SECONDS = 0.02


@overload
async def eventually(
    predicate: Callable[[], Awaitable[T]], *, timeout: float = ..., message: str = ..., interval: float = ...
) -> T: ...
@overload
async def eventually(predicate: Callable[[], T], *, timeout: float = ..., message: str = ..., interval: float = ...) -> T: ...
async def eventually(
    predicate: Callable[[], Any], *, timeout: float = 30.0, message: str = "", interval: float = _INTERVAL_SECONDS
) -> Any:
    """Call the predicate, sync or async, until it returns something truthy, and return it.

    An AssertionError in the predicate counts as "not yet". After `timeout` seconds the test fails with the last value or
    assertion.
    """
    attempt = _Attempt(predicate, timeout, message)
    while True:
        try:
            answer = predicate()
            attempt.last = await answer if inspect.isawaitable(answer) else answer
            if attempt.last:
                return attempt.last
        except AssertionError as error:
            attempt.last = error
        attempt.fail_if_late()
        await asyncio.sleep(interval)


def eventually_sync(
    predicate: Callable[[], T], *, timeout: float = 30.0, message: str = "", interval: float = _INTERVAL_SECONDS
) -> T:
    """Like `eventually`, without an event loop."""
    attempt = _Attempt(predicate, timeout, message)
    while True:
        try:
            answer = predicate()
            attempt.last = answer
            if answer:
                return answer
        except AssertionError as error:
            attempt.last = error
        attempt.fail_if_late()
        time.sleep(interval)


class _Attempt:
    def __init__(self, predicate: Callable[[], object], timeout: float, message: str) -> None:
        self.last: object = None
        self._predicate = predicate
        self._timeout = timeout
        self._message = message
        self._deadline = time.monotonic() + timeout

    def fail_if_late(self) -> None:
        if time.monotonic() < self._deadline:
            return
        what = self._message or _source(self._predicate)
        failed = isinstance(self.last, AssertionError)
        seen = f"last failure: {self.last}" if failed else f"last value: {self.last!r}"
        raise AssertionError(f"not within {self._timeout:g} s: {what}\n{seen}")


def _source(predicate: Callable[[], object]) -> str:
    try:
        return textwrap.dedent(inspect.getsource(predicate)).strip()
    except (OSError, TypeError):
        return repr(predicate)
