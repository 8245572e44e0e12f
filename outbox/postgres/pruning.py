"""Pruning: rows that nobody needs any more are deleted in small batches, so that nobody waits for it."""

from datetime import timedelta

import asyncpg

from outbox.postgres.names import TableName
from outbox.postgres.pool import Pool, taken_from, unavailable_errors
from outbox.postgres.queries import queries
from outbox.postgres.schema.objects import satellite_names

TIMEOUT = timedelta(seconds=60)


class Pruning:
    """Deletes what is older than it is of use, from the tables beside one outbox table. A table that is not there has none."""

    def __init__(self, pool: Pool, table: TableName) -> None:
        self._pool = pool
        self._sql = queries("pruning.sql", **satellite_names(table.schema))

    async def dead_letters(self, older_than: timedelta, limit: int) -> int:
        """Deletes up to `limit` letters that were requeued or discarded longer ago than that; how many there were."""
        return await self._delete("dead_letters", older_than, limit)

    async def operations(self, older_than: timedelta, limit: int) -> int:
        """Deletes operations that ended longer ago than that, with what came of each letter."""
        return await self._delete("operations", older_than, limit)

    async def components(self, older_than: timedelta, limit: int) -> int:
        """Deletes what is known of relays and workers that have given no sign of life for so long."""
        return await self._delete("components", older_than, limit)

    async def pauses(self, older_than: timedelta, limit: int) -> int:
        """Deletes pauses that ended longer ago than that."""
        return await self._delete("pauses", older_than, limit)

    async def audit(self, older_than: timedelta, limit: int) -> int:
        """Deletes what is known of deeds longer ago than that."""
        return await self._delete("audit", older_than, limit)

    async def sessions(self, older_than: timedelta, limit: int) -> int:
        """Deletes sessions that ended longer ago than that."""
        return await self._delete("sessions", older_than, limit)

    async def login_failures(self, older_than: timedelta, limit: int) -> int:
        """Deletes counts of failed logins whose window of time ended longer ago than that."""
        return await self._delete("login_failures", older_than, limit)

    async def confirmations(self, older_than: timedelta, limit: int) -> int:
        """Deletes dry runs that could be followed up until longer ago than that."""
        return await self._delete("confirmations", older_than, limit)

    async def idempotency_keys(self, older_than: timedelta, limit: int) -> int:
        """Deletes keys of requests, with their answers, that were made longer ago than that."""
        return await self._delete("idempotency_keys", older_than, limit)

    async def _delete(self, name: str, *arguments: object) -> int:
        with unavailable_errors(f"pruning {name.replace('_', ' ')}"):
            async with taken_from(self._pool) as connection:
                try:
                    status = await connection.execute(self._sql[name], *arguments, timeout=TIMEOUT.total_seconds())
                except asyncpg.UndefinedTableError:
                    return 0
        return int(status.rpartition(" ")[2])
