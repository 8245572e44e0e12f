"""Checks at startup that the tables exist and fit this release, with a few catalog lookups."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from outbox.errors import SchemaError
from outbox.postgres.pool import Connection
from outbox.postgres.queries import TableName, queries
from outbox.postgres.schema.objects import (
    ARCHIVE,
    OUTBOX_TABLE,
    SATELLITES,
    TRANSPORT,
    outbox_names,
    satellite_names,
    table_names,
)

OUTBOX_FILES = ("outbox_table.sql", "outbox_table_2.sql", "outbox_table_3.sql", "publish_function.sql")
"""Files with the expected shape of an outbox table."""
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
    "history_table_5.sql",
    "dead_letter_6.sql",
    "history_table_7.sql",
)
"""Files with the expected shapes of the tables next to an outbox table. The shape of a table may be in several of them."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A column, constraint, index, trigger or function that differs from the expected one; `found` is None if missing."""

    kind: str
    name: str
    wanted: str
    found: str | None

    def __str__(self) -> str:
        return f"{self.kind} {self.name} is {self.found or 'missing'}"


def outbox_differences(table: TableName, *, by_path: bool = False) -> str:
    """Returns the query for the `Difference`s of one outbox table.

    `by_path`: check the table that an unqualified name finds through the search path, not the one that it would create.
    """
    names = outbox_names(table)
    shapes = [queries(file, **names)["shape"] for file in OUTBOX_FILES]
    return _differences(table, shapes, by_path=by_path)


def satellite_differences(
    schema: str | None, *, kinds: Iterable[str] = tuple(SATELLITES), by_path: bool = False
) -> Sequence[str]:
    """Returns a query for the `Difference`s of each table of these `kinds` next to the outbox table."""
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
    # Each file adds rows to one list of values, so comments and trailing commas between the parts must go.
    wanted = ",\n".join(
        "\n".join(line for line in shape.splitlines() if not line.startswith("--")).rstrip(",") for shape in shapes
    )
    names = table_names(table)
    if by_path:
        # Where statements find the table. The default is where it would be created, which the search path may list earlier.
        names["target"] = f"to_regclass('{table.sql}')"
    return queries("shape.sql", **names, shape=wanted)["differences"]


_REQUIRED_KINDS = frozenset({"column", "trigger"})
"""Kinds that must be correct: without them nothing works, or sleepers are not woken. Without an index or a constraint,
statements are only slower or less strict."""


async def check_outbox_table(connection: Connection, table: TableName) -> str:
    """Returns the schema that contains `table`. Raises `SchemaError` if it is missing or has another shape."""
    schema = await schema_of(connection, table)
    if schema is None:
        is_usual = table.name == OUTBOX_TABLE
        options = "" if is_usual else " (with --table-name, or with --destination for the table of a destination)"
        raise SchemaError(
            f"the table {table} does not exist: create it with {_MIGRATE}{options}, or only this table with {_ENSURE}"
        )
    differences = await _required_differences(connection, outbox_differences(table, by_path=True))
    if not differences:
        return schema
    if any(difference.kind == "column" and difference.found is None for difference in differences):
        raise SchemaError(
            f"the table {table} has the shape of an older release ({_list(differences)}): upgrade it in place, with its rows, "
            f"with `outbox migrate`, or with {_ENSURE}"
        )
    raise SchemaError(f"the table {table} is not as it should be ({_list(differences)}): repair it with {_ENSURE}")


async def check_transport_tables(connection: Connection, table: TableName) -> str:
    """Returns the schema of the Postgres transport's tables next to `table`. Raises `SchemaError`."""
    names = ", ".join(SATELLITES[kind] for kind in TRANSPORT)
    schema = await schema_of(connection, TableName(SATELLITES["delivery"], table.schema))
    if schema is None:
        raise SchemaError(f"the tables of the Postgres transport ({names}) do not exist: create them with {_MIGRATE}")
    differences: list[Difference] = []
    for query in satellite_differences(table.schema, kinds=TRANSPORT, by_path=True):
        differences += await _required_differences(connection, query)
    if differences:
        raise SchemaError(
            f"the tables of the Postgres transport ({names}) in the schema {schema} are not as they should be "
            f"({_list(differences)}): repair them with {_MIGRATE}"
        )
    return schema


async def check_archive_tables(connection: Connection, table: TableName) -> None:
    """Raises `SchemaError` unless the tables that an archiver uses exist next to `table`."""
    for kind in ARCHIVE:
        if await schema_of(connection, TableName(SATELLITES[kind], table.schema)) is None:
            raise SchemaError(
                f"the table {SATELLITES[kind]}, which an archiver uses, does not exist: create it with {_MIGRATE}"
            )
    differences: list[Difference] = []
    for query in satellite_differences(table.schema, kinds=ARCHIVE, by_path=True):
        differences += await _required_differences(connection, query)
    if differences:
        raise SchemaError(
            f"the tables that an archiver uses are not as they should be ({_list(differences)}): repair them with {_MIGRATE}"
        )


async def check_inbox(connection: Connection, table: TableName) -> None:
    """Raises `SchemaError` unless the inbox table next to `table` exists."""
    name = SATELLITES["inbox"]
    if await schema_of(connection, TableName(name, table.schema)) is None:
        raise SchemaError(f"the table {name}, which consumers with inbox=True need, does not exist: create it with {_MIGRATE}")
    [query] = satellite_differences(table.schema, kinds=("inbox",), by_path=True)
    if differences := await _required_differences(connection, query):
        raise SchemaError(f"the table {name} is not as it should be ({_list(differences)}): repair it with {_MIGRATE}")


_MIGRATE = "`outbox migrate` or ensure_outbox_schema_async"
_ENSURE = "ensure_outbox_table_async"


async def schema_of(connection: Connection, table: TableName) -> str | None:
    """Returns the schema in which the search path finds `table`; None if it does not exist.

    Raises `SchemaError` if it is in a schema that this role may not use.
    """
    blocks = queries("shape.sql", **table_names(table), shape="")
    schema: str | None = await connection.fetchval(blocks["schema_of"])
    if schema is None and (unusable := await connection.fetchrow(blocks["unusable_schema"], table.name, table.schema)):
        name, role = unusable
        raise SchemaError(
            f"the table {table} is in the schema {name}, which this role may not use: grant usage on schema {name} to {role}"
        )
    return schema


async def _required_differences(connection: Connection, query: str) -> list[Difference]:
    rows: Sequence[Any] = await connection.fetch(query)
    return [difference for difference in (Difference(*row) for row in rows) if difference.kind in _REQUIRED_KINDS]


def _list(differences: Sequence[Difference]) -> str:
    shown = "; ".join(map(str, differences[:3]))
    return shown if len(differences) <= 3 else f"{shown}; and {len(differences) - 3} more"
