"""Writes through psycopg2: its connections and cursors.

A cursor is used for its connection only. Statements run on a separate plain cursor: the caller's cursor may have rows left to
fetch, or may be a named one, which can only read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg2.extensions import TRANSACTION_STATUS_IDLE, connection, cursor

from outbox.errors import UnsupportedHandleError
from outbox.postgres.handles.insert import Statement, Values, array_literals
from outbox.postgres.queries import TableName


@dataclass(frozen=True, slots=True)
class ConnectionWriter:
    """Writes through a connection. Outside of autocommit mode, its first statement begins a transaction."""

    connection: connection
    table: TableName

    def __post_init__(self) -> None:
        if self.connection.async_:
            raise UnsupportedHandleError(
                "psycopg2 connections in asynchronous mode are not supported: they do not wait for statements to finish"
            )

    def in_transaction(self) -> bool:
        """Whether a transaction is open. In autocommit mode, only after the caller's BEGIN or in a `with connection` block."""
        if self.connection.autocommit and self.connection.info.transaction_status == TRANSACTION_STATUS_IDLE:
            # Such a block begins a transaction with its first statement, and psycopg2 does not show it before.
            with self.connection.cursor(cursor_factory=cursor) as own_cursor:
                own_cursor.execute("select 1")
        return not self.connection.autocommit or self.connection.info.transaction_status != TRANSACTION_STATUS_IDLE

    def execute(self, statement: Statement, values: Values) -> Sequence[Any]:
        with self.connection.cursor(cursor_factory=cursor) as own_cursor:
            own_cursor.execute(statement.formatted, statement.by_name(array_literals(values)))
            return [] if own_cursor.description is None else [row[0] for row in own_cursor.fetchall()]


class CursorWriter(ConnectionWriter):
    """Writes through the connection of a cursor."""

    __slots__ = ()

    def __init__(self, cursor: cursor, table: TableName) -> None:
        super().__init__(cursor.connection, table)
