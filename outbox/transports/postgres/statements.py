"""Running single statements: each is a READ COMMITTED transaction of its own, and none waits for a server that is gone."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import asyncpg

from outbox.postgres.pool import Connection, Pool, take_from

CANCEL_TIMEOUT = timedelta(seconds=5)
"""Longest wait for the server to confirm that a statement has stopped."""

Call = tuple[Any, ...]
"""A statement, and its arguments."""


class Statements:
    """What the connections of `pool` are used for. Raises the driver's errors."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._by_default: bool | None = None

    async def fetch(self, statement: str, *arguments: Any, timeout: timedelta) -> Sequence[asyncpg.Record]:
        """The rows of `statement`; by then it is committed.

        If it takes too long it is cancelled: raises `QueryCanceledError` where the server says that it has stopped, so that it
        cannot commit behind our back; a server that says nothing raises `TimeoutError`, and whether it happened is unknown.

        In one round trip, unless the database has another isolation level as its default: then locking what others have changed
        would be an error there.
        """
        async with borrowed(self._pool) as connection:
            if self._by_default is None:
                self._by_default = await connection.fetchval(
                    "select pg_catalog.current_setting('transaction_isolation') = 'read committed'"
                )
            async with cancelling(connection):
                if self._by_default:
                    return await connection.fetch(statement, *arguments, timeout=timeout.total_seconds())
                async with connection.transaction(isolation="read_committed"):
                    return await connection.fetch(statement, *arguments, timeout=timeout.total_seconds())

    async def fetch_in_turn(self, *calls: Call, timeout: timedelta) -> Sequence[Sequence[asyncpg.Record]]:
        """The rows of several statements, each with its arguments, in one transaction: all of them happen, or none."""
        async with (
            borrowed(self._pool) as connection,
            asyncio.timeout(timeout.total_seconds()),
            connection.transaction(isolation="read_committed"),
        ):
            return [await connection.fetch(statement, *arguments) for statement, *arguments in calls]


@asynccontextmanager
async def cancelling(connection: Connection) -> AsyncIterator[None]:
    """Turns a statement's `TimeoutError` into `QueryCanceledError`, once the server has confirmed that it has stopped.

    The driver has asked the server to cancel it by then, and every further statement waits for the answer.
    """
    try:
        yield
    except TimeoutError as late:
        async with asyncio.timeout(CANCEL_TIMEOUT.total_seconds()):
            await connection.execute("rollback")
        raise asyncpg.QueryCanceledError("it took too long, and was cancelled") from late


@asynccontextmanager
async def borrowed(pool: Pool) -> AsyncIterator[Connection]:
    """A connection of `pool` until the block ends.

    When a statement was cancelled or timed out the connection is cut: putting it back would first wait for the server to
    confirm that it stopped, which is the server that we have just given up on.
    """
    connection = await take_from(pool)
    try:
        yield connection
    except (asyncio.CancelledError, TimeoutError):
        connection.terminate()
        raise
    finally:
        await pool.release(connection)
