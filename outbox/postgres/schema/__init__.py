"""The tables of Outbox in PostgreSQL: their versions, how to bring a database to one, and how to check that it is there."""

from outbox.postgres.schema.check import check_outbox_table, check_transport_tables
from outbox.postgres.schema.ensure import ensure_schema, ensure_table
from outbox.postgres.schema.objects import VERSION_TABLE
from outbox.postgres.schema.runners import run, run_sync
from outbox.postgres.schema.versions import HEAD, VERSIONS, Version

__all__ = [
    "HEAD",
    "VERSIONS",
    "VERSION_TABLE",
    "Version",
    "check_outbox_table",
    "check_transport_tables",
    "ensure_schema",
    "ensure_table",
    "run",
    "run_sync",
]
