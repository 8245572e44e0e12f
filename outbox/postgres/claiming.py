"""Claiming: which due rows a relay takes next, with an ordering key and without, of high priority and of low."""

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
from outbox.postgres.queries import TableName, queries
from outbox.postgres.rows import UNREADABLE, Rows
from outbox.postgres.schema.objects import outbox_names

FAIR_EVERY = 4
"""One claim in so many begins with the priority whose oldest row has been due the longest."""
IDLE_MARGIN = timedelta(seconds=5)
"""How much longer than a send the server lets a claim's transaction idle."""
LOCK_TIMEOUT = timedelta(seconds=5)
"""Longest wait for a lock on rows or on the table, which a schema change may hold."""
MOST_LOOKS = 5
"""How often a claim clears the view of lanes before it takes what it sees."""
_log = logging.getLogger("outbox")
_TIMEOUT = COMMAND_TIMEOUT.total_seconds()

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class ClaimedBatch:
    """What a claim took; in the lanes `blocked` there are rows that are marked as waiting for it."""

    messages: Sequence[PendingMessage] = ()
    blocked: Sequence[Lane] = ()


class Claimer:
    """Claims due rows of the outbox table `table`, in a transaction that it begins and that the caller ends."""

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
        """From which due times on the next claim reads: of the priorities, and of rows with an ordering key."""
        return (*self.scan_start.due_times, *self._lanes.scan_start.due_times)

    @property
    def front_in(self) -> timedelta | None:
        """How long it is until a claim reads from the front again; None if every claim does."""
        left = max(self.scan_start.seconds_left, self._lanes.scan_start.seconds_left)
        return timedelta(seconds=left) if left else None

    async def claim(self, connection: Connection, limit: int) -> ClaimedBatch:
        """Up to `limit` due messages that no other relay has claimed; they are ours until the transaction ends that it begins.

        Raises `TooSlowError` if they cannot be fetched in time; the next claims are smaller.
        """
        limit = self._sizes.rows(limit)
        # In a short transaction of its own: publishers that withdraw one of the rows wait for its end, not for the send.
        await self._lanes.make_way(connection)
        for _ in range(MOST_LOOKS):
            batch = await self._claim_readable(connection, limit)
            if not (self._lanes.crowded or (self._lanes.obstructed and not batch.messages)):
                return batch
            await connection.execute("rollback", timeout=_TIMEOUT)
            if not await self._lanes.make_way(connection):
                break
        return await self._claim_readable(connection, limit)

    async def read(self, connection: Connection, found: asyncpg.Record, lane: Lane | None) -> Sequence[PendingMessage]:
        """The message of a row that this transaction has locked without its text; nothing if it was replaced meanwhile.

        It may be readable although the claim was not: another relay may have taken the row that is not.
        """
        # The error of a row that the server cannot show would end the transaction, and the lock with it.
        await connection.execute("savepoint reading", timeout=_TIMEOUT)
        try:
            arguments = (found["id"], self._max_body_bytes)
            rows = await connection.fetch(self.sql["read"], *arguments, timeout=ALONE_TIMEOUT.total_seconds())
        except UNREADABLE as error:
            await connection.execute("rollback to savepoint reading", timeout=_TIMEOUT)
            return [self._rows.unread(found, error, lane)]
        return [self._rows.pending(row, lane) for row in await self._drop_superseded(connection, rows)]

    async def _claim_readable(self, connection: Connection, limit: int) -> ClaimedBatch:
        """In smaller and smaller batches while a row is among them that the server cannot show."""
        await connection.execute(self.sql["begin"], timeout=_TIMEOUT)
        blocked: list[Lane] = []
        budget = _ByteBudget(self._sizes.max_bytes)
        try:
            messages = await self._scheduler.share(
                limit,
                unkeyed=partial(self._claim_unkeyed, connection, budget),
                keyed=partial(self._claim_keyed, connection, budget, blocked),
            )
            self._sizes.in_time()
            return ClaimedBatch(messages, blocked)
        except _UnreadableError as error:
            await connection.execute("rollback", timeout=_TIMEOUT)
            # By halves, because the error does not say which row it is.
            if limit > 1:
                return await self._claim_readable(connection, limit // 2)
            await connection.execute(self.sql["begin"], timeout=_TIMEOUT)
            return await error.claim_unread(connection)

    async def _claim_unkeyed(
        self, connection: Connection, budget: "_ByteBudget", limit: int, *, fair: bool, lean: bool
    ) -> "UnkeyedBatch[PendingMessage]":
        """Messages without an ordering key; see `ClaimUnkeyed`."""
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
        """Messages of lanes that are ours from now on; adds to `blocked` those of the lanes in which rows wait for them."""
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
        """Up to `limit` rows with their bodies."""
        try:
            timeout = self._sizes.timeout(limit, COMMAND_TIMEOUT).total_seconds()
            return await connection.fetch(statement, *arguments, timeout=timeout)
        except (TimeoutError, asyncpg.QueryCanceledError) as late:
            self._sizes.too_slow(limit)
            _log.warning("claiming %d messages took too long and was undone: fewer are claimed at once for a while", limit)
            raise TooSlowError from late

    async def _drop_superseded(self, connection: Connection, rows: Sequence[asyncpg.Record]) -> Sequence[asyncpg.Record]:
        """The rows without those that were replaced while they were in flight; these are deleted."""
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
    """What was claimed of rows without an ordering key.

    `keyed_after`: the lowest priority that was reached, if rows with a key are due too. `plain`: nothing else was found either
    that a lean claim does without. `full`: there is no room for more, however few were claimed.
    """

    taken: Sequence[_T_co]
    keyed_after: int | None = None
    plain: bool = True
    full: bool = False


class ClaimUnkeyed(Protocol[_T_co]):
    """Claims rows without an ordering key. A `lean` claim looks for nothing else, and may leave unusual rows."""

    def __call__(self, limit: int, *, fair: bool, lean: bool) -> Awaitable[UnkeyedBatch[_T_co]]: ...


class PriorityScheduler:
    """Decides what each claim takes: high priority before low, and none so long that the others starve.

    Rows with an ordering key are of the lowest priority, and have an equal share of it. In a long backlog of nothing but plain
    rows, only the fair claims look for others.
    """

    def __init__(self) -> None:
        self._claims = 0
        self._keyed_after: int | None = None
        self._lean = False

    async def share(
        self, limit: int, *, unkeyed: ClaimUnkeyed[_T], keyed: Callable[[int], Awaitable[Sequence[_T]]]
    ) -> Sequence[_T]:
        """Up to `limit` of what both claim. While no row with an ordering key is due, `keyed` is not called."""
        self._claims += 1
        fair = self._claims % FAIR_EVERY == 0
        if self._lean and not fair:
            taken = (await unkeyed(limit, fair=False, lean=True)).taken
            self._lean = len(taken) >= limit
            if taken:
                return taken
        # Rows with a key had to wait, because of rows of the same priority; or of a higher one, and then more often.
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
        # Where there are only rows with keys, every other claim looks for others.
        self._keyed_after = None if found.taken else 0
        return [*found.taken, *await keyed(limit - len(found.taken))]


def lowest_reached(rows: Sequence[asyncpg.Record]) -> int | None:
    """The lowest priority of `rows`, if rows with an ordering key are due, too."""
    return None if rows[0]["keyed_after"] is None else min(row["keyed_after"] for row in rows)


def outbox_queries(table: TableName, *, longest_send: timedelta) -> Mapping[str, str]:
    """The statements of `relay.sql` for `table`; the server ends their transactions when they idle longer than a send takes."""
    return queries(
        "relay.sql",
        **outbox_names(table),
        idle_timeout=_milliseconds(longest_send + IDLE_MARGIN),
        lock_timeout=_milliseconds(LOCK_TIMEOUT),
    )


@dataclass(slots=True)
class _ByteBudget:
    """How many bytes one claim may still take, which may share them out to several statements."""

    left: int
    is_spent: bool = False

    def spend(self, size: int) -> None:
        """The first of the statements may take all, and a single row more; less than a half is no room for another one."""
        self.is_spent = 2 * size > self.left
        self.left -= size


class TooSlowError(Exception):
    """A claim took too long, and nothing is claimed."""


class _UnreadableError(Exception):
    """A row cannot be shown. `claim_unread` claims one row without its text: that row, unless another relay has it."""

    def __init__(self, claim_unread: Callable[[Connection], Awaitable[ClaimedBatch]], reason: Exception) -> None:
        super().__init__(str(reason))
        self.claim_unread = claim_unread


@contextmanager
def _report_unreadable(claim_unread: Callable[[Connection], Awaitable[ClaimedBatch]]) -> Iterator[None]:
    try:
        yield
    except UNREADABLE as error:
        raise _UnreadableError(claim_unread, error) from error


def _milliseconds(time: timedelta) -> str:
    return str(min(round(time / timedelta(milliseconds=1)), 2**31 - 1))


SHRINK_BY = 4
"""So that few timeouts lie between a full batch and a single row."""
GROW_BY = 2
ALONE_TIMEOUT = timedelta(minutes=10)
"""How long a statement about a single row may take: 128 MiB at 0.2 MiB/s."""


class BatchSizes:
    """Rows and bytes of the next batch, at most `max_bytes`. Without timeouts they are what the caller asks for."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._divisor = 1

    @property
    def max_bytes(self) -> int:
        """Of the next batch; a single row may be larger."""
        return max(self._max_bytes // self._divisor, 1)

    def rows(self, limit: int) -> int:
        """Of the next batch, of which `limit` are wanted."""
        return max(limit // self._divisor, 1)

    def timeout(self, rows: int, usual: timedelta) -> timedelta:
        """How long a batch of so many rows may take. What cannot be divided further gets more time instead."""
        return max(usual, ALONE_TIMEOUT) if rows == 1 and self.alone else usual

    @property
    def alone(self) -> bool:
        """Whether a single row, if that is the next batch, has more time than usual."""
        return self._divisor > 1

    def too_slow(self, rows: int) -> None:
        """A batch of so many rows was not done in time. A single row says nothing about smaller batches."""
        if rows > 1 or self._divisor == 1:
            self._divisor *= SHRINK_BY

    def in_time(self) -> None:
        """A batch was done in time."""
        self._divisor = max(self._divisor // GROW_BY, 1)
