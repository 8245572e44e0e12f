"""Reads the records of chains from the tables, in bounded time."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import asyncpg

from outbox.chains.model import AttemptOutcome
from outbox.core import topics
from outbox.postgres.pool import Connection, reason_of
from outbox.postgres.queries import TableName, queries, query
from outbox.postgres.schema.objects import satellite_names

INDEX_TIMEOUT = timedelta(seconds=5)
"""Statement timeout of a read by index, for each table."""
SCAN_TIMEOUT = timedelta(seconds=2)
"""Statement timeout of a table scan: an index on tracking ids would slow down every insert into the outbox and the queues."""
MOST_ROWS = 5_000
"""Newest rows of the scanned tables that are read when `bounded`."""
FACTS_PER_NODE = 10
MOST_ATTEMPTS = 20_000
"""Latest attempts of a queue among which the slowest are searched."""
MOST_AHEAD = 10_000
"""Limit for counting the deliveries ahead of a waiting one."""

Row = Mapping[str, Any]


@dataclass(slots=True)
class Traces:
    """Records of a chain, and the tables that could not be read."""

    root_id: str
    facts: Sequence[Row] = ()
    letters: Sequence[Row] = ()
    rows: Sequence[Row] = ()
    deliveries: Sequence[Row] = ()
    consumers: Sequence[Row] = ()
    pauses: Sequence[Row] = ()
    subscribed: frozenset[str] = frozenset()
    truncated: bool = False
    unseen: dict[str, str] = field(default_factory=dict)
    """Tables that could not be read, with the reasons."""


class ChainReader:
    """Reads chains over one connection, in a read-only snapshot that waits for no row lock.

    Scans the outbox and delivery tables; with `bounded` only their newest rows, and those that need attention.
    """

    def __init__(self, connection: Connection, table: TableName, *, bounded: bool = False) -> None:
        self._connection = connection
        self._bounded = bounded
        self._sql = statements(table, bounded=bounded)
        self._unseen: dict[str, str] = {}

    async def traces(self, any_id: str, most: int) -> Traces:
        """Reads all records of the chain of `any_id`, up to about `most` messages."""
        self._unseen = {}
        # One snapshot of all tables: a message that is on its way from one to the next must not be missing from both.
        async with self._connection.transaction(isolation="repeatable_read", readonly=True):
            # First where an index leads to the id. Outbox and deliveries must be scanned for it.
            known = await self._root("history", any_id) or await self._root("letters", any_id)
            root = known or await self._root("outbox", any_id) or await self._root("deliveries", any_id) or any_id
            facts = await self._read("facts", root, most * FACTS_PER_NODE + 1)
            letters = await self._read("letters", root, most + 1)
            rows = await self._read("rows", root, most + 1, timeout=SCAN_TIMEOUT)
            deliveries = await self._read("deliveries", root, most + 1, timeout=SCAN_TIMEOUT)
            consumers, pauses = await self._read("consumers"), await self._read("pauses")
            subscribed = frozenset(row["queue"] for row in await self._read("subscribed"))
            # These only explain why a message waits: without them the chain is still complete.
            for source in ("components", "pauses", "subscriptions"):
                self._unseen.pop(source, None)
            for name, source in _REMAINDERS.items() if self._bounded else ():
                remaining = await self._read(name)
                if remaining and remaining[0][0]:
                    self._unseen[source] = (
                        f"of this large table, only parked and held messages and the newest {MOST_ROWS:,} were read"
                    )
        truncated = len(facts) > most * FACTS_PER_NODE or any(len(each) > most for each in (letters, rows, deliveries))
        return Traces(
            root_id=root,
            facts=facts,
            letters=letters,
            rows=rows,
            deliveries=deliveries,
            consumers=consumers,
            pauses=pauses,
            subscribed=subscribed,
            truncated=truncated,
            unseen=self._unseen,
        )

    async def _root(self, source: str, any_id: str) -> str | None:
        timeout = SCAN_TIMEOUT if source in ("outbox", "deliveries") else INDEX_TIMEOUT
        found = await self._read(f"root_in_{source}", any_id, timeout=timeout)
        return found[0][0] if found else None

    async def _read(self, name: str, *arguments: object, timeout: timedelta = INDEX_TIMEOUT) -> Sequence[Any]:
        """Returns the rows; none if the table is missing, may not be read, or takes too long."""
        source = _SOURCES[name]
        if source in self._unseen:
            return ()
        # Two statements in one round trip. After a success the savepoint needs no release: the end of the transaction drops it.
        limit = timeout / timedelta(milliseconds=1)
        await self._connection.execute(f"savepoint look; set local statement_timeout = {limit:.0f}")
        try:
            return await self._connection.fetch(self._sql[name], *arguments)
        except asyncpg.QueryCanceledError:
            self._unseen[source] = f"too large to be searched within {timeout.total_seconds():g} s"
        except (asyncpg.UndefinedTableError, asyncpg.UndefinedColumnError):
            self._unseen[source] = "the table does not exist"
        except asyncpg.InsufficientPrivilegeError as error:
            self._unseen[source] = reason_of(error)
        await self._connection.execute("rollback to savepoint look")
        return ()


_SOURCES = {
    "root_in_history": "history",
    "facts": "history",
    "root_in_letters": "dead letters",
    "letters": "dead letters",
    "root_in_outbox": "outbox",
    "rows": "outbox",
    "root_in_deliveries": "deliveries",
    "deliveries": "deliveries",
    "more_rows": "outbox",
    "more_deliveries": "deliveries",
    "consumers": "components",
    "pauses": "pauses",
    "subscribed": "subscriptions",
}
_REMAINDERS = {"more_rows": "outbox", "more_deliveries": "deliveries"}


def statements(table: TableName, *, bounded: bool = False) -> Mapping[str, str]:
    """Returns the statements of `chains.sql`; `bounded` as in `ChainReader`."""
    names = {"table": table.sql, "most_rows": str(MOST_ROWS), **satellite_names(table.schema)}
    newest_rows, newest_deliveries = (query("chains.sql", name, **names) for name in ("newest_rows", "newest_deliveries"))
    return queries(
        "chains.sql",
        **names,
        rows_looked_at=newest_rows if bounded else f"{table.sql} as looked_at",
        deliveries_looked_at=newest_deliveries if bounded else f"{names['delivery']} as looked_at",
    )


def expected_queues(consumers: Sequence[Row], subscribed: frozenset[str], routing_key: str, sent_at: float) -> Sequence[str]:
    """RabbitMQ queues that must have received a message, by the reports of their workers.

    Considers only workers that write history and ran when the message was sent. Without a fact from its worker, the message
    still waits in the queue.
    """
    return [
        each["queue"]
        for each in consumers
        if each["history"]
        and each["since"] <= sent_at
        and each["queue"] not in subscribed
        and topics.matches(each["binding_key"] or "", routing_key)
    ]


def ids_of(chain: str | None) -> tuple[str, ...]:
    """Parses tracking ids. Empty if the text is no JSON list of strings: producers in other languages may write anything."""
    try:
        ids = json.loads(chain or "[]")
    except ValueError:
        return ()
    return tuple(ids) if isinstance(ids, list) and all(isinstance(id_, str) for id_ in ids) else ()


def moment(seconds: float | None) -> datetime | None:
    """Converts seconds since 1970 to a datetime; None outside the range of `datetime`."""
    if seconds is None or not _EARLIEST <= seconds <= _LATEST:
        return None
    return datetime.fromtimestamp(seconds, UTC)


def span(seconds: float | None) -> timedelta | None:
    """Converts seconds to a timedelta of at least zero, because clocks of different machines differ a little."""
    return None if seconds is None or seconds > _LATEST else timedelta(seconds=max(seconds, 0.0))


_EARLIEST = datetime(1, 1, 2, tzinfo=UTC).timestamp()
_LATEST = datetime(9999, 12, 30, tzinfo=UTC).timestamp()


FACTS_PER_CHAIN = 200
"""Facts of each chain that a list reads."""


class Position(NamedTuple):
    """Position of a chain in the list: the time when its first message was sent, and a hash of its id."""

    at: datetime
    hash: int


def position_of(root: Mapping[str, Any]) -> Position:
    """Position of a chain, by the row of its first message."""
    return Position(root["at"], root["hash"])


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRange:
    """Range of start times. `after` is inclusive, `before` exclusive; None: no limit."""

    after: datetime | None = None
    before: datetime | None = None


@asynccontextmanager
async def read_only_transaction(connection: Connection) -> AsyncIterator[None]:
    """Opens a read-only transaction with a statement timeout."""
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        await connection.execute(f"set local statement_timeout = {INDEX_TIMEOUT / timedelta(milliseconds=1):.0f}")
        yield


class ChainListReader:
    """Reads what lists of chains need, over one connection, which may be in a transaction. Raises the driver's errors."""

    def __init__(self, connection: Connection, table: TableName) -> None:
        self._connection = connection
        self._sql = statements(table, bounded=True)

    async def after(self, position: Position | None, time_range: TimeRange, limit: int) -> Sequence[Mapping[str, Any]]:
        """Returns up to `limit` first messages of chains after the position, newest first; None: from the start."""
        return await self._roots("beginnings", position, time_range, limit)

    async def before(self, position: Position, time_range: TimeRange, limit: int) -> Sequence[Mapping[str, Any]]:
        """Returns up to `limit` first messages of chains before the position, the nearest first."""
        return await self._roots("later_beginnings", position, time_range, limit)

    async def members(self, roots: Sequence[Mapping[str, Any]]) -> Sequence[Sequence[Mapping[str, Any]]]:
        """Returns the facts of each chain in order, up to `FACTS_PER_CHAIN` and one more if there are more."""
        ids, times = [row["root_id"] for row in roots], [row["at"] for row in roots]
        waits = [row["waited"] for row in roots]
        found: list[list[Mapping[str, Any]]] = [[] for _ in roots]
        for row in await self._connection.fetch(self._sql["members"], ids, times, waits, FACTS_PER_CHAIN + 1):
            found[row["number"] - 1].append(row)
        return found

    async def sent_before(self, roots: Sequence[Mapping[str, Any]]) -> frozenset[Position]:
        """Positions of messages that had been sent before they were requeued; their chains are listed at the earlier send."""
        ids, times = [row["root_id"] for row in roots], [row["at"] for row in roots]
        rows = await self._connection.fetch(self._sql["begun_before"], ids, times) if roots else []
        return frozenset(position_of(roots[row["number"] - 1]) for row in rows)

    async def resolved(self, message_ids: Sequence[str]) -> Mapping[tuple[str, str], str]:
        """Returns the statuses of resolved dead letters of these messages, by message and queue."""
        rows = await self._connection.fetch(self._sql["resolved"], list(message_ids)) if message_ids else []
        return {(row["message_id"], row["queue"]): row["status"] for row in rows}

    async def live(self, root_ids: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        """Returns the messages of these chains in the outbox and in queues of the Postgres transport, among the newest rows."""
        rows: list[Mapping[str, Any]] = []
        for name in ("live_rows", "live_deliveries"):
            rows += await self._fetch_if_possible(name, list(root_ids)) if root_ids else []
        return rows

    async def consumers(self) -> tuple[Sequence[Mapping[str, Any]], frozenset[str]]:
        """Returns the consumers that workers have reported, and the names of the queues in the database."""
        subscribed = await self._fetch_if_possible("subscribed")
        return await self._fetch_if_possible("consumers"), frozenset(row["queue"] for row in subscribed)

    async def by_key(self, key: str, limit: int) -> Sequence[Mapping[str, Any]]:
        """Returns the latest `limit` facts of messages with that index key."""
        return await self._fetch_if_possible("by_key", key, limit)

    async def attempts(
        self, queue: str, time_range: TimeRange, outcomes: Sequence[AttemptOutcome], limit: int, *, slowest: bool
    ) -> Sequence[Mapping[str, Any]]:
        """Returns the latest attempts of a queue, or the slowest of its last `MOST_ATTEMPTS`. `time_range` needs both ends."""
        facts = [each.fact for each in outcomes]
        arguments = (queue, time_range.after, time_range.before, facts, limit)
        name, *most = ("slowest_attempts", MOST_ATTEMPTS) if slowest else ("latest_attempts",)
        rows: Sequence[Any] = await self._connection.fetch(self._sql[name], *arguments, *most)
        return rows

    async def _fetch_if_possible(self, name: str, *arguments: object) -> Sequence[Mapping[str, Any]]:
        """Returns the rows; none if the table is missing, may not be read, or takes too long."""
        try:
            # A savepoint, if the caller is in a transaction: the rest of the page does not depend on this part.
            async with self._connection.transaction():
                rows: Sequence[Any] = await self._connection.fetch(self._sql[name], *arguments)
                return rows
        except (asyncpg.UndefinedTableError, asyncpg.InsufficientPrivilegeError, asyncpg.QueryCanceledError):
            return []

    async def _roots(
        self, name: str, position: Position | None, time_range: TimeRange, limit: int
    ) -> Sequence[Mapping[str, Any]]:
        at, hash_ = position or (None, None)
        rows: Sequence[Any] = await self._connection.fetch(
            self._sql[name], at, hash_, time_range.after, time_range.before, limit
        )
        return rows
