"""Handing over: when the queues are in the outbox's own database, messages move there without leaving it."""

import secrets
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

import asyncpg

from outbox.errors import SchemaError
from outbox.postgres.names import TableName
from outbox.postgres.pool import CONNECT_TIMEOUT, Pool, unavailable_errors
from outbox.transports.postgres.statements import Statements
from outbox.transports.postgres.tables import TransportTables

FIRST_PROBE = timedelta(seconds=1)
"""How long the probe of an unroutable routing key waits, unless the caller says otherwise."""
LONGEST_STATEMENT = timedelta(seconds=30)
"""After this a hand-over is cancelled; nothing has happened then."""
LONGEST_HELD_KEY = 1000
"""An unroutable row whose routing key has more bytes is parked: it does not fit into the index of held rows."""

_LONGEST_AGE = timedelta(days=365_000)


class HandedState(StrEnum):
    """What became of a row of the outbox."""

    SENT = "sent"
    HELD = "held"
    DROPPED = "dropped"
    PARKED = "parked"


@dataclass(frozen=True, slots=True)
class HandedMessage:
    """One row that was due: what became of it, how old it was, and whether it had been held before."""

    row_id: int
    id: str
    routing_key: str
    state: HandedState
    was_held: bool
    age: timedelta


@dataclass(frozen=True, slots=True)
class HandedOver:
    """What one hand-over did, committed; `messages` are in the order in which they were due."""

    messages: Sequence[HandedMessage]

    def __len__(self) -> int:
        return len(self.messages)

    def having(self, state: HandedState) -> list[HandedMessage]:
        """The messages that ended in `state`."""
        return [message for message in self.messages if message.state is state]


class PostgresHandover:
    """Moves due rows of `table` to the queues bound to `exchange_name`, in the same database.

    Sent rows are deleted, or kept with `sent_at` if `keep_sent`. Rows that no queue wants are held, or, with
    `drop_unroutable`, treated as sent. `default_expiration` is that of rows without one. Any number of hand-overs may run at
    once.
    """

    def __init__(
        self,
        pool: Pool,
        table: TableName,
        *,
        exchange_name: str,
        keep_sent: bool,
        default_expiration: timedelta | None = None,
        drop_unroutable: bool = False,
    ) -> None:
        self._pool = pool
        self._statements = Statements(pool)
        self._tables = TransportTables(table)
        self._exchange_name = exchange_name
        self._keep_sent = keep_sent
        self._default_expiration = default_expiration
        self._drop_unroutable = drop_unroutable
        self._sql = self._tables.queries("handover.sql", longest_held_key=str(LONGEST_HELD_KEY))

    async def check(self) -> None:
        """Raises `SchemaError` if a table of the transport is missing, and `DatabaseUnavailableError`."""
        with unavailable_errors("looking for the tables of the Postgres transport"):
            await require_tables(self._pool, self._tables)

    async def hand_over(
        self, limit: int, *, probe_delays: Mapping[str, timedelta] | None = None, first_probe: timedelta = FIRST_PROBE
    ) -> HandedOver:
        """Hands over up to `limit` due rows, in one round trip and atomically.

        A message is in every queue that wants it and gone from the outbox, or nothing happened to it. Unroutable rows are held:
        one of each routing key is due again after its entry in `probe_delays`, else after `first_probe`, the others when they
        are released. Raises `DatabaseUnavailableError`; whether it happened is unknown then, and asking again is safe.
        """
        delays = probe_delays or {}
        with unavailable_errors(f"handing over from {self._tables.outbox}"):
            rows = await self._statements.fetch(
                self._sql["hand_over"],
                self._exchange_name,
                limit,
                self._keep_sent,
                self._drop_unroutable,
                list(delays.keys()),
                list(delays.values()),
                first_probe,
                self._default_expiration,
                timeout=LONGEST_STATEMENT,
            )
        return HandedOver([_handed(row) for row in rows])


async def same_database(one: Pool, other: Pool) -> bool:
    """Whether both pools lead to one database, under whatever names and through whatever proxies.

    Takes a random advisory lock through one and looks whether it is taken through the other: such locks belong to one
    database of one running server, and need no permission. Raises `DatabaseUnavailableError`.
    """
    if one is other:
        return True
    key, free = secrets.randbits(63), True
    timeout = CONNECT_TIMEOUT.total_seconds()
    with unavailable_errors("comparing the outbox's database with the broker's"):
        async with AsyncExitStack() as held:
            for pool in (one, other):
                connection = await held.enter_async_context(pool.acquire(timeout=timeout))
                await held.enter_async_context(connection.transaction())
                free = await connection.fetchval("select pg_catalog.pg_try_advisory_xact_lock($1)", key)
            return not free


async def require_tables(pool: Pool, tables: TransportTables) -> None:
    """Raises `SchemaError`, naming the first table of the transport that is missing."""
    names = (tables.delivery, tables.subscription, tables.dead_letter)
    for name in names:
        if await pool.fetchval("select pg_catalog.to_regclass($1) is null", name.sql):
            raise SchemaError(f"the table {name} does not exist: create it with `outbox migrate` or ensure_outbox_schema_async")


def _handed(row: asyncpg.Record) -> HandedMessage:
    row_id, message_id, routing_key, state, was_held, age_seconds = row
    return HandedMessage(row_id, message_id, routing_key, HandedState(state), was_held, _age(age_seconds))


def _age(seconds: float) -> timedelta:
    return timedelta(seconds=min(max(seconds, 0.0), _LONGEST_AGE.total_seconds()))
