"""Another connection, which sees committed rows only, and hears the doorbell as a sleeping relay does."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from outbox.postgres.queries import BellName

BELL = BellName.of("public", "outbox_table")


class Onlooker:
    """Looks into the outbox table from outside."""

    def __init__(self, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        self.connection = connection

    async def rows(self, table: str = "outbox_table") -> list[dict[str, Any]]:
        """All committed rows in the order of their ids, JSON decoded."""
        return [_decoded(row) for row in await self.connection.fetch(f"select * from {table} order by id")]

    async def row(self, table: str = "outbox_table") -> dict[str, Any]:
        """The only one."""
        (row,) = await self.rows(table)
        return row

    async def ids(self) -> list[str]:
        """The message ids of all committed rows."""
        return [row["tracking_ids"][-1] for row in await self.rows()]

    async def ring_by_hand(self, payload: str) -> None:
        """Rings the bell with a payload that no insert would."""
        await self.connection.execute("select pg_notify($1, $2)", BELL.channel, payload)

    @asynccontextmanager
    async def asleep(self) -> AsyncIterator["asyncio.Queue[str]"]:
        """Inside, each ring of the doorbell puts its payload, an empty text, into the queue."""
        rings: asyncio.Queue[str] = asyncio.Queue()

        def heard(_connection: object, _pid: int, _channel: str, payload: object) -> None:
            rings.put_nowait(str(payload))

        await self.connection.add_listener(BELL.channel, heard)
        await self.connection.execute("select pg_advisory_lock_shared(key) from unnest($1::bigint[]) as key", BELL.asleep_keys)
        try:
            yield rings
        finally:
            await self.connection.execute("select pg_advisory_unlock_all()")
            await self.connection.remove_listener(BELL.channel, heard)


def _decoded(row: asyncpg.Record) -> dict[str, Any]:
    return {
        name: json.loads(value) if name in ("tracking_ids", "headers") and value is not None else value
        for name, value in row.items()
    }
