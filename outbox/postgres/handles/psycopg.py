"""Writing through psycopg 3: its connections and cursors, async and sync.

A cursor of the caller's stands for its connection. The insert gets a plain cursor of its own: the caller's may have rows left
to fetch, may be a named one, which can only read, or may spell parameters in another way.
"""

from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection, AsyncCursor, Connection, Cursor
from psycopg.pq import TransactionStatus

from outbox.postgres.handles.insert import Insert, Values, by_name


@dataclass(frozen=True, slots=True)
class ConnectionWriter:
    """Unless it is in autocommit mode, a connection begins a transaction with its first statement."""

    connection: Connection[Any]
    insert: Insert

    def in_transaction(self) -> bool:
        return _in_transaction(self.connection)

    def write(self, values: Values) -> None:
        with Cursor(self.connection) as cursor:
            cursor.execute(self.insert.formatted.encode(), by_name(values))


class CursorWriter(ConnectionWriter):
    """Through the connection of a `Cursor`."""

    __slots__ = ()

    def __init__(self, cursor: Cursor[Any], insert: Insert) -> None:
        super().__init__(cursor.connection, insert)


@dataclass(frozen=True, slots=True)
class AsyncConnectionWriter:
    """Unless it is in autocommit mode, a connection begins a transaction with its first statement."""

    connection: AsyncConnection[Any]
    insert: Insert

    async def in_transaction(self) -> bool:
        return _in_transaction(self.connection)

    async def write(self, values: Values) -> None:
        async with AsyncCursor(self.connection) as cursor:
            await cursor.execute(self.insert.formatted.encode(), by_name(values))


class AsyncCursorWriter(AsyncConnectionWriter):
    """Through the connection of an `AsyncCursor`."""

    __slots__ = ()

    def __init__(self, cursor: AsyncCursor[Any], insert: Insert) -> None:
        super().__init__(cursor.connection, insert)


def _in_transaction(connection: Connection[Any] | AsyncConnection[Any]) -> bool:
    """In autocommit mode only within a `transaction()` block, or after a BEGIN of the caller's."""
    return not connection.autocommit or connection.info.transaction_status != TransactionStatus.IDLE
