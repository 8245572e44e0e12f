"""Reads messages of the outbox for the admin: filters, the order of each list, and pages of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import asyncpg

from outbox.admin.backlog_reader import COUNT_LIMIT, MessageState
from outbox.dead_letters.filters import Arguments
from outbox.postgres.pool import Connection, optional_tables
from outbox.postgres.queries import TableName, queries, query, render
from outbox.postgres.schema.objects import destination_table, outbox_names, satellite_names

Row = Mapping[str, Any]
SortKeys = Sequence[float | int | str]

_DUE = (MessageState.PENDING, MessageState.SCHEDULED, MessageState.RETRYING)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFilter:
    """Conditions that rows must match, all of them. A trailing `*` of `routing_key` matches any ending."""

    state: MessageState | None = None
    routing_key: str | None = None
    ordering_key: str | None = None
    message_id: str | None = None
    tracking_id: str | None = None
    target_queue: str | None = None
    destination: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """The order of an index. For each sort key: its result column, SQL expression, parameter, and JSON type."""

    columns: tuple[str, ...]
    expressions: tuple[str, ...]
    parameters: tuple[str, ...]
    kinds: tuple[type, ...]
    descending: bool = False

    def keys(self, row: Row) -> SortKeys:
        """Returns the sort keys of a row."""
        return [row[column] for column in self.columns]


_TIME = "to_timestamp({}::float8)"
_BY_ID = Order(("id",), ("id",), ("{}::bigint",), (int,))
_NEWEST = Order(("id",), ("id",), ("{}::bigint",), (int,), descending=True)
# As text, because a float is not exact after 2242: pages of messages that are due later would skip or repeat rows.
_BY_DUE = Order(("due_key", "id"), ("send_after", "id"), ("({}::text::timestamp at time zone 'UTC')", "{}::bigint"), (str, int))
_BY_KEY = Order(
    ("routing_key", "due_at", "id"), ("routing_key", "send_after", "id"), ("{}::text", _TIME, "{}::bigint"), (str, float, int)
)
_BY_ROUTE = Order(
    ("routing_key", "route_queue", "attempts", "id"),
    ("routing_key", "coalesce(target_queue, '')", "attempts", "id"),
    ("{}::text", "{}::text", "{}::integer", "{}::bigint"),
    (str, str, int, int),
)
_BY_LANE = Order(("lane", "id"), ("hashtextextended(ordering_key, 0)", "id"), ("{}::bigint", "{}::bigint"), (int, int))
# Qualified, because the result has columns with the same names, which hold seconds.
_BY_FAILURE = Order(("failed_at", "id"), ("message.failed_at", "id"), (_TIME, "{}::bigint"), (float, int), descending=True)
_BY_SENDING = Order(("sent_at", "id"), ("message.sent_at", "id"), (_TIME, "{}::bigint"), (float, int), descending=True)

_UNSENT = "sent_at is null and failed_at is null"
_LATER = f"{_UNSENT} and send_after > now()"
_ORDERS: Mapping[MessageState | None, tuple[Order, str]] = {
    None: (_NEWEST, "true"),
    MessageState.PENDING: (_BY_DUE, f"{_UNSENT} and send_after <= now()"),
    MessageState.SCHEDULED: (_BY_DUE, f"{_LATER} and attempts = 0"),
    MessageState.RETRYING: (_BY_DUE, f"{_LATER} and attempts > 0"),
    MessageState.HELD: (_BY_KEY, f"{_UNSENT} and last_error = 'unroutable'"),
    MessageState.STALLED: (_BY_ROUTE, f"{_UNSENT} and last_error = 'stalled'"),
    MessageState.BLOCKED: (_BY_LANE, f"{_UNSENT} and ordering_key is not null and last_error = 'blocked'"),
    MessageState.PARKED: (_BY_FAILURE, "failed_at is not null"),
    MessageState.SENT: (_BY_SENDING, "sent_at is not null"),
}


def order_of(filter_: MessageFilter) -> Order:
    """Returns the list order of rows that match: that of the index that finds them, so no page needs sorting."""
    return _BY_ID if _uses_ordering_key_index(filter_) else _ORDERS[filter_.state][0]


SEARCHED_ROWS = 5_000
"""Number of rows, the newest ones, whose bodies are searched for a text."""
LARGEST_SEARCHED = 16_384
"""Size limit, in bytes, of bodies that are searched."""


class MessageListing:
    """Reads rows of one outbox table. All methods raise the driver's errors."""

    def __init__(self, table: TableName) -> None:
        names = {**outbox_names(table), **satellite_names(table.schema)}
        self._table = table
        self._line = query("messages.sql", "line", table=table.sql, name=table.name)
        self._classes = query("messages.sql", "classes", unordered="{unordered}", ordered="{ordered}")
        self._settings = query("backlog.sql", "settings")
        self._sql = queries("messages.sql", unordered="", ordered="", name=table.name, **names)

    async def page(
        self, connection: Connection, filter_: MessageFilter, *, limit: int, after: SortKeys | None, back: bool, inclusive: bool
    ) -> Sequence[Row]:
        """Reads up to `limit` rows after the sort keys `after`, or before them if `back`, nearest first.

        `inclusive`: including the row with these keys.
        """
        statement, arguments = self.statement(filter_, limit, after, back=back, inclusive=inclusive)
        if not await self._configure(connection, filter_):
            return []
        return [dict(row) for row in await connection.fetch(statement, *arguments)]

    async def count(self, connection: Connection, filter_: MessageFilter, *, most: int) -> int:
        """Counts the rows that match, up to `most`."""
        statement, arguments = self.statement(filter_, most, None, back=False, inclusive=False, counting=True)
        if not await self._configure(connection, filter_):
            return 0
        found: int = await connection.fetchval(f"select count(*) from (\n{statement}\n) as counted", *arguments)
        return found

    async def containing(self, connection: Connection, text: str, *, most: int) -> Sequence[int]:
        """Finds rows whose body contains `text`, newest first, among the newest `SEARCHED_ROWS` rows with small bodies."""
        rows = await connection.fetch(self._sql["containing"], text.encode(), SEARCHED_ROWS, LARGEST_SEARCHED, most)
        return [row["id"] for row in rows]

    async def ids(self, connection: Connection, filter_: MessageFilter, *, most: int) -> Sequence[int]:
        """Returns the ids of the first `most` rows that match, in list order."""
        statement, arguments = self.statement(filter_, most, None, back=False, inclusive=False)
        if not await self._configure(connection, filter_):
            return []
        return [row["id"] for row in await connection.fetch(f"select id from (\n{statement}\n) as found", *arguments)]

    def statement(
        self,
        filter_: MessageFilter,
        limit: int,
        after: SortKeys | None,
        *,
        back: bool,
        inclusive: bool,
        counting: bool = False,
    ) -> tuple[str, Sequence[Any]]:
        """Builds the statement that reads a page, or the rows to count, with its arguments."""
        arguments = Arguments()
        order = order_of(filter_)
        conditions = [*_conditions(filter_, arguments)]
        descending = order.descending != back
        if after is not None:
            operator = ("<" if descending else ">") + ("=" if inclusive else "")
            keys = ", ".join(
                parameter.format(arguments.add(value)) for parameter, value in zip(order.parameters, after, strict=True)
            )
            conditions.append(f"({', '.join(order.expressions)}) {operator} ({keys})")
            # The index of sent rows has no id. This condition bounds its scan.
            if order is _BY_SENDING:
                conditions.append(f"sent_at {operator[0]}= {keys.split(', ')[0]}")
        by = ", ".join(f"{expression}{' desc' if descending else ''}" for expression in order.expressions)
        most = arguments.add(limit)

        # The rows of all destinations, or of the one that is wanted.
        source = self._table.sql
        if filter_.destination is not None:
            source = f"only {destination_table(self._table, filter_.destination).sql}"

        def rows(*more: str, source: str = source) -> str:
            where = "\n    and ".join([*conditions, *more])
            columns = "" if counting else self._line
            return f"select {columns}\nfrom {source} as message\nwhere {where}\norder by {by}\nlimit {most}"

        def moved_to_infinity(class_: str) -> str:
            # Not `=`, because the order would then be that of the primary key, which the planner might read instead.
            where = f"{_UNSENT} and send_after >= 'infinity' and {class_}"
            first = f"select *, tableoid from {source} where {where} order by send_after, id limit {COUNT_LIMIT}"
            return rows(source=f"({first})")

        if order is not _BY_DUE:
            return rows(), arguments.values
        # Rows with an ordering key have an index of their own. Rows without one have an index by priority, so each priority
        # is read separately, in due order.
        unordered, ordered = "ordering_key is null and priority = class.priority", "ordering_key is not null"
        finite = "send_after < 'infinity'"
        each = render(self._classes, unordered=rows(unordered, finite), ordered=rows(ordered, finite))
        if filter_.state is not MessageState.PENDING:
            # Held, stalled and blocked rows are at infinity, so rows that were moved there by hand have no index. They are
            # looked for among as many of these as the backlog counts.
            moved = {"unordered": moved_to_infinity(unordered), "ordered": moved_to_infinity(ordered)}
            each = f"{each}\nunion all\n{render(self._classes, **moved)}"
        columns = ", ".join(f"{column}{' desc' if descending else ''}" for column in ("due_key::timestamp", "id"))
        return (
            f"select *\nfrom (\n{each}\n) as each\n{'' if counting else f'order by {columns}'}\nlimit {most}",
            arguments.values,
        )

    async def _configure(self, connection: Connection, filter_: MessageFilter) -> bool:
        """Prepares the connection for reading. Returns False if there is no such destination."""
        await connection.execute(self._settings)
        if filter_.destination is not None:
            wanted = destination_table(self._table, filter_.destination)
            if not await connection.fetchval(self._sql["exists"], wanted.sql):
                return False
        # The settings forbid sorts, so that the planner reads an index in order. The index of sent rows has no id: rows that
        # were sent at the same time need a sort.
        if order_of(filter_) is _BY_SENDING:
            await connection.execute("set local enable_sort = on")
        return True

    async def one(self, connection: Connection, row_id: int) -> Row | None:
        """Reads the whole row, or None."""
        return _row(await connection.fetchrow(self._sql["detail"], row_id))

    async def first_of_key(self, connection: Connection, row: Mapping[str, Any]) -> Row | None:
        """Reads the first unsent row with the ordering key and the destination of `row`, if it precedes that."""
        return _row(await connection.fetchrow(self._sql["first_of_key"], row["lane"], row["id"], row["table_id"]))

    async def probe(self, connection: Connection, row: Mapping[str, Any]) -> Row | None:
        """Reads the row that relays retry for all that are held or stalled on the route of `row`; None: there is none."""
        name = {MessageState.HELD: "probe", MessageState.STALLED: "stalled_probe"}.get(row["state"])
        if name is None:
            return None
        route = (row["routing_key"], row["target_queue"], row["table_id"])
        return _row(await connection.fetchrow(self._sql[name], *route))

    async def handled(self, connection: Connection, message_id: str) -> Sequence[Row] | None:
        """Reads the latest history entry of a message in each queue. None: there is no history."""
        async with optional_tables(connection):
            return [dict(row) for row in await connection.fetch(self._sql["handled"], message_id)]
        return None

    async def alive_relays(self, connection: Connection, row: Mapping[str, Any]) -> int | None:
        """Counts the relays for the destination of `row`, or if there is only one, recent heartbeats. None: unknown."""
        has_destinations = await connection.fetchval(self._sql["has_destinations"])
        async with optional_tables(connection):
            if has_destinations:
                return int(await connection.fetchval(self._sql["relays_of"], row["table_id"]))
            return int(await connection.fetchval(self._sql["alive_relays"]))
        return None


def _conditions(filter_: MessageFilter, arguments: Arguments) -> Sequence[str]:
    if _uses_ordering_key_index(filter_):
        key = arguments.add(filter_.ordering_key)
        found = [
            f"sent_at is null and ordering_key is not null and hashtextextended(ordering_key, 0) = hashtextextended({key}, 0)",
            f"ordering_key = {key}",
        ]
        found += [_ORDERS[filter_.state][1]] if filter_.state else []
    else:
        found = [_ORDERS[filter_.state][1]]
        found += [f"ordering_key = {arguments.add(filter_.ordering_key)}"] if filter_.ordering_key is not None else []
    if filter_.state in _DUE:
        found.append("coalesce(last_error, '') not in ('unroutable', 'stalled', 'blocked')")
    # No index supports these conditions: they filter the rows that the conditions above find.
    if (routing_key := filter_.routing_key) is not None:
        if routing_key.endswith("*"):
            found.append(f"starts_with(routing_key, {arguments.add(routing_key[:-1])})")
        else:
            found.append(f"routing_key = {arguments.add(routing_key)}")
    for condition, value in (
        ("tracking_ids ->> -1 = {}", filter_.message_id),
        ("tracking_ids @> jsonb_build_array({}::text)", filter_.tracking_id),
        ("target_queue = {}", filter_.target_queue),
        ("created_at >= {}", filter_.created_after),
        ("created_at < {}", filter_.created_before),
    ):
        if value is not None:
            found.append(condition.format(arguments.add(value)))
    return found


def _uses_ordering_key_index(filter_: MessageFilter) -> bool:
    # This index contains all rows with an ordering key, except those that were sent.
    return filter_.ordering_key is not None and filter_.state is not MessageState.SENT


def _row(found: asyncpg.Record | None) -> Row | None:
    return None if found is None else dict(found)
