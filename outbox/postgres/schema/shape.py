"""What a table lacks of the shape that this release works with."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from outbox.postgres.names import TableName
from outbox.postgres.queries import queries
from outbox.postgres.schema.objects import SATELLITES, outbox_names, satellite_names, table_names

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
)
"""Where the shapes of the tables beside an outbox table are written; a table's shape may lie in several."""


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
    """The same for each table of these `kinds` beside it."""
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
