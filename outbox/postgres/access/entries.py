"""Pages of the audit, newest first."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from outbox.postgres.access.audit import AuditOutcome
from outbox.postgres.names import TableName
from outbox.postgres.pool import Connection
from outbox.postgres.queries import query
from outbox.postgres.schema.objects import satellite_names

Row = Any
"""A row of the driver: its values by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Which entries are meant: those that fit all that is given. `after` is included, `before` is not."""

    actor: str | None = None
    action: str | None = None
    outcome: AuditOutcome | None = None
    target: str | None = None
    after: datetime | None = None
    before: datetime | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Behind which entry a page begins, in its direction; or with it, if that is `inclusive`."""

    at: datetime
    id: int
    back: bool = False
    inclusive: bool = False


@dataclass(frozen=True, slots=True)
class Statement:
    """What is asked of the database."""

    text: str
    arguments: Sequence[Any]


async def list_entries(
    connection: Connection, table: TableName, filter_: AuditFilter, *, limit: int, place: Place | None = None
) -> Sequence[Row]:
    """Up to `limit` entries from `place` on, in the direction of it: newest first, unless that is back."""
    statement = listing(table, filter_, limit=limit, place=place)
    rows: Sequence[Row] = await connection.fetch(statement.text, *statement.arguments)
    return rows


async def count_entries(connection: Connection, table: TableName, filter_: AuditFilter, *, most: int) -> int:
    """How many there are, counted up to `most`."""
    conditions, arguments = _conditions(filter_, [most])
    text = query("audit.sql", "count", conditions=_all(conditions), **satellite_names(table.schema))
    return int(await connection.fetchval(text, *arguments))


def listing(table: TableName, filter_: AuditFilter, *, limit: int, place: Place | None) -> Statement:
    """The statement of `list_entries`."""
    conditions, arguments = _conditions(filter_, [limit])
    if place is not None:
        beyond = (">" if place.back else "<") + ("=" if place.inclusive else "")
        arguments += [place.at, place.id]
        conditions.append(f"(at, id) {beyond} (${len(arguments) - 1}, ${len(arguments)})")
    direction = "asc" if place is not None and place.back else "desc"
    names = satellite_names(table.schema)
    return Statement(query("audit.sql", "list", conditions=_all(conditions), direction=direction, **names), arguments)


def _conditions(filter_: AuditFilter, arguments: list[Any]) -> tuple[list[str], list[Any]]:
    conditions = []
    for field in fields(filter_):
        if (value := getattr(filter_, field.name)) is not None:
            arguments.append(value)
            block = "by_done" if (field.name, value) == ("outcome", "done") else f"by_{field.name}"
            conditions.append(query("audit.sql", block, value=f"${len(arguments)}"))
    return conditions, arguments


def _all(conditions: Sequence[str]) -> str:
    return " and ".join(conditions) or "true"
