"""Worker, relay and archiver around a requeue: a message that fails again becomes the same dead letter again."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from outbox import Consumer, MessageRelay, Publisher, Worker
from outbox.archiver import Archiver
from outbox.dead_letters import (
    Canary,
    DeadLetter,
    DeadLetterFilter,
    DeadLetters,
    Edit,
    ItemOutcome,
    Operation,
    OperationState,
    Result,
    Results,
)
from outbox.engine.lifecycle import Stopping
from outbox.postgres.pool import Pool
from tests.dead_letters.repairs import DONE, add_dead_letters, at_once, operation
from tests.support import eventually

QUEUE = "orders.charge"
ALL = DeadLetterFilter()


@pytest.fixture(params=["postgres", pytest.param("rabbitmq", marks=pytest.mark.rabbitmq)])
def broker(request: pytest.FixtureRequest, database: str) -> str:
    """Address of each broker."""
    if request.param == "postgres":
        return database
    url: str = request.getfixturevalue("broker_url")
    return url


@asynccontextmanager
async def running(database: str, broker: str, *consumers: Consumer, history: bool = True) -> AsyncIterator[None]:
    """Runs a worker, a relay, and with RabbitMQ an archiver."""
    parts: list[Any] = [
        Worker(broker=broker, db_engine_url=database, consumers=consumers, history=history, enable_metrics=False),
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
    """Publishes orders whose body is their number."""
    async with pool.acquire() as connection, connection.transaction():
        for number in range(count):
            await Publisher().publish(connection, "order.placed", number)


def dead_lettered(dead_letters: DeadLetters, count: int, times: int) -> Callable[[], Awaitable[Any]]:
    """Returns the open letters, once `count` of them were dead-lettered `times` times."""

    async def look() -> list[DeadLetter]:
        found = [
            letter for letter in await dead_letters.list() if letter.status == "open" and letter.dead_letter_count == times
        ]
        assert len(found) == count
        return found

    return look


async def test_a_message_that_fails_again_is_the_same_dead_letter(database: str, pool: Pool, broker: str) -> None:
    seen: list[tuple[object, int]] = []

    def charge(body: object, attempt_count: int) -> None:
        seen.append((body, attempt_count))
        if body == 0:
            raise ValueError("no such order")

    consumer = Consumer("order.placed", charge, queue=QUEUE, retry_delays=("0s",))
    async with running(database, broker, consumer), opened(database, broker) as dead_letters:
        await publish(pool)
        [first] = await eventually(dead_lettered(dead_letters, 1, 1))
        assert at_once(await dead_letters.requeue(first.id, by="ada")) == {first.id: DONE}
        [again] = await eventually(dead_lettered(dead_letters, 1, 2))
        assert (again.id, again.message_id, again.requeue_count) == (first.id, first.message_id, 1)
        assert (again.created_at, again.first_failed_at) == (first.created_at, first.first_failed_at)
        # Attempts begin again with each requeue.
        assert seen == [(0, 1), (0, 2)] * 2

        answer = await dead_letters.requeue(again.id, edit=Edit(version=again.version, body=1))
        assert at_once(answer) == {again.id: DONE}
        await eventually(lambda: seen[-1] == (1, 1))
        [fixed] = await dead_letters.list()
        assert (fixed.id, fixed.status, fixed.requeue_count, fixed.dead_letter_count) == (first.id, "requeued", 2, 2)


async def test_an_operation_counts_messages_that_failed_again_and_stops(database: str, pool: Pool, broker: str) -> None:
    def charge(body: object) -> None:
        raise ValueError("no such order")

    consumer = Consumer("order.placed", charge, queue=QUEUE, retry_delays=())
    async with running(database, broker, consumer), opened(database, broker) as dead_letters:
        await publish(pool, 12)
        await eventually(dead_lettered(dead_letters, 12, 1))
        number = operation(await dead_letters.requeue(ALL, canary=Canary(2, timedelta(seconds=600)))).id
        await (await dead_letters.runner()).run_once(number)
        await eventually(dead_lettered(dead_letters, 2, 2))
        await pool.execute("update outbox_operation set continue_at = now()")
        await (await dead_letters.runner()).run_once(number)
        ended = await dead_letters.operation(number)
        assert ended is not None
        assert (ended.state, ended.stopped_because) == (OperationState.STOPPED, "2 of the first 2 failed")
        assert ended.counts == {ItemOutcome.FAILED_AGAIN: 2, ItemOutcome.SKIPPED: 10}
        assert ended.results == Results(sent=2, failed_again=2, failed=2)
        items = await dead_letters.operation_items(number, outcome=ItemOutcome.FAILED_AGAIN)
        assert [(item.result, item.item.reason) for item in items] == [(Result.FAILED_AGAIN, "ValueError: no such order")] * 2


@asynccontextmanager
async def requeueing(dead_letters: DeadLetters, **options: Any) -> AsyncIterator[Callable[[], Awaitable[Operation]]]:
    """Runs an operation on all letters in the background once its queue exists; yields a function that reads it."""

    async def is_there() -> bool:
        plan = await dead_letters.plan("requeue", ALL)
        return not any("does not exist" in warning for warning in plan.warnings)

    await eventually(is_there, timeout=60)
    number = operation(await dead_letters.requeue(ALL, **options)).id
    runner, stopping = await dead_letters.runner(), Stopping()

    async def read() -> Operation:
        found = await dead_letters.operation(number)
        assert found is not None
        return found

    def failed(error: Exception) -> None:
        raise AssertionError from error

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(runner.run(stopping, failed=failed))
        try:
            yield read
        finally:
            stopping.request()


async def test_the_first_failed_attempt_of_a_canary_stops_it_whatever_retries_there_are(
    database: str, pool: Pool, broker: str
) -> None:
    def charge(body: object) -> None:
        raise ValueError("no such order")

    await add_dead_letters(pool, 20, queue=QUEUE)
    async with (
        running(database, broker, Consumer("order.placed", charge, queue=QUEUE)),
        opened(database, broker) as dead_letters,
        requeueing(dead_letters, canary=Canary(1, timedelta(minutes=5))) as read,
    ):

        async def ended() -> Operation:
            found = await read()
            assert found.ended
            return found

        found = await eventually(ended, timeout=60)
        assert (found.state, found.stopped_because) == (OperationState.STOPPED, "1 of the first 1 failed")
        assert found.counts == {ItemOutcome.DONE: 1, ItemOutcome.SKIPPED: 19}
        assert found.results == Results(sent=1, retrying=1, failed=1)
        [item] = await dead_letters.operation_items(found.id, outcome=ItemOutcome.DONE)
        assert (item.result, item.item.reason) == (Result.RETRYING, "ValueError: no such order")
        assert item.failed_attempts >= 1


async def test_the_others_follow_a_handled_canary_at_once_and_their_results_are_known_after_the_end(
    database: str, pool: Pool, broker: str
) -> None:
    held, seen = asyncio.Event(), 0

    async def charge(body: object) -> None:
        nonlocal seen
        seen += 1
        if seen > 2:
            await held.wait()

    await add_dead_letters(pool, 12, queue=QUEUE)
    async with (
        running(database, broker, Consumer("order.placed", charge, queue=QUEUE)),
        opened(database, broker) as dead_letters,
        requeueing(dead_letters, canary=Canary(2, timedelta(days=1))) as read,
    ):

        async def finished() -> Operation:
            found = await read()
            assert found.state is OperationState.FINISHED, found
            return found

        found = await eventually(finished, timeout=60)
        assert found.results == Results(sent=12, waiting=10, handled=2)
        held.set()

        async def handled() -> bool:
            assert (await read()).results == Results(sent=12, handled=12)
            return True

        await eventually(handled, timeout=60)


async def test_a_canary_without_known_results_does_not_pass(database: str, pool: Pool, broker: str) -> None:
    seen: list[object] = []
    await add_dead_letters(pool, 20, queue=QUEUE)
    async with (
        running(database, broker, Consumer("order.placed", seen.append, queue=QUEUE), history=False),
        opened(database, broker) as dead_letters,
    ):

        async def warned() -> bool:
            warnings = (await dead_letters.plan("requeue", ALL)).warnings
            assert warnings
            warning = warnings[-1]
            assert warning.startswith("the results of 20 will be unknown: ")
            assert warning.endswith(
                "a worker of orders.charge, writes no history and has no inbox there, so a canary would stop"
            )
            return True

        await eventually(warned, timeout=60)
        async with requeueing(dead_letters, canary=Canary(2, timedelta(seconds=1))) as read:

            async def ended() -> Operation:
                found = await read()
                assert found.ended
                return found

            found = await eventually(ended, timeout=60)
        assert found.state is OperationState.STOPPED
        assert found.stopped_because is not None
        assert found.stopped_because.startswith("the results of 2 of the first 2 are not known after 1 s")
        assert "OUTBOX_HISTORY" in found.stopped_because
        assert found.results == Results(sent=2, waiting=2)
        await eventually(lambda: len(seen) == 2)


@pytest.mark.rabbitmq
async def test_a_requeue_to_a_queue_that_rabbitmq_does_not_have_is_refused(database: str, pool: Pool, broker_url: str) -> None:
    [id_] = await add_dead_letters(pool, queue="gone")
    async with DeadLetters(database, broker=broker_url) as dead_letters:
        answer = at_once(await dead_letters.requeue(id_))
        assert answer == {id_: (ItemOutcome.REFUSED, "the queue gone does not exist")}
        plan = await dead_letters.plan("requeue", id_)
        assert plan.warnings == ["1 will be refused: the queue gone does not exist"]
