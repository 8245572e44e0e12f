"""Writing through an asyncpg connection, alone or out of a pool."""

from dataclasses import dataclass

from outbox.postgres.handles.insert import Insert, Values
from outbox.postgres.pool import Connection


@dataclass(frozen=True, slots=True)
class ConnectionWriter:
    """Outside of a `transaction()` block asyncpg commits each statement by itself."""

    connection: Connection
    insert: Insert

    async def in_transaction(self) -> bool:
        return self.connection.is_in_transaction()

    async def write(self, values: Values) -> None:
        await self.connection.execute(self.insert.numbered, *values)
