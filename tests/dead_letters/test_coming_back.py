"""Worker, relay and archiver around a requeue: what was not mended comes back as the same dead letter, and what was is done."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from outbox import Consumer, MessageRelay, Publisher, Worker
from outbox.archiver import Archiver
from outbox.dead_letters import Canary, DeadLetter, DeadLetterFilter, DeadLetters, Edit, ItemOutcome, OperationState
from outbox.postgres.pool import Pool
from tests.dead_letters.repairs import DONE, at_once, bury, operation
from tests.support import eventually

QUEUE = "orders.charge"
ALL = DeadLetterFilter()


@pytest.fixture(params=["postgres", pytest.param("rabbitmq", marks=pytest.mark.rabbitmq)])
def broker(request: pytest.FixtureRequest, database: str) -> str:
    """The address of each broker in turn."""
    if request.param == "postgres":
        return database
    url: str = request.getfixturevalue("broker_url")
    return url


@asynccontextmanager
async def running(database: str, broker: str, *consumers: Consumer) -> AsyncIterator[None]:
    """Everything that a service runs."""
    parts: list[Any] = [
        Worker(broker=broker, db_engine_url=database, consumers=consumers, enable_metrics=False),
        MessageRelay(db_engine_url=database, broker=broker, enable_metrics=False),
    ]
    if broker != database:
        parts.append(Archiver(database, broker=broker, queues=[QUEUE], enable_metrics=False))
    tasks = [asyncio.create_task(part.run(handle_signals=False)) for part in parts]
    try:
        yield
    finally:
        for part in parts:
            part.stop()
        await asyncio.gather(*tasks)


@asynccontextmanager
async def opened(database: str, broker: str) -> AsyncIterator[DeadLetters]:
    async with DeadLetters(database, broker=broker) as dead_letters:
        yield dead_letters


async def publish(pool: Pool, count: int = 1) -> None:
    """Orders, of which each has its number as its body."""
    async with pool.acquire() as connection, connection.transaction():
        for number in range(count):
            await Publisher().publish(connection, "order.placed", number)


def died(dead_letters: DeadLetters, count: int, deaths: int) -> Callable[[], Awaitable[Any]]:
    """Reads the open letters, once there are so many that died so often."""

    async def look() -> list[DeadLetter]:
        found = [letter for letter in await dead_letters.list() if letter.status == "open" and letter.deaths == deaths]
        assert len(found) == count
        return found

    return look


async def test_what_was_not_mended_comes_back_as_the_same_dead_letter(database: str, pool: Pool, broker: str) -> None:
    seen: list[tuple[object, int]] = []

    def charge(body: object, attempt_count: int) -> None:
        seen.append((body, attempt_count))
        if body == 0:
            raise ValueError("no such order")

    consumer = Consumer("order.placed", charge, queue=QUEUE, retry_delays=("0s",))
    async with running(database, broker, consumer), opened(database, broker) as dead_letters:
        await publish(pool)
        [first] = await eventually(died(dead_letters, 1, 1), timeout=30)
        assert at_once(await dead_letters.requeue(first.id, by="ada")) == {first.id: DONE}
        [again] = await eventually(died(dead_letters, 1, 2), timeout=30)
        assert (again.id, again.message_id, again.requeue_count) == (first.id, first.message_id, 1)
        assert (again.created_at, again.first_failed_at) == (first.created_at, first.first_failed_at)
        # Attempts begin anew with each requeue.
        assert seen == [(0, 1), (0, 2)] * 2

        answer = await dead_letters.requeue(again.id, edit=Edit(version=again.version, body=1))
        assert at_once(answer) == {again.id: DONE}
        await eventually(lambda: seen[-1] == (1, 1), timeout=30)
        [mended] = await dead_letters.list()
        assert (mended.id, mended.status, mended.requeue_count, mended.deaths) == (first.id, "requeued", 2, 2)


async def test_an_operation_counts_what_came_back_and_stops(database: str, pool: Pool, broker: str) -> None:
    def charge(body: object) -> None:
        raise ValueError("no such order")

    consumer = Consumer("order.placed", charge, queue=QUEUE, retry_delays=())
    async with running(database, broker, consumer), opened(database, broker) as dead_letters:
        await publish(pool, 12)
        await eventually(died(dead_letters, 12, 1), timeout=30)
        number = operation(await dead_letters.requeue(ALL, canary=Canary(2, timedelta(seconds=600)))).id
        await (await dead_letters.runner()).run_once(number)
        await eventually(died(dead_letters, 2, 2), timeout=30)
        await pool.execute("update outbox_operation set continue_at = now()")
        await (await dead_letters.runner()).run_once(number)
        ended = await dead_letters.operation(number)
        assert ended is not None
        assert (ended.state, ended.stopped_because) == (OperationState.STOPPED, "2 of the first 2 came back dead")
        assert ended.counts == {ItemOutcome.DIED_AGAIN: 2, ItemOutcome.SKIPPED: 10}


@pytest.mark.rabbitmq
async def test_what_died_in_a_queue_that_rabbitmq_does_not_have_is_refused(database: str, pool: Pool, broker_url: str) -> None:
    [id_] = await bury(pool, queue="gone")
    async with DeadLetters(database, broker=broker_url) as dead_letters:
        answer = at_once(await dead_letters.requeue(id_))
        assert answer == {id_: (ItemOutcome.REFUSED, "the queue gone does not exist")}
        plan = await dead_letters.plan("requeue", id_)
        assert plan.warnings == ["1 will be refused: the queue gone does not exist"]
