"""The outbox table as the relay's Store: claims rows in a transaction of its own, and settles them in it."""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Self, assert_never
from uuid import NAMESPACE_OID, uuid5

import asyncpg

from outbox.codec import decode_tracking_ids
from outbox.errors import MalformedMessageError, SchemaError
from outbox.message import NO_HEADERS, Message, PendingMessage
from outbox.outcome import Dead, Done, Failure, Held, RelayOutcome, Retry, Returned
from outbox.ports import Backlog
from outbox.postgres.names import TableName
from outbox.postgres.pool import (
    COMMAND_TIMEOUT,
    CONNECT_TIMEOUT,
    Connection,
    Pool,
    PooledConnection,
    give_back,
    roll_back_quietly,
    taken_from,
    unavailable_errors,
)
from outbox.postgres.queries import queries
from outbox.postgres.schema import check_outbox_table
from outbox.postgres.schema.objects import outbox_names

UNROUTABLE = "unroutable"
"""What `last_error` says of a held row."""
LARGEST_BATCH = 32 * 1024 * 1024
"""A claim ends after the row that takes it over this many bytes."""
IDLE_MARGIN = timedelta(seconds=5)
"""How much longer than a send the server lets a claim's transaction idle."""
LOCK_TIMEOUT = timedelta(seconds=5)
"""Longest wait for a lock on rows or on the table, which somebody's DDL may hold."""
UNTRANSLATABLE = (asyncpg.CharacterNotInRepertoireError, asyncpg.UntranslatableCharacterError)
"""What the server says of text that has no form in UTF-8. A database of the encoding SQL_ASCII, for one, takes any bytes."""
_TIMEOUT = COMMAND_TIMEOUT.total_seconds()
"""Said with every statement, because a given pool may have no limit of its own."""
_LONGEST_TIME = timedelta(days=365_000).total_seconds()
_LATEST = datetime(9999, 12, 31, tzinfo=UTC).timestamp()


def relay_queries(table: TableName, *, longest_send: timedelta) -> Mapping[str, str]:
    """The statements of `relay.sql` for `table`."""
    parts = queries("claiming.sql", table=table.sql)
    names = outbox_names(table)
    return queries(
        "relay.sql",
        table=table.sql,
        classes=parts["highest_first"],
        measured=parts["measured"],
        columns=parts["columns"],
        keyed_after=parts["keyed_after"],
        due_indexes=f"'{names['due_index_name']}', '{names['ordered_due_index_name']}'",
        idle_timeout=_milliseconds(longest_send + IDLE_MARGIN),
        lock_timeout=_milliseconds(LOCK_TIMEOUT),
    )


class PostgresStore:
    """Implements the Store port on `table`. Sent rows are deleted, or kept with `sent_at` if `keep_sent`."""

    def __init__(self, pool: Pool, table: TableName, *, keep_sent: bool, longest_send: timedelta) -> None:
        self._pool = pool
        self._table = table
        self._keep_sent = keep_sent
        self._sql = relay_queries(table, longest_send=longest_send)

    async def check(self) -> None:
        """Raises `SchemaError` if the table is missing, of an unknown shape, or closed to the user."""
        async with self._transaction(f"looking at {self._table}") as connection:
            await check_outbox_table(connection, self._table)
            lacking = await connection.fetchval(self._sql["lacking_rights"])
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
                messages = await self._claimed(connection, limit)
                if not messages:
                    await connection.execute("commit", timeout=_TIMEOUT)
            except BaseException:
                await roll_back_quietly(connection)
                await give_back(self._pool, connection)
                raise
            if messages:
                return PostgresClaim(self._pool, connection, self._sql, messages, keep_sent=self._keep_sent)
            await give_back(self._pool, connection)
            return None

    async def next_due(self) -> timedelta | None:
        """See `outbox.ports.Store.next_due`."""
        async with self._transaction(f"looking for what is due in {self._table}") as connection:
            return _time(await connection.fetchval(self._sql["next_due"], timeout=_TIMEOUT))

    async def release_held(self, routing_key: str, limit: int) -> int:
        """See `outbox.ports.Store.release_held`."""
        return await self._count("release_held", routing_key, limit)

    async def ensure_probes(self) -> int:
        """See `outbox.ports.Store.ensure_probes`."""
        return await self._count("ensure_probes")

    async def delete_sent(self, older_than: timedelta, limit: int) -> int:
        """See `outbox.ports.Store.delete_sent`."""
        return await self._count("delete_sent", older_than, limit)

    async def backlog(self) -> Backlog:
        """See `outbox.ports.Store.backlog`."""
        async with self._transaction(f"counting {self._table}") as connection:
            [row] = await connection.fetch(self._sql["backlog"], timeout=_TIMEOUT)
        return Backlog(unsent=row["unsent"], oldest_due=_time(row["oldest_due"]))

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

    async def _claimed(self, connection: Connection, limit: int) -> Sequence[PendingMessage]:
        """Begins, and claims; in smaller and smaller batches while a row is among them that the server cannot show."""
        await connection.execute(self._sql["begin"], timeout=_TIMEOUT)
        try:
            rows = await connection.fetch(self._sql["claim"], limit, LARGEST_BATCH, timeout=_TIMEOUT)
        except UNTRANSLATABLE as error:
            await connection.execute("rollback", timeout=_TIMEOUT)
            if limit == 1:
                return await self._claimed_unread(connection, error)
            return await self._claimed(connection, limit // 2)
        claimed = [self._pending(row) for row in rows if row["id"] is not None]
        if not claimed and rows[0]["keyed_after"] is not None:
            rows = await connection.fetch(self._sql["claim_keyed"], limit, LARGEST_BATCH, timeout=_TIMEOUT)
            claimed = [self._pending(row) for row in rows]
        return claimed

    async def _claimed_unread(self, connection: Connection, error: Exception) -> Sequence[PendingMessage]:
        await connection.execute(self._sql["begin"], timeout=_TIMEOUT)
        rows = await connection.fetch(self._sql["claim_unread"], timeout=_TIMEOUT)
        return [self._unread(row, error) for row in rows]

    def _pending(self, row: asyncpg.Record) -> PendingMessage:
        row_id, *_ = row
        headers, malformed = _headers(row["headers"])
        tracking_ids = _tracking_ids(row["tracking_ids"]) or (self._id_of_row(row_id),)
        message = Message(
            id=tracking_ids[-1],
            routing_key=row["routing_key"],
            body=row["body"],
            created_at=_instant(row["created_at"]),
            tracking_ids=tracking_ids,
            content_type=row["content_type"],
            headers=headers,
            expiration=_time(row["expiration"]),
            ordering_key=row["ordering_key"],
            target_queue=row["target_queue"],
            hlc=row["hlc"],
            requeue_count=row["requeue_count"],
        )
        held = row["last_error"] == UNROUTABLE
        return PendingMessage(row_id=row_id, attempts=row["attempts"], held=held, message=message, malformed=malformed)

    def _unread(self, row: asyncpg.Record, error: Exception) -> PendingMessage:
        """Stands for a row of which nothing else is known."""
        row_id, attempts = row
        id_ = self._id_of_row(row_id)
        message = Message(id=id_, routing_key="", body=b"", created_at=_instant(0), tracking_ids=(id_,))
        malformed = _malformed(f"the row cannot be read: {error}")
        return PendingMessage(row_id=row_id, attempts=attempts, held=False, message=message, malformed=malformed)

    def _id_of_row(self, row_id: int) -> str:
        """The same id at every sending, for a row whose producer gave it none that can be read."""
        return str(uuid5(NAMESPACE_OID, f"{self._table}:{row_id}"))


class PostgresClaim:
    """Implements the Claim port: a transaction that holds the rows' locks."""

    def __init__(
        self,
        pool: Pool,
        connection: PooledConnection,
        sql: Mapping[str, str],
        messages: Sequence[PendingMessage],
        *,
        keep_sent: bool,
    ) -> None:
        self.messages = messages
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
            if error is None:
                await self._commit()
            else:
                await roll_back_quietly(self._connection)
        finally:
            await give_back(self._pool, self._connection)

    async def _commit(self) -> None:
        with unavailable_errors("ending a claim"):
            try:
                await self._connection.execute("commit", timeout=_TIMEOUT)
            except BaseException:
                await roll_back_quietly(self._connection)
                raise

    async def settle(self, outcomes: Sequence[RelayOutcome]) -> None:
        """See `outbox.ports.Claim.settle`."""
        settled = _Settled(self._storable)
        for pending, outcome in zip(self.messages, outcomes, strict=True):
            settled.add(pending.row_id, outcome)
        with unavailable_errors("settling a claim"):
            await self._write(settled, self._connection)

    async def _write(self, settled: "_Settled", connection: Connection) -> None:
        if settled.done:
            await connection.execute(self._sql["keep" if self._keep_sent else "delete"], settled.done, timeout=_TIMEOUT)
        for name, changes in (("retry", settled.retried), ("park", settled.parked), ("hold", settled.held)):
            if changes:
                await connection.execute(self._sql[name], *zip(*changes, strict=True), timeout=_TIMEOUT)

    def _storable(self, failure: Failure) -> str:
        """The failure as text that the database can hold: without NUL, without halves of pairs, in its encoding."""
        text = str(failure).replace("\0", "\N{SYMBOL FOR NULL}")
        encoding = "utf-8" if self._keeps_any_text else "ascii"
        return text.encode(encoding, "backslashreplace").decode(encoding)


@dataclass(slots=True)
class _Settled:
    """The outcomes of one claim, gathered by the statement that records them."""

    storable: Callable[[Failure], str]
    done: list[int] = field(default_factory=list)
    retried: list[tuple[int, str, timedelta]] = field(default_factory=list)
    parked: list[tuple[int, str]] = field(default_factory=list)
    held: list[tuple[int, timedelta | None]] = field(default_factory=list)

    def add(self, row_id: int, outcome: RelayOutcome) -> None:
        match outcome:
            case Done():
                self.done.append(row_id)
            case Retry(delay, failure):
                self.retried.append((row_id, self.storable(failure), delay))
            case Dead(_, failure):
                self.parked.append((row_id, self.storable(failure)))
            case Held(probe_after):
                self.held.append((row_id, probe_after))
            case Returned():
                pass
            case _:
                assert_never(outcome)


def _headers(text: str | None) -> tuple[Any, Failure | None]:
    if text is None:
        return NO_HEADERS, None
    try:
        headers = json.loads(text)
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, arrays in arrays in arrays
        return NO_HEADERS, _malformed(f"the column headers cannot be read: {error}")
    if isinstance(headers, dict):
        return headers, None
    return NO_HEADERS, _malformed("the column headers is not a JSON object")


def _malformed(reason: str) -> Failure:
    return Failure("outbox.errors.MalformedMessageError", reason)


def _tracking_ids(text: str) -> tuple[str, ...]:
    try:
        return decode_tracking_ids(text, source="the column tracking_ids")
    except MalformedMessageError:
        return ()


def _time(seconds: float | None) -> timedelta | None:
    """PostgreSQL's intervals reach further than ours, and to infinity."""
    return None if seconds is None else timedelta(seconds=min(max(seconds, -_LONGEST_TIME), _LONGEST_TIME))


def _instant(seconds: float) -> datetime:
    """The instant so long after 1970, or the nearest one that every protocol can carry."""
    return datetime.fromtimestamp(min(max(seconds, 0), _LATEST), UTC)


def _milliseconds(time: timedelta) -> str:
    return str(min(round(time / timedelta(milliseconds=1)), 2**31 - 1))
