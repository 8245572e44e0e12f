"""Writing through psycopg 3: its connections and cursors, async and sync.

A cursor of the caller's stands for its connection. Statements get a plain cursor of its own: the caller's may have rows left
to fetch, may be a named one, which can only read, or may spell parameters in another way.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection, AsyncCursor, Connection, Cursor
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from outbox.postgres.handles.insert import Statement, Values
from outbox.postgres.queries import TableName


@dataclass(frozen=True, slots=True)
class ConnectionWriter:
    """Unless it is in autocommit mode, a connection begins a transaction with its first statement."""

    connection: Connection[Any]
    table: TableName

    def in_transaction(self) -> bool:
        return _in_transaction(self.connection)

    def execute(self, statement: Statement, values: Values) -> Sequence[Any]:
        with Cursor(self.connection, row_factory=tuple_row) as cursor:
            cursor.execute(statement.formatted.encode(), statement.by_name(values))
            return [] if cursor.description is None else [row[0] for row in cursor.fetchall()]


class CursorWriter(ConnectionWriter):
    """Through the connection of a `Cursor`."""

    __slots__ = ()

    def __init__(self, cursor: Cursor[Any], table: TableName) -> None:
        super().__init__(cursor.connection, table)


@dataclass(frozen=True, slots=True)
class AsyncConnectionWriter:
    """Unless it is in autocommit mode, a connection begins a transaction with its first statement."""

    connection: AsyncConnection[Any]
    table: TableName

    async def in_transaction(self) -> bool:
        return _in_transaction(self.connection)

    async def execute(self, statement: Statement, values: Values) -> Sequence[Any]:
        async with AsyncCursor(self.connection, row_factory=tuple_row) as cursor:
            await cursor.execute(statement.formatted.encode(), statement.by_name(values))
            return [] if cursor.description is None else [row[0] for row in await cursor.fetchall()]


class AsyncCursorWriter(AsyncConnectionWriter):
    """Through the connection of an `AsyncCursor`."""

    __slots__ = ()

    def __init__(self, cursor: AsyncCursor[Any], table: TableName) -> None:
        super().__init__(cursor.connection, table)


def _in_transaction(connection: Connection[Any] | AsyncConnection[Any]) -> bool:
    """In autocommit mode only within a `transaction()` block, or after a BEGIN of the caller's."""
    return not connection.autocommit or connection.info.transaction_status != TransactionStatus.IDLE
