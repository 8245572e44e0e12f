"""The history: daily partitions, created ahead and dropped when they are old, and records of sent messages.

Statements that lock out readers or writers wait only a moment for their lock, and are tried again, so that no query is blocked
for longer. Because the history has a default partition, PostgreSQL cannot detach partitions concurrently, and attaching one
locks the default partition exclusively. A large default partition is therefore not scanned under that lock, but set aside.
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from functools import partial
from itertools import pairwise
from time import monotonic
from typing import Any

import asyncpg

from outbox.core.events import HistoryLost
from outbox.core.message import Message
from outbox.engine.index_keys import IndexKeys
from outbox.ports import Observer
from outbox.postgres.pool import COMMAND_TIMEOUT, Connection, reason_of, roll_back_quietly
from outbox.postgres.queries import TableName, milliseconds, queries, query, quoted, render
from outbox.postgres.rows import array_text
from outbox.postgres.schema.objects import SATELLITES, satellite_names

DAYS_AHEAD = 3
LOCK_TIMEOUT = timedelta(milliseconds=50)
"""Longest wait for a lock. Other queries queue behind it for this long at most."""
STATEMENT_TIMEOUT = timedelta(seconds=2)
"""Longest time for a statement while a lock is held."""
ATTEMPTS = 10
"""Attempts to get each lock, before it is left to the next call."""
LONGEST_PAUSE = timedelta(milliseconds=400)
"""Longest pause between two attempts; the average is about half of it."""
MOST_STRAYS = 5_000
"""Most rows that are moved out of the default partition under its lock. With more rows, it is set aside."""
LARGEST_DEFAULT = 16 * 1024 * 1024
"""Most bytes of a default partition that is scanned under its lock."""
BATCH = 1_000
"""Rows that are deleted, or moved without a lock, in one statement."""

_PREFIX = f"{SATELLITES['history']}_p"
_DATE = "%Y%m%d"
_BEFORE = f"{SATELLITES['history']}_before"
_MOMENT = "%Y%m%d%H%M%S%f"
_BOUND = f"{_BEFORE}_bound"
_EARLIEST = datetime(1, 1, 1, tzinfo=UTC)
# The driver needs no limit: the server limits statements that run under a lock.
_NO_LIMIT = timedelta(hours=6).total_seconds()
_BUSY = (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError, asyncpg.QueryCanceledError)
_log = logging.getLogger("outbox")


async def ensure_partitions(connection: Connection, *, schema: str | None = None, days_ahead: int = DAYS_AHEAD) -> int:
    """Creates missing partitions of today and the coming days (UTC), and the default one. Returns how many it created.

    Rows that are in the default partition because these were missing are moved. If there are many, the default partition
    becomes a partition named `outbox_history_before_…`. A partition that a long query is reading is left for the next call. May
    run concurrently. Raises the driver's errors.
    """
    return await _Partitions(connection, schema).ensure(days_ahead)


async def drop_partitions(connection: Connection, older_than: timedelta, *, schema: str | None = None) -> int:
    """Drops partitions with only older rows, and deletes older rows from the default partition.

    Returns the number of dropped partitions and deleted batches. Partitions that cannot be locked are left for the next call.
    One that cannot be dropped, for instance because a view depends on it, keeps no other one: its error is raised when nothing
    else is left to do. Raises the driver's errors.
    """
    return await _Partitions(connection, schema).drop(older_than)


@dataclass(frozen=True, slots=True)
class _Span:
    """Name and time range of a partition."""

    name: str
    since: datetime
    until: datetime


class _Partitions:
    def __init__(self, connection: Connection, schema: str | None) -> None:
        self._connection = connection
        self._schema = schema
        later = ("partition", "since", "until", "later_than", "before", "bound", "bound_name")
        self._sql = queries(
            "history.sql",
            **satellite_names(schema),
            lock_timeout=milliseconds(LOCK_TIMEOUT),
            statement_timeout=milliseconds(STATEMENT_TIMEOUT),
            before_name=_BEFORE,
            **{name: f"{{{name}}}" for name in later},
        )

    async def ensure(self, days_ahead: int) -> int:
        created = 0
        if not await self._value("has_default"):
            created += await self._retry_while_locked("attaching the default partition", self._restore_default)
        created += await self._place_detached()
        today = await self._value("today")
        midnights = [datetime.combine(today + timedelta(days=ahead), time(), UTC) for ahead in range(days_ahead + 2)]
        days = [_Span(f"{_PREFIX}{since:{_DATE}}", since, until) for since, until in pairwise(midnights)]
        known = await self._names("partitions")
        missing = [span for span in days if span.name not in known]
        if days[0] in missing and (
            await self._value("default_size") > LARGEST_DEFAULT
            or await self._strays(missing[0].since, missing[-1].until) > MOST_STRAYS
        ):
            # Scanning it, or moving its rows, would take too long under a lock that blocks every writer.
            created += await self._retry_while_locked("setting the default partition aside", partial(self._set_aside, missing))
            return created + await self._place_detached()
        for span in missing:
            created += await self._retry_while_locked(f"attaching {span.name}", partial(self._attach, span))
        return created

    async def drop(self, older_than: timedelta) -> int:
        # By the database's clock, which the rows have: that of this machine may be wrong.
        limit = await self._value("now") - older_than
        dropped, kept = 0, None
        for name in await self._names("partitions"):
            end = _end(name)
            if end is not None and end <= limit:
                try:
                    dropped += await self._retry_while_locked(f"dropping {name}", partial(self._drop, name))
                except (asyncpg.DependentObjectsStillExistError, asyncpg.InsufficientPrivilegeError) as error:
                    kept = error  # raised when all others are dropped
        async with self._connection.transaction():
            status = await self._connection.execute(self._sql["delete_strays"], older_than, BATCH)
        dropped += not status.endswith(" 0")
        if kept is not None and not dropped:
            raise kept
        return dropped

    # --- making --------------------------------------------------------------------------------------------------------

    async def _restore_default(self) -> int:
        """Attaches the default partition, which it creates if it is missing."""
        async with self._locked("lock_all"):
            if await self._value("has_default"):  # another process was faster
                return 0
            await self._connection.execute(self._sql["restore_default"])
        return 1

    async def _attach(self, span: _Span) -> int:
        """Creates a partition, moves its rows out of the default partition, and attaches it."""
        async with self._locked("lock_default"):
            strays = await self._strays(span.since, span.until)
            if strays > MOST_STRAYS or span.name in await self._names("partitions"):  # changed since the check without the lock
                return 0
            await self._run("make", span)
            if strays:
                await self._run("move", span, span.since, span.until)
            await self._run("attach", span)
        return 1

    async def _set_aside(self, missing: Sequence[_Span]) -> int:
        """Detaches the default partition. The first of the `missing` partitions begins now, where the detached one ends."""
        async with self._locked("lock_all"):
            if missing[0].name in await self._names("partitions"):  # another process was faster
                return 0
            # Under the lock, so that every row in the detached partition is older. Later ones go into the new partition.
            now = await self._value("now")
            day = TableName(missing[0].name, self._schema).sql
            for block, end in ("set_aside_day", now - timedelta(microseconds=1)), ("set_aside", now):
                before = quoted(f"{_BEFORE}_{end.astimezone(UTC):{_MOMENT}}")
                await self._connection.execute(render(self._sql[block], partition=day, before=before))
            for span in missing:
                part = replace(span, since=max(span.since, now))
                await self._run("make", part)
                await self._run("attach", part)
        return len(missing)

    async def _place_detached(self) -> int:
        """Attaches former default partitions, each for the time from the end of the one before it until it was set aside."""
        created = 0
        for name in await self._names("detached"):
            created += await self._retry_while_locked(f"attaching {name}", partial(self._place, name))
        return created

    async def _place(self, name: str) -> int:
        until = _end(name)
        if until is None:
            return 0
        ends = [end for known in await self._names("partitions") if (end := _end(known)) is not None and end <= until]
        span = _Span(name, max(ends, default=_EARLIEST), until)
        # Everything slow comes first, without a lock on the default partition and without a time limit: no other process uses
        # the detached table. Its check constraint then spares the scan while it is attached.
        async with self._locked(None, statement_timeout="0"):
            if name not in await self._names("detached"):
                return 0
            await self._run("complete", span)
            while not (await self._run("throw_out", span, span.since, span.until, BATCH)).endswith(" 0"):
                pass
            if not await self._connection.fetchval(self._rendered("is_bound", span)):
                await self._run("bound", span)
        async with self._locked("lock_default"):
            if await self._strays(span.since, span.until) > MOST_STRAYS or name not in await self._names("detached"):
                return 0
            await self._run("move", span, span.since, span.until)
            await self._run("attach", span)
            await self._run("unbound", span)
        return 1

    async def _drop(self, name: str) -> int:
        async with self._locked("lock_all"):
            if name not in await self._names("partitions"):
                return 0
            await self._run("drop", _Span(name, _EARLIEST, _EARLIEST))
        return 1

    # --- statements ----------------------------------------------------------------------------------------------------

    async def _names(self, query: str) -> list[str]:
        names: list[str] = await self._value(query)
        return names

    async def _strays(self, since: datetime, until: datetime) -> int:
        count: int = await self._value("strays", since, until, MOST_STRAYS + 1)
        return count

    async def _value(self, name: str, *arguments: object) -> Any:
        """Returns the value of a query."""
        # In a transaction: a transaction pooler may send statements outside of one to another server.
        if self._connection.is_in_transaction():
            return await self._connection.fetchval(self._sql[name], *arguments)
        async with self._connection.transaction():
            return await self._connection.fetchval(self._sql[name], *arguments)

    async def _run(self, name: str, span: _Span, *arguments: object) -> str:
        status: str = await self._connection.execute(self._rendered(name, span), *arguments, timeout=_NO_LIMIT)
        return status

    def _rendered(self, name: str, span: _Span) -> str:
        return render(
            self._sql[name],
            partition=TableName(span.name, self._schema).sql,
            since=_literal(span.since),
            until=_literal(span.until),
            later_than="" if span.since == _EARLIEST else f"at >= {_literal(span.since)} and",
            bound=quoted(_BOUND),
            bound_name=_BOUND,
        )

    @asynccontextmanager
    async def _locked(self, lock: str | None, *, statement_timeout: str | None = None) -> AsyncIterator[None]:
        """Runs the block in a transaction that excludes other changes of partitions and takes `lock`."""
        try:
            await self._connection.execute(self._sql["begin"])
            if statement_timeout is not None:
                await self._connection.execute(f"set local statement_timeout = {statement_timeout}")
            if lock is not None:
                await self._connection.execute(self._sql[lock])
            yield
            await self._connection.execute("commit")
        except BaseException:
            await roll_back_quietly(self._connection)
            raise

    async def _retry_while_locked(self, what: str, work: Callable[[], Awaitable[int]]) -> int:
        """Runs `work`, again while it cannot get its locks. Returns 0 if it never gets them."""
        for _ in range(ATTEMPTS):
            try:
                return await work()
            except _BUSY:
                await asyncio.sleep(random.uniform(0.1, 1.0) * LONGEST_PAUSE.total_seconds())  # noqa: S311  no secret
        _log.info("%s: the history is in use; will try again later", what)
        return 0


def _end(name: str) -> datetime | None:
    """Returns the end of the partition of that name; None if it has another form."""
    try:
        if name.startswith(f"{_BEFORE}_"):
            return datetime.strptime(name.removeprefix(f"{_BEFORE}_"), _MOMENT).replace(tzinfo=UTC)
        return datetime.strptime(name.removeprefix(_PREFIX), _DATE).replace(tzinfo=UTC) + timedelta(days=1)
    except ValueError:
        return None


def _literal(moment: datetime) -> str:
    return "minvalue" if moment == _EARLIEST else f"'{moment.isoformat()}'"


PAUSE = timedelta(minutes=1)
"""Pause before the history is written again after an error."""


def trace_id_in(headers: str) -> str:
    """Returns the SQL of the trace id in the column `headers`."""
    return query("sent_facts.sql", "trace_id", headers=headers)


class SentFacts:
    """Records sent messages, with their `index_keys`, in the history next to the outbox table `table`, for `component`.

    Records nothing if the history does not exist or the user may not write to it. If recording fails, messages are settled
    without it, and it is tried again a minute later.
    """

    def __init__(self, table: TableName, component: str, observer: Observer, index_keys: IndexKeys | None = None) -> None:
        self.history = TableName("outbox_history", table.schema).sql
        self.component = component
        self._index_keys = index_keys
        names = {
            "table": table.sql,
            "history": self.history,
            "trace_id": trace_id_in("message.headers"),
            "headers": "message.headers",
        }
        self.sql = queries("sent_facts.sql", **names)
        self._observer = observer
        self._there = False
        self._since = 0.0

    @property
    def wanted(self) -> bool:
        """Whether to record messages now."""
        return self._there and monotonic() >= self._since

    async def look(self, connection: Connection) -> None:
        """Finds out whether the history can be written."""
        self._there = bool(await connection.fetchval(self.sql["writable"], timeout=COMMAND_TIMEOUT.total_seconds()))
        if not self._there:
            _log.info("no history of sent messages is written: the table %s does not exist or is not accessible", self.history)

    def arguments(self, messages: Sequence[Message]) -> tuple[object, ...]:
        """Returns the statements' arguments about `messages`: ids, roots, parents, component, and index keys or None."""
        keys = [array_text(self._index_keys.values(message)) for message in messages] if self._index_keys else None
        return (*identities(messages), self.component, keys)

    def lost(self, count: int, error: BaseException) -> None:
        """Records that `count` messages could not be written, and pauses."""
        self._since = monotonic() + PAUSE.total_seconds()
        self._observer.notify(HistoryLost(count=count, reason=reason_of(error)))


def identities(messages: Sequence[Message]) -> tuple[list[str], list[str] | None, list[str | None] | None]:
    """Returns ids, roots and parents of `messages`; None for the last two if all are roots."""
    chains = [message.tracking_ids for message in messages]
    ids = [chain[-1] for chain in chains]
    if max(map(len, chains), default=1) == 1:
        return ids, None, None
    return ids, [chain[0] for chain in chains], [chain[-2] if len(chain) > 1 else None for chain in chains]
