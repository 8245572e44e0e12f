"""Writes through an asyncpg connection, standalone or from a pool."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from outbox.postgres.handles.insert import Statement, Values
from outbox.postgres.pool import Connection
from outbox.postgres.queries import TableName


@dataclass(frozen=True, slots=True)
class ConnectionWriter:
    """Writes through a connection. Outside of a `transaction()` block, asyncpg commits each statement."""

    connection: Connection
    table: TableName

    async def in_transaction(self) -> bool:
        return self.connection.is_in_transaction()

    async def execute(self, statement: Statement, values: Values) -> Sequence[Any]:
        return [row[0] for row in await self.connection.fetch(statement.numbered, *values)]
