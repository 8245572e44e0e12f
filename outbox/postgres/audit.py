"""The audit table: entries chained by hashes, written in the transaction of the change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Literal

from outbox.postgres.dead_letter_writer import Storable
from outbox.postgres.pool import Connection
from outbox.postgres.queries import TableName, query
from outbox.postgres.schema.objects import satellite_names

AuditOutcome = Literal["done", "denied", "failed"]

LONGEST_NAME = 250
"""Characters kept of an actor, a role, an action, a request's id and an address."""
LONGEST_TEXT = 2_000
"""Characters kept of a target and of a reason."""
LONGEST_DETAILS = 16_000
"""Characters of the details as JSON; longer ones are replaced by their beginning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An action of a principal. Texts that are too long or cannot be stored are cut or replaced."""

    actor: str
    role: str
    action: str
    target: str = ""
    outcome: AuditOutcome = "done"
    reason: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    request_id: str = ""
    client_request_id: str | None = None
    address: str = ""


async def write_entry(connection: Connection, table: TableName, entry: Entry) -> None:
    """Adds an entry in the current transaction of `connection`.

    Until the transaction ends, no other entry can be written. Write it last, so that others do not wait longer than necessary.
    """
    storable = Storable(connection.get_settings().server_encoding)
    names = satellite_names(table.schema)
    await connection.execute(query("audit.sql", "take_turn", **names), names["audit"])
    details = storable.json(entry.details)
    if len(details) > LONGEST_DETAILS:
        # JSON that is cut is no JSON any more, so it becomes a text in an object.
        details = storable.json({"cut": True, "begins": details[:LONGEST_TEXT]})

    def short(text: str, longest: int = LONGEST_NAME) -> str:
        storable_text = storable.text(text)
        return storable_text if len(storable_text) <= longest else f"{storable_text[: longest - 3]}..."

    await connection.execute(
        query("audit.sql", "record", **names),
        short(entry.actor),
        short(entry.role),
        short(entry.action),
        short(entry.target, LONGEST_TEXT),
        entry.outcome,
        None if entry.reason is None else short(entry.reason, LONGEST_TEXT),
        details,
        short(entry.request_id),
        None if entry.client_request_id is None else short(entry.client_request_id),
        short(entry.address),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Result of checking the hashes: number of entries with one, the last of them, and the ids of the first wrong ones."""

    entries: int
    last_id: int | None
    last_hash: str | None
    changed: int | None
    unlinked: int | None
    unchained: int | None


async def read_chain(connection: Connection, table: TableName) -> Chain:
    """Checks that every entry is unchanged and follows the one before it."""
    sql = query("audit.sql", "chain", **satellite_names(table.schema))
    [row] = await connection.fetch(sql)
    return Chain(**dict(row))


Row = Any
"""A row of the driver, with its values by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Selects entries that match all given fields. `after` is inclusive, `before` exclusive."""

    actor: str | None = None
    action: str | None = None
    outcome: AuditOutcome | None = None
    target: str | None = None
    after: datetime | None = None
    before: datetime | None = None


@dataclass(frozen=True, slots=True)
class Position:
    """The entry after which a page starts, in its direction; or at which, if `inclusive`."""

    at: datetime
    id: int
    back: bool = False
    inclusive: bool = False


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement with its arguments."""

    text: str
    arguments: Sequence[Any]


async def list_entries(
    connection: Connection, table: TableName, filter_: AuditFilter, *, limit: int, position: Position | None = None
) -> Sequence[Row]:
    """Returns up to `limit` entries from `position` on: newest first, or oldest first if it goes `back`."""
    statement = listing(table, filter_, limit=limit, position=position)
    rows: Sequence[Row] = await connection.fetch(statement.text, *statement.arguments)
    return rows


async def count_entries(connection: Connection, table: TableName, filter_: AuditFilter, *, most: int) -> int:
    """Returns the number of entries, counted up to `most`."""
    conditions, arguments = _conditions(filter_, [most])
    text = query("audit.sql", "count", conditions=_join(conditions), **satellite_names(table.schema))
    return int(await connection.fetchval(text, *arguments))


def listing(table: TableName, filter_: AuditFilter, *, limit: int, position: Position | None) -> Statement:
    """Returns the statement of `list_entries`."""
    conditions, arguments = _conditions(filter_, [limit])
    if position is not None:
        beyond = (">" if position.back else "<") + ("=" if position.inclusive else "")
        arguments += [position.at, position.id]
        conditions.append(f"(at, id) {beyond} (${len(arguments) - 1}, ${len(arguments)})")
    direction = "asc" if position is not None and position.back else "desc"
    names = satellite_names(table.schema)
    return Statement(query("audit.sql", "list", conditions=_join(conditions), direction=direction, **names), arguments)


def _conditions(filter_: AuditFilter, arguments: list[Any]) -> tuple[list[str], list[Any]]:
    # Only clauses that the filter needs. With all of them (`$1 is null or …`), a generic plan could not use the index of the
    # one that matters.
    conditions = []
    for column in fields(filter_):
        if (value := getattr(filter_, column.name)) is not None:
            arguments.append(value)
            block = "by_done" if (column.name, value) == ("outcome", "done") else f"by_{column.name}"
            conditions.append(query("audit.sql", block, value=f"${len(arguments)}"))
    return conditions, arguments


def _join(conditions: Sequence[str]) -> str:
    return " and ".join(conditions) or "true"
