"""The schema as plain statements: for revisions of Alembic, ours and a host's, and for people who run SQL by hand."""

from outbox.errors import SchemaError
from outbox.postgres.names import TableName
from outbox.postgres.schema.alone import alone
from outbox.postgres.schema.stamps import raise_stamp
from outbox.postgres.schema.versions import VERSIONS, Version, versions_after


def upgrade_statements(table: TableName, *, to: str, since: str | None = None) -> tuple[str, ...]:
    """What brings `table`, and the tables beside it, from version `since` to version `to`; None: from nothing at all."""
    versions = _between(since, to)
    return alone(tuple(statement for version in versions for statement in version.upgrade(table)))


def downgrade_statements(table: TableName, *, since: str, to: str | None = None) -> tuple[str, ...]:
    """What takes `table`, and the tables beside it, from version `since` back to version `to`; None: to nothing at all.

    It fails, changing nothing, if a table that is dropped holds messages that are not sent, not handled, or dead and open.
    """
    versions = reversed(_between(to, since))
    return alone(tuple(statement for version in versions for statement in version.downgrade(table)))


def script(table: TableName) -> str:
    """Everything as one SQL text that may be run more than once; it records the version, too."""
    statements = (
        "begin",
        *upgrade_statements(table, to=VERSIONS[-1].number),
        *raise_stamp(table.schema, VERSIONS[-1].number),
        "commit",
    )
    return "".join(f"{statement};\n\n" for statement in statements)


def _between(lower: str | None, upper: str) -> tuple[Version, ...]:
    versions = tuple(version for version in versions_after(lower) if version.number <= upper)
    if not any(version.number == upper for version in versions):
        raise SchemaError(f"there is no way from schema version {lower or 'none'} to {upper!r}: the versions are {_known()}")
    return versions


def _known() -> str:
    return ", ".join(version.number for version in VERSIONS)
