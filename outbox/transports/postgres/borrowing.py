"""Borrowing a connection for one statement, without waiting for a server that does not answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from outbox.postgres.pool import CONNECT_TIMEOUT, Connection, Pool


@asynccontextmanager
async def borrowed(pool: Pool) -> AsyncIterator[Connection]:
    """A connection of `pool` until the block ends.

    When a statement was cancelled or timed out the connection is cut: putting it back would first wait for the server to
    confirm that it stopped, which is the server that we have just given up on.
    """
    connection = await pool.acquire(timeout=CONNECT_TIMEOUT.total_seconds())
    try:
        yield connection
    except (asyncio.CancelledError, TimeoutError):
        connection.terminate()
        raise
    finally:
        await pool.release(connection)
