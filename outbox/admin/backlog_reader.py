"""Counts the messages of the outbox and its queues for the admin: exact up to a limit, estimated above it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import asyncpg

from outbox.postgres.pool import Connection, optional_tables
from outbox.postgres.queries import TableName, queries, query
from outbox.postgres.relays import DestinationBacklog, destination_backlogs
from outbox.postgres.schema.objects import outbox_names, satellite_names

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
    ahead_seconds: float | None = None
    """How far ahead of the database's clock a delivery was created that is not due yet."""


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
    reported for the last seconds, or else the average of the last minutes; None: no data, or no relay is alive.
    `destinations`: the share of each; none if there is only the default one. `ahead_seconds`: how far ahead of the database's
    clock a row was created that is not due yet; above 0, the clock was set back.
    """

    counts: Counts
    oldest_seconds: float | None = None
    ahead_seconds: float | None = None
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
        counted = await connection.fetch(self._sql["counted"], COUNT_LIMIT)
        return BacklogFigures(
            counts=await self._counts(connection, counted),
            oldest_seconds=await connection.fetchval(self._sql["oldest"]),
            ahead_seconds=max((row["ahead"] for row in counted if row["ahead"] is not None), default=None),
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

    async def _counts(self, connection: Connection, rows: Sequence[asyncpg.Record]) -> Counts:
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
            [reported] = await connection.fetch(self._sql["relays"])
            if reported["sent"] is not None or not reported["alive"]:
                rate: float | None = reported["sent"]
                return rate
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
        ahead_seconds=row["ahead"],
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
