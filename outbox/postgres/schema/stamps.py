"""The version that a schema is at, kept in a table that Alembic reads and writes too."""

from collections.abc import Generator, Sequence
from typing import Any

from outbox.errors import SchemaError
from outbox.postgres.names import TableName
from outbox.postgres.queries import queries
from outbox.postgres.schema.objects import VERSION_TABLE, table_names


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
