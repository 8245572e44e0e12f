"""Deletes old rows in small batches, under a lease, so that messages are not delayed."""

from collections.abc import Sequence, Set
from datetime import timedelta
from uuid import uuid4

import asyncpg

from outbox.errors import SchemaError
from outbox.postgres.pool import Pool, taken_from, unavailable_errors
from outbox.postgres.queries import TableName, queries
from outbox.postgres.schema.objects import satellite_names

TIMEOUT = timedelta(seconds=60)
SEARCH_TIMEOUT = timedelta(minutes=10)
"""Of the statement that reads whole tables."""


class Pruning:
    """Deletes old rows from the tables next to one outbox table. Treats a missing table as empty."""

    def __init__(self, pool: Pool, table: TableName) -> None:
        self._pool = pool
        self._sql = queries("pruning.sql", table=table.sql, **satellite_names(table.schema))

    async def dead_letters(self, older_than: timedelta, limit: int) -> int:
        """Deletes up to `limit` dead letters that were requeued or discarded longer ago. Returns how many it deleted."""
        return await self._delete("dead_letters", older_than, limit)

    async def operations(self, older_than: timedelta, limit: int) -> int:
        """Deletes operations that ended longer ago, with their items."""
        return await self._delete("operations", older_than, limit)

    async def components(self, older_than: timedelta, limit: int) -> int:
        """Deletes relays and workers whose last heartbeat is longer ago."""
        return await self._delete("components", older_than, limit)

    async def pauses(self, older_than: timedelta, limit: int) -> int:
        """Deletes pauses that ended longer ago."""
        return await self._delete("pauses", older_than, limit)

    async def audit(self, older_than: timedelta, limit: int) -> int:
        """Deletes audit entries that were written longer ago."""
        return await self._delete("audit", older_than, limit)

    async def alerts(self, older_than: timedelta, limit: int) -> int:
        """Deletes alerts that ended longer ago, with their notifications."""
        return await self._delete("alerts", older_than, limit)

    async def sessions(self, older_than: timedelta, limit: int) -> int:
        """Deletes sessions that ended longer ago."""
        return await self._delete("sessions", older_than, limit)

    async def login_failures(self, older_than: timedelta, limit: int) -> int:
        """Deletes counts of failed logins whose time window ended longer ago."""
        return await self._delete("login_failures", older_than, limit)

    async def confirmations(self, older_than: timedelta, limit: int) -> int:
        """Deletes confirmation tokens of dry runs that expired longer ago."""
        return await self._delete("confirmations", older_than, limit)

    async def idempotency_keys(self, older_than: timedelta, limit: int) -> int:
        """Deletes idempotency keys, with their responses, that were created longer ago."""
        return await self._delete("idempotency_keys", older_than, limit)

    async def referenced_bodies(self, keys: Sequence[str]) -> Set[str]:
        """Returns those of these keys of large bodies that a message, a dead letter or an edition refers to.

        Raises `SchemaError` if a table is missing: without it, bodies that are needed would look as if they were not.
        """
        with unavailable_errors("looking for references to large bodies"):
            async with taken_from(self._pool) as connection:
                try:
                    rows = await connection.fetch(self._sql["referenced_bodies"], keys, timeout=SEARCH_TIMEOUT.total_seconds())
                except asyncpg.UndefinedTableError as error:
                    raise SchemaError(f"a table is missing ({error}): create it with `outbox migrate`") from error
        return {row["key"] for row in rows}

    async def _delete(self, name: str, *arguments: object) -> int:
        with unavailable_errors(f"pruning {name.replace('_', ' ')}"):
            async with taken_from(self._pool) as connection:
                try:
                    status = await connection.execute(self._sql[name], *arguments, timeout=TIMEOUT.total_seconds())
                except asyncpg.UndefinedTableError:
                    return 0
        return int(status.rpartition(" ")[2])


LEASES_TIMEOUT = timedelta(seconds=5)
"""Longest wait for a statement about a lease; much shorter than a lease."""


class PostgresLease:
    """Implements `outbox.engine.maintenance.Lease` for one duty. Each successful `hold` lasts for `lasts`.

    `holder` names the process for operators. A process that was frozen beyond its lease may still act on it for a moment, so
    work under a lease must be safe when two processes do it.
    """

    def __init__(self, pool: Pool, table: TableName, *, duty: str, holder: str, lasts: timedelta) -> None:
        self._pool = pool
        self._duty = duty
        self._holder = holder
        self._lasts = lasts
        self._token = uuid4()
        self._sql = queries("leases.sql", **satellite_names(table.schema))

    async def hold(self) -> bool:
        """See `outbox.engine.maintenance.Lease.hold`."""
        arguments = (self._duty, self._holder, self._token, self._lasts)
        with unavailable_errors(f"holding the lease of {self._duty}", limit=LEASES_TIMEOUT):
            async with taken_from(self._pool) as connection:
                return await connection.fetchval(self._sql["hold"], *arguments, timeout=LEASES_TIMEOUT.total_seconds()) is True

    async def release(self) -> None:
        """See `outbox.engine.maintenance.Lease.release`."""
        with unavailable_errors(f"releasing the lease of {self._duty}", limit=LEASES_TIMEOUT):
            async with taken_from(self._pool) as connection:
                await connection.execute(self._sql["release"], self._duty, self._token, timeout=LEASES_TIMEOUT.total_seconds())
