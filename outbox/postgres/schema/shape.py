"""What a table lacks of the shape that this release works with."""

from collections.abc import Sequence
from dataclasses import dataclass

from outbox.postgres.names import TableName
from outbox.postgres.queries import queries
from outbox.postgres.schema.objects import SATELLITES, outbox_names, satellite_names, table_names


@dataclass(frozen=True, slots=True)
class Difference:
    """One column, constraint, index or trigger that is not as it should be; `found` is None if it is missing."""

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
    return _differences(table, queries("outbox_table.sql", **outbox_names(table))["shape"], by_path=by_path)


def satellite_differences(schema: str | None, *, by_path: bool = False) -> Sequence[str]:
    """The same for each table beside it."""
    blocks = queries("transport_tables.sql", **satellite_names(schema))
    return [
        _differences(TableName(table, schema), blocks[f"{kind}_shape"], by_path=by_path) for kind, table in SATELLITES.items()
    ]


def _differences(table: TableName, shape: str, *, by_path: bool) -> str:
    wanted = "\n".join(line for line in shape.splitlines() if not line.startswith("--"))
    names = table_names(table)
    if by_path:
        names["target"] = f"to_regclass('{table.sql}')"
    return queries("shape.sql", **names, shape=wanted)["differences"]
