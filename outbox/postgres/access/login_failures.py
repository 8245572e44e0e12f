"""Failed logins, counted by bucket and window of time, for all processes together."""

from dataclasses import dataclass
from datetime import timedelta

from outbox.postgres.names import TableName
from outbox.postgres.pool import Connection
from outbox.postgres.queries import query
from outbox.postgres.schema.objects import satellite_names


@dataclass(frozen=True, slots=True)
class Failures:
    """How many there have been in the present window, this one included, and how long it still lasts."""

    count: int
    rest: timedelta


async def count_failure(connection: Connection, table: TableName, bucket: str, window: timedelta) -> Failures:
    """One more. The row stays locked until the transaction ends, so that the count is exact."""
    sql = query("access.sql", "count_failure", **satellite_names(table.schema))
    row = await connection.fetchrow(sql, bucket, window)
    assert row is not None  # noqa: S101 — it returns one always
    return Failures(row["failures"], row["rest"])
