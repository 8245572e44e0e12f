"""Claims due rows for a relay: chooses between priorities, and between rows with and without an ordering key."""

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Generic, Protocol, TypeVar

import asyncpg

from outbox.core.byte_limits import ByteLimits
from outbox.core.message import Lane, PendingMessage
from outbox.postgres.index_positions import PRIORITIES, IndexPositions, ScanStart
from outbox.postgres.ordering import Lanes, lane_of
from outbox.postgres.pool import COMMAND_TIMEOUT, Connection
from outbox.postgres.queries import TableName, begin_queries, milliseconds, queries
from outbox.postgres.rows import UNREADABLE, Rows
from outbox.postgres.schema.objects import outbox_names

FAIR_EVERY = 4
"""Every fourth claim begins with the priority whose oldest row has been due the longest."""
IDLE_MARGIN = timedelta(seconds=5)
"""Time beyond a send that the server lets the transaction of a claim idle."""
LOCK_TIMEOUT = timedelta(seconds=5)
"""Longest wait for a lock on rows or on the table, which a schema change may hold."""
MOST_LOOKS = 5
"""Most times that a claim marks waiting rows and looks again, before it takes what it finds."""
_log = logging.getLogger("outbox")
_TIMEOUT = COMMAND_TIMEOUT.total_seconds()

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class ClaimedBatch:
    """Messages of a claim. In the lanes `blocked`, rows are marked as waiting for them."""

    messages: Sequence[PendingMessage] = ()
    blocked: Sequence[Lane] = ()


class Claimer:
    """Claims due rows of `table`, in a transaction that it begins and the caller ends."""

    def __init__(
        self,
        table: TableName,
        lanes: Lanes,
        *,
        longest_send: timedelta,
        byte_limits: ByteLimits = ByteLimits(),  # noqa: B008  a frozen value
    ) -> None:
        self._lanes = lanes
        self._sizes = BatchSizes(byte_limits.batch)
        self._max_body_bytes = byte_limits.body
        self._rows = Rows(table, byte_limits.body)
        self._scheduler = PriorityScheduler()
        self.scan_start = ScanStart(PRIORITIES)
        self._positions = IndexPositions(self.scan_start, lanes.scan_start)
        self.sql = outbox_queries(table, longest_send=longest_send)

    @property
    def since(self) -> Sequence[float]:
        """Due times from which the next claim reads: one per priority, and one for rows with an ordering key."""
        return (*self.scan_start.due_times, *self._lanes.scan_start.due_times)

    @property
    def front_in(self) -> timedelta | None:
        """Time until a claim reads from the front of the index again; None if every claim does."""
        left = max(self.scan_start.seconds_left, self._lanes.scan_start.seconds_left)
        return timedelta(seconds=left) if left else None

    async def claim(self, connection: Connection, limit: int) -> ClaimedBatch:
        """Claims up to `limit` due messages that no other relay has claimed, until the end of the transaction that it begins.

        Raises `TooSlowError` if they cannot be fetched in time; the next claims are smaller.
        """
        limit = self._sizes.rows(limit)
        # In a separate, short transaction: a publisher that withdraws one of these rows waits for it, but not for the send.
        await self._lanes.mark_waiting(connection)
        # Rows that wait behind others can fill the part of the index that a claim scans, and hide all other lanes. They are
        # marked in a transaction that commits on its own, and then skipped.
        for _ in range(MOST_LOOKS):
            batch = await self._claim_readable(connection, limit)
            if not (self._lanes.crowded or (self._lanes.has_waiting and not batch.messages)):
                return batch
            await connection.execute("rollback", timeout=_TIMEOUT)
            if not await self._lanes.mark_waiting(connection):
                break
        return await self._claim_readable(connection, limit)

    async def read(self, connection: Connection, found: asyncpg.Record, lane: Lane | None) -> Sequence[PendingMessage]:
        """Reads a row that this transaction has locked without its texts. Returns nothing if it was replaced meanwhile."""
        # Without a savepoint, an unreadable row would abort the transaction, and release the lock on the row. The row may also
        # be readable: another relay may have claimed the one that caused the error.
        await connection.execute("savepoint reading", timeout=_TIMEOUT)
        try:
            arguments = (found["id"], self._max_body_bytes)
            rows = await connection.fetch(self.sql["read"], *arguments, timeout=ALONE_TIMEOUT.total_seconds())
        except UNREADABLE as error:
            await connection.execute("rollback to savepoint reading", timeout=_TIMEOUT)
            return [self._rows.unread(found, error, lane)]
        return [self._rows.pending(row, lane) for row in await self._drop_superseded(connection, rows)]

    async def _claim_readable(self, connection: Connection, limit: int) -> ClaimedBatch:
        """Claims a batch. Halves it until it contains no row that the server cannot return."""
        await connection.execute(self.sql["begin_keeping_plans"], timeout=_TIMEOUT)
        blocked: list[Lane] = []
        budget = _ByteBudget(self._sizes.max_bytes)
        try:
            messages = await self._scheduler.share(
                limit,
                unkeyed=partial(self._claim_unkeyed, connection, budget),
                keyed=partial(self._claim_keyed, connection, budget, blocked),
            )
            self._sizes.record_success()
            return ClaimedBatch(messages, blocked)
        except _UnreadableError as error:
            await connection.execute("rollback", timeout=_TIMEOUT)
            # The error does not say which row it is about.
            if limit > 1:
                return await self._claim_readable(connection, limit // 2)
            await connection.execute(self.sql["begin"], timeout=_TIMEOUT)
            return await error.claim_unread(connection)

    async def _claim_unkeyed(
        self, connection: Connection, budget: "_ByteBudget", limit: int, *, fair: bool, lean: bool
    ) -> "UnkeyedBatch[PendingMessage]":
        """Claims messages without an ordering key; see `ClaimUnkeyed`."""
        if budget.is_spent:
            return UnkeyedBatch(())
        name = "claim_lean" if lean else "claim_fair" if fair else "claim"
        start = self._positions.start()
        position = self._positions.cursor if lean else (start.argument,)
        arguments = (limit, budget.left, self._max_body_bytes, *position)
        with _report_unreadable(partial(self._claim_unkeyed_unread, fair)):
            rows = await self._fetch(connection, self.sql[name], limit, *arguments)
        found = len(rows) > 0 and rows[-1]["id"] is not None
        budget.spend(rows[-1]["batch_bytes"] if found else 0)
        if not lean:
            self._positions.record_claim(start, rows)
        messages: Sequence[PendingMessage] = ()
        if found:
            self._positions.advance(rows[-1], rows[-1]["id"])
            messages = [self._rows.pending(row) for row in await self._drop_superseded(connection, rows)]
        if lean:
            return UnkeyedBatch(messages)
        return UnkeyedBatch(messages, lowest_reached(rows), full=budget.is_spent)

    async def _claim_keyed(
        self, connection: Connection, budget: "_ByteBudget", blocked: list[Lane], limit: int
    ) -> Sequence[PendingMessage]:
        """Locks lanes and claims their first messages. Adds lanes with waiting rows to `blocked`."""
        runs = await self._lanes.take(connection, limit)
        if runs is None:
            return ()
        arguments = (runs.numbers, runs.policies, runs.longest, limit, budget.left, self._max_body_bytes)
        with _report_unreadable(self._claim_keyed_unread):
            rows = await self._fetch(connection, self._lanes.sql["claim_runs"], limit, *arguments)
        budget.spend(rows[-1]["batch_bytes"] if rows else 0)
        lanes = {row["lane"]: lane_of(row) for row in rows}
        blocked += {row["lane"]: lanes[row["lane"]] for row in rows if row["blocked"]}.values()
        return [self._rows.pending(row, lanes[row["lane"]]) for row in await self._drop_superseded(connection, rows)]

    async def _fetch(self, connection: Connection, statement: str, limit: int, *arguments: object) -> Sequence[asyncpg.Record]:
        """Fetches up to `limit` rows with their bodies. Raises `TooSlowError`."""
        try:
            timeout = self._sizes.timeout(limit, COMMAND_TIMEOUT).total_seconds()
            return await connection.fetch(statement, *arguments, timeout=timeout)
        except (TimeoutError, asyncpg.QueryCanceledError) as late:
            self._sizes.record_timeout(limit)
            _log.warning("claiming %d messages took too long and was rolled back; using smaller claims for a while", limit)
            raise TooSlowError from late

    async def _drop_superseded(self, connection: Connection, rows: Sequence[asyncpg.Record]) -> Sequence[asyncpg.Record]:
        """Deletes rows that were replaced since they were first claimed, and returns the others."""
        deduplicated = [row["id"] for row in rows if row["deduplicated"]]
        if not deduplicated:
            return rows
        dropped = {row["id"] for row in await connection.fetch(self.sql["supersede"], deduplicated, timeout=_TIMEOUT)}
        return [row for row in rows if row["id"] not in dropped]

    async def _claim_unkeyed_unread(self, fair: bool, connection: Connection) -> ClaimedBatch:
        rows = await connection.fetch(self.sql["claim_unread"], fair, timeout=_TIMEOUT)
        return ClaimedBatch([message for row in rows for message in await self.read(connection, row, None)])

    async def _claim_keyed_unread(self, connection: Connection) -> ClaimedBatch:
        runs = await self._lanes.take(connection, 1)
        rows = () if runs is None else await self._lanes.claim_head_unread(connection, runs)
        messages = [message for row in rows for message in await self.read(connection, row, lane_of(row))]
        return ClaimedBatch(messages, [lane_of(row) for row in rows])


@dataclass(frozen=True, slots=True)
class UnkeyedBatch(Generic[_T_co]):
    """Result of a claim of rows without an ordering key.

    `keyed_after`: the lowest priority that was reached, if rows with an ordering key are due as well. `plain`: the claim found
    nothing that a lean claim would miss. `full`: the batch takes no more rows, even if it has fewer than the limit.
    """

    taken: Sequence[_T_co]
    keyed_after: int | None = None
    plain: bool = True
    full: bool = False


class ClaimUnkeyed(Protocol[_T_co]):
    """Claims rows without an ordering key. A `lean` claim is faster; it ignores other rows, and may skip unusual ones."""

    def __call__(self, limit: int, *, fair: bool, lean: bool) -> Awaitable[UnkeyedBatch[_T_co]]: ...


class PriorityScheduler:
    """Decides which rows each claim takes: those of high priority first, without starving the others.

    Rows with an ordering key have the lowest priority, and share it equally with other rows. In a long backlog of plain rows,
    only the fair claims look for rows with an ordering key.
    """

    def __init__(self) -> None:
        self._claims = 0
        self._keyed_after: int | None = None
        self._lean = False

    async def share(
        self, limit: int, *, unkeyed: ClaimUnkeyed[_T], keyed: Callable[[int], Awaitable[Sequence[_T]]]
    ) -> Sequence[_T]:
        """Claims up to `limit` rows through `unkeyed` and `keyed`. Does not call `keyed` while no such row is due."""
        self._claims += 1
        fair = self._claims % FAIR_EVERY == 0
        if self._lean and not fair:
            taken = (await unkeyed(limit, fair=False, lean=True)).taken
            self._lean = len(taken) >= limit
            if taken:
                return taken
        # Rows with a key had to wait for others. If those have the same priority, it is their turn now; if a higher one, only
        # in every eighth claim.
        if self._keyed_after == 0 or (self._keyed_after is not None and self._claims % (2 * FAIR_EVERY) == 0):
            taken = await keyed(limit)
            self._keyed_after = None
            if len(taken) >= limit:
                return taken
            return [*taken, *(await unkeyed(limit - len(taken), fair=fair, lean=False)).taken]
        found = await unkeyed(limit, fair=fair, lean=False)
        if len(found.taken) >= limit or found.full or found.keyed_after is None:
            self._keyed_after = found.keyed_after
            self._lean = len(found.taken) >= limit and found.keyed_after is None and found.plain
            return found.taken
        # If only rows with keys are due, every other claim looks for rows without.
        self._keyed_after = None if found.taken else 0
        return [*found.taken, *await keyed(limit - len(found.taken))]


def lowest_reached(rows: Sequence[asyncpg.Record]) -> int | None:
    """Returns the lowest priority of `rows`, if rows with an ordering key are due as well."""
    return None if rows[0]["keyed_after"] is None else min(row["keyed_after"] for row in rows)


def outbox_queries(table: TableName, *, longest_send: timedelta) -> Mapping[str, str]:
    """Returns the statements of `relay.sql`, and `begin_queries`. Transactions end if they idle longer than `longest_send`."""
    idle = longest_send + IDLE_MARGIN
    limits = {"idle_timeout": milliseconds(idle), "lock_timeout": milliseconds(LOCK_TIMEOUT)}
    return {**queries("relay.sql", **outbox_names(table), **limits), **begin_queries(idle=idle, locks=LOCK_TIMEOUT)}


@dataclass(slots=True)
class _ByteBudget:
    """Bytes that one claim may still take, shared by its statements."""

    left: int
    is_spent: bool = False

    def spend(self, size: int) -> None:
        """Subtracts the bytes of one statement."""
        # With less than half of the bytes left, another statement is not worth its round trip.
        self.is_spent = 2 * size > self.left
        self.left -= size


class TooSlowError(Exception):
    """A claim took too long. Nothing is claimed."""


class _UnreadableError(Exception):
    """The server cannot return a row. `claim_unread` claims a row without its texts: that one, unless another relay has it."""

    def __init__(self, claim_unread: Callable[[Connection], Awaitable[ClaimedBatch]], reason: Exception) -> None:
        super().__init__(str(reason))
        self.claim_unread = claim_unread


@contextmanager
def _report_unreadable(claim_unread: Callable[[Connection], Awaitable[ClaimedBatch]]) -> Iterator[None]:
    try:
        yield
    except UNREADABLE as error:
        raise _UnreadableError(claim_unread, error) from error


SHRINK_BY = 4
"""Divides the batch size after a timeout. Large, so that a single row is reached after few timeouts."""
GROW_BY = 2
"""Multiplies the batch size after a batch in time."""
ALONE_TIMEOUT = timedelta(minutes=10)
"""Longest time for a statement about a single row: 128 MiB at 0.2 MiB/s."""


class BatchSizes:
    """Limits rows and bytes of the next batch, to at most `max_bytes`. Reduces both after timeouts."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._divisor = 1

    @property
    def max_bytes(self) -> int:
        """Most bytes of the next batch; a single row may have more."""
        return max(self._max_bytes // self._divisor, 1)

    def rows(self, limit: int) -> int:
        """Most rows of the next batch, up to `limit`."""
        return max(limit // self._divisor, 1)

    def timeout(self, rows: int, usual: timedelta) -> timedelta:
        """Longest time for a batch of so many rows."""
        # A single row cannot be divided further, so it gets more time instead.
        return max(usual, ALONE_TIMEOUT) if rows == 1 and self.is_reduced else usual

    @property
    def is_reduced(self) -> bool:
        """Whether batches are reduced after a timeout, so that a single row gets more time."""
        return self._divisor > 1

    def record_timeout(self, rows: int) -> None:
        """Reduces the next batches after one of so many rows was not done in time."""
        # A single row that is too slow with reduced batches says nothing about batches of other rows.
        if rows > 1 or self._divisor == 1:
            self._divisor *= SHRINK_BY

    def record_success(self) -> None:
        """Enlarges the next batches after one that was done in time."""
        self._divisor = max(self._divisor // GROW_BY, 1)
