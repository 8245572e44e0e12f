"""A sleeper that falls asleep while its connection is being closed is not affected."""

import asyncio
from typing import Any

from outbox.postgres.doorbell import _Lock
from outbox.postgres.queries import BellName

BELL = BellName.of("public", "outbox_table")


class Answering:
    """A connection that reports a writer in flight when the test lets it."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.questions = 0

    async def execute(self, *question: object, timeout: float) -> str:
        self.questions += 1
        self.asked.set()
        await self.may_answer.wait()
        return "SELECT 0"


async def test_an_answer_during_the_close_of_the_connection_starts_no_watcher() -> None:
    connection: Any = Answering()
    lost = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        lock = _Lock(connection, BELL, tasks, lambda: None, lost)
        taking = asyncio.create_task(lock.acquire())
        await connection.asked.wait()
        lost.set()
        lock.abandon()
    connection.may_answer.set()
    await taking
    assert connection.questions == 1


async def test_a_lock_that_was_given_up_is_asked_for_no_more() -> None:
    connection: Any = Answering()
    async with asyncio.TaskGroup() as tasks:
        lock = _Lock(connection, BELL, tasks, lambda: None, asyncio.Event())
        lock.abandon()
    await lock.acquire()
    assert not connection.asked.is_set()
