"""Connections that keep their statements prepared, where they lead straight to a server.

A prepared statement takes one round trip instead of two and is parsed once. It belongs to one session of the server, so
through a pooler that shares sessions it is missing, or somebody else's. See docs/decisions/0134-prepared-statements.md.
"""

from typing import TYPE_CHECKING, Any

import asyncpg

if TYPE_CHECKING:
    _Connection = asyncpg.Connection[asyncpg.Record]

KEPT_STATEMENTS = 64
"""How many statements a connection keeps prepared; those that were used the longest ago make room."""


class Preparing:
    """Connects, for a pool: prepared statements are kept unless somebody stands between.

    The first connection finds that out; each further one looks again, because a pooler may have been put in.
    """

    def __init__(self) -> None:
        self._kept = 0

    async def connect(self, *arguments: Any, **options: Any) -> "_Connection":
        """A connection as `asyncpg.connect` makes it, which may have been made twice. Raises the driver's errors."""
        connection: _Connection = await asyncpg.connect(*arguments, **options, statement_cache_size=self._kept)
        try:
            kept = KEPT_STATEMENTS if await is_direct(connection) else 0
            if kept != self._kept:
                self._kept = kept
                await connection.close(timeout=1)
                connection = await asyncpg.connect(*arguments, **options, statement_cache_size=kept)
            if kept:
                # Tables that are queues grow a thousandfold within seconds: a plan that was made before is of no use.
                await connection.execute("set plan_cache_mode = force_custom_plan")
        except BaseException:
            connection.terminate()
            raise
        return connection


async def is_direct(connection: "_Connection") -> bool:
    """Whether the process that a connection was told of when it began is the one that answers.

    Poolers answer for many servers, and tell a number of their own.
    """
    answering: int = await connection.fetchval("select pg_catalog.pg_backend_pid()")
    return answering == connection.get_server_pid()
