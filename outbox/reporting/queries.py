"""SQL of reports, for the tables of one schema."""

from collections.abc import Mapping
from datetime import timedelta

from outbox.postgres.queries import queries
from outbox.postgres.schema.objects import satellite_names

STATEMENT_TIMEOUT = timedelta(seconds=3)
LOCK_TIMEOUT = timedelta(seconds=1)


def reporting_queries(schema: str | None) -> Mapping[str, str]:
    """Returns the statements of `reporting.sql`."""
    return queries(
        "reporting.sql",
        statement_timeout=f"{STATEMENT_TIMEOUT / timedelta(milliseconds=1):.0f}",
        lock_timeout=f"{LOCK_TIMEOUT / timedelta(milliseconds=1):.0f}",
        **satellite_names(schema),
    )
