"""What the admin reads of the outbox: counts, exact up to a limit and estimated above it, and the messages themselves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

import asyncpg

from outbox.dead_letters.filters import Arguments
from outbox.postgres.pool import Connection
from outbox.postgres.queries import TableName, queries, query, render
from outbox.postgres.schema.objects import outbox_names, satellite_names

COUNTED = 10_000
"""Rows of one state that are counted one by one."""
COUNTED_DELIVERIES = 50_000
"""Deliveries of all queues that are."""
SAMPLED_PAGES = 500
"""Pages that an estimate looks at."""
FEW_PAGES = 50
"""Pages that one looks at which must be there at once."""


class MessageState(StrEnum):
    """Where a row of the outbox is."""

    PENDING = "pending"
    SCHEDULED = "scheduled"
    HELD = "held"
    STALLED = "stalled"
    BLOCKED = "blocked"
    RETRYING = "retrying"
    PARKED = "parked"
    SENT = "sent"


class Relation(StrEnum):
    """How a count is to the truth: it is it, it is about it, it is not more than it."""

    EXACT = "eq"
    ABOUT = "about"
    AT_LEAST = "gte"


@dataclass(frozen=True, slots=True)
class Count:
    """How many there are."""

    value: int
    relation: Relation = Relation.EXACT

    def __add__(self, other: "Count") -> "Count":
        worst = max(self.relation, other.relation, key=_RELATIONS.index)
        return Count(self.value + other.value, worst)


_RELATIONS = (Relation.EXACT, Relation.ABOUT, Relation.AT_LEAST)
NONE = Count(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCounts:
    """A queue of the Postgres transport: `queued` are due, `in_hand` are with workers, `retrying` are due later."""

    queue: str
    queued: Count
    in_hand: Count
    retrying: Count
    oldest_seconds: float | None = None
    """How long the first one has been due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Rows by state, and by routing key and state; sent ones have no routing key here."""

    states: Mapping[MessageState, Count]
    routing_keys: Mapping[str, Mapping[MessageState, Count]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogFigures:
    """`oldest_seconds`: how long the first row has been due. `inserted`: ids that were given out so far.

    `waited`: how long, in seconds, the first of the held, stalled and parked rows has been so.

    `out_per_second` is what relays said of the last seconds, or that of the last minutes; None: no data.
    """

    counts: Counts
    oldest_seconds: float | None = None
    waited: Mapping[MessageState, float] = field(default_factory=dict)
    inserted: int | None = None
    out_per_second: float | None = None
    deliveries: Sequence[QueueCounts] = field(default=())


class BacklogReader:
    """Counts next to one outbox table, on connections within a read-only transaction. Raises the driver's errors."""

    def __init__(self, table: TableName) -> None:
        self._sql = backlog_queries(table)

    async def figures(self, connection: Connection, *, deliveries: bool) -> BacklogFigures:
        """All of it; `deliveries`: also of the queues that are in the database."""
        await connection.execute(self._sql["settings"])
        waited = await connection.fetch(self._sql["waited"], COUNTED)
        return BacklogFigures(
            counts=await self._counts(connection),
            oldest_seconds=await connection.fetchval(self._sql["oldest"]),
            waited={MessageState(row["state"]): row["seconds"] for row in waited if row["seconds"] is not None},
            inserted=await connection.fetchval(self._sql["inserted"]),
            out_per_second=await self._out_per_second(connection),
            deliveries=await self._deliveries(connection) if deliveries else (),
        )

    async def estimate(self, connection: Connection) -> BacklogFigures:
        """What can be said at once: counts only, from a few pages."""
        await connection.execute(self._sql["settings"])
        sample, relation = await self._sample(connection, FEW_PAGES)
        return BacklogFigures(counts=_gathered(sample, dict.fromkeys(MessageState, Count(0, relation))))

    async def _counts(self, connection: Connection) -> Counts:
        rows = await connection.fetch(self._sql["counted"], COUNTED)
        counted = {(MessageState(row["state"]), row["routing_key"]): Count(row["count"]) for row in rows}
        least = _by_state(counted, {})
        full = {state for state, count in least.items() if count.value >= COUNTED}
        # These share an index, and so the limit.
        if least[MessageState.SCHEDULED].value + least[MessageState.RETRYING].value >= COUNTED:
            full |= {MessageState.SCHEDULED, MessageState.RETRYING}
        if not full:
            return _gathered(counted, {})
        sample, relation = await self._sample(connection, SAMPLED_PAGES)
        table = {key: count for key, count in counted.items() if key[0] not in full}
        table |= {key: count for key, count in sample.items() if key[0] in full}
        counts = _gathered(table, dict.fromkeys(full, Count(0, relation)))
        # An estimate is never less than what was counted.
        states = {
            state: Count(least[state].value, Relation.AT_LEAST) if state in full and count.value < least[state].value else count
            for state, count in counts.states.items()
        }
        return Counts(states=states, routing_keys=counts.routing_keys)

    async def _sample(self, connection: Connection, pages: int) -> "tuple[Table, Relation]":
        """What a sample means for the whole, and how that, or finding nothing, is to the truth."""
        percent = _percent(pages, await connection.fetchval(self._sql["pages"]))
        relation = Relation.EXACT if percent >= 100 else Relation.ABOUT
        rows = await connection.fetch(self._sql["sampled"], percent)
        counts = {
            (MessageState(row["state"]), row["routing_key"]): Count(round(row["count"] * 100 / percent), relation)
            for row in rows
        }
        return counts, relation

    async def _out_per_second(self, connection: Connection) -> float | None:
        try:
            async with connection.transaction():
                reported: float | None = await connection.fetchval(self._sql["relays"])
                if reported is not None:
                    return reported
                [row] = await connection.fetch(self._sql["rates"])
        except (asyncpg.UndefinedTableError, asyncpg.InsufficientPrivilegeError):
            return None
        return row["sent"] / (60 * row["minutes"]) if row["minutes"] else None

    async def _deliveries(self, connection: Connection) -> Sequence[QueueCounts]:
        try:
            async with connection.transaction():
                rows = await connection.fetch(self._sql["deliveries"], COUNTED_DELIVERIES)
                full = [row for row in rows if max(row["queued"], row["in_hand"] + row["retrying"]) >= row["rows"]]
                estimates: dict[tuple[str, str], int] = {}
                if full:
                    percent = _percent(SAMPLED_PAGES, await connection.fetchval(self._sql["delivery_pages"]))
                    for row in await connection.fetch(self._sql["deliveries_sampled"], percent):
                        estimates[row["queue"], row["state"]] = round(row["count"] * 100 / percent)
        except asyncpg.UndefinedTableError:
            return ()
        return [_queue_counts(row, estimates) for row in rows]


Table = Mapping[tuple[MessageState, str], Count]


def backlog_queries(table: TableName) -> Mapping[str, str]:
    """The statements of `backlog.sql`."""
    return queries("backlog.sql", **outbox_names(table), **satellite_names(table.schema))


def _percent(pages: int, all_pages: int) -> float:
    return min(100.0, 100 * pages / all_pages)


def _by_state(table: Table, unseen: Mapping[MessageState, Count]) -> dict[MessageState, Count]:
    states = {state: unseen.get(state, NONE) for state in MessageState}
    for (state, _), count in table.items():
        states[state] += count
    return states


def _gathered(table: Table, unseen: Mapping[MessageState, Count]) -> Counts:
    """`unseen` is what having found none says of a state; without it, that there are none."""
    waiting: dict[MessageState, Count] = {state: count for state, count in unseen.items() if state is not MessageState.SENT}
    routing_keys: dict[str, dict[MessageState, Count]] = {}
    for (state, routing_key), count in table.items():
        if state is not MessageState.SENT:
            routing_keys.setdefault(routing_key, dict(waiting))[state] = count
    return Counts(states=_by_state(table, unseen), routing_keys=routing_keys)


def _queue_counts(row: asyncpg.Record, estimates: Mapping[tuple[str, str], int]) -> QueueCounts:
    queue, most = row["queue"], row["rows"]

    def count(state: str, *, full: bool) -> Count:
        if not full:
            return Count(row[state])
        estimate = estimates.get((queue, state), 0)
        return Count(estimate, Relation.ABOUT) if estimate > row[state] else Count(row[state], Relation.AT_LEAST)

    later_full = row["in_hand"] + row["retrying"] >= most
    return QueueCounts(
        queue=queue,
        queued=count("queued", full=row["queued"] >= most),
        in_hand=count("in_hand", full=later_full),
        retrying=count("retrying", full=later_full),
        oldest_seconds=row["oldest"],
    )


MOST_SUBSCRIPTIONS = 5_000
MOST_HELD_KEYS = 100


@dataclass(frozen=True, slots=True)
class Subscribed:
    """What brings messages from an exchange to a queue."""

    exchange: str
    queue: str
    key: str


@dataclass(frozen=True, slots=True)
class HeldKey:
    """A routing key of which messages are held, `row_id` for one; `target_queue`: it is for that queue alone."""

    routing_key: str
    row_id: int
    target_queue: str | None


async def subscriptions(connection: Connection, table: TableName) -> Sequence[Subscribed]:
    """Those of all exchanges; none without the table."""
    sql = query("topology.sql", "subscriptions", **satellite_names(table.schema))
    try:
        async with connection.transaction():
            return [Subscribed(*row) for row in await connection.fetch(sql, MOST_SUBSCRIPTIONS)]
    except asyncpg.UndefinedTableError:
        return []


async def held_keys(connection: Connection, table: TableName) -> Sequence[HeldKey]:
    """The first hundred of them."""
    await connection.execute(query("backlog.sql", "settings"))
    rows = await connection.fetch(query("topology.sql", "held_keys", table=table.sql), MOST_HELD_KEYS)
    return [HeldKey(row["routing_key"], row["id"], row["target_queue"]) for row in rows]


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


SEARCHED = 5_000
"""Rows, the newest ones, whose bodies are searched for a text."""
LARGEST_SEARCHED = 16_384
"""Bytes of the largest body that is searched."""


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

    async def containing(self, connection: Connection, text: str, *, most: int) -> Sequence[int]:
        """Rows whose body contains `text`, the newest first: of the newest `SEARCHED` rows with small bodies."""
        rows = await connection.fetch(self._sql["containing"], text.encode(), SEARCHED, LARGEST_SEARCHED, most)
        return [row["id"] for row in rows]

    async def ids(self, connection: Connection, filter_: MessageFilter, *, most: int) -> Sequence[int]:
        """The rows of the first `most` that fit, in the order of the list."""
        statement, arguments = self.statement(filter_, most, None, back=False, inclusive=False)
        await self._set(connection, filter_)
        return [row["id"] for row in await connection.fetch(f"select id from (\n{statement}\n) as found", *arguments)]

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
        """How many relays have a recent heartbeat; None if there are no heartbeats."""
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
    # No index answers the others.
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
