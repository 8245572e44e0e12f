"""What a Publisher asks of a handle: whether a transaction is open, and to execute one statement in it."""

from collections.abc import Sequence
from typing import Any, Protocol

from outbox.postgres.handles.statement import Statement, Values


class SyncWriter(Protocol):
    """Executes statements through one handle of the caller's, blocking."""

    def in_transaction(self) -> bool:
        """Whether what is written becomes durable with a commit of the caller's, and not before."""
        ...

    def execute(self, statement: Statement, values: Values) -> Sequence[Any]:
        """The first column of the rows that come back, if any. Neither commits nor rolls back; raises the driver's errors."""
        ...


class AsyncWriter(Protocol):
    """Executes statements through one handle of the caller's, on its event loop."""

    async def in_transaction(self) -> bool:
        """Whether what is written becomes durable with a commit of the caller's, and not before."""
        ...

    async def execute(self, statement: Statement, values: Values) -> Sequence[Any]:
        """The first column of the rows that come back, if any. Neither commits nor rolls back; raises the driver's errors."""
        ...
