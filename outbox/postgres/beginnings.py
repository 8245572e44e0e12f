"""Reading which chains there were lately: their first messages, and what the history tells of the rest, in bounded time."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import asyncpg

from outbox.postgres.chains import LOOK_TIMEOUT, statements
from outbox.postgres.names import TableName
from outbox.postgres.pool import Connection

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
        """What somebody made of the dead letters of these messages, by message and queue."""
        rows = await self._connection.fetch(self._sql["resolved"], list(message_ids)) if message_ids else []
        return {(row["message_id"], row["queue"]): row["status"] for row in rows}

    async def live(self, root_ids: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        """The messages of these chains that are in the outbox, or in queues of the Postgres transport, as far as one looks."""
        rows: list[Mapping[str, Any]] = []
        for name in ("live_rows", "live_deliveries"):
            rows += await self._if_there(name, list(root_ids)) if root_ids else []
        return rows

    async def consumers(self) -> tuple[Sequence[Mapping[str, Any]], frozenset[str]]:
        """What workers have told of their consumers, and the queues that are in the database."""
        subscribed = await self._if_there("subscribed")
        return await self._if_there("consumers"), frozenset(row["queue"] for row in subscribed)

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
