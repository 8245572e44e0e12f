"""Consumers for tests that stop a process under load: each handler takes a while and leaves two marks."""

import asyncio
from typing import Any

import asyncpg

from outbox import consume

HANDLER_SECONDS = 1.5


@consume("work.#", queue="tests.work")
async def work(number: int, connection: asyncpg.Connection) -> None:
    """Records its start outside its transaction, and its end inside."""
    await note(connection, "begun", number)
    await asyncio.sleep(HANDLER_SECONDS)
    await connection.execute("insert into marks values ('ended', $1)", number)


async def note(connection: asyncpg.Connection, what: str, number: int) -> None:
    """Records a mark that stays if the handler's transaction rolls back."""
    inner: Any = connection
    server, params = inner._addr, inner._params
    outside = await asyncpg.connect(
        host=server[0], port=server[1], user=params.user, password=params.password, database=params.database
    )
    try:
        await outside.execute("insert into marks values ($1, $2)", what, number)
    finally:
        await outside.close()


consumers = [work]
nothing: list[object] = []
wrong = [work, "not a consumer"]
