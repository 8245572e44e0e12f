"""Claiming: which rows a relay takes next, of those with an ordering key and those without, of high priority and of low."""

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

import asyncpg

from outbox.core.byte_limits import ByteLimits
from outbox.core.message import Lane, PendingMessage
from outbox.postgres.batch_sizes import ALONE_TIMEOUT, BatchSizes
from outbox.postgres.floors import Floors
from outbox.postgres.names import TableName
from outbox.postgres.ordering import Lanes, lane_of
from outbox.postgres.places import PRIORITIES, Places
from outbox.postgres.pool import COMMAND_TIMEOUT, Connection
from outbox.postgres.queries import queries, query
from outbox.postgres.rows import UNREADABLE, Rows
from outbox.postgres.schema.objects import outbox_names
from outbox.postgres.turns import Turns, Unkeyed

IDLE_MARGIN = timedelta(seconds=5)
"""How much longer than a send the server lets a claim's transaction idle."""
LOCK_TIMEOUT = timedelta(seconds=5)
"""Longest wait for a lock on rows or on the table, which somebody's DDL may hold."""
MOST_LOOKS = 5
"""How often a claim clears the view of lanes before it takes what it sees."""
_log = logging.getLogger("outbox")
_TIMEOUT = COMMAND_TIMEOUT.total_seconds()
_FRONTS = f"array_fill(float8 '-infinity', array[{PRIORITIES}])"


@dataclass(frozen=True, slots=True)
class Claimed:
    """What a claim took; in the lanes `blocked` there are rows that are marked as waiting for it."""

    messages: Sequence[PendingMessage] = ()
    blocked: Sequence[Lane] = ()


class Claiming:
    """Takes what is due in the outbox table."""

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
        self._rows = Rows(table, byte_limits.body)
        self._turns = Turns()
        self.floors = Floors(PRIORITIES)
        self._places = Places(self.floors, lanes.floors)
        rendered = partial(relay_queries, table, longest_send=longest_send, byte_limits=byte_limits)
        self._sql = rendered()
        self._fair_sql = rendered(classes="oldest_first")
        self._lean_sql = rendered(lean=True)

    @property
    def since(self) -> Sequence[float]:
        """From which due times on the next claim reads: those of the priorities, and that of rows with ordering keys."""
        return (*self.floors.dues, *self._lanes.floors.dues)

    @property
    def front_in(self) -> timedelta | None:
        """How long it is until a claim reads from the front again; None if every claim does."""
        left = max(self.floors.seconds_left, self._lanes.floors.seconds_left)
        return timedelta(seconds=left) if left else None

    async def claim(self, connection: Connection, limit: int) -> Claimed:
        """Up to `limit` due messages that nobody else has claimed; they are ours until the transaction ends that it begins.

        Raises `TooSlowError` if they cannot be fetched in time; the next claims are smaller.
        """
        limit = self._sizes.rows(limit)
        await self._lanes.make_way(connection)
        for _ in range(MOST_LOOKS):
            claimed = await self._readable(connection, limit)
            if not (self._lanes.crowded or (self._lanes.obstructed and not claimed.messages)):
                return claimed
            await connection.execute("rollback", timeout=_TIMEOUT)
            if not await self._lanes.make_way(connection):
                break
        return await self._readable(connection, limit)

    async def _readable(self, connection: Connection, limit: int) -> Claimed:
        """In smaller and smaller batches while a row is among them that the server cannot show."""
        await connection.execute(self._sql["begin"], timeout=_TIMEOUT)
        try:
            return await self._claimed(connection, limit)
        except _UnreadableError as error:
            await connection.execute("rollback", timeout=_TIMEOUT)
            if limit > 1:
                return await self._readable(connection, limit // 2)
            await connection.execute(self._sql["begin"], timeout=_TIMEOUT)
            return await error.claim_unread(connection)

    async def _claimed(self, connection: Connection, limit: int) -> Claimed:
        blocked: list[Lane] = []
        room = _Room(self._sizes.max_bytes)
        messages = await self._turns.share(
            limit,
            unkeyed=partial(self._unkeyed, connection, room),
            keyed=partial(self._keyed, connection, room, blocked),
        )
        self._sizes.in_time()
        return Claimed(messages, blocked)

    async def _unkeyed(
        self, connection: Connection, room: "_Room", limit: int, *, fair: bool, lean: bool
    ) -> Unkeyed[PendingMessage]:
        """Messages without a key; see `outbox.postgres.turns.TakeUnkeyed`."""
        if room.full:
            return Unkeyed(())
        if lean:
            rows = await self._unkeyed_rows(connection, self._lean_sql, room, limit, *self._places.bookmarks)
            return Unkeyed(await self._noted(connection, rows))
        start = self._places.start()
        rows = await self._unkeyed_rows(connection, self._fair_sql if fair else self._sql, room, limit, start.argument)
        self._places.found(start, rows)
        return Unkeyed(await self._noted(connection, rows), lowest_reached(rows), full=room.full)

    async def _unkeyed_rows(
        self, connection: Connection, sql: Mapping[str, str], room: "_Room", limit: int, *places: Sequence[float]
    ) -> Sequence[asyncpg.Record]:
        """What the claim of `sql` shows, which begins at `places`."""
        with _telling_unreadable(partial(self._unkeyed_unread, sql)):
            rows = await self._fetch(connection, sql["claim"], limit, limit, room.left, *places)
        room.take(rows[-1]["batch_bytes"] or 0)
        return rows

    async def _fetch(self, connection: Connection, statement: str, limit: int, *arguments: object) -> Sequence[asyncpg.Record]:
        """Up to `limit` rows with their bodies."""
        try:
            timeout = self._sizes.timeout(limit, COMMAND_TIMEOUT).total_seconds()
            return await connection.fetch(statement, *arguments, timeout=timeout)
        except (TimeoutError, asyncpg.QueryCanceledError) as late:
            self._sizes.too_slow(limit)
            _log.warning("claiming %d messages took too long and was undone: fewer are claimed at once for a while", limit)
            raise TooSlowError from late

    async def _noted(self, connection: Connection, rows: Sequence[asyncpg.Record]) -> Sequence[PendingMessage]:
        """The messages of the rows; the last one is where a lean claim goes on."""
        last = rows[-1]
        if last["id"] is None:
            return ()
        self._places.took(last, last["id"])
        return [self._rows.pending(row) for row in await self._valid(connection, rows)]

    async def _keyed(self, connection: Connection, room: "_Room", blocked: list[Lane], limit: int) -> Sequence[PendingMessage]:
        """Messages of lanes that are ours from now on; adds to `blocked` those of the lanes in which rows wait for them."""
        runs = await self._lanes.take(connection, limit)
        if runs is None:
            return ()
        arguments = (runs.numbers, runs.policies, runs.longest, limit, room.left)
        with _telling_unreadable(self._keyed_unread):
            rows = await self._fetch(connection, self._lanes.sql["claim_runs"], limit, *arguments)
        room.take(rows[-1]["batch_bytes"] if rows else 0)
        lanes = {row["lane"]: lane_of(row) for row in rows}
        blocked += {row["lane"]: lanes[row["lane"]] for row in rows if row["blocked"]}.values()
        return [self._rows.pending(row, lanes[row["lane"]]) for row in await self._valid(connection, rows)]

    async def _valid(self, connection: Connection, rows: Sequence[asyncpg.Record]) -> Sequence[asyncpg.Record]:
        """The rows without those that were replaced while they were in flight; these are dropped."""
        deduplicated = [row["id"] for row in rows if row["deduplicated"]]
        if not deduplicated:
            return rows
        dropped = {row["id"] for row in await connection.fetch(self._sql["supersede"], deduplicated, timeout=_TIMEOUT)}
        return [row for row in rows if row["id"] not in dropped]

    async def read(self, connection: Connection, found: asyncpg.Record, lane: Lane | None) -> Sequence[PendingMessage]:
        """The message of a row that is locked in the transaction that is open; nothing if it was replaced meanwhile."""
        return await self._one(connection, found, lane)

    async def _unkeyed_unread(self, sql: Mapping[str, str], connection: Connection) -> Claimed:
        rows = await connection.fetch(sql["claim_unread"], timeout=_TIMEOUT)
        return Claimed([message for row in rows for message in await self._one(connection, row)])

    async def _keyed_unread(self, connection: Connection) -> Claimed:
        runs = await self._lanes.take(connection, 1)
        if runs is None:
            return Claimed()
        arguments = (runs.numbers, runs.policies, 1, 1)
        rows = await connection.fetch(self._lanes.sql["claim_runs_unread"], *arguments, timeout=_TIMEOUT)
        lanes = [lane_of(row) for row in rows]
        messages = [message for row in rows for message in await self._one(connection, row, lane_of(row))]
        return Claimed(messages, lanes)

    async def _one(self, connection: Connection, found: asyncpg.Record, lane: Lane | None = None) -> list[PendingMessage]:
        """The message of a row that was claimed without its text.

        It may be readable after all: somebody else may have taken the one that is not.
        """
        await connection.execute("savepoint reading", timeout=_TIMEOUT)
        try:
            rows = await connection.fetch(self._sql["read"], found["id"], timeout=ALONE_TIMEOUT.total_seconds())
        except UNREADABLE as error:
            await connection.execute("rollback to savepoint reading", timeout=_TIMEOUT)
            return [self._rows.unread(found, error, lane)]
        return [self._rows.pending(row, lane) for row in await self._valid(connection, rows)]


def lowest_reached(rows: Sequence[asyncpg.Record]) -> int | None:
    """The lowest priority of `rows`, if rows with an ordering key are due, too."""
    return None if rows[0]["keyed_after"] is None else min(row["keyed_after"] for row in rows)


def relay_queries(
    table: TableName,
    *,
    longest_send: timedelta,
    byte_limits: ByteLimits = ByteLimits(),  # noqa: B008  a frozen value
    classes: str = "highest_first",
    lean: bool = False,
) -> Mapping[str, str]:
    """The statements of `relay.sql` for `table`; `classes` is the order in which the priorities are claimed.

    A `lean` claim begins behind bookmarks, and looks for nothing beside its rows: planning the look for rows with ordering keys
    takes longer than the look.
    """
    parts = queries("claiming.sql", table=table.sql, floors="$3", max_batch_bytes="$2", max_body_bytes=str(byte_limits.body))
    names = outbox_names(table)
    return queries(
        "relay.sql",
        table=table.sql,
        classes=parts[classes],
        classes_from_front=query("claiming.sql", classes, table=table.sql, floors=_FRONTS),
        measured=parts["measured"],
        fits=parts["fits"],
        columns=parts["columns"],
        since=query("places.sql", "from_bookmarks", dues="$3", ids="$4")
        if lean
        else query("places.sql", "from_floors", floors="$3"),
        beside="" if lean else f",\n{parts['keyed_after']} as keyed_after",
        floors="$3",
        due_indexes=f"'{names['due_index_name']}', '{names['ordered_due_index_name']}'",
        idle_timeout=_milliseconds(longest_send + IDLE_MARGIN),
        lock_timeout=_milliseconds(LOCK_TIMEOUT),
    )


@dataclass(slots=True)
class _Room:
    """How many bytes one claim may still take, which it may share out to several statements."""

    left: int
    full: bool = False

    def take(self, size: int) -> None:
        """The first of the statements may take all, and a single row more; less than a half is no room for another one."""
        self.full = 2 * size > self.left
        self.left -= size


class TooSlowError(Exception):
    """A claim took too long, and nothing is claimed."""


class _UnreadableError(Exception):
    """A row cannot be shown; `claim_unread` claims one row without its text, which is that one unless somebody else has it."""

    def __init__(self, claim_unread: Callable[[Connection], Awaitable[Claimed]], reason: Exception) -> None:
        super().__init__(str(reason))
        self.claim_unread = claim_unread


@contextmanager
def _telling_unreadable(claim_unread: Callable[[Connection], Awaitable[Claimed]]) -> Iterator[None]:
    try:
        yield
    except UNREADABLE as error:
        raise _UnreadableError(claim_unread, error) from error


def _milliseconds(time: timedelta) -> str:
    return str(min(round(time / timedelta(milliseconds=1)), 2**31 - 1))
