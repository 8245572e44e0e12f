"""Daily partitions of the history, created ahead and dropped when they are old; and facts about sent messages.

What takes a lock that readers or writers would notice waits for it a moment only, and is tried again: they are held up for
that moment at most. As the history has a default partition, PostgreSQL cannot detach concurrently, and attaching locks the
default one exclusively; that is why a large default partition is not scanned under that lock, but set aside as a whole.
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
from outbox.postgres.queries import TableName, queries, quoted, render
from outbox.postgres.rows import array_text
from outbox.postgres.schema.objects import SATELLITES, satellite_names

DAYS_AHEAD = 3
LOCK_TIMEOUT = timedelta(milliseconds=50)
"""Longest that anybody is held up by our waiting for a lock."""
STATEMENT_TIMEOUT = timedelta(seconds=2)
"""Longest that anything may take while a lock is held."""
TRIES = 10
"""For each lock; then it is for the next call."""
LONGEST_REST = timedelta(milliseconds=400)
"""Between two tries, a half of it on average."""
MOST_STRAYS = 5_000
"""Rows that are moved out of the default partition under its lock; were there more, it would be set aside."""
LARGEST_DEFAULT = 16 * 1024 * 1024
"""Bytes of a default partition that may be scanned under its lock."""
BATCH = 1_000
"""Rows that are deleted, or moved without a lock, at once."""

_PREFIX = f"{SATELLITES['history']}_p"
_DATE = "%Y%m%d"
_BEFORE = f"{SATELLITES['history']}_before"
_MOMENT = "%Y%m%d%H%M%S%f"
_BOUND = f"{_BEFORE}_bound"
_EARLIEST = datetime(1, 1, 1, tzinfo=UTC)
_NO_LIMIT = timedelta(hours=6).total_seconds()
"""The server limits what is done under a lock."""
_BUSY = (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError, asyncpg.QueryCanceledError)
_log = logging.getLogger("outbox")


async def ensure_partitions(connection: Connection, *, schema: str | None = None, days_ahead: int = DAYS_AHEAD) -> int:
    """Makes the partitions of today and the coming days (in UTC) that are missing; how many it made.

    Rows that went into the default partition for want of them are moved, or, if there are many, become a partition of their own
    under the name `outbox_history_before_…`. What cannot be locked, because a long query reads it, is left for the next call.
    Safe while several do it. Raises the driver's errors.
    """
    return await _Partitions(connection, schema).ensure(days_ahead)


async def drop_partitions(connection: Connection, older_than: timedelta, *, schema: str | None = None) -> int:
    """Drops partitions all of whose facts are older than that, and deletes such facts from the default partition.

    How many partitions and batches of facts those were. What cannot be locked now is left for the next call. Raises the
    driver's errors.
    """
    return await _Partitions(connection, schema).drop(older_than)


@dataclass(frozen=True, slots=True)
class _Span:
    """The time of a partition."""

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
            lock_timeout=_milliseconds(LOCK_TIMEOUT),
            statement_timeout=_milliseconds(STATEMENT_TIMEOUT),
            before_name=_BEFORE,
            **{name: f"{{{name}}}" for name in later},
        )

    async def ensure(self, days_ahead: int) -> int:
        made = await self._place_detached()
        today = await self._value("today")
        midnights = [datetime.combine(today + timedelta(days=ahead), time(), UTC) for ahead in range(days_ahead + 2)]
        days = [_Span(f"{_PREFIX}{since:{_DATE}}", since, until) for since, until in pairwise(midnights)]
        known = await self._names("partitions")
        missing = [span for span in days if span.name not in known]
        if days[0] in missing and (
            await self._value("default_size") > LARGEST_DEFAULT
            or await self._strays(missing[0].since, missing[-1].until) > MOST_STRAYS
        ):
            # Too large to be scanned, or with too many rows to be moved, under a lock that holds up every writer.
            made += await self._patiently("setting the default partition aside", partial(self._set_aside, missing))
            return made + await self._place_detached()
        for span in missing:
            made += await self._patiently(f"attaching {span.name}", partial(self._attach, span))
        return made

    async def drop(self, older_than: timedelta) -> int:
        limit = datetime.now(UTC) - older_than
        dropped = 0
        for name in await self._names("partitions"):
            end = _end(name)
            if end is not None and end <= limit:
                dropped += await self._patiently(f"dropping {name}", partial(self._drop, name))
        async with self._connection.transaction():
            status = await self._connection.execute(self._sql["delete_strays"], older_than, BATCH)
        return dropped + (not status.endswith(" 0"))

    # --- making --------------------------------------------------------------------------------------------------------

    async def _attach(self, span: _Span) -> int:
        """Makes a partition, moves the strays into it, and attaches it."""
        async with self._locked("lock_default"):
            strays = await self._strays(span.since, span.until)
            if strays > MOST_STRAYS or span.name in await self._names("partitions"):  # since it was looked at
                return 0
            await self._run("make", span)
            if strays:
                await self._run("move", span, span.since, span.until)
            await self._run("attach", span)
        return 1

    async def _set_aside(self, missing: Sequence[_Span]) -> int:
        """Detaches the default partition as it is; the first of the `missing` begins now, where that one ends."""
        async with self._locked("lock_all"):
            if missing[0].name in await self._names("partitions"):  # another process was faster
                return 0
            now = await self._value("now")
            name = f"{_BEFORE}_{now.astimezone(UTC):{_MOMENT}}"
            await self._connection.execute(render(self._sql["set_aside"], before=quoted(name)))
            for span in missing:
                part = replace(span, since=max(span.since, now))
                await self._run("make", part)
                await self._run("attach", part)
        return len(missing)

    async def _place_detached(self) -> int:
        """Attaches former default partitions, each from where the one before it ends until it was set aside."""
        made = 0
        for name in await self._names("detached"):
            made += await self._patiently(f"attaching {name}", partial(self._place, name))
        return made

    async def _place(self, name: str) -> int:
        until = _end(name)
        if until is None:
            return 0
        ends = [end for known in await self._names("partitions") if (end := _end(known)) is not None and end <= until]
        span = _Span(name, max(ends, default=_EARLIEST), until)
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
        """In a transaction also for reading: a transaction pooler may send what is outside of one to another server."""
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
        """A transaction that has the history for itself among those of our kind, and `lock`."""
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

    async def _patiently(self, what: str, work: Callable[[], Awaitable[int]]) -> int:
        """`work`, tried again while it cannot have its locks; 0 if it never could."""
        for _ in range(TRIES):
            try:
                return await work()
            except _BUSY:
                await asyncio.sleep(random.uniform(0.1, 1.0) * LONGEST_REST.total_seconds())  # noqa: S311  no secret
        _log.info("%s: the history is in use, it is for the next time", what)
        return 0


def _end(name: str) -> datetime | None:
    """Where the partition of that name ends; None for one that is not ours."""
    try:
        if name.startswith(f"{_BEFORE}_"):
            return datetime.strptime(name.removeprefix(f"{_BEFORE}_"), _MOMENT).replace(tzinfo=UTC)
        return datetime.strptime(name.removeprefix(_PREFIX), _DATE).replace(tzinfo=UTC) + timedelta(days=1)
    except ValueError:
        return None


def _literal(moment: datetime) -> str:
    return "minvalue" if moment == _EARLIEST else f"'{moment.isoformat()}'"


def _milliseconds(time_: timedelta) -> str:
    return str(round(time_ / timedelta(milliseconds=1)))


PAUSE = timedelta(minutes=1)
"""How long nothing is told after that failed once."""


class SentFacts:
    """Writes to the history next to the outbox table `table` what was sent, and its `index_keys`, on behalf of `component`.

    Where it is not there, or closed to the user, nothing is told. When telling fails the messages are settled without, and it
    is tried again a minute later.
    """

    def __init__(self, table: TableName, component: str, observer: Observer, index_keys: IndexKeys | None = None) -> None:
        self.history = TableName("outbox_history", table.schema).sql
        self.component = component
        self._index_keys = index_keys
        self.sql = queries("sent_facts.sql", table=table.sql, history=self.history)
        self._observer = observer
        self._there = False
        self._since = 0.0

    @property
    def wanted(self) -> bool:
        """Whether facts are to be told now."""
        return self._there and monotonic() >= self._since

    async def look(self, connection: Connection) -> None:
        """Finds out whether the history is there."""
        self._there = bool(await connection.fetchval(self.sql["writable"], timeout=COMMAND_TIMEOUT.total_seconds()))
        if not self._there:
            _log.info("no history of sent messages is written: the table %s is not there, or closed", self.history)

    def arguments(self, messages: Sequence[Message]) -> tuple[object, ...]:
        """What the statements take of `messages`: ids, roots, parents, by whom, and index keys, None where there are none."""
        keys = [array_text(self._index_keys.values(message)) for message in messages] if self._index_keys else None
        return (*identities(messages), self.component, keys)

    def lost(self, count: int, error: BaseException) -> None:
        """Notes that `count` facts could not be told."""
        self._since = monotonic() + PAUSE.total_seconds()
        self._observer.notify(HistoryLost(count=count, reason=reason_of(error)))


def identities(messages: Sequence[Message]) -> tuple[list[str], list[str], list[str | None]]:
    """Ids, roots and parents of `messages`."""
    chains = [message.tracking_ids for message in messages]
    parents = [chain[-2] if len(chain) > 1 else None for chain in chains]
    return [chain[-1] for chain in chains], [chain[0] for chain in chains], parents
