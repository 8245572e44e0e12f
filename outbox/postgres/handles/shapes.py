"""How type checkers tell async handles from sync ones, whichever of the libraries are installed."""

from collections.abc import Awaitable
from typing import Any, Protocol


class AsyncHandle(Protocol):
    """An async session, connection or cursor: what executes has to be awaited."""

    def execute(self, *args: Any, **kwargs: Any) -> Awaitable[Any]: ...


class _Executes(Protocol):
    def execute(self, *args: Any, **kwargs: Any) -> Any: ...


class _HasCursor(Protocol):
    def cursor(self, *args: Any, **kwargs: Any) -> Any: ...


SyncHandle = _Executes | _HasCursor
"""A sync session, connection or cursor. Async ones match too, so overloads ask for `AsyncHandle` first."""
