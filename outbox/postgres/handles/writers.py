"""What a Publisher asks of a handle: whether a transaction is open, and to execute one statement in it."""

from typing import Protocol

from outbox.postgres.handles.insert import Values


class SyncWriter(Protocol):
    """Inserts messages through one handle of the caller's, blocking."""

    def in_transaction(self) -> bool:
        """Whether what is written becomes durable with a commit of the caller's, and not before."""
        ...

    def write(self, values: Values) -> None:
        """Executes the insert with `values`. Neither commits nor rolls back; raises the driver's own errors."""
        ...


class AsyncWriter(Protocol):
    """Inserts messages through one handle of the caller's, on its event loop."""

    async def in_transaction(self) -> bool:
        """Whether what is written becomes durable with a commit of the caller's, and not before."""
        ...

    async def write(self, values: Values) -> None:
        """Executes the insert with `values`. Neither commits nor rolls back; raises the driver's own errors."""
        ...
