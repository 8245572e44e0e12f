"""Handlers with a time limit: cancelled when it is over, rolled back, failed; and what else is cancelled stays what it is."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from outbox import Consumer, Worker, ensure_outbox_schema_async
from outbox.core.events import ProcessingStatus
from outbox.core.outcome import DONE, Cause, Dead, Retry
from outbox.engine import attempt as limiting
from outbox.engine.attempt import time_limit
from outbox.errors import HandlerTimeoutError
from outbox.transports.memory import MemoryBroker
from tests.contract.support import existing, message
from tests.contract.workers import Running, working
from tests.support import eventually
from tests.worker.support import SOON, TIMEOUT, running

SHORT = timedelta(milliseconds=30)
LONG = 3600.0


async def one_attempt(handle: Callable[..., Any], **options: Any) -> Any:
    """What became of the first attempt at a message."""
    broker = MemoryBroker(exchange_name="shop")
    async with working(broker, Consumer("#", handle, "mail", **options)) as worker:
        await broker.send([message("order.placed")], timeout=TIMEOUT)
        [processed, *_] = await worker.processed(1)
    return processed


# --- the handler -------------------------------------------------------------------------------------------------------


async def test_a_handler_that_takes_too_long_is_cancelled_and_has_failed() -> None:
    ended: list[str] = []

    async def handle(body: bytes) -> None:
        try:
            await asyncio.sleep(LONG)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    processed = await one_attempt(handle, timeout=SHORT, retry_delays=("1m",))
    assert ended == ["cancelled"]
    assert processed.status is ProcessingStatus.FAILED
    assert isinstance(processed.outcome, Retry)
    assert processed.outcome.failure.type == "outbox.errors.HandlerTimeoutError"
    assert processed.outcome.failure.message == "the handler ran for longer than its timeout of 0.03 s, and was cancelled"
    assert "await asyncio.sleep(LONG)" in processed.outcome.failure.traceback


async def test_a_handler_within_its_time_is_not_disturbed() -> None:
    async def handle(body: bytes) -> None:
        await asyncio.sleep(0)

    assert (await one_attempt(handle, timeout="1m")).outcome == DONE


async def test_a_time_limit_can_be_permanent() -> None:
    async def handle(body: bytes) -> None:
        await asyncio.sleep(LONG)

    processed = await one_attempt(handle, timeout=SHORT, retry_delays=("1m",), dead_on=TimeoutError)
    assert isinstance(processed.outcome, Dead)
    assert processed.outcome.cause is Cause.REJECTED


async def test_a_timeout_of_the_handler_s_own_is_a_failure_like_any_other() -> None:
    async def handle(body: bytes) -> None:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(LONG)

    processed = await one_attempt(handle, timeout="1m", retry_delays=())
    assert isinstance(processed.outcome, Dead)
    assert processed.outcome.failure.type == "TimeoutError"


async def test_the_result_of_a_handler_after_its_timeout_is_ignored() -> None:
    async def handle(body: bytes) -> None:
        try:
            await asyncio.sleep(LONG)
        except asyncio.CancelledError:
            return  # as if nothing had been

    async def turn(body: bytes) -> None:
        try:
            await asyncio.sleep(LONG)
        except asyncio.CancelledError:
            raise ValueError("interrupted") from None

    for late in (handle, turn):
        processed = await one_attempt(late, timeout=SHORT, retry_delays=())
        assert processed.outcome.failure.type == "outbox.errors.HandlerTimeoutError"


async def test_a_handler_that_swallows_its_cancellation_is_cancelled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limiting, "CANCEL_INTERVAL", timedelta(milliseconds=20))
    cancellations = 0

    async def handle(body: bytes) -> None:
        nonlocal cancellations
        while cancellations < 3:
            try:
                await asyncio.sleep(LONG)
            except asyncio.CancelledError:
                cancellations += 1

    processed = await one_attempt(handle, timeout=SHORT, retry_delays=())
    assert cancellations == 3
    assert processed.outcome.failure.type == "outbox.errors.HandlerTimeoutError"


async def test_other_handlers_go_on_while_one_times_out() -> None:
    async def handle(body: bytes) -> None:
        if body == b"slow":
            await asyncio.sleep(LONG)

    broker = MemoryBroker(exchange_name="shop")
    async with working(broker, Consumer("#", handle, "mail", timeout=SHORT, retry_delays=())) as worker:
        await broker.send([message("order.placed", body) for body in (b"slow", b"a", b"b")], timeout=TIMEOUT)
        statuses = sorted(event.status for event in await worker.processed(3))
    assert statuses == [ProcessingStatus.FAILED, ProcessingStatus.SUCCESS, ProcessingStatus.SUCCESS]


async def test_a_batch_has_one_time_limit_and_fails_one_by_one() -> None:
    calls: list[int] = []

    async def handle(bodies: list[bytes]) -> None:
        calls.append(len(bodies))
        if b"slow" in bodies:
            await asyncio.sleep(LONG)

    broker = MemoryBroker(exchange_name="shop")
    await existing(broker, "mail", "#")
    await broker.send([message("order.placed", body) for body in (b"slow", b"a", b"b")], timeout=TIMEOUT)
    consumer = Consumer("#", handle, "mail", timeout=SHORT, retry_delays=(), batch=True)
    async with working(broker, consumer) as worker:
        await worker.processed(3)
    [dead] = broker.dead_letters("mail")
    assert dead.message.body == b"slow"
    assert dead.failure.type == "outbox.errors.HandlerTimeoutError"
    assert calls == [3, 1, 1, 1]


# --- its transaction ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("swallows", [False, True])
async def test_the_transaction_of_a_handler_that_takes_too_long_is_rolled_back(database_url: str, swallows: bool) -> None:
    await ensure_outbox_schema_async(database_url)
    database = await asyncpg.connect(database_url)
    await database.execute("create table sale (id int)")

    async def handle(body: bytes, connection: Any) -> None:
        await connection.execute("insert into sale values (1)")
        try:
            await asyncio.sleep(LONG)
        except asyncio.CancelledError:
            if not swallows:
                raise

    broker = MemoryBroker(exchange_name="shop")
    consumer = Consumer("#", handle, "mail", timeout="100ms", retry_delays=())
    worker = Worker(broker=broker, consumers=[consumer], exchange_name="shop", db_engine_url=database_url, enable_metrics=False)
    try:
        async with running(worker):
            await eventually(lambda: broker.has_consumer("mail"), timeout=SOON)
            await broker.send([message("order.placed")], timeout=TIMEOUT)
            await eventually(lambda: bool(broker.dead_letters("mail")), timeout=SOON)
        assert await database.fetchval("select count(*) from sale") == 0
    finally:
        await database.close()
    [dead] = broker.dead_letters("mail")
    assert dead.failure.type == "outbox.errors.HandlerTimeoutError"


# --- the worker's own cancellation -------------------------------------------------------------------------------------


async def test_the_end_of_the_grace_period_is_no_timeout() -> None:
    begun = asyncio.Event()

    async def handle(body: bytes) -> None:
        begun.set()
        await asyncio.sleep(LONG)

    broker = MemoryBroker(exchange_name="shop")
    consumer = Consumer("#", handle, "mail", timeout="5m", retry_delays=())
    worker = Running(broker, [consumer], prefetch_count=10, grace_period=timedelta(milliseconds=50))
    await worker.started(1)
    await broker.send([message("order.placed")], timeout=TIMEOUT)
    await begun.wait()
    await worker.stop()
    assert broker.depth("mail") == 1
    assert not broker.dead_letters("mail")


async def test_a_cancellation_from_outside_passes_through_even_when_the_time_is_over() -> None:
    cancelled = asyncio.Event()

    async def limited() -> None:
        with time_limit(timedelta(milliseconds=10)):
            try:
                await asyncio.sleep(LONG)
            except asyncio.CancelledError:
                cancelled.set()
                await asyncio.sleep(LONG)

    task = asyncio.create_task(limited())
    await cancelled.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_time_limit_withdraws_its_own_cancellation() -> None:
    with pytest.raises(HandlerTimeoutError), time_limit(timedelta(milliseconds=10)):
        await asyncio.sleep(LONG)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(0)
