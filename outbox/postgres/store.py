"""The outbox table as the relay's Store: claims rows in a transaction of its own, and looks after those that wait."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

from outbox.core.byte_limits import ByteLimits
from outbox.core.message import PendingMessage, Way
from outbox.engine.ordering import OrderingRules
from outbox.errors import SchemaError
from outbox.ports import Backlog
from outbox.postgres.claim import PostgresClaim
from outbox.postgres.claiming import LOCK_TIMEOUT, Claiming, TooSlowError, relay_queries
from outbox.postgres.floors import Floors
from outbox.postgres.names import TableName
from outbox.postgres.ordering import Lanes, lane_of
from outbox.postgres.pool import (
    COMMAND_TIMEOUT,
    Connection,
    Pool,
    give_back,
    roll_back_quietly,
    take_from,
    taken_from,
    unavailable_errors,
)
from outbox.postgres.queries import queries, query
from outbox.postgres.rows import time_of
from outbox.postgres.schema import check_outbox_table
from outbox.postgres.sent_facts import SentFacts

_TIMEOUT = COMMAND_TIMEOUT.total_seconds()
"""Said with every statement, because a given pool may have no limit of its own."""


class PostgresStore:
    """Implements the Store port on `table`. Sent rows are deleted, or kept with `sent_at` if `keep_sent`.

    `ordering` says what becomes of ordering keys; `facts`, what the history is told of sent messages; `byte_limits`,
    how much is claimed at once.
    """

    def __init__(
        self,
        pool: Pool,
        table: TableName,
        *,
        keep_sent: bool,
        longest_send: timedelta,
        ordering: OrderingRules = OrderingRules(),  # noqa: B008  a frozen value
        facts: SentFacts | None = None,
        byte_limits: ByteLimits = ByteLimits(),  # noqa: B008  a frozen value
    ) -> None:
        self._pool = pool
        self._table = table
        self._keep_sent = keep_sent
        self._facts = facts
        self._ordering = ordering
        self._byte_limits = byte_limits
        self._sql = {
            **relay_queries(table, longest_send=longest_send),
            **queries("stalled.sql", table=table.sql, policy=query("ordering_parts.sql", "policy")),
        }
        self._lanes = Lanes(table, ordering, max_body_bytes=byte_limits.body)
        self._claiming = Claiming(table, self._lanes, longest_send=longest_send, byte_limits=byte_limits)

    @property
    def floors(self) -> Floors:
        """Where claims of rows without an ordering key begin to read."""
        return self._claiming.floors

    async def check(self) -> None:
        """Raises `SchemaError` if the table is missing, of an unknown shape, or closed to the user."""
        async with self._transaction(f"looking at {self._table}") as connection:
            await check_outbox_table(connection, self._table)
            lacking = await connection.fetchval(self._sql["lacking_rights"])
            if self._facts is not None:
                await self._facts.look(connection)
        if lacking:
            raise SchemaError(
                f"the relay's user may not {', '.join(lacking)} rows of the table {self._table}: "
                f"grant select, update, delete on {self._table.sql} to it"
            )

    async def claim(self, limit: int) -> "PostgresClaim | None":
        """See `outbox.ports.Store.claim`."""
        with unavailable_errors(f"claiming from {self._table}", lock_timeout=LOCK_TIMEOUT):
            connection = await take_from(self._pool)
            try:
                claimed = await self._claiming.claim(connection, limit)
                if not claimed.messages:
                    if claimed.blocked:  # what they waited for was dropped
                        await self._lanes.release(connection, claimed.blocked)
                    await connection.execute("commit", timeout=_TIMEOUT)
            except TooSlowError:  # not an outage, unless the next statement says so
                await roll_back_quietly(connection)
                await give_back(self._pool, connection)
                return None
            except BaseException:
                await roll_back_quietly(connection)
                await give_back(self._pool, connection)
                raise
            if claimed.messages:
                return PostgresClaim(
                    self._pool,
                    connection,
                    self._sql,
                    claimed.messages,
                    lanes=self._lanes,
                    facts=self._facts,
                    blocked=claimed.blocked,
                    keep_sent=self._keep_sent,
                )
            await give_back(self._pool, connection)
            return None

    async def claim_stalled(self, wanted: Sequence[tuple[Way, int]]) -> "PostgresClaim | None":
        """See `outbox.ports.Store.claim_stalled`."""
        with unavailable_errors(f"claiming from {self._table}", lock_timeout=LOCK_TIMEOUT):
            connection = await take_from(self._pool)
            try:
                await connection.execute(self._sql["begin"], timeout=_TIMEOUT)
                messages = await self._stalled_messages(connection, wanted)
                if not messages:
                    await connection.execute("commit", timeout=_TIMEOUT)
            except BaseException:
                await roll_back_quietly(connection)
                await give_back(self._pool, connection)
                raise
            if not messages:
                await give_back(self._pool, connection)
                return None
            return PostgresClaim(
                self._pool,
                connection,
                self._sql,
                messages,
                lanes=self._lanes,
                facts=self._facts,
                blocked=[message.lane for message in messages if message.lane is not None],
                keep_sent=self._keep_sent,
            )

    async def _stalled_messages(self, connection: Connection, wanted: Sequence[tuple[Way, int]]) -> Sequence[PendingMessage]:
        """One row at a time: they are few, and their size is known before they are read."""
        found = await connection.fetch(
            self._sql["lock_stalled"],
            self._ordering.prefixes,
            self._ordering.policies,
            [way.routing_key for way, _ in wanted],
            [way.queue or "" for way, _ in wanted],
            [rows for _, rows in wanted],
            timeout=_TIMEOUT,
        )
        messages: list[PendingMessage] = []
        total = 0
        for row in found:
            size = row["bytes"] if row["bytes"] <= self._byte_limits.body else 0  # what is above that comes without its body
            if messages and total + size > self._byte_limits.batch:
                break
            total += size
            messages += await self._claiming.read(connection, row, None if row["policy"] is None else lane_of(row))
        return messages

    async def release_stalled(self, way: Way, limit: int) -> int:
        """See `outbox.ports.Store.release_stalled`."""
        return await self._count("release_stalled", way.routing_key, way.queue or "", limit)

    async def stalled_ways(self, limit: int) -> Sequence[Way]:
        """See `outbox.ports.Store.stalled_ways`."""
        async with self._transaction(f"looking for stalled routes in {self._table}") as connection:
            rows = await connection.fetch(self._sql["stalled_ways"], limit, timeout=_TIMEOUT)
        return [Way(row["routing_key"], row["queue"]) for row in rows]

    async def next_due(self) -> timedelta | None:
        """See `outbox.ports.Store.next_due`."""
        async with self._transaction(f"looking for what is due in {self._table}") as connection:
            due = time_of(await connection.fetchval(self._sql["next_due"], self._claiming.since, timeout=_TIMEOUT))
        front_in = self._claiming.front_in
        return due if front_in is None or (due is not None and due < front_in) else front_in

    async def release_held(self, routing_key: str, queue: str | None, limit: int) -> int:
        """See `outbox.ports.Store.release_held`."""
        return await self._count("release_held", routing_key, queue, limit)

    async def ensure_probes(self) -> int:
        """See `outbox.ports.Store.ensure_probes`."""
        return await self._count("ensure_probes")

    async def repair_lanes(self) -> int:
        """See `outbox.ports.Store.repair_lanes`."""
        async with self._transaction(f"looking after ordering keys in {self._table}") as connection:
            return await self._lanes.repair(connection)

    async def delete_sent(self, older_than: timedelta, limit: int) -> int:
        """See `outbox.ports.Store.delete_sent`."""
        return await self._count("delete_sent", older_than, limit)

    async def backlog(self) -> Backlog:
        """See `outbox.ports.Store.backlog`."""
        async with self._transaction(f"counting {self._table}") as connection:
            [row] = await connection.fetch(self._sql["backlog"], timeout=_TIMEOUT)
        return Backlog(unsent=row["unsent"], oldest_due=time_of(row["oldest_due"]))

    async def _count(self, name: str, *arguments: object) -> int:
        """Runs a statement and returns how many rows it changed, which ends its command tag."""
        async with self._transaction(f"{name} in {self._table}") as connection:
            status = await connection.execute(self._sql[name], *arguments, timeout=_TIMEOUT)
        return int(status.rpartition(" ")[2])

    @asynccontextmanager
    async def _transaction(self, doing: str) -> AsyncIterator[Connection]:
        """For reading, too: a transaction pooler may send what is outside of one to a server that did not prepare it."""
        with unavailable_errors(doing, lock_timeout=LOCK_TIMEOUT):
            async with taken_from(self._pool) as connection:
                try:
                    await connection.execute(self._sql["begin"], timeout=_TIMEOUT)
                    yield connection
                    await connection.execute("commit", timeout=_TIMEOUT)
                except BaseException:
                    await roll_back_quietly(connection)
                    raise
