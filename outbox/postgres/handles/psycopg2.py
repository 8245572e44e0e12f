"""Writing through psycopg2: its connections and cursors.

A cursor of the caller's stands for its connection. Statements get a plain cursor of its own: the caller's may have rows left
to fetch, or may be a named one, which can only read.
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
    """Unless it is in autocommit mode, a connection begins a transaction with its first statement."""

    connection: connection
    table: TableName

    def __post_init__(self) -> None:
        if self.connection.async_:
            raise UnsupportedHandleError("a psycopg2 connection in asynchronous mode does not wait for a statement to be done")

    def in_transaction(self) -> bool:
        """In autocommit mode only after a BEGIN of the caller's."""
        return not self.connection.autocommit or self.connection.info.transaction_status != TRANSACTION_STATUS_IDLE

    def execute(self, statement: Statement, values: Values) -> Sequence[Any]:
        with self.connection.cursor(cursor_factory=cursor) as own_cursor:
            own_cursor.execute(statement.formatted, statement.by_name(array_literals(values)))
            return [] if own_cursor.description is None else [row[0] for row in own_cursor.fetchall()]


class CursorWriter(ConnectionWriter):
    """Through the connection of a cursor."""

    __slots__ = ()

    def __init__(self, cursor: cursor, table: TableName) -> None:
        super().__init__(cursor.connection, table)
