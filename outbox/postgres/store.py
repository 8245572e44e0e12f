"""The outbox table as the relay's Store: claims rows, settles them in the same transaction, and releases waiting rows."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from types import TracebackType
from typing import Self, assert_never

import asyncpg

from outbox.core.byte_limits import ByteLimits
from outbox.core.message import Lane, PendingMessage, Way
from outbox.core.outcome import Dead, Done, Failure, Held, RelayOutcome, Retry, Returned, Stalled
from outbox.engine.ordering import OrderingRules
from outbox.errors import SchemaError
from outbox.ports import Backlog
from outbox.postgres.claiming import LOCK_TIMEOUT, ClaimedBatch, Claimer, TooSlowError
from outbox.postgres.history import SentFacts
from outbox.postgres.index_positions import ScanStart
from outbox.postgres.ordering import Lanes, lane_of
from outbox.postgres.pool import (
    COMMAND_TIMEOUT,
    Connection,
    Pool,
    PooledConnection,
    give_back,
    roll_back_quietly,
    take_from,
    taken_from,
    unavailable_errors,
)
from outbox.postgres.queries import TableName, queries
from outbox.postgres.rows import time_of
from outbox.postgres.schema import check_outbox_table

_TIMEOUT = COMMAND_TIMEOUT.total_seconds()
"""Passed with every statement, because a given pool may have no timeout."""


class PostgresStore:
    """Implements `outbox.ports.Store` on `table`. Sent rows are deleted, or kept with `sent_at` if `keep_sent`.

    `ordering` has the policies for ordering keys. `facts` records sent messages in the history. `byte_limits` limits the size
    of a claim.
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
        self._lanes = Lanes(table, ordering)
        self._claimer = Claimer(table, self._lanes, longest_send=longest_send, byte_limits=byte_limits)
        self._sql = {**self._claimer.sql, **queries("stalled.sql", table=table.sql)}

    @property
    def scan_start(self) -> ScanStart:
        """Where claims of rows without an ordering key start to read."""
        return self._claimer.scan_start

    async def check(self) -> None:
        """Raises `SchemaError` if the table is missing, has another shape, or the user lacks privileges on it."""
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
        return await self._claim(lambda connection: self._claimer.claim(connection, limit))

    async def claim_stalled(self, wanted: Sequence[tuple[Way, int]]) -> "PostgresClaim | None":
        """See `outbox.ports.Store.claim_stalled`."""
        return await self._claim(lambda connection: self._lock_stalled(connection, wanted))

    async def _claim(self, claim: Callable[[Connection], Awaitable[ClaimedBatch]]) -> "PostgresClaim | None":
        """Calls `claim`, which begins a transaction and locks messages in it. Ends the transaction if there are none."""
        with unavailable_errors(f"claiming from {self._table}", lock_timeout=LOCK_TIMEOUT):
            connection = await take_from(self._pool)
            try:
                claimed = await claim(connection)
                if not claimed.messages:
                    # The claimed rows were superseded and deleted. Rows that waited for them must be released.
                    if claimed.blocked:
                        await self._lanes.release(connection, claimed.blocked)
                    await connection.execute("commit", timeout=_TIMEOUT)
            except TooSlowError:  # not reported as an outage: if it is one, the rollback or the next statement fails
                await roll_back_quietly(connection)
                await give_back(self._pool, connection)
                return None
            except BaseException as error:
                await roll_back_quietly(connection, after=error)
                await give_back(self._pool, connection)
                raise
            if not claimed.messages:
                await give_back(self._pool, connection)
                return None
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

    async def _lock_stalled(self, connection: Connection, wanted: Sequence[tuple[Way, int]]) -> ClaimedBatch:
        """Begins a transaction, locks stalled messages, and reads them one by one, within the byte limits."""
        await connection.execute(self._sql["begin"], timeout=_TIMEOUT)
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
            size = row["bytes"] if row["bytes"] <= self._byte_limits.body else 0  # a larger message is read without its body
            if messages and total + size > self._byte_limits.batch:
                break
            total += size
            messages += await self._claimer.read(connection, row, None if row["policy"] is None else lane_of(row))
        # Whether rows wait in these lanes was not looked up. Releasing a lane in which none waits changes nothing.
        return ClaimedBatch(messages, [message.lane for message in messages if message.lane is not None])

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
        async with self._transaction(f"looking for what is due in {self._table}", begin="begin_keeping_plans") as connection:
            due = time_of(await connection.fetchval(self._sql["next_due"], self._claimer.since, timeout=_TIMEOUT))
        # A claim that starts further on misses rows before that point: wake up in time for the next one from the front.
        front_in = self._claimer.front_in
        return due if front_in is None or (due is not None and due < front_in) else front_in

    async def release_held(self, routing_key: str, queue: str | None, limit: int) -> int:
        """See `outbox.ports.Store.release_held`."""
        return await self._count("release_held", routing_key, queue, limit)

    async def repair(self) -> int:
        """See `outbox.ports.Store.repair`."""
        if not await self._count("any_held_or_blocked"):
            return 0
        return await self.ensure_probes() + await self.repair_lanes()

    async def ensure_probes(self) -> int:
        """Makes one row of each held routing key due in finite time. Returns how many keys had none."""
        return await self._count("ensure_probes")

    async def repair_lanes(self) -> int:
        """Makes messages due that wait for an earlier message of their ordering key that no longer exists. Returns how many."""
        async with self._transaction(f"looking after ordering keys in {self._table}") as connection:
            return await self._lanes.repair(connection)

    async def delete_sent(self, older_than: timedelta, limit: int) -> int:
        """See `outbox.ports.Store.delete_sent`."""
        return await self._count("delete_sent", older_than, limit)

    async def backlog(self) -> Backlog:
        """See `outbox.ports.Store.backlog`."""
        if not await self._count("any_unsent"):
            return Backlog(unsent=0, oldest_due=None)
        async with self._transaction(f"counting {self._table}") as connection:
            [row] = await connection.fetch(self._sql["backlog"], timeout=_TIMEOUT)
        return Backlog(unsent=row["unsent"], oldest_due=time_of(row["oldest_due"]))

    async def _count(self, name: str, *arguments: object) -> int:
        """Runs a statement and returns the number of rows, from the end of its command tag."""
        doing = f"{name} in {self._table}"
        if arguments:
            async with self._transaction(doing) as connection:
                status = await connection.execute(self._sql[name], *arguments, timeout=_TIMEOUT)
        else:
            # An idle relay sends hardly anything else.
            with unavailable_errors(doing, lock_timeout=LOCK_TIMEOUT):
                async with taken_from(self._pool) as connection:
                    status = await connection.execute(f"{self._sql['alone']};\n{self._sql[name]}", timeout=_TIMEOUT)
        return int(status.rpartition(" ")[2])

    @asynccontextmanager
    async def _transaction(self, doing: str, *, begin: str = "begin") -> AsyncIterator[Connection]:
        """Runs the block in a transaction that the statement `begin` begins."""
        # Reads need one as well: a transaction pooler may send a statement outside of one to a server that has not prepared it.
        with unavailable_errors(doing, lock_timeout=LOCK_TIMEOUT):
            async with taken_from(self._pool) as connection:
                try:
                    await connection.execute(self._sql[begin], timeout=_TIMEOUT)
                    yield connection
                    await connection.execute("commit", timeout=_TIMEOUT)
                except BaseException:
                    await roll_back_quietly(connection)
                    raise


class PostgresClaim:
    """Implements `outbox.ports.Claim`: a transaction with locks on rows. In the lanes `blocked`, other rows wait for them."""

    def __init__(
        self,
        pool: Pool,
        connection: PooledConnection,
        sql: Mapping[str, str],
        messages: Sequence[PendingMessage],
        *,
        lanes: Lanes,
        facts: SentFacts | None,
        blocked: Sequence[Lane],
        keep_sent: bool,
    ) -> None:
        self.messages = messages
        self._lanes = lanes
        self._facts = facts
        self._blocked = blocked
        self._pool = pool
        self._connection = connection
        self._sql = sql
        self._keep_sent = keep_sent
        self._keeps_any_text = connection.get_settings().server_encoding in ("UTF8", "SQL_ASCII")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is not None:
                await roll_back_quietly(self._connection)
                return
            with unavailable_errors("ending a claim"):
                try:
                    # Without an answer it is unknown whether this happened. If not, the rollback releases the rows at once.
                    await self._connection.execute("commit", timeout=_TIMEOUT)
                except BaseException:
                    await roll_back_quietly(self._connection)
                    raise
        finally:
            await give_back(self._pool, self._connection)

    async def settle(self, outcomes: Sequence[RelayOutcome]) -> None:
        """See `outbox.ports.Claim.settle`."""
        settled = _Settlement(self._storable)
        for pending, outcome in zip(self.messages, outcomes, strict=True):
            settled.add(pending, outcome)
        connection = self._connection
        with unavailable_errors("settling a claim"):
            if settled.done:
                await self._settle_sent(settled.done, connection)
            if settled.dropped:
                await connection.execute(self._sql[self._end], settled.dropped, timeout=_TIMEOUT)
            # Before retrying and parking: a replaced row must be deleted, not block the other rows of its ordering key.
            if settled.replaceable:
                await connection.execute(self._sql["supersede"], settled.replaceable, timeout=_TIMEOUT)
            if settled.stalled:
                await connection.execute(self._sql["stall"], settled.stalled, timeout=_TIMEOUT)
            changed: Mapping[str, Sequence[Sequence[object]]] = {
                "retry": settled.retried,
                "park": settled.parked,
                "hold": settled.held,
            }
            if any(changed.values()):
                await connection.execute(self._sql["plan_again"], timeout=_TIMEOUT)
            for name, changes in changed.items():
                if changes:
                    await connection.execute(self._sql[name], *zip(*changes, strict=True), timeout=_TIMEOUT)
            # At the end: a row is the first of its key only when the rows before it are gone or parked.
            if self._blocked:
                await self._lanes.release(connection, self._blocked)

    @property
    def _end(self) -> str:
        return "keep" if self._keep_sent else "delete"

    async def _settle_sent(self, sent: Sequence[PendingMessage], connection: Connection) -> None:
        """Deletes or keeps sent rows, and records them in the history if possible."""
        ids = [pending.row_id for pending in sent]
        if self._facts is not None and self._facts.wanted:
            # In a savepoint: an error in the history must not keep sent messages in the outbox, to be sent again.
            await connection.execute("savepoint record", timeout=_TIMEOUT)
            facts = self._facts.arguments([pending.message for pending in sent])
            try:
                await connection.execute(self._facts.sql["record"], ids, *facts, timeout=_TIMEOUT)
            except asyncpg.PostgresError as error:
                await connection.execute("rollback to savepoint record", timeout=_TIMEOUT)
                self._facts.lost(len(sent), error)
            # Rows are deleted after the savepoint: one that a transaction has locked and a savepoint within it deletes has both
            # as its deleter. Until the next vacuum, an index keeps entries of such rows, and claims read past them.
            await connection.execute("release savepoint record", timeout=_TIMEOUT)
        await connection.execute(self._sql[self._end], ids, timeout=_TIMEOUT)

    def _storable(self, failure: Failure) -> str:
        """Returns the failure as text that the database can store: without NUL and lone surrogates, in its encoding."""
        text = str(failure).replace("\0", "\N{SYMBOL FOR NULL}")
        encoding = "utf-8" if self._keeps_any_text else "ascii"
        return text.encode(encoding, "backslashreplace").decode(encoding)


@dataclass(slots=True)
class _Settlement:
    """The outcomes of one claim, grouped by the statement that records them."""

    storable: Callable[[Failure], str]
    done: list[PendingMessage] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)
    retried: list[tuple[int, str, timedelta]] = field(default_factory=list)
    parked: list[tuple[int, str]] = field(default_factory=list)
    held: list[tuple[int, timedelta | None]] = field(default_factory=list)
    replaceable: list[int] = field(default_factory=list)
    """Unsent rows that may have been replaced meanwhile."""
    stalled: list[int] = field(default_factory=list)

    def add(self, pending: PendingMessage, outcome: RelayOutcome) -> None:
        row_id = pending.row_id
        if pending.deduplicated and not isinstance(outcome, Done):
            self.replaceable.append(row_id)
        match outcome:
            case Done(dropped=False):
                self.done.append(pending)
            case Done():
                self.dropped.append(row_id)
            case Retry(delay, failure):
                self.retried.append((row_id, self.storable(failure), delay))
            case Dead(_, failure):
                self.parked.append((row_id, self.storable(failure)))
            case Held(probe_after):
                self.held.append((row_id, probe_after))
            case Stalled():
                self.stalled.append(row_id)
            case Returned():
                pass
            case _:
                assert_never(outcome)
