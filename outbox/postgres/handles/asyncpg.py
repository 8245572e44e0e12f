"""Writing through an asyncpg connection, alone or out of a pool."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from outbox.postgres.handles.insert import Statement, Values
from outbox.postgres.pool import Connection
from outbox.postgres.queries import TableName


@dataclass(frozen=True, slots=True)
class ConnectionWriter:
    """Outside of a `transaction()` block asyncpg commits each statement by itself."""

    connection: Connection
    table: TableName

    async def in_transaction(self) -> bool:
        return self.connection.is_in_transaction()

    async def execute(self, statement: Statement, values: Values) -> Sequence[Any]:
        return [row[0] for row in await self.connection.fetch(statement.numbered, *values)]
