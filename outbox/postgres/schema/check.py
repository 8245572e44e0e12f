"""Checks at start that the tables exist and fit this release: a few catalog lookups."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from outbox.errors import SchemaError
from outbox.postgres.pool import Connection
from outbox.postgres.queries import TableName, queries
from outbox.postgres.schema.objects import ARCHIVE, SATELLITES, TRANSPORT, outbox_names, satellite_names, table_names

OUTBOX_FILES = ("outbox_table.sql", "outbox_table_2.sql", "outbox_table_3.sql", "publish_function.sql")
"""Where the shape of an outbox table is written."""
SATELLITE_FILES = (
    "transport_tables.sql",
    "delivery_2.sql",
    "dead_letter_2.sql",
    "dead_letter_3.sql",
    "inbox_table.sql",
    "history_table.sql",
    "reporting_tables.sql",
    "reporting_tables_3.sql",
    "admin_tables.sql",
    "audit_table_3.sql",
    "operation_3.sql",
    "admin_tables_4.sql",
)
"""Where the shapes of the tables next to an outbox table are written; a table's shape may lie in several."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One column, constraint, index, trigger or function that is not as it should be; `found` is None if it is missing."""

    kind: str
    name: str
    wanted: str
    found: str | None

    def __str__(self) -> str:
        return f"{self.kind} {self.name} is {self.found or 'missing'}"


def outbox_differences(table: TableName, *, by_path: bool = False) -> str:
    """The query for the `Difference`s of one outbox table.

    `by_path`: of the table that an unqualified name finds through the search path, instead of the one that it would create.
    """
    names = outbox_names(table)
    shapes = [queries(file, **names)["shape"] for file in OUTBOX_FILES]
    return _differences(table, shapes, by_path=by_path)


def satellite_differences(
    schema: str | None, *, kinds: Iterable[str] = tuple(SATELLITES), by_path: bool = False
) -> Sequence[str]:
    """Differences of each table of these `kinds` next to the outbox table."""
    files = [queries(file, **satellite_names(schema)) for file in SATELLITE_FILES]
    return [
        _differences(
            TableName(SATELLITES[kind], schema),
            [blocks[f"{kind}_shape"] for blocks in files if f"{kind}_shape" in blocks],
            by_path=by_path,
        )
        for kind in kinds
    ]


def _differences(table: TableName, shapes: Sequence[str], *, by_path: bool) -> str:
    wanted = ",\n".join(
        "\n".join(line for line in shape.splitlines() if not line.startswith("--")).rstrip(",") for shape in shapes
    )
    names = table_names(table)
    if by_path:
        names["target"] = f"to_regclass('{table.sql}')"
    return queries("shape.sql", **names, shape=wanted)["differences"]


_VITAL = frozenset({"column", "trigger"})
"""Without these nothing works, or no sleeper is woken. A missing index or constraint only makes things slower or laxer."""


async def check_outbox_table(connection: Connection, table: TableName) -> str:
    """The schema in which `table` is found. Raises `SchemaError` if it is missing or of another shape; changes nothing."""
    schema = await schema_of(connection, table)
    if schema is None:
        raise SchemaError(f"the table {table} does not exist: create it with {_MIGRATE}, or by itself with {_ENSURE}")
    lacks = await _lacks(connection, outbox_differences(table, by_path=True))
    if not lacks:
        return schema
    if any(lack.kind == "column" and lack.found is None for lack in lacks):
        raise SchemaError(
            f"the table {table} is of an older shape ({_list(lacks)}): upgrade it in place, rows included, "
            f"with `outbox migrate`, or with {_ENSURE}"
        )
    raise SchemaError(f"the table {table} is not as it should be ({_list(lacks)}): repair it with {_ENSURE}")


async def check_transport_tables(connection: Connection, table: TableName) -> str:
    """The schema in which the tables of the Postgres transport are found that belong next to `table`. Raises `SchemaError`."""
    names = ", ".join(SATELLITES[kind] for kind in TRANSPORT)
    schema = await schema_of(connection, TableName(SATELLITES["delivery"], table.schema))
    if schema is None:
        raise SchemaError(f"the tables of the Postgres transport ({names}) do not exist: create them with {_MIGRATE}")
    lacks: list[Difference] = []
    for query in satellite_differences(table.schema, kinds=TRANSPORT, by_path=True):
        lacks += await _lacks(connection, query)
    if lacks:
        raise SchemaError(
            f"the tables of the Postgres transport ({names}) in the schema {schema} are not as they should be "
            f"({_list(lacks)}): repair them with {_MIGRATE}"
        )
    return schema


async def check_archive_tables(connection: Connection, table: TableName) -> None:
    """Raises `SchemaError` unless the tables are there that an archiver uses next to `table`."""
    for kind in ARCHIVE:
        if await schema_of(connection, TableName(SATELLITES[kind], table.schema)) is None:
            raise SchemaError(
                f"the table {SATELLITES[kind]}, which an archiver uses, does not exist: create it with {_MIGRATE}"
            )
    lacks: list[Difference] = []
    for query in satellite_differences(table.schema, kinds=ARCHIVE, by_path=True):
        lacks += await _lacks(connection, query)
    if lacks:
        raise SchemaError(
            f"the tables that an archiver uses are not as they should be ({_list(lacks)}): repair them with {_MIGRATE}"
        )


async def check_inbox(connection: Connection, table: TableName) -> None:
    """Raises `SchemaError` unless the inbox that belongs next to `table` is there."""
    name = SATELLITES["inbox"]
    if await schema_of(connection, TableName(name, table.schema)) is None:
        raise SchemaError(f"the table {name}, which consumers with inbox=True need, does not exist: create it with {_MIGRATE}")
    [query] = satellite_differences(table.schema, kinds=("inbox",), by_path=True)
    if lacks := await _lacks(connection, query):
        raise SchemaError(f"the table {name} is not as it should be ({_list(lacks)}): repair it with {_MIGRATE}")


_MIGRATE = "`outbox migrate` or ensure_outbox_schema_async"
_ENSURE = "ensure_outbox_table_async"


async def schema_of(connection: Connection, table: TableName) -> str | None:
    """The schema in which `table` is found through the search path; None if it is not found."""
    schema: str | None = await connection.fetchval(queries("shape.sql", **table_names(table), shape="")["schema_of"])
    return schema


async def _lacks(connection: Connection, query: str) -> list[Difference]:
    rows: Sequence[Any] = await connection.fetch(query)
    return [difference for difference in (Difference(*row) for row in rows) if difference.kind in _VITAL]


def _list(differences: Sequence[Difference]) -> str:
    shown = "; ".join(map(str, differences[:3]))
    return shown if len(differences) <= 3 else f"{shown}; and {len(differences) - 3} more"
