"""What became of the messages that operations have sent again: looked for in the history, the inbox, and what failed again."""

from datetime import timedelta

import asyncpg

from outbox.errors import DatabaseUnavailableError
from outbox.postgres.names import TableName
from outbox.postgres.pool import Connection, Pool
from outbox.postgres.repair.statements import TIMEOUT, Statements

LOOKED_AT = 1_000
"""Most messages that one look is for."""
GIVEN_UP_AFTER = timedelta(days=7)
"""How long a message's result is looked for; after that it is unknown, unless the message fails again."""


class ResultRefresher:
    """Keeps the results of operations on the dead letters of one outbox table up to date."""

    def __init__(self, pool: Pool, table: TableName) -> None:
        self._sql = Statements(pool, table, "results.sql")

    async def refresh(self, operation: int | None = None) -> int:
        """Looks for the results of one operation, or for what is due of all; how many were found that are new.

        Does nothing where the connection may only read.
        """
        try:
            async with self._sql.transaction("looking for results of operations") as connection:
                if operation is None:
                    return await self._look(connection, "due", LOOKED_AT)
                return await self.refresh_within(connection, operation)
        except DatabaseUnavailableError as error:
            if isinstance(error.__cause__, asyncpg.InsufficientPrivilegeError | asyncpg.ReadOnlySQLTransactionError):
                return 0
            raise

    async def refresh_within(self, connection: Connection, operation: int, *, due_only: bool = False) -> int:
        """Looks for the results of one operation in the caller's transaction; `due_only`: for those that are due."""
        return await self._look(connection, "due_of", LOOKED_AT, operation, not due_only)

    async def _look(self, connection: Connection, which: str, *arguments: object) -> int:
        rows = await connection.fetch(self._sql[which], *arguments, timeout=TIMEOUT)
        if not rows:
            return 0
        ids, positions = [row["operation_id"] for row in rows], [row["position"] for row in rows]
        found: int = await connection.fetchval(self._sql["look"], ids, positions, GIVEN_UP_AFTER, timeout=TIMEOUT)
        return found
