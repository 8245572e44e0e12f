"""For applications that use Alembic: creates the tables in one of their revisions, and hides them from autogenerate.

from alembic import op
from outbox.schema import downgrade, upgrade

def upgrade_revision():
    upgrade(op, to="0002")

def downgrade_revision():
    downgrade(op, since="0002")
"""

from collections.abc import Callable, Mapping
from typing import Any

from outbox.postgres.schema.objects import OUTBOX_TABLE, SATELLITES, VERSION_TABLE, destination_table, outbox_table
from outbox.postgres.schema.versions import (
    destination_statements,
    downgrade_statements,
    raise_stamp,
    stamp,
    upgrade_statements,
)

IncludeName = Callable[[str | None, str, Mapping[Any, str | None]], bool]


def upgrade(op: Any, *, to: str, since: str | None = None, table_name: str = OUTBOX_TABLE) -> None:
    """Upgrades the tables from version `since` (None: an empty database, or the predecessor's table) to version `to`.

    `op` is Alembic's, online or offline, or a SQLAlchemy `Connection` in a transaction. Name the version, so that the revision
    always does the same; a later revision upgrades further with `since`. The version is recorded, so that
    `ensure_outbox_schema_*` and `outbox migrate` have nothing left to do.
    """
    table = outbox_table(table_name)
    _execute(op, *upgrade_statements(table, to=to, since=since), *raise_stamp(table.schema, to))


def downgrade(op: Any, *, since: str, to: str | None = None, table_name: str = OUTBOX_TABLE) -> None:
    """Downgrades the tables from version `since` to version `to` (None: drops them).

    Fails, and changes nothing, if a table to be dropped has unsent or unhandled messages or open dead letters.
    """
    table = outbox_table(table_name)
    _execute(op, *downgrade_statements(table, since=since, to=to), *stamp(table.schema, to))


def create_destination(op: Any, destination: str, *, to: str, table_name: str = OUTBOX_TABLE) -> None:
    """Creates the table of a destination, such as "kafka", next to an outbox table of version `to`. Safe to repeat.

    To remove it, stop its relays and drop `<table_name>_<destination>`, which may still hold messages, and its functions: the
    same name with `_ring` and with `_publish`.
    """
    table = outbox_table(table_name)
    _execute(op, *destination_statements(table, destination_table(table, destination), to=to))


def apply_version(op: Any, number: str, *, since: str | None, table_name: str = OUTBOX_TABLE) -> None:
    """Upgrades by one version, for an Alembic environment that records versions itself."""
    _execute(op, *upgrade_statements(outbox_table(table_name), to=number, since=since))


def revert_version(op: Any, number: str, *, to: str | None, table_name: str = OUTBOX_TABLE) -> None:
    """Downgrades by one version, for an Alembic environment that records versions itself."""
    _execute(op, *downgrade_statements(outbox_table(table_name), since=number, to=to))


def include_name(name: str | None, type_: str, parent_names: Mapping[Any, str | None]) -> bool:
    """For `context.configure(include_name=…)`: makes autogenerate ignore the tables of Outbox."""
    return _include_all_but(OUTBOX_TABLE)(name, type_, parent_names)


def include_name_beside(*table_names: str) -> IncludeName:
    """Returns an `include_name` for outbox tables with other names."""
    return _include_all_but(*(outbox_table(name).name for name in table_names))


def _include_all_but(*outbox_tables: str) -> IncludeName:
    own_tables = {*outbox_tables, *SATELLITES.values(), VERSION_TABLE}
    # Partitions of the history, and tables of destinations.
    prefixes = tuple(f"{name}_" for name in (SATELLITES["history"], *outbox_tables))

    def include(name: str | None, type_: str, _parent_names: Mapping[Any, str | None]) -> bool:
        return type_ != "table" or not (name in own_tables or (name or "").startswith(prefixes))

    return include


def _execute(op: Any, *statements: str) -> None:
    from sqlalchemy import text

    for statement in statements:
        op.execute(text(statement))
