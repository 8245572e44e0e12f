"""Versions of the schema: what each adds, how it is reverted, and the stamps that record it."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from datetime import timedelta
from itertools import chain
from typing import Any

from outbox.errors import SchemaError
from outbox.postgres.queries import TableName, queries
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
    """One step of the schema.

    Each statement may be executed again without harm, so that a half-made or damaged schema is repaired by running them all.
    They contain neither `%` nor a colon in front of a word, which drivers and SQLAlchemy would take for parameters. A released
    version is never edited; the next one alters what it made.
    """

    number: str

    @abstractmethod
    def outbox_table(self, table: TableName) -> Statements:
        """Makes its part of an outbox table, or adapts one that is there."""

    @abstractmethod
    def satellites(self, schema: str | None) -> Statements:
        """Makes its part of the other tables, in a schema."""

    @abstractmethod
    def downgrade(self, table: TableName) -> Statements:
        """Takes all of it back."""

    def upgrade(self, table: TableName) -> Statements:
        """The whole step, for `table` and what lies next to it."""
        return self.outbox_table(table) + self.satellites(table.schema)


class _First(Version):
    number = "0001"

    def outbox_table(self, table: TableName) -> Statements:
        names = outbox_names(table)
        blocks = queries("outbox_table.sql", **names)
        made = ("table", "pending_index", "held_index", "sent_index", "failed_index", "storage")
        return (*queries("upgrade.sql", **names).values(), *(blocks[name] for name in made), *_first_doorbell(table))

    def satellites(self, schema: str | None) -> Statements:
        blocks = queries("transport_tables.sql", **satellite_names(schema))
        made = (
            "subscription_table",
            "delivery_table",
            "delivery_index",
            "delivery_storage",
            "dead_letter_table",
            "dead_letter_index",
        )
        return (*(blocks[name] for name in made), *_first_doorbell(_delivery(schema)))

    def downgrade(self, table: TableName) -> Statements:
        return tuple(queries("downgrade.sql", **satellite_names(table.schema), **table_names(table)).values())


class _Second(Version):
    number = "0002"

    def outbox_table(self, table: TableName) -> Statements:
        return _all_but_shapes(queries("outbox_table_2.sql", **outbox_names(table)))

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
        return tuple(statement for file in files for statement in _all_but_shapes(queries(file, **names)))

    def downgrade(self, table: TableName) -> Statements:
        return tuple(queries("downgrade_2.sql", **satellite_names(table.schema), **outbox_names(table)).values())


class _Third(Version):
    number = "0003"

    def outbox_table(self, table: TableName) -> Statements:
        names = outbox_names(table)
        added = (_all_but_shapes(queries(file, **names)) for file in ("outbox_table_3.sql", "publish_function.sql"))
        return (*_third_doorbell(table), *chain.from_iterable(added))

    def satellites(self, schema: str | None) -> Statements:
        names = satellite_names(schema)
        files = ("dead_letter_3.sql", "reporting_tables_3.sql", "audit_table_3.sql", "operation_3.sql")
        added = (_all_but_shapes(queries(file, **names)) for file in files)
        return (*_third_doorbell(_delivery(schema)), *chain.from_iterable(added))

    def downgrade(self, table: TableName) -> Statements:
        # Of the doorbells only the functions: the triggers that call them stay.
        doorbells = _first_doorbell(_delivery(table.schema))[:1] + _first_doorbell(table)[:1]
        taken_back = queries("downgrade_3.sql", **satellite_names(table.schema), **outbox_names(table))
        return doorbells + tuple(taken_back.values())


class _Fourth(Version):
    number = "0004"

    def outbox_table(self, table: TableName) -> Statements:
        del table
        return ()

    def satellites(self, schema: str | None) -> Statements:
        return _all_but_shapes(queries("admin_tables_4.sql", **satellite_names(schema)))

    def downgrade(self, table: TableName) -> Statements:
        return tuple(queries("downgrade_4.sql", **satellite_names(table.schema)).values())


def _first_doorbell(table: TableName) -> Statements:
    blocks = queries("ring.sql", **table_names(table) | {"ring_body": FIRST_RING_BODY})
    return blocks["function"], blocks["trigger"]


def _third_doorbell(table: TableName) -> Statements:
    return (queries("ring.sql", **table_names(table))["function"],)


def _delivery(schema: str | None) -> TableName:
    return TableName(SATELLITES["delivery"], schema)


def _all_but_shapes(blocks: Mapping[str, str]) -> Statements:
    return tuple(block for name, block in blocks.items() if not name.endswith("shape"))


VERSIONS: tuple[Version, ...] = (_First(), _Second(), _Third(), _Fourth())
HEAD = VERSIONS[-1].number


def versions_after(number: str | None) -> Sequence[Version]:
    """What is still to be applied to a schema at `number`; None: to a database without any. Raises `SchemaError`."""
    if not is_known(number):
        raise SchemaError(
            f"schema version {number!r} is not known to this release, which knows {', '.join(v.number for v in VERSIONS)}"
        )
    return tuple(version for version in VERSIONS if number is None or version.number > number)


def is_known(number: str | None) -> bool:
    """Whether this release knows the version `number`."""
    return number is None or any(version.number == number for version in VERSIONS)


def stamped_version(schema: str | None) -> Generator[str, Sequence[Sequence[Any]], str | None]:
    """The version of the schema; None if it has none. Raises `SchemaError` if it has several."""
    table = TableName(VERSION_TABLE, schema)
    if not (yield _query("stamps_exist", table)):
        return None
    stamps = [number for (number,) in (yield _query("stamps", table))]
    if len(stamps) > 1:
        raise SchemaError(f"{table} should name one version and names {len(stamps)}: {', '.join(sorted(stamps))}")
    return stamps[0] if stamps else None


def stamp(schema: str | None, number: str | None) -> tuple[str, ...]:
    """The statements that record `number`; None: no version at all."""
    table = TableName(VERSION_TABLE, schema)
    if number is None:
        return (_query("drop_stamps", table),)
    return _query("stamps_table", table), _query("forget", table), _query("stamp", table, number=number)


def raise_stamp(schema: str | None, number: str) -> tuple[str, ...]:
    """The statements that record `number`, unless a later version is recorded already."""
    table = TableName(VERSION_TABLE, schema)
    return tuple(_query(name, table, number=number) for name in ("stamps_table", "forget_older", "stamp_if_none"))


def _query(name: str, table: TableName, **names: str) -> str:
    return queries("stamps.sql", **table_names(table), **{"number": "", **names})[name]


OTHERS_TIMEOUT = timedelta(minutes=5)
"""Longest wait for another process that is changing the schema."""
LOCK_TIMEOUT = timedelta(seconds=10)
"""Longest wait for a lock on a table."""

_MILLISECOND = timedelta(milliseconds=1)
_BLOCKS = queries(
    "alone.sql",
    others_timeout=str(OTHERS_TIMEOUT // _MILLISECOND),
    lock_timeout=str(LOCK_TIMEOUT // _MILLISECOND),
    lock_key=str(int.from_bytes(b"outbox", "big")),
)

BEGIN_ALONE = _BLOCKS["begin"]
IN_TRANSACTION = _BLOCKS["in_transaction"]
WAIT_FOR_OTHERS = (_BLOCKS["wait_for_others"], _BLOCKS["lock"], _BLOCKS["do_not_wait_long"])
END_ALONE = _BLOCKS["end"]


def alone(statements: tuple[str, ...]) -> tuple[str, ...]:
    """`statements`, to be executed in a transaction, with all that is needed around them."""
    return (BEGIN_ALONE, *WAIT_FOR_OTHERS, *statements, END_ALONE)


def upgrade_statements(table: TableName, *, to: str, since: str | None = None) -> tuple[str, ...]:
    """What brings `table`, and the tables next to it, from version `since` to version `to`; None: from nothing at all."""
    versions = _between(since, to)
    return alone(tuple(statement for version in versions for statement in version.upgrade(table)))


def downgrade_statements(table: TableName, *, since: str, to: str | None = None) -> tuple[str, ...]:
    """What takes `table`, and the tables next to it, from version `since` back to version `to`; None: to nothing at all.

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
        known = ", ".join(version.number for version in VERSIONS)
        raise SchemaError(f"there is no way from schema version {lower or 'none'} to {upper!r}: the versions are {known}")
    return versions
