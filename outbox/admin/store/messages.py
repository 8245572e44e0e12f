"""Reads messages of the outbox: pages of each state in index order, and the details of one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import asyncpg

from outbox.admin.store.backlog import MessageState
from outbox.dead_letters.filters import Arguments
from outbox.postgres.names import TableName
from outbox.postgres.pool import Connection
from outbox.postgres.queries import queries, query, render
from outbox.postgres.schema.objects import outbox_names, satellite_names

Row = Mapping[str, Any]
Place = Sequence[float | int | str]

_DUE = (MessageState.PENDING, MessageState.SCHEDULED, MessageState.RETRYING)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFilter:
    """Which rows are meant: those that fit all that is given. `routing_key` may end with `*`, for all that begin so."""

    state: MessageState | None = None
    routing_key: str | None = None
    ordering_key: str | None = None
    message_id: str | None = None
    tracking_id: str | None = None
    target_queue: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """The order of an index: a column of the answer, its expression in SQL, and the JSON type of its values, for each key."""

    columns: tuple[str, ...]
    expressions: tuple[str, ...]
    parameters: tuple[str, ...]
    kinds: tuple[type, ...]
    descending: bool = False

    def place(self, row: Row) -> Place:
        """Where a row is in it."""
        return [row[column] for column in self.columns]


_TIME = "to_timestamp({}::float8)"
_BY_ID = Order(("id",), ("id",), ("{}::bigint",), (int,))
_NEWEST = Order(("id",), ("id",), ("{}::bigint",), (int,), descending=True)
_BY_DUE = Order(("due_at", "id"), ("send_after", "id"), (_TIME, "{}::bigint"), (float, int))
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
# Of the table: the columns of the answer that have these names are seconds.
_BY_FAILURE = Order(("failed_at", "id"), ("message.failed_at", "id"), (_TIME, "{}::bigint"), (float, int), descending=True)
_BY_SENDING = Order(("sent_at", "id"), ("message.sent_at", "id"), (_TIME, "{}::bigint"), (float, int), descending=True)

_UNSENT = "sent_at is null and failed_at is null"
# Held, stalled and blocked rows are due never, and follow all others in the same index.
_LATER = f"{_UNSENT} and send_after > now() and send_after < 'infinity'"
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
    """In what order rows are listed that fit it: that of the index that finds them."""
    return _BY_ID if _by_ordering_key(filter_) else _ORDERS[filter_.state][0]


class MessageListing:
    """Reads rows of one outbox table. Everything raises the driver's errors."""

    def __init__(self, table: TableName) -> None:
        names = {**outbox_names(table), **satellite_names(table.schema)}
        self._table = table.sql
        self._line = query("messages.sql", "line")
        self._classes = query("messages.sql", "classes", unordered="{unordered}", ordered="{ordered}")
        self._settings = query("backlog.sql", "settings")
        self._sql = queries("messages.sql", unordered="", ordered="", **names)

    async def page(
        self, connection: Connection, filter_: MessageFilter, *, limit: int, place: Place | None, back: bool, inclusive: bool
    ) -> Sequence[Row]:
        """Up to `limit` rows behind `place`, or before it if `back`, the nearest first; `inclusive`: from that place on."""
        statement, arguments = self.statement(filter_, limit, place, back=back, inclusive=inclusive)
        await self._set(connection, filter_)
        return [dict(row) for row in await connection.fetch(statement, *arguments)]

    async def count(self, connection: Connection, filter_: MessageFilter, *, most: int) -> int:
        """How many fit, up to `most`."""
        statement, arguments = self.statement(filter_, most, None, back=False, inclusive=False, counting=True)
        await self._set(connection, filter_)
        found: int = await connection.fetchval(f"select count(*) from (\n{statement}\n) as counted", *arguments)
        return found

    def statement(
        self,
        filter_: MessageFilter,
        limit: int,
        place: Place | None,
        *,
        back: bool,
        inclusive: bool,
        counting: bool = False,
    ) -> tuple[str, Sequence[Any]]:
        """What reads a page, or all that is to be counted, and its arguments."""
        arguments = Arguments()
        order = order_of(filter_)
        conditions = [*_conditions(filter_, arguments)]
        falling = order.descending != back
        if place is not None:
            sign = ("<" if falling else ">") + ("=" if inclusive else "")
            keys = ", ".join(
                parameter.format(arguments.add(value)) for parameter, value in zip(order.parameters, place, strict=True)
            )
            conditions.append(f"({', '.join(order.expressions)}) {sign} ({keys})")
            if order is _BY_SENDING:
                conditions.append(f"sent_at {sign[0]}= {keys.split(', ')[0]}")
        by = ", ".join(f"{expression}{' desc' if falling else ''}" for expression in order.expressions)
        most = arguments.add(limit)

        def rows(*more: str) -> str:
            where = "\n    and ".join([*conditions, *more])
            columns = "" if counting else self._line
            return f"select {columns}\nfrom {self._table} as message\nwhere {where}\norder by {by}\nlimit {most}"

        if order is not _BY_DUE:
            return rows(), arguments.values
        # Rows that are due are in one index by class, and those with an ordering key in another.
        each = render(
            self._classes,
            unordered=rows("ordering_key is null and priority = class.priority"),
            ordered=rows("ordering_key is not null"),
        )
        columns = ", ".join(f"{column}{' desc' if falling else ''}" for column in order.columns)
        return (
            f"select *\nfrom (\n{each}\n) as each\n{'' if counting else f'order by {columns}'}\nlimit {most}",
            arguments.values,
        )

    async def _set(self, connection: Connection, filter_: MessageFilter) -> None:
        """Sorting is for rows that were sent at the same moment only: their index knows no ids."""
        await connection.execute(self._settings)
        if order_of(filter_) is _BY_SENDING:
            await connection.execute("set local enable_sort = on")

    async def one(self, connection: Connection, row_id: int) -> Row | None:
        """The whole row."""
        return _row(await connection.fetchrow(self._sql["detail"], row_id))

    async def first_of_key(self, connection: Connection, lane: int, before: int) -> Row | None:
        """The first row of an ordering key, if it is before the row with that id."""
        return _row(await connection.fetchrow(self._sql["first_of_key"], lane, before))

    async def probe(self, connection: Connection, routing_key: str, target_queue: str | None) -> Row | None:
        """The row that probes for held ones of that routing key, and of that queue."""
        return _row(await connection.fetchrow(self._sql["probe"], routing_key, target_queue))

    async def stalled_probe(self, connection: Connection, routing_key: str, target_queue: str | None) -> Row | None:
        """The row that is sent next for those that wait because this route is stalled."""
        return _row(await connection.fetchrow(self._sql["stalled_probe"], routing_key, target_queue))

    async def handled(self, connection: Connection, message_id: str) -> Sequence[Row] | None:
        """What the history knows of a message, a row for each queue; None without a history."""
        found = await _optional(connection, connection.fetch(self._sql["handled"], message_id))
        return None if found is None else [dict(row) for row in found]

    async def living_relays(self, connection: Connection) -> int | None:
        """How many relays have given a sign of life; None if nobody would know."""
        found = await _optional(connection, connection.fetchval(self._sql["living_relays"]))
        return None if found is None else int(found)


def _conditions(filter_: MessageFilter, arguments: Arguments) -> Sequence[str]:
    if _by_ordering_key(filter_):
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
    return found + _more_conditions(filter_, arguments)


def _more_conditions(filter_: MessageFilter, arguments: Arguments) -> list[str]:
    """Those that no index answers."""
    found = []
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


def _by_ordering_key(filter_: MessageFilter) -> bool:
    """Whether the index of ordering keys finds it. It has everything of a key that was not sent."""
    return filter_.ordering_key is not None and filter_.state is not MessageState.SENT


def _row(found: asyncpg.Record | None) -> Row | None:
    return None if found is None else dict(found)


async def _optional(connection: Connection, look: Any) -> Any:
    """What comes of `look`; None if there is no such table, or no right to read it."""
    try:
        async with connection.transaction():
            return await look
    except (asyncpg.UndefinedTableError, asyncpg.InsufficientPrivilegeError):
        look.close()
        return None
