"""Reads the traces of a chain from the tables, in bounded time."""

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

LOOK_TIMEOUT = timedelta(seconds=5)
"""Longest that reading by an index may take, for each table."""
SCAN_TIMEOUT = timedelta(seconds=2)
"""Longest that a table is scanned: those of messages on their way have no index on tracking ids, for which all would pay."""
MOST_ROWS = 5_000
"""Rows of those tables that are looked at where an answer must not take long."""
FACTS_PER_NODE = 10
MOST_ATTEMPTS = 20_000
"""The latest attempts of a queue, among which the slowest are looked for."""
MOST_AHEAD = 10_000
"""Deliveries that are counted in front of one that waits."""

Row = Mapping[str, Any]


@dataclass(slots=True)
class Traces:
    """What was found of a chain, and what could not be looked at."""

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
    """The tables that could not be read, and why."""


class ChainReader:
    """Reads chains over one connection, in one snapshot that changes nothing and waits for no row lock.

    The tables of messages on their way are searched through; with `bounded` only what is newest in them, and what needs
    attention.
    """

    def __init__(self, connection: Connection, table: TableName, *, bounded: bool = False) -> None:
        self._connection = connection
        self._bounded = bounded
        self._sql = statements(table, bounded=bounded)
        self._unseen: dict[str, str] = {}

    async def traces(self, any_id: str, most: int) -> Traces:
        """Everything about the chain that `any_id` belongs to, up to about `most` messages."""
        self._unseen = {}
        async with self._connection.transaction(isolation="repeatable_read", readonly=True):
            known = await self._root("history", any_id) or await self._root("letters", any_id)
            root = known or await self._root("outbox", any_id) or await self._root("deliveries", any_id) or any_id
            facts = await self._read("facts", root, most * FACTS_PER_NODE + 1)
            letters = await self._read("letters", root, most + 1)
            rows = await self._read("rows", root, most + 1, timeout=SCAN_TIMEOUT)
            deliveries = await self._read("deliveries", root, most + 1, timeout=SCAN_TIMEOUT)
            consumers, pauses = await self._read("consumers"), await self._read("pauses")
            subscribed = frozenset(row["queue"] for row in await self._read("subscribed"))
            for place in ("components", "pauses", "subscriptions"):  # they only add to what is known of a waiting message
                self._unseen.pop(place, None)
            for name, place in _LEFT_OUT.items() if self._bounded else ():
                left_out = await self._read(name)
                if left_out and left_out[0][0]:
                    self._unseen[place] = (
                        f"it is large, and of what is not parked or held only the newest {MOST_ROWS:,} were looked at"
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

    async def _root(self, place: str, any_id: str) -> str | None:
        timeout = SCAN_TIMEOUT if place in ("outbox", "deliveries") else LOOK_TIMEOUT
        found = await self._read(f"root_in_{place}", any_id, timeout=timeout)
        return found[0][0] if found else None

    async def _read(self, name: str, *arguments: object, timeout: timedelta = LOOK_TIMEOUT) -> Sequence[Any]:
        """The rows; none if there is no such table, no right to read it, or not enough time."""
        place = _PLACES[name]
        if place in self._unseen:
            return ()
        # One way to the server for both; what goes well needs no release before the end of the transaction.
        limit = timeout / timedelta(milliseconds=1)
        await self._connection.execute(f"savepoint look; set local statement_timeout = {limit:.0f}")
        try:
            return await self._connection.fetch(self._sql[name], *arguments)
        except asyncpg.QueryCanceledError:
            self._unseen[place] = f"it is too large to be searched within {timeout.total_seconds():g} s"
        except (asyncpg.UndefinedTableError, asyncpg.UndefinedColumnError):
            self._unseen[place] = "it is not there"
        except asyncpg.InsufficientPrivilegeError as error:
            self._unseen[place] = reason_of(error)
        await self._connection.execute("rollback to savepoint look")
        return ()


_PLACES = {
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
_LEFT_OUT = {"more_rows": "outbox", "more_deliveries": "deliveries"}


def statements(table: TableName, *, bounded: bool = False) -> Mapping[str, str]:
    """The SQL of chains; `bounded` as in `ChainReader`."""
    names = {"table": table.sql, "most_rows": str(MOST_ROWS), **satellite_names(table.schema)}
    newest_rows, newest_deliveries = (query("chains.sql", name, **names) for name in ("newest_rows", "newest_deliveries"))
    return queries(
        "chains.sql",
        **names,
        rows_looked_at=newest_rows if bounded else f"{table.sql} as looked_at",
        deliveries_looked_at=newest_deliveries if bounded else f"{names['delivery']} as looked_at",
    )


def expecting(consumers: Sequence[Row], subscribed: frozenset[str], routing_key: str, sent_at: float) -> Sequence[str]:
    """The queues of RabbitMQ that got a message, as far as workers tell that were there when it was sent, and write history.

    What none of them has reported anything of waits there still.
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
    """Tracking ids as a producer in any language may have written them: whatever is not a list of texts is none."""
    try:
        ids = json.loads(chain or "[]")
    except ValueError:
        return ()
    return tuple(ids) if isinstance(ids, list) and all(isinstance(id_, str) for id_ in ids) else ()


def moment(seconds: float | None) -> datetime | None:
    """Seconds since 1970 as a moment; None for what no calendar holds."""
    if seconds is None or not _EARLIEST <= seconds <= _LATEST:
        return None
    return datetime.fromtimestamp(seconds, UTC)


def span(seconds: float | None) -> timedelta | None:
    """Seconds as a length of time, not negative: clocks and commits differ by a little."""
    return None if seconds is None or seconds > _LATEST else timedelta(seconds=max(seconds, 0.0))


_EARLIEST = datetime(1, 1, 2, tzinfo=UTC).timestamp()
_LATEST = datetime(9999, 12, 30, tzinfo=UTC).timestamp()


FACTS_OF_EACH = 200
"""Facts of one chain that a list looks at."""


class Place(NamedTuple):
    """Where a chain stands in the list: when its first message was sent, and a hash of its id."""

    at: datetime
    hash: int


def place_of(beginning: Mapping[str, Any]) -> Place:
    """Where a beginning stands."""
    return Place(beginning["at"], beginning["hash"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The chains that began `after` then, which is included, and `before` then, which is not; None: no limit."""

    after: datetime | None = None
    before: datetime | None = None


@asynccontextmanager
async def reading(connection: Connection) -> AsyncIterator[None]:
    """A transaction in which nothing changes, whose statements are bounded."""
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        await connection.execute(f"set local statement_timeout = {LOOK_TIMEOUT / timedelta(milliseconds=1):.0f}")
        yield


class BeginningsReader:
    """Reads over one connection, which may be in a transaction. Everything raises the driver's errors."""

    def __init__(self, connection: Connection, table: TableName) -> None:
        self._connection = connection
        self._sql = statements(table, bounded=True)

    async def behind(self, place: Place | None, span: Span, limit: int) -> Sequence[Mapping[str, Any]]:
        """Up to `limit` beginnings, newest first, behind the place; None: from the first one."""
        return await self._beginnings("beginnings", place, span, limit)

    async def before(self, place: Place, span: Span, limit: int) -> Sequence[Mapping[str, Any]]:
        """Up to `limit` beginnings before the place: those next to it, and those first."""
        return await self._beginnings("later_beginnings", place, span, limit)

    async def members(self, beginnings: Sequence[Mapping[str, Any]]) -> Sequence[Sequence[Mapping[str, Any]]]:
        """The facts of each chain as they happened, one more than `FACTS_OF_EACH` if there are more."""
        ids, times = [row["root_id"] for row in beginnings], [row["at"] for row in beginnings]
        waits = [row["waited"] for row in beginnings]
        found: list[list[Mapping[str, Any]]] = [[] for _ in beginnings]
        for row in await self._connection.fetch(self._sql["members"], ids, times, waits, FACTS_OF_EACH + 1):
            found[row["number"] - 1].append(row)
        return found

    async def second(self, beginnings: Sequence[Mapping[str, Any]]) -> frozenset[Place]:
        """Those of messages that had been sent before, and were requeued: their chains began then."""
        ids, times = [row["root_id"] for row in beginnings], [row["at"] for row in beginnings]
        rows = await self._connection.fetch(self._sql["begun_before"], ids, times) if beginnings else []
        return frozenset(place_of(beginnings[row["number"] - 1]) for row in rows)

    async def resolved(self, message_ids: Sequence[str]) -> Mapping[tuple[str, str], str]:
        """What became of the dead letters of these messages, by message and queue."""
        rows = await self._connection.fetch(self._sql["resolved"], list(message_ids)) if message_ids else []
        return {(row["message_id"], row["queue"]): row["status"] for row in rows}

    async def live(self, root_ids: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        """The messages of these chains that are in the outbox, or in queues of the Postgres transport, as far as one looks."""
        rows: list[Mapping[str, Any]] = []
        for name in ("live_rows", "live_deliveries"):
            rows += await self._if_there(name, list(root_ids)) if root_ids else []
        return rows

    async def consumers(self) -> tuple[Sequence[Mapping[str, Any]], frozenset[str]]:
        """What workers have reported of their consumers, and the queues that are in the database."""
        subscribed = await self._if_there("subscribed")
        return await self._if_there("consumers"), frozenset(row["queue"] for row in subscribed)

    async def by_key(self, key: str, limit: int) -> Sequence[Mapping[str, Any]]:
        """The latest `limit` facts of messages that have the index key."""
        return await self._if_there("by_key", key, limit)

    async def attempts(
        self, queue: str, span: Span, outcomes: Sequence[AttemptOutcome], limit: int, *, slowest: bool
    ) -> Sequence[Mapping[str, Any]]:
        """The latest attempts of a queue, or, of the latest `MOST_ATTEMPTS`, the slowest. `span` has both ends."""
        facts = [each.fact for each in outcomes]
        arguments = (queue, span.after, span.before, facts, limit)
        name, *most = ("slowest_attempts", MOST_ATTEMPTS) if slowest else ("latest_attempts",)
        rows: Sequence[Any] = await self._connection.fetch(self._sql[name], *arguments, *most)
        return rows

    async def _if_there(self, name: str, *arguments: object) -> Sequence[Mapping[str, Any]]:
        """The rows; none if there is no such table, no right to read it, or not enough time."""
        try:
            async with self._connection.transaction():
                rows: Sequence[Any] = await self._connection.fetch(self._sql[name], *arguments)
                return rows
        except (asyncpg.UndefinedTableError, asyncpg.InsufficientPrivilegeError, asyncpg.QueryCanceledError):
            return []

    async def _beginnings(self, name: str, place: Place | None, span: Span, limit: int) -> Sequence[Mapping[str, Any]]:
        at, hash_ = place or (None, None)
        rows: Sequence[Any] = await self._connection.fetch(self._sql[name], at, hash_, span.after, span.before, limit)
        return rows
