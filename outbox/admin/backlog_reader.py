"""Reads the outbox for the admin: message counts, exact up to a limit and estimated above it, and the messages themselves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

import asyncpg

from outbox.dead_letters.filters import Arguments
from outbox.postgres.pool import Connection, optional_tables
from outbox.postgres.queries import TableName, queries, query, render
from outbox.postgres.relays import DestinationBacklog, destination_backlogs
from outbox.postgres.schema.objects import destination_table, outbox_names, satellite_names

COUNT_LIMIT = 10_000
"""Rows of one state that are counted one by one; above it the count is estimated."""
DELIVERY_COUNT_LIMIT = 50_000
"""The same limit for the deliveries of all queues."""
SAMPLED_PAGES = 500
"""Pages that an estimate reads."""
QUICK_SAMPLED_PAGES = 50
"""Pages that a quick estimate reads."""


class MessageState(StrEnum):
    """State of a message in the outbox."""

    PENDING = "pending"
    SCHEDULED = "scheduled"
    HELD = "held"
    STALLED = "stalled"
    BLOCKED = "blocked"
    RETRYING = "retrying"
    PARKED = "parked"
    SENT = "sent"


class Relation(StrEnum):
    """How a count relates to the actual number: exact, an estimate, or a lower bound."""

    EXACT = "eq"
    ABOUT = "about"
    AT_LEAST = "gte"


@dataclass(frozen=True, slots=True)
class Count:
    """A number of rows."""

    value: int
    relation: Relation = Relation.EXACT

    def __add__(self, other: "Count") -> "Count":
        least_exact = max(self.relation, other.relation, key=_RELATIONS.index)
        return Count(self.value + other.value, least_exact)


_RELATIONS = (Relation.EXACT, Relation.ABOUT, Relation.AT_LEAST)
ZERO = Count(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCounts:
    """A queue of the Postgres transport: `queued` are due, `in_flight` are with workers, `retrying` are due later."""

    queue: str
    queued: Count
    in_flight: Count
    retrying: Count
    oldest_seconds: float | None = None
    """How long the oldest queued delivery has been due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Row counts by state, and by routing key and state. `routing_keys` has no sent rows."""

    states: Mapping[MessageState, Count]
    routing_keys: Mapping[str, Mapping[MessageState, Count]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogFigures:
    """Figures of the outbox, and of the queues if they are in PostgreSQL.

    `oldest_seconds`: how long the oldest pending row has been due. `waited`: for held, stalled and parked rows, how long the
    first one has been in this state, in seconds. `inserted`: number of ids assigned so far. `out_per_second`: rate that relays
    reported for the last seconds, or else the average of the last minutes; None: no data. `destinations`: the share of
    each; none if there is only the default one.
    """

    counts: Counts
    oldest_seconds: float | None = None
    waited: Mapping[MessageState, float] = field(default_factory=dict)
    inserted: int | None = None
    out_per_second: float | None = None
    deliveries: Sequence[QueueCounts] = field(default=())
    destinations: Sequence[DestinationBacklog] = field(default=())


class BacklogReader:
    """Counts the rows of one outbox table, on connections within a read-only transaction. Raises the driver's errors."""

    def __init__(self, table: TableName) -> None:
        self._table = table
        self._sql = backlog_queries(table)

    async def figures(self, connection: Connection, *, deliveries: bool) -> BacklogFigures:
        """Reads all figures. `deliveries`: including those of the queues in the database."""
        await connection.execute(self._sql["settings"])
        waited = await connection.fetch(self._sql["waited"], COUNT_LIMIT)
        return BacklogFigures(
            counts=await self._counts(connection),
            oldest_seconds=await connection.fetchval(self._sql["oldest"]),
            waited={MessageState(row["state"]): row["seconds"] for row in waited if row["seconds"] is not None},
            inserted=await connection.fetchval(self._sql["inserted"]),
            out_per_second=await self._out_per_second(connection),
            deliveries=await self._deliveries(connection) if deliveries else (),
            destinations=await destination_backlogs(connection, self._table),
        )

    async def estimate(self, connection: Connection) -> BacklogFigures:
        """Estimates the counts from a few pages, which takes little time."""
        await connection.execute(self._sql["settings"])
        sample, relation = await self._sample(connection, QUICK_SAMPLED_PAGES)
        return BacklogFigures(counts=_to_counts(sample, dict.fromkeys(MessageState, Count(0, relation))))

    async def _counts(self, connection: Connection) -> Counts:
        rows = await connection.fetch(self._sql["counted"], COUNT_LIMIT)
        counted = {(MessageState(row["state"]), row["routing_key"]): Count(row["count"]) for row in rows}
        least = _by_state(counted, {})
        full = {state for state, count in least.items() if count.value >= COUNT_LIMIT}
        # The statement reads these two states from the same index, with one limit for both.
        if least[MessageState.SCHEDULED].value + least[MessageState.RETRYING].value >= COUNT_LIMIT:
            full |= {MessageState.SCHEDULED, MessageState.RETRYING}
        if not full:
            return _to_counts(counted, {})
        sample, relation = await self._sample(connection, SAMPLED_PAGES)
        table = {key: count for key, count in counted.items() if key[0] not in full}
        table |= {key: count for key, count in sample.items() if key[0] in full}
        counts = _to_counts(table, dict.fromkeys(full, Count(0, relation)))
        # A small sample may estimate fewer rows than were counted; then the count is reported as a lower bound.
        states = {
            state: Count(least[state].value, Relation.AT_LEAST) if state in full and count.value < least[state].value else count
            for state, count in counts.states.items()
        }
        return Counts(states=states, routing_keys=counts.routing_keys)

    async def _sample(self, connection: Connection, pages: int) -> "tuple[CountTable, Relation]":
        """Extrapolates from a sample of the table's pages. The relation also applies to states that the sample lacks."""
        percent = _percent(pages, await connection.fetchval(self._sql["pages"]))
        relation = Relation.EXACT if percent >= 100 else Relation.ABOUT
        rows = await connection.fetch(self._sql["sampled"], percent)
        counts = {
            (MessageState(row["state"]), row["routing_key"]): Count(round(row["count"] * 100 / percent), relation)
            for row in rows
        }
        return counts, relation

    async def _out_per_second(self, connection: Connection) -> float | None:
        async with optional_tables(connection):
            reported: float | None = await connection.fetchval(self._sql["relays"])
            if reported is not None:
                return reported
            [row] = await connection.fetch(self._sql["rates"])
            return row["sent"] / (60 * row["minutes"]) if row["minutes"] else None
        return None

    async def _deliveries(self, connection: Connection) -> Sequence[QueueCounts]:
        async with optional_tables(connection, or_forbidden=False):
            rows = await connection.fetch(self._sql["deliveries"], DELIVERY_COUNT_LIMIT)
            full = [row for row in rows if max(row["queued"], row["in_flight"] + row["retrying"]) >= row["rows"]]
            estimates: dict[tuple[str, str], int] = {}
            if full:
                percent = _percent(SAMPLED_PAGES, await connection.fetchval(self._sql["delivery_pages"]))
                for row in await connection.fetch(self._sql["deliveries_sampled"], percent):
                    estimates[row["queue"], row["state"]] = round(row["count"] * 100 / percent)
            return [_queue_counts(row, estimates) for row in rows]
        return ()


CountTable = Mapping[tuple[MessageState, str], Count]
"""Counts by state and routing key."""


def backlog_queries(table: TableName) -> Mapping[str, str]:
    """Returns the statements of `backlog.sql`."""
    return queries("backlog.sql", **outbox_names(table), **satellite_names(table.schema))


def _percent(pages: int, all_pages: int) -> float:
    return min(100.0, 100 * pages / all_pages)


def _by_state(table: CountTable, defaults: Mapping[MessageState, Count]) -> dict[MessageState, Count]:
    states = {state: defaults.get(state, ZERO) for state in MessageState}
    for (state, _), count in table.items():
        states[state] += count
    return states


def _to_counts(table: CountTable, defaults: Mapping[MessageState, Count]) -> Counts:
    """Groups counts by state and by routing key. `defaults` are the counts of states without rows in `table`."""
    waiting: dict[MessageState, Count] = {state: count for state, count in defaults.items() if state is not MessageState.SENT}
    routing_keys: dict[str, dict[MessageState, Count]] = {}
    for (state, routing_key), count in table.items():
        if state is not MessageState.SENT:
            routing_keys.setdefault(routing_key, dict(waiting))[state] = count
    return Counts(states=_by_state(table, defaults), routing_keys=routing_keys)


def _queue_counts(row: asyncpg.Record, estimates: Mapping[tuple[str, str], int]) -> QueueCounts:
    queue, most = row["queue"], row["rows"]

    def count(state: str, *, full: bool) -> Count:
        if not full:
            return Count(row[state])
        estimate = estimates.get((queue, state), 0)
        return Count(estimate, Relation.ABOUT) if estimate > row[state] else Count(row[state], Relation.AT_LEAST)

    # One limit for both, because one index holds what is not due: leased deliveries and those that wait for a retry.
    later_full = row["in_flight"] + row["retrying"] >= most
    return QueueCounts(
        queue=queue,
        queued=count("queued", full=row["queued"] >= most),
        in_flight=count("in_flight", full=later_full),
        retrying=count("retrying", full=later_full),
        oldest_seconds=row["oldest"],
    )


MOST_SUBSCRIPTIONS = 5_000
MOST_HELD_KEYS = 100


@dataclass(frozen=True, slots=True)
class Subscription:
    """A binding of a queue to an exchange, in the database."""

    exchange: str
    queue: str
    key: str


@dataclass(frozen=True, slots=True)
class HeldKey:
    """A routing key with held messages; `row_id` is one of them. `target_queue`: they are addressed to this queue only."""

    routing_key: str
    row_id: int
    target_queue: str | None


async def subscriptions(connection: Connection, table: TableName) -> Sequence[Subscription]:
    """Reads the bindings of all exchanges. Returns none if the table does not exist."""
    sql = query("topology.sql", "subscriptions", **satellite_names(table.schema))
    async with optional_tables(connection, or_forbidden=False):
        return [Subscription(*row) for row in await connection.fetch(sql, MOST_SUBSCRIPTIONS)]
    return []


async def held_keys(connection: Connection, table: TableName) -> Sequence[HeldKey]:
    """Reads up to 100 routing keys with held messages."""
    await connection.execute(query("backlog.sql", "settings"))
    rows = await connection.fetch(query("topology.sql", "held_keys", table=table.sql), MOST_HELD_KEYS)
    return [HeldKey(row["routing_key"], row["id"], row["target_queue"]) for row in rows]


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
# Held, stalled and blocked rows have `send_after = 'infinity'`, and follow all others in the same index.
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

        def rows(*more: str) -> str:
            where = "\n    and ".join([*conditions, *more])
            columns = "" if counting else self._line
            return f"select {columns}\nfrom {source} as message\nwhere {where}\norder by {by}\nlimit {most}"

        if order is not _BY_DUE:
            return rows(), arguments.values
        # Rows with an ordering key have an index of their own. Rows without one have an index by priority, so each priority
        # is read separately, in due order.
        each = render(
            self._classes,
            unordered=rows("ordering_key is null and priority = class.priority"),
            ordered=rows("ordering_key is not null"),
        )
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
