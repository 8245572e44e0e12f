"""Statistics grow coarser with age: minutes become hours, hours become days, and nothing that was counted is lost."""

from datetime import timedelta

from outbox.postgres.pool import Connection
from outbox.postgres.reporting.statements import reporting_queries

MINUTES_KEPT = timedelta(days=2)
HOURS_KEPT = timedelta(days=60)
BATCH = 1_000
_HOUR, _DAY = 3_600, 86_400


async def thin_stats(
    connection: Connection,
    *,
    schema: str | None = None,
    minutes_kept: timedelta = MINUTES_KEPT,
    hours_kept: timedelta = HOURS_KEPT,
    batch: int = BATCH,
) -> int:
    """Adds up to `batch` old rows to those of longer spans, in UTC; how many those were, so that 0 means that all is done.

    Counts and latencies add up exactly, also while they are added to; of backlog and age the highest stays. Raises the driver's
    errors.
    """
    sql = reporting_queries(schema)["thin_stats"]
    for seconds, kept in ((_HOUR, minutes_kept), (_DAY, hours_kept)):
        async with connection.transaction():
            thinned: int = await connection.fetchval(sql, seconds, kept, batch)
        if thinned:
            return thinned
    return 0
