"""Leases: a row that one process holds at a time, so that it works behind poolers that share sessions."""

from datetime import timedelta
from uuid import uuid4

from outbox.postgres.names import TableName
from outbox.postgres.pool import Pool, taken_from, unavailable_errors
from outbox.postgres.queries import queries
from outbox.postgres.schema.objects import satellite_names

TIMEOUT = timedelta(seconds=5)
"""Longest wait for any statement about a lease; much shorter than a lease lasts."""


class PostgresLease:
    """Implements `outbox.engine.maintenance.Lease` for one duty: held for `lasts` from each time that `hold` says so.

    `holder` tells people who has it. A process that froze past its lease may still believe in it for a moment, so what is done
    under one must do no harm when two do it.
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
        with unavailable_errors(f"holding the lease of {self._duty}", limit=TIMEOUT):
            async with taken_from(self._pool) as connection:
                return await connection.fetchval(self._sql["hold"], *arguments, timeout=TIMEOUT.total_seconds()) is True

    async def release(self) -> None:
        """See `outbox.engine.maintenance.Lease.release`."""
        with unavailable_errors(f"releasing the lease of {self._duty}", limit=TIMEOUT):
            async with taken_from(self._pool) as connection:
                await connection.execute(self._sql["release"], self._duty, self._token, timeout=TIMEOUT.total_seconds())
