"""PostgresArchive: records dead letters of a broker in PostgreSQL, to be listed, searched and requeued."""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import asyncpg

from outbox.core.message import NO_HEADERS
from outbox.errors import DatabaseUnavailableError, SchemaError
from outbox.masking import Masking
from outbox.ports import DeadMessage
from outbox.postgres.dead_letter_writer import DeadLetterWriter, Storable, recording_steps
from outbox.postgres.pool import REFUSALS, Connection, Pool, reason_of, taken_from, unavailable_errors
from outbox.postgres.queries import TableName, query
from outbox.postgres.schema import check_archive_tables
from outbox.postgres.schema.objects import SATELLITES

STATEMENT_TIMEOUT = timedelta(seconds=30)
"""Longest wait for one batch to be recorded."""
IDLE_TIMEOUT = timedelta(seconds=10)
"""How long a transaction may idle, well below `STATEMENT_TIMEOUT`."""

# Of concurrent statements that record one message, one wins. The others are tried again, and then find its row.
_TRY_AGAIN = (asyncpg.UniqueViolationError, asyncpg.DeadlockDetectedError, asyncpg.SerializationError)
_log = logging.getLogger("outbox")


class PostgresArchive:
    """Implements `outbox.ports.Archive` with the table of dead letters next to the outbox table `table`."""

    def __init__(self, pool: Pool, table: TableName, *, masking: Masking | None = None) -> None:
        self._pool = pool
        self._table = table
        self._masking = masking or Masking()
        names = {
            kind: TableName(SATELLITES[kind], table.schema).sql
            for kind in ("dead_letter", "edition", "operation", "operation_item", "subscription", "component")
        }
        self._sql = {
            name: query("archive.sql", name, recorded=recording_steps(table.schema), **names)
            for name in ("archive", "known_queues", "count_open", "lacking_rights")
        }

    async def check(self) -> None:
        """Raises `DatabaseUnavailableError`, or `SchemaError` if a table or a privilege is missing."""
        with unavailable_errors("looking for the table of dead letters"):
            async with taken_from(self._pool) as connection:
                await check_archive_tables(connection, self._table)
                lacking = await connection.fetch(self._sql["lacking_rights"])
        if lacking:
            rights = ", ".join(row[0].replace('"', "") for row in lacking)
            raise SchemaError(f"this user cannot archive dead letters: it lacks {rights}")

    async def record(self, dead: Sequence[DeadMessage]) -> Sequence[DeadMessage]:
        """See `outbox.ports.Archive.record`. Stores texts as ASCII if the database cannot store a message as it is."""
        try:
            with unavailable_errors("recording dead letters", limit=STATEMENT_TIMEOUT):
                async with taken_from(self._pool) as connection:
                    storable = Storable(connection.get_settings().server_encoding)
                    with suppress(*_TRY_AGAIN):
                        async with _read_committed(connection):
                            await self._execute(connection, dead, storable)
                            return ()
                    async with _read_committed(connection):
                        await self._execute(connection, dead, storable)
                        return ()
        except DatabaseUnavailableError as error:
            if not isinstance(error.__cause__, REFUSALS):
                raise
            # The error does not say which message it is about.
            return await self._record_one_by_one(dead)

    async def known_queues(self) -> frozenset[str]:
        """See `outbox.ports.Archive.known_queues`."""
        return frozenset([row[0] for row in await self._fetch("looking for queues", "known_queues")])

    async def count_open(self, queue: str) -> int:
        """See `outbox.ports.Archive.count_open`."""
        [row] = await self._fetch("counting dead letters", "count_open", queue)
        count: int = row[0]
        return count

    async def _record_one_by_one(self, dead: Sequence[DeadMessage]) -> Sequence[DeadMessage]:
        refused = []
        with unavailable_errors("recording dead letters one by one", limit=STATEMENT_TIMEOUT):
            async with taken_from(self._pool) as connection, _read_committed(connection):
                storable = Storable(connection.get_settings().server_encoding)
                for message in dead:
                    try:
                        # A savepoint: a message that cannot be stored must not undo those before it.
                        async with connection.transaction():
                            await self._execute(connection, [message], storable)
                    except REFUSALS:
                        # Without headers and properties, which any program may have written.
                        bare = replace(
                            message,
                            headers=NO_HEADERS,
                            header_types=NO_HEADERS,
                            properties=NO_HEADERS,
                            tracking_ids=(),
                            failures=(),
                        )
                        try:
                            async with connection.transaction():
                                await self._execute(connection, [bare], Storable("ASCII"))
                        except REFUSALS as error:
                            refused.append(message)
                            _log.error(
                                "the database refuses the dead letter %s of queue %s, which stays in the broker: %s",
                                message.message_id,
                                message.queue,
                                reason_of(error),
                            )
        return refused

    async def _execute(self, connection: Connection, dead: Sequence[DeadMessage], storable: Storable) -> None:
        rows = [DeadLetterWriter(self._masking, storable).of_dead_message(message) for message in dead]
        columns: list[Any] = [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(_COLUMNS)]
        await connection.fetch(self._sql["archive"], *columns, timeout=STATEMENT_TIMEOUT.total_seconds())

    async def _fetch(self, doing: str, name: str, *arguments: Any) -> Sequence[asyncpg.Record]:
        with unavailable_errors(doing, limit=STATEMENT_TIMEOUT):
            async with taken_from(self._pool) as connection:
                return await connection.fetch(self._sql[name], *arguments, timeout=STATEMENT_TIMEOUT.total_seconds())


_COLUMNS = 28


@asynccontextmanager
async def _read_committed(connection: Connection) -> AsyncIterator[None]:
    # Explicitly: another default level would not see rows that another archiver has just recorded.
    async with connection.transaction(isolation="read_committed"):
        # The server ends the transaction of an archiver that is frozen: others wait for its locks.
        await connection.execute(f"set local idle_in_transaction_session_timeout = {IDLE_TIMEOUT // timedelta(milliseconds=1)}")
        yield
