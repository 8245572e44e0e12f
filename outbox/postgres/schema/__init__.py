"""The tables of Outbox in PostgreSQL: versions of the schema, migrations, and checks."""

from outbox.postgres.schema.check import check_archive_tables, check_inbox, check_outbox_table, check_transport_tables
from outbox.postgres.schema.hosts import downgrade, include_name, include_name_beside, upgrade
from outbox.postgres.schema.objects import VERSION_TABLE
from outbox.postgres.schema.versions import HEAD, VERSIONS, Version

__all__ = [
    "HEAD",
    "VERSIONS",
    "VERSION_TABLE",
    "Version",
    "check_archive_tables",
    "check_inbox",
    "check_outbox_table",
    "check_transport_tables",
    "downgrade",
    "include_name",
    "include_name_beside",
    "upgrade",
]
