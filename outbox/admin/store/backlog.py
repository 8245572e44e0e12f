"""Counts what waits in the outbox and in the queues of the Postgres transport: exactly up to a limit, estimated above it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import asyncpg

from outbox.postgres.names import TableName
from outbox.postgres.pool import Connection
from outbox.postgres.queries import queries, query
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

    `out_per_second` is what relays said of the last seconds, or that of the last minutes; None: nobody told.
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
                told: float | None = await connection.fetchval(self._sql["relays"])
                if told is not None:
                    return told
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
