"""Writes through psycopg 3: its connections and cursors, async and sync.

A cursor is used for its connection only. Statements run on a separate plain cursor: the caller's cursor may have rows left to
fetch, may be a named one, which can only read, or may use another parameter style. Lists are arrays there, even if the
caller has registered a dumper that makes JSON of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection, AsyncCursor, Connection, Cursor
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row
from psycopg.types.array import ListBinaryDumper

from outbox.postgres.handles.insert import Statement, Values
from outbox.postgres.queries import TableName


@dataclass(frozen=True, slots=True)
class ConnectionWriter:
    """Writes through a connection. Outside of autocommit mode, its first statement begins a transaction."""

    connection: Connection[Any]
    table: TableName

    def in_transaction(self) -> bool:
        return _in_transaction(self.connection)

    def execute(self, statement: Statement, values: Values) -> Sequence[Any]:
        with Cursor(self.connection, row_factory=tuple_row) as cursor:
            cursor.adapters.register_dumper(list, ListBinaryDumper)
            cursor.execute(statement.formatted.encode(), statement.by_name(values))
            # Not by `description`, which a pipeline leaves empty until rows are fetched.
            return [row[0] for row in cursor.fetchall()] if statement.answers else []


class CursorWriter(ConnectionWriter):
    """Writes through the connection of a `Cursor`."""

    __slots__ = ()

    def __init__(self, cursor: Cursor[Any], table: TableName) -> None:
        super().__init__(cursor.connection, table)


@dataclass(frozen=True, slots=True)
class AsyncConnectionWriter:
    """Writes through a connection. Outside of autocommit mode, its first statement begins a transaction."""

    connection: AsyncConnection[Any]
    table: TableName

    async def in_transaction(self) -> bool:
        return _in_transaction(self.connection)

    async def execute(self, statement: Statement, values: Values) -> Sequence[Any]:
        async with AsyncCursor(self.connection, row_factory=tuple_row) as cursor:
            cursor.adapters.register_dumper(list, ListBinaryDumper)
            await cursor.execute(statement.formatted.encode(), statement.by_name(values))
            return [row[0] for row in await cursor.fetchall()] if statement.answers else []


class AsyncCursorWriter(AsyncConnectionWriter):
    """Writes through the connection of an `AsyncCursor`."""

    __slots__ = ()

    def __init__(self, cursor: AsyncCursor[Any], table: TableName) -> None:
        super().__init__(cursor.connection, table)


def _in_transaction(connection: Connection[Any] | AsyncConnection[Any]) -> bool:
    """Whether a transaction is open. In autocommit mode, only in a `transaction()` block or after the caller's BEGIN."""
    return not connection.autocommit or connection.info.transaction_status != TransactionStatus.IDLE
