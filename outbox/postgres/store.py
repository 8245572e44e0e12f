"""The outbox table as the relay's Store: claims rows in a transaction of its own, and settles them in it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from types import TracebackType
from typing import Any, Self, assert_never
from uuid import NAMESPACE_OID, uuid5

import asyncpg

from outbox.codec import decode_tracking_ids
from outbox.errors import MalformedMessageError
from outbox.message import NO_HEADERS, Message, PendingMessage
from outbox.outcome import Dead, Done, Failure, Held, RelayOutcome, Retry, Returned
from outbox.ports import Backlog
from outbox.postgres.names import TableName
from outbox.postgres.pool import CONNECT_TIMEOUT, Connection, Pool, unavailable_errors
from outbox.postgres.queries import queries
from outbox.postgres.schema import check_outbox_table

UNROUTABLE = "unroutable"
"""What `last_error` says of a held row."""
LARGEST_BATCH = 32 * 1024 * 1024
"""A claim ends after the row whose body takes it over this many bytes."""
IDLE_MARGIN = timedelta(seconds=5)
"""How much longer than a send the server lets a claim's transaction idle."""
LOCK_TIMEOUT = timedelta(seconds=5)
"""Longest wait for a lock on rows or on the table, which somebody's DDL may hold."""


class PostgresStore:
    """Implements the Store port on `table`. Sent rows are deleted, or kept with `sent_at` if `keep_sent`."""

    def __init__(self, pool: Pool, table: TableName, *, keep_sent: bool, longest_send: timedelta) -> None:
        self._pool = pool
        self._table = table
        self._keep_sent = keep_sent
        self._sql = queries(
            "relay.sql",
            table=table.sql,
            idle_timeout=_milliseconds(longest_send + IDLE_MARGIN),
            lock_timeout=_milliseconds(LOCK_TIMEOUT),
        )

    async def check(self) -> None:
        """Raises `SchemaError` if the table is missing or of an unknown shape."""
        with unavailable_errors(f"looking at {self._table}"):
            async with self._pool.acquire(timeout=CONNECT_TIMEOUT.total_seconds()) as connection:
                await check_outbox_table(connection, self._table)

    async def claim(self, limit: int) -> "PostgresClaim | None":
        """See `outbox.ports.Store.claim`."""
        with unavailable_errors(f"claiming from {self._table}"):
            connection = await self._pool.acquire(timeout=CONNECT_TIMEOUT.total_seconds())
            try:
                await connection.execute(self._sql["begin"])
                rows = await connection.fetch(self._sql["claim"], limit, LARGEST_BATCH)
                if rows:
                    messages = [self._pending(row) for row in rows]
                    return PostgresClaim(self._pool, connection, self._sql, messages, keep_sent=self._keep_sent)
                await connection.execute("commit")
            except BaseException:
                await self._pool.release(connection)
                raise
            await self._pool.release(connection)
            return None

    async def next_due(self) -> timedelta | None:
        """See `outbox.ports.Store.next_due`."""
        with unavailable_errors(f"looking for what is due in {self._table}"):
            due: timedelta | None = await self._pool.fetchval(self._sql["next_due"])
            return due

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
        with unavailable_errors(f"counting {self._table}"):
            [row] = await self._pool.fetch(self._sql["backlog"])
            return Backlog(unsent=row["unsent"], oldest_due=row["oldest_due"])

    async def _count(self, name: str, *arguments: object) -> int:
        """Runs a statement and returns how many rows it changed, which ends its command tag."""
        with unavailable_errors(f"{name} in {self._table}"):
            async with self._pool.acquire(timeout=CONNECT_TIMEOUT.total_seconds()) as connection:
                await connection.execute(self._sql["begin"])
                status = await connection.execute(self._sql[name], *arguments)
                await connection.execute("commit")
        return int(status.rpartition(" ")[2])

    def _pending(self, row: asyncpg.Record) -> PendingMessage:
        row_id, *_ = row
        headers, malformed = _headers(row["headers"])
        tracking_ids = _tracking_ids(row["tracking_ids"]) or (self._id_of_row(row_id),)
        message = Message(
            id=tracking_ids[-1],
            routing_key=row["routing_key"],
            body=row["body"],
            created_at=row["created_at"],
            tracking_ids=tracking_ids,
            content_type=row["content_type"],
            headers=headers,
            expiration=row["expiration"],
            ordering_key=row["ordering_key"],
            target_queue=row["target_queue"],
        )
        held = row["last_error"] == UNROUTABLE
        return PendingMessage(row_id=row_id, attempts=row["attempts"], held=held, message=message, malformed=malformed)

    def _id_of_row(self, row_id: int) -> str:
        """The same id at every sending, for a row whose producer gave it none that can be read."""
        return str(uuid5(NAMESPACE_OID, f"{self._table}:{row_id}"))


class PostgresClaim:
    """Implements the Claim port: a transaction that holds the rows' locks."""

    def __init__(
        self,
        pool: Pool,
        connection: "asyncpg.pool.PoolConnectionProxy[asyncpg.Record]",
        sql: Any,
        messages: Sequence[PendingMessage],
        *,
        keep_sent: bool,
    ) -> None:
        self.messages = messages
        self._pool = pool
        self._connection = connection
        self._sql = sql
        self._keep_sent = keep_sent

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with unavailable_errors("ending a claim"):
            try:
                await self._connection.execute("commit" if error is None else "rollback")
            finally:
                await self._pool.release(self._connection)

    async def settle(self, outcomes: Sequence[RelayOutcome]) -> None:
        """See `outbox.ports.Claim.settle`."""
        settled = _Settled()
        for pending, outcome in zip(self.messages, outcomes, strict=True):
            settled.add(pending.row_id, outcome)
        with unavailable_errors("settling a claim"):
            await self._write(settled, self._connection)

    async def _write(self, settled: "_Settled", connection: Connection) -> None:
        if settled.done:
            await connection.execute(self._sql["keep" if self._keep_sent else "delete"], settled.done)
        if settled.retried:
            await connection.execute(self._sql["retry"], *zip(*settled.retried, strict=True))
        if settled.parked:
            await connection.execute(self._sql["park"], *zip(*settled.parked, strict=True))
        if settled.held:
            await connection.execute(self._sql["hold"], *zip(*settled.held, strict=True))


@dataclass(slots=True)
class _Settled:
    """The outcomes of one claim, gathered by the statement that records them."""

    done: list[int] = field(default_factory=list)
    retried: list[tuple[int, str, timedelta]] = field(default_factory=list)
    parked: list[tuple[int, str]] = field(default_factory=list)
    held: list[tuple[int, timedelta | None]] = field(default_factory=list)

    def add(self, row_id: int, outcome: RelayOutcome) -> None:
        match outcome:
            case Done():
                self.done.append(row_id)
            case Retry(delay, failure):
                self.retried.append((row_id, _storable(failure), delay))
            case Dead(_, failure):
                self.parked.append((row_id, _storable(failure)))
            case Held(probe_after):
                self.held.append((row_id, probe_after))
            case Returned():
                pass
            case _:
                assert_never(outcome)


def _storable(failure: Failure) -> str:
    """PostgreSQL's text has no NUL."""
    return str(failure).replace("\0", "\N{SYMBOL FOR NULL}")


def _headers(text: str | None) -> tuple[Any, Failure | None]:
    if text is None:
        return NO_HEADERS, None
    headers = json.loads(text)
    if isinstance(headers, dict):
        return headers, None
    return NO_HEADERS, Failure("outbox.errors.MalformedMessageError", "the column headers is not a JSON object")


def _tracking_ids(text: str) -> tuple[str, ...]:
    try:
        return decode_tracking_ids(text, source="the column tracking_ids")
    except MalformedMessageError:
        return ()


def _milliseconds(time: timedelta) -> str:
    return str(round(time / timedelta(milliseconds=1)))
