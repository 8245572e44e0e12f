"""A sleeper that asks for the bell's lock while its connections are being given up is not hurt by that."""

import asyncio
from typing import Any

from outbox.postgres.doorbell import _Lock


class Answering:
    """A connection whose answer, that somebody else has a share of the lock, comes when it is told to."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.may_answer = asyncio.Event()

    async def fetchval(self, *question: object, timeout: float) -> bool:
        self.asked.set()
        await self.may_answer.wait()
        return False


async def test_an_answer_that_comes_when_the_connections_are_given_up_puts_nobody_in_line() -> None:
    connection: Any = Answering()
    lost = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        lock = _Lock(connection, connection, 1, tasks, lambda: None, lost)
        taking = asyncio.create_task(lock.take())
        await connection.asked.wait()
        lost.set()
        lock.abandon()
    connection.may_answer.set()
    await taking


async def test_a_lock_that_was_given_up_is_asked_for_no_more() -> None:
    connection: Any = Answering()
    async with asyncio.TaskGroup() as tasks:
        lock = _Lock(connection, connection, 1, tasks, lambda: None, asyncio.Event())
        lock.abandon()
    await lock.take()
    assert not connection.asked.is_set()
