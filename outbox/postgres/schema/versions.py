"""Versions of the schema: what each adds, how to revert it, and the stamps that record it."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from datetime import timedelta
from itertools import chain
from typing import Any

from outbox.errors import SchemaError
from outbox.postgres.queries import TableName, queries, query
from outbox.postgres.schema.objects import (
    FIRST_RING_BODY,
    SATELLITES,
    VERSION_TABLE,
    outbox_names,
    satellite_names,
    table_names,
)

Statements = tuple[str, ...]


class Version(ABC):
    """One version of the schema.

    Every statement may be repeated, so that running all of them repairs a damaged schema. Statements contain neither `%` nor a
    colon before a word, which drivers and SQLAlchemy take for parameters. Never edit a released version: alter its objects in
    the next one.
    """

    number: str

    @abstractmethod
    def outbox_table(self, table: TableName) -> Statements:
        """Returns statements that create its part of an outbox table, or adapt an existing one."""

    @abstractmethod
    def satellites(self, schema: str | None) -> Statements:
        """Returns statements that create its part of the other tables in a schema."""

    @abstractmethod
    def downgrade(self, table: TableName) -> Statements:
        """Returns statements that revert the version."""

    def upgrade(self, table: TableName) -> Statements:
        """Returns all statements of the version, for `table` and the tables next to it."""
        return self.outbox_table(table) + self.satellites(table.schema)


class _First(Version):
    number = "0001"

    def outbox_table(self, table: TableName) -> Statements:
        names = outbox_names(table)
        blocks = queries("outbox_table.sql", **names)
        created = ("table", "pending_index", "held_index", "sent_index", "failed_index", "storage")
        return (*queries("upgrade.sql", **names).values(), *(blocks[name] for name in created), *_first_doorbell(table))

    def satellites(self, schema: str | None) -> Statements:
        blocks = queries("transport_tables.sql", **satellite_names(schema))
        created = (
            "subscription_table",
            "delivery_table",
            "delivery_index",
            "delivery_storage",
            "dead_letter_table",
            "dead_letter_index",
        )
        return (*(blocks[name] for name in created), *_first_doorbell(_delivery(schema)))

    def downgrade(self, table: TableName) -> Statements:
        return tuple(queries("downgrade.sql", **satellite_names(table.schema), **table_names(table)).values())


class _Second(Version):
    number = "0002"

    def outbox_table(self, table: TableName) -> Statements:
        return _without_shapes(queries("outbox_table_2.sql", **outbox_names(table)))

    def satellites(self, schema: str | None) -> Statements:
        names = satellite_names(schema)
        files = (
            "delivery_2.sql",
            "dead_letter_2.sql",
            "inbox_table.sql",
            "history_table.sql",
            "reporting_tables.sql",
            "admin_tables.sql",
        )
        return tuple(statement for file in files for statement in _without_shapes(queries(file, **names)))

    def downgrade(self, table: TableName) -> Statements:
        return tuple(queries("downgrade_2.sql", **satellite_names(table.schema), **outbox_names(table)).values())


class _Third(Version):
    number = "0003"

    def outbox_table(self, table: TableName) -> Statements:
        names = outbox_names(table)
        added = (_without_shapes(queries(file, **names)) for file in ("outbox_table_3.sql", "publish_function.sql"))
        return (*_third_doorbell(table), *chain.from_iterable(added))

    def satellites(self, schema: str | None) -> Statements:
        names = satellite_names(schema)
        files = ("dead_letter_3.sql", "reporting_tables_3.sql", "audit_table_3.sql", "operation_3.sql")
        added = (_without_shapes(queries(file, **names)) for file in files)
        return (*_third_doorbell(_delivery(schema)), *chain.from_iterable(added))

    def downgrade(self, table: TableName) -> Statements:
        # Only the functions of the doorbells: the triggers that call them stay.
        doorbells = _first_doorbell(_delivery(table.schema))[:1] + _first_doorbell(table)[:1]
        reverted = queries("downgrade_3.sql", **satellite_names(table.schema), **outbox_names(table))
        return doorbells + tuple(reverted.values())


class _BesideTheTable(Version):
    """A version that leaves the outbox tables as they are: one file extends the tables next to them, another reverts that."""

    def __init__(self, number: str, *, extends: str, reverts: str) -> None:
        self.number = number
        self._extends = extends
        self._reverts = reverts

    def outbox_table(self, table: TableName) -> Statements:
        del table
        return ()

    def satellites(self, schema: str | None) -> Statements:
        return _without_shapes(queries(self._extends, **satellite_names(schema)))

    def downgrade(self, table: TableName) -> Statements:
        return tuple(queries(self._reverts, **satellite_names(table.schema)).values())


def destinations_of(table: TableName) -> str:
    """Returns the query for the names of destinations with a table of their own."""
    return query("destinations.sql", "list", **table_names(table))


def create_destination(table: TableName, child: TableName) -> str:
    """Returns the statement that creates the table of a destination, without indexes and triggers, which versions add."""
    return query("destinations.sql", "create", **table_names(table), child=child.sql)


def destination_statements(table: TableName, child: TableName, *, to: str) -> Statements:
    """Returns all statements that create the table `child` of a destination next to `table`, which has the version `to`."""
    added = (version.outbox_table(child) for version in VERSIONS if version.number <= to)
    return exclusively((create_destination(table, child), *chain.from_iterable(added)))


def _first_doorbell(table: TableName) -> Statements:
    blocks = queries("ring.sql", **table_names(table) | {"ring_body": FIRST_RING_BODY})
    return blocks["function"], blocks["trigger"]


def _third_doorbell(table: TableName) -> Statements:
    return (queries("ring.sql", **table_names(table))["function"],)


def _delivery(schema: str | None) -> TableName:
    return TableName(SATELLITES["delivery"], schema)


def _without_shapes(blocks: Mapping[str, str]) -> Statements:
    return tuple(block for name, block in blocks.items() if not name.endswith("shape"))


VERSIONS: tuple[Version, ...] = (
    _First(),
    _Second(),
    _Third(),
    _BesideTheTable("0004", extends="admin_tables_4.sql", reverts="downgrade_4.sql"),
    _BesideTheTable("0005", extends="history_table_5.sql", reverts="downgrade_5.sql"),
    _BesideTheTable("0006", extends="dead_letter_6.sql", reverts="downgrade_6.sql"),
    _BesideTheTable("0007", extends="history_table_7.sql", reverts="downgrade_7.sql"),
)
HEAD = VERSIONS[-1].number


def versions_after(number: str | None) -> Sequence[Version]:
    """Returns the versions to apply after `number`; None means an empty database. Raises `SchemaError`."""
    if not is_known(number):
        raise SchemaError(
            f"schema version {number!r} is not known to this release, which knows {', '.join(v.number for v in VERSIONS)}"
        )
    # Numbers have four digits each, so they compare as text.
    return tuple(version for version in VERSIONS if number is None or version.number > number)


def is_known(number: str | None) -> bool:
    """Whether this release knows version `number`."""
    return number is None or any(version.number == number for version in VERSIONS)


def stamped_version(schema: str | None) -> Generator[str, Sequence[Sequence[Any]], str | None]:
    """Returns the recorded version of the schema; None without one. Raises `SchemaError` if there are several.

    For a role that may not read it, the newest: it cannot change the tables either, so only their shapes count.
    """
    table = TableName(VERSION_TABLE, schema)
    if not (found := (yield _query("stamps_exist", table))):
        return None
    if not found[0][0]:
        return HEAD
    stamps = [number for (number,) in (yield _query("stamps", table))]
    if len(stamps) > 1:
        raise SchemaError(f"{table} should name one version and names {len(stamps)}: {', '.join(sorted(stamps))}")
    return stamps[0] if stamps else None


def stamp(schema: str | None, number: str | None) -> tuple[str, ...]:
    """Returns statements that record version `number`, or that remove the record if it is None."""
    table = TableName(VERSION_TABLE, schema)
    if number is None:
        return (_query("drop_stamps", table),)
    return _query("stamps_table", table), _query("forget", table), _query("stamp", table, number=number)


def raise_stamp(schema: str | None, number: str) -> tuple[str, ...]:
    """Returns statements that record version `number`, unless a later one is recorded."""
    table = TableName(VERSION_TABLE, schema)
    return tuple(_query(name, table, number=number) for name in ("stamps_table", "forget_older", "stamp_if_none"))


def _query(name: str, table: TableName, **names: str) -> str:
    return queries("stamps.sql", **table_names(table), **{"number": "", **names})[name]


OTHERS_TIMEOUT = timedelta(minutes=5)
"""Longest wait for another process that is changing the schema."""
LOCK_TIMEOUT = timedelta(seconds=10)
"""Longest wait for a lock on a table."""
IDLE_TIMEOUT = timedelta(minutes=1)
"""Longest wait of the server for the next statement of a change."""

_MILLISECOND = timedelta(milliseconds=1)
_BLOCKS = queries(
    "alone.sql",
    others_timeout=str(OTHERS_TIMEOUT // _MILLISECOND),
    lock_timeout=str(LOCK_TIMEOUT // _MILLISECOND),
    idle_timeout=str(IDLE_TIMEOUT // _MILLISECOND),
    # Any number would do, but it must stay the same: the processes of an upgrade may have different releases.
    lock_key=str(int.from_bytes(b"outbox", "big")),
)

BEGIN_EXCLUSIVE = _BLOCKS["begin"]
IN_TRANSACTION = _BLOCKS["in_transaction"]
# Two limits: waiting for the advisory lock delays no query, while all queue behind a statement that waits for a table.
WAIT_FOR_OTHERS = tuple(_BLOCKS[name] for name in ("do_not_stand_still", "wait_for_others", "lock", "do_not_wait_long"))
END_EXCLUSIVE = _BLOCKS["end"]


def exclusively(statements: tuple[str, ...]) -> tuple[str, ...]:
    """Adds the statements that keep other schema changes away and limit lock waits. Execute all in one transaction."""
    return (BEGIN_EXCLUSIVE, *WAIT_FOR_OTHERS, *statements, END_EXCLUSIVE)


def upgrade_statements(table: TableName, *, to: str, since: str | None = None) -> tuple[str, ...]:
    """Returns statements that upgrade `table`, and those next to it, from version `since` (None: an empty database) to `to`."""
    versions = _between(since, to)
    return exclusively(tuple(statement for version in versions for statement in version.upgrade(table)))


def downgrade_statements(table: TableName, *, since: str, to: str | None = None) -> tuple[str, ...]:
    """Returns statements that downgrade `table`, and those next to it, from version `since` to `to` (None: drop everything).

    They fail, and change nothing, if a table to be dropped has unsent or unhandled messages or open dead letters.
    """
    versions = reversed(_between(to, since))
    return exclusively(tuple(statement for version in versions for statement in version.downgrade(table)))


def script(table: TableName, children: Sequence[TableName] = ()) -> str:
    """Returns the whole schema as one SQL script, which also records the version. It may be run repeatedly.

    `children` are the tables of destinations.
    """
    statements = (
        "begin",
        *upgrade_statements(table, to=VERSIONS[-1].number),
        # Not `stamp`: the script may run against a schema of a later release, whose number must stay.
        *raise_stamp(table.schema, VERSIONS[-1].number),
        *(each for child in children for each in destination_statements(table, child, to=VERSIONS[-1].number)),
        "commit",
    )
    return "".join(f"{statement};\n\n" for statement in statements)


def _between(lower: str | None, upper: str) -> tuple[Version, ...]:
    versions = tuple(version for version in versions_after(lower) if version.number <= upper)
    if not any(version.number == upper for version in versions):
        known = ", ".join(version.number for version in VERSIONS)
        raise SchemaError(f"there is no way from schema version {lower or 'none'} to {upper!r}: the versions are {known}")
    return versions
