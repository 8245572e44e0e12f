"""The outbox table as the relay's Store: claims rows in a transaction of its own, and looks after those that wait."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from outbox.engine.ordering import OrderingRules
from outbox.errors import SchemaError
from outbox.ports import Backlog
from outbox.postgres.claim import PostgresClaim
from outbox.postgres.claiming import Claiming, relay_queries
from outbox.postgres.floors import Floors
from outbox.postgres.names import TableName
from outbox.postgres.ordering import Lanes
from outbox.postgres.pool import (
    COMMAND_TIMEOUT,
    CONNECT_TIMEOUT,
    Connection,
    Pool,
    give_back,
    roll_back_quietly,
    taken_from,
    unavailable_errors,
)
from outbox.postgres.rows import time_of
from outbox.postgres.schema import check_outbox_table
from outbox.postgres.sent_facts import SentFacts

_TIMEOUT = COMMAND_TIMEOUT.total_seconds()
"""Said with every statement, because a given pool may have no limit of its own."""


class PostgresStore:
    """Implements the Store port on `table`. Sent rows are deleted, or kept with `sent_at` if `keep_sent`.

    `ordering` says what becomes of ordering keys; `facts`, what the history is told of sent messages.
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
    ) -> None:
        self._pool = pool
        self._table = table
        self._keep_sent = keep_sent
        self._facts = facts
        self._sql = relay_queries(table, longest_send=longest_send)
        self._lanes = Lanes(table, ordering)
        self._claiming = Claiming(table, self._lanes, longest_send=longest_send)

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
        with unavailable_errors(f"claiming from {self._table}"):
            connection = await self._pool.acquire(timeout=CONNECT_TIMEOUT.total_seconds())
            try:
                claimed = await self._claiming.claim(connection, limit)
                if not claimed.messages:
                    if claimed.blocked:  # what they waited for was dropped
                        await self._lanes.release(connection, claimed.blocked)
                    await connection.execute("commit", timeout=_TIMEOUT)
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
        with unavailable_errors(doing):
            async with taken_from(self._pool) as connection:
                try:
                    await connection.execute(self._sql["begin"], timeout=_TIMEOUT)
                    yield connection
                    await connection.execute("commit", timeout=_TIMEOUT)
                except BaseException:
                    await roll_back_quietly(connection)
                    raise
