"""Protocols by which type checkers distinguish async from sync handles, whichever libraries are installed.

No handle matches both, so that overloads are unambiguous even where row types are `Any`.
"""

from collections.abc import Awaitable
from typing import Any, Protocol


class AsyncHandle(Protocol):
    """An async session, connection or cursor: `execute` must be awaited."""

    def execute(self, *args: Any, **kwargs: Any) -> Awaitable[Any]: ...


class _Rows(Protocol):
    """Result of a sync `execute`."""

    def fetchall(self) -> Any: ...


class _Executes(Protocol):
    def execute(self, *args: Any, **kwargs: Any) -> _Rows | None: ...


class _HasCursor(Protocol):
    def cursor(self, *args: Any, **kwargs: Any) -> _Executes: ...


SyncHandle = _Executes | _HasCursor
"""A sync session, connection or cursor."""
