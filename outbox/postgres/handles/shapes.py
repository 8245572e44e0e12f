"""How type checkers tell async handles from sync ones, whichever of the libraries are installed.

No handle has both shapes, so that a type checker finds one answer even where row types are `Any`.
"""

from collections.abc import Awaitable
from typing import Any, Protocol


class AsyncHandle(Protocol):
    """An async session, connection or cursor: what executes has to be awaited."""

    def execute(self, *args: Any, **kwargs: Any) -> Awaitable[Any]: ...


class _Rows(Protocol):
    """What executing at once gives back."""

    def fetchall(self) -> Any: ...


class _Executes(Protocol):
    def execute(self, *args: Any, **kwargs: Any) -> _Rows | None: ...


class _HasCursor(Protocol):
    def cursor(self, *args: Any, **kwargs: Any) -> _Executes: ...


SyncHandle = _Executes | _HasCursor
"""A sync session, connection or cursor."""
