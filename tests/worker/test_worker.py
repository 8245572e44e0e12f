"""The public worker: its arguments, how it begins, and how it ends."""

import asyncio
import logging
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import aio_pika
import asyncpg
import pamqp.commands
import pytest
from pydantic import BaseModel, field_validator

from outbox import Consumer, Worker, consume
from outbox.core.events import ConsumerStarted, Paused, SettleFailed
from outbox.core.outcome import DONE, RETURNED, DeliveryOutcome, Done
from outbox.errors import (
    BrokerUnavailableError,
    ConfigurationError,
    DurationError,
    SchemaError,
    StaleDeliveryError,
    TopologyError,
    UrlError,
)
from outbox.ports import CONFIRMED, Delivery, Intake, Receive, Subscription
from outbox.transports.memory import MemoryBroker
from tests.contract.support import existing, message
from tests.contract.workers import Running
from tests.support import eventually
from tests.worker.support import SOON, TIMEOUT, running

AMQP = "amqp://guest:sesame@127.0.0.1:1/shop"
POSTGRES = "postgresql://postgres:sesame@127.0.0.1:1/shop"


@consume("order.*", queue="mail")
async def mail(body: bytes) -> None: ...


@consume("order.*", queue="books")
async def books(body: bytes, session: object) -> None: ...


@consume("order.*", queue="stock")
async def stock(body: bytes, connection: object, publisher: object) -> None: ...


# --- arguments ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "exactly one of rmq_connection, rmq_connection_url, broker; none was given"),
        ({"rmq_connection_url": AMQP, "broker": AMQP}, "rmq_connection_url and broker was given"),
        ({"rmq_connection": object()}, "rmq_connection must be an aio-pika connection"),
        ({"broker": object()}, "broker must be an amqp://, postgresql://"),
        ({"broker": AMQP, "consumers": [lambda body: None]}, "is not a consumer: decorate it with @consume"),
        ({"broker": AMQP, "consumers": [mail, Consumer("#", mail, "mail")]}, "two different consumers have the queue mail"),
        (
            {"broker": AMQP, "consumers": [books]},
            "consumers of books use session, which needs a database: give the worker db_",
        ),
        ({"broker": POSTGRES, "consumers": [stock]}, "consumers of stock use connection, publisher, which needs a database"),
        ({"broker": AMQP, "consumers": [books], "db_pool": object()}, "a session cannot use db_pool"),
        ({"broker": AMQP, "db_pool": object(), "db_engine_url": POSTGRES}, "exactly one of db_engine_url, db_pool"),
        ({"broker": AMQP, "consumers": None}, r"consumers must be a list of consumers, such as \[welcome\], not None"),
        ({"broker": AMQP, "propagation": "parent"}, "propagation must be one of 'auto', 'child', 'link', not 'parent'"),
        ({"broker": AMQP, "prefetch_count": 0}, "prefetch_count must be a whole number from 1"),
        (
            {"broker": AMQP, "prefetch_count": 65_536},
            "prefetch_count must be a whole number from 1 to 65535, not",
        ),
        ({"broker": AMQP, "exchange_name": ""}, "exchange_name"),
        ({"broker": AMQP, "grace_period": 0}, "grace_period must be longer than zero"),
        ({"broker": AMQP, "table_name": 'x"; drop table y'}, "cannot be a table name"),
    ],
)
def test_invalid_arguments_are_refused(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says) as caught:
        Worker(**arguments)
    assert "sesame" not in str(caught.value)


@pytest.mark.parametrize(
    "arguments",
    [
        {"rmq_connection_url": POSTGRES},
        {"broker": "mqtt://somewhere"},
        {"broker": "localhost"},
        {"broker": AMQP, "db_engine_url": "mysql://root:sesame@localhost/x"},
    ],
)
def test_urls_of_the_wrong_kind_are_refused_without_their_secrets(arguments: dict[str, Any]) -> None:
    with pytest.raises(UrlError) as caught:
        Worker(**arguments)
    assert "sesame" not in str(caught.value)


@pytest.mark.parametrize("delays", [("1h",), "1s", (-1,), ("60s",), 5, timedelta(seconds=1), None, {"1s", "1m"}])
def test_bad_retry_delays_are_refused(delays: Any) -> None:
    with pytest.raises(DurationError):
        Worker(broker=AMQP, retry_delays=delays)


def test_workers_may_share_consumers_and_one_may_be_named_twice() -> None:
    first, second = Worker(broker=AMQP, consumers=[mail, mail]), Worker(broker=POSTGRES, consumers=(mail,))
    assert first.consumers == second.consumers == (mail,)


@pytest.mark.parametrize("database", [{"db_engine_url": POSTGRES}, {"db_engine_url": POSTGRES.replace("ql:", "ql+asyncpg:")}])
def test_consumers_that_need_a_database_are_accepted_with_one(database: dict[str, str]) -> None:
    Worker(broker=AMQP, consumers=[books, stock], **database)  # type: ignore[arg-type]


def test_a_broker_that_cannot_be_consumed_from_is_refused() -> None:
    class SendingOnly:
        async def open(self) -> None: ...
        async def send(self, messages: object, *, timeout: object) -> None: ...
        async def close(self) -> None: ...

    with pytest.raises(ConfigurationError, match="SendingOnly cannot be consumed from"):
        Worker(broker=SendingOnly())  # type: ignore[arg-type]


# --- beginning ---------------------------------------------------------------------------------------------------------


class Flaky(MemoryBroker):
    """Refuses subscriptions and settlements as configured, and records whether it was closed."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__(exchange_name="shop")
        self.errors = list(errors)
        self.settle_errors: list[Exception] = []
        self.outcomes: list[DeliveryOutcome] = []
        self.closed = False

    @asynccontextmanager
    async def subscribe(self, subscription: Subscription, receive: Receive) -> AsyncIterator[Intake]:
        if self.errors:
            raise self.errors.pop(0)
        async with super().subscribe(subscription, lambda delivery: receive(FlakyDelivery(delivery, self))) as intake:
            yield intake

    async def close(self) -> None:
        self.closed = True


class FlakyDelivery:
    def __init__(self, delivery: Delivery, broker: Flaky) -> None:
        self._delivery = delivery
        self._broker = broker

    def __getattr__(self, name: str) -> Any:
        return getattr(self._delivery, name)

    async def settle(self, outcome: DeliveryOutcome) -> None:
        if self._broker.settle_errors:
            raise self._broker.settle_errors.pop(0)
        self._broker.outcomes.append(outcome)
        await self._delivery.settle(outcome)


class HandGate:
    """Closed and opened by hand."""

    def __init__(self) -> None:
        self._closed, self._opened = asyncio.Event(), asyncio.Event()
        self.open()

    @property
    def closed(self) -> bool:
        return self._closed.is_set()

    async def wait_until_open(self) -> None:
        await self._opened.wait()

    async def wait_until_closed(self) -> None:
        await self._closed.wait()

    def close(self) -> None:
        self._opened.clear()
        self._closed.set()

    def open(self) -> None:
        self._closed.clear()
        self._opened.set()


async def test_a_worker_without_consumers_says_so(caplog: pytest.LogCaptureFixture) -> None:
    worker = Worker(broker=MemoryBroker(), consumers=[], enable_metrics=False)
    async with running(worker):
        await eventually(lambda: "the worker has no consumers, and handles nothing" in caplog.text, timeout=SOON)


async def test_a_broker_that_is_unavailable_at_the_start_is_waited_for_with_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker = Flaky(*[BrokerUnavailableError("no consumer")] * 4)
    handled = asyncio.Event()

    async def handle(body: bytes) -> None:
        handled.set()

    consumers = [Consumer("order.*", handle, queue="mail"), Consumer("other.*", handle, queue="other")]
    worker = Worker(broker=broker, consumers=consumers, exchange_name="shop", enable_metrics=False)
    with caplog.at_level(logging.WARNING, "outbox"):
        async with running(worker):
            await eventually(lambda: _is_routed(broker), timeout=SOON)
            await asyncio.wait_for(handled.wait(), SOON)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert not broker.closed


async def _is_routed(broker: MemoryBroker) -> bool:
    return list(await broker.send([message("order.placed")], timeout=TIMEOUT)) == [CONFIRMED]


async def test_a_missing_resource_ends_the_run_and_says_so() -> None:
    broker = Flaky(TopologyError("the queue mail is missing"))
    worker = Worker(broker=broker, consumers=[mail, Consumer("#", mail, "other")], enable_metrics=False)
    with pytest.raises(TopologyError, match="the queue mail is missing"):
        await asyncio.wait_for(worker.run(), SOON)


async def test_a_missing_table_ends_the_run_of_a_worker_that_publishes(database_url: str) -> None:
    worker = Worker(broker=MemoryBroker(), consumers=[stock], db_engine_url=database_url, enable_metrics=False)
    with pytest.raises(SchemaError, match="outbox_table"):
        await asyncio.wait_for(worker.run(), SOON)


async def test_an_outcome_that_the_broker_cannot_record_now_is_recorded_later() -> None:
    broker = Flaky()
    broker.settle_errors = [BrokerUnavailableError("blocked"), BrokerUnavailableError("blocked")]
    worker = Running(broker, [Consumer("order.*", mail, queue="mail")], prefetch_count=1, grace_period=TIMEOUT)
    await worker.started(1)
    await broker.send([message("order.placed")], timeout=TIMEOUT)
    [processed] = await worker.processed(1)
    assert processed.outcome == DONE
    assert broker.outcomes == [Done()]
    assert len(worker.recorder.of(SettleFailed)) == 1
    await worker.stop()


async def test_a_lost_delivery_is_reported_and_nothing_else_happens() -> None:
    broker = MemoryBroker(exchange_name="shop")
    attempts: list[int] = []

    async def handle(body: bytes, attempt_count: int) -> None:
        attempts.append(attempt_count)
        if len(attempts) == 1:
            broker.crash("mail")

    worker = Running(broker, [Consumer("order.*", handle, queue="mail")], prefetch_count=1, grace_period=TIMEOUT)
    await worker.started(1)
    await broker.send([message("order.placed")], timeout=TIMEOUT)
    await worker.processed(1)
    assert attempts == [1, 1]
    assert len(worker.recorder.of(SettleFailed)) == 1
    await worker.stop()


# --- ending ------------------------------------------------------------------------------------------------------------


async def test_a_worker_without_consumers_waits_to_be_stopped() -> None:
    worker = Worker(broker=MemoryBroker(), enable_metrics=False)
    async with running(worker) as task:
        done, _ = await asyncio.wait({task}, timeout=0.1)
        assert not done


async def test_a_worker_that_was_stopped_before_it_ran_takes_nothing() -> None:
    broker = Flaky(TopologyError("it began"))
    worker = Worker(broker=broker, consumers=[mail], enable_metrics=False)
    worker.stop()
    await asyncio.wait_for(worker.run(), SOON)


@pytest.mark.parametrize("options", [{}, {"ordered": True}, {"batch": True}, {"inbox": True}])
async def test_a_handler_that_cancels_its_own_task_has_failed(options: dict[str, Any], database: str) -> None:
    broker = MemoryBroker(exchange_name="shop")
    handled: list[bytes] = []

    async def handle(body: list[bytes]) -> None:
        await handle_one(body[0])

    async def handle_one(body: bytes) -> None:
        task = asyncio.current_task()
        if body == b"bad" and task is not None:
            task.cancel()
            await asyncio.sleep(SOON)
        handled.append(body)

    callback = handle if "batch" in options else handle_one
    consumer = Consumer("#", callback, "mail", retry_delays=(), **options)
    worker = Worker(broker=broker, consumers=[consumer], exchange_name="shop", db_engine_url=database, prefetch_count=1)
    await existing(broker, "mail", "#")
    async with running(worker):
        await broker.send([message("order.placed", b"bad"), message("order.placed", b"good")], timeout=TIMEOUT)
        await eventually(lambda: handled == [b"good"] and broker.is_idle("mail"))
    [dead] = broker.dead_letters("mail")
    assert dead.failure.type == "asyncio.exceptions.CancelledError"


async def test_a_batch_whose_handler_cancels_its_own_task_costs_no_other_message_an_attempt() -> None:
    broker = MemoryBroker(exchange_name="shop")
    handled: list[bytes] = []

    async def handle(bodies: list[bytes]) -> None:
        task = asyncio.current_task()
        if b"bad" in bodies and task is not None:
            task.cancel()
            await asyncio.sleep(SOON)
        handled.extend(bodies)

    consumer = Consumer("#", handle, "mail", retry_delays=(), batch=True)
    worker = Worker(broker=broker, consumers=[consumer], exchange_name="shop")
    await existing(broker, "mail", "#")
    async with running(worker):
        await broker.send([message("order.placed", body) for body in (b"1", b"2", b"bad", b"3")], timeout=TIMEOUT)
        await eventually(lambda: broker.is_idle("mail"))
    assert sorted(handled) == [b"1", b"2", b"3"]
    [dead] = broker.dead_letters("mail")
    assert dead.message.body == b"bad"


async def test_a_run_cancelled_twice_cancels_its_handlers_and_returns_their_messages() -> None:
    broker = MemoryBroker(exchange_name="shop")
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def handle(body: bytes) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    worker = Worker(broker=broker, consumers=[Consumer("#", handle, "mail")], exchange_name="shop", enable_metrics=False)
    task = asyncio.create_task(worker.run())
    await eventually(lambda: _is_routed(broker))
    await begun.wait()
    task.cancel()
    await asyncio.wait({task}, timeout=0.1)
    assert not cancelled.is_set()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, SOON)
    assert cancelled.is_set()
    assert broker.depth("mail") >= 1


PROGRAM = textwrap.dedent(
    """
    import asyncio, signal, sys, time
    from outbox import Consumer, Worker
    from outbox.errors import HandlersAbandonedError

    let_go = asyncio.Event()

    async def handle(body: bytes) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, let_go.set)
        print("begun", flush=True)
        await let_go.wait()
        await asyncio.sleep(0.2)  # a SIGTERM before SIGUSR1 may be handled behind it
        print("ended", flush=True)

    def handle_in_thread(body: bytes) -> None:
        print("begun", flush=True)
        time.sleep(60)

    how, broker = sys.argv[1:]
    consumer = Consumer("order.*", handle if how == "async" else handle_in_thread, queue="mail")
    worker = Worker(
        broker=broker, consumers=[consumer], exchange_name="shop", enable_metrics=False,
        grace_period=300 if how == "async" else 0.2, prefetch_count=2,
    )
    try:
        asyncio.run(worker.run())
    except HandlersAbandonedError:
        print("abandoned", flush=True)
    else:
        print("returned", flush=True)
    """
)


@pytest.fixture
async def shop(database_url: str) -> str:
    """A database with every table."""
    from outbox import ensure_outbox_schema_async

    await ensure_outbox_schema_async(database_url)
    return database_url


async def _deliver(url: str, count: int) -> None:
    connection = await asyncpg.connect(url)
    try:
        for number in range(count):
            await connection.execute(
                "insert into outbox_delivery (exchange, queue, message_id, routing_key, body, tracking_ids)"
                " values ('shop', 'mail', $1::text, 'order.placed', '{}', jsonb_build_array($1::text))",
                str(number),
            )
    finally:
        await connection.close()


async def _count(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        return int(await connection.fetchval("select count(*) from outbox_delivery where lease_token is null and attempt = 1"))
    finally:
        await connection.close()


async def test_sigterm_lets_a_process_finish_its_handlers_and_exit_zero(shop: str) -> None:
    await _deliver(shop, 5)
    process = _process("async", shop)
    try:
        lines = [await _line(process) for _ in range(2)]
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGUSR1)
        lines += [await _line(process) for _ in range(3)]
        assert await asyncio.to_thread(process.wait, SOON) == 0
    finally:
        _end(process)
    assert lines == ["begun", "begun", "ended", "ended", "returned"]
    assert await _count(shop) == 3


async def test_a_thread_that_never_ends_does_not_outlive_the_grace_period(shop: str) -> None:
    await _deliver(shop, 1)
    process = _process("sync", shop)
    try:
        assert await _line(process) == "begun"
        process.send_signal(signal.SIGTERM)
        assert await _line(process) == "abandoned"
        assert await asyncio.to_thread(process.wait, SOON) == 0
    finally:
        _end(process)
    assert await _count(shop) == 1


def _process(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", PROGRAM, *arguments], stdout=subprocess.PIPE, text=True)


async def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return (await asyncio.wait_for(asyncio.to_thread(process.stdout.readline), SOON)).strip()


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


async def test_an_unavailable_database_is_waited_for(own_postgres: Any) -> None:
    from outbox import ensure_outbox_schema_async

    await ensure_outbox_schema_async(own_postgres.url)
    broker = MemoryBroker(exchange_name="shop")
    attempts: list[int] = []

    async def handle(body: bytes, connection: asyncpg.Connection, attempt_count: int) -> None:
        attempts.append(attempt_count)
        await connection.execute("create table if not exists handled ()")

    consumer = Consumer("order.*", handle, queue="mail", retry_delays=())
    worker = Worker(
        broker=broker, consumers=[consumer], exchange_name="shop", db_engine_url=own_postgres.url, enable_metrics=False
    )
    async with running(worker):
        await eventually(lambda: _is_routed(broker))
        await eventually(lambda: broker.is_idle("mail") and attempts)
        await asyncio.to_thread(own_postgres.stop)
        seen = len(attempts)
        await broker.send([message("order.placed")], timeout=TIMEOUT)
        await eventually(lambda: broker.depth("mail") == 0)
        await asyncio.to_thread(own_postgres.start)
        await eventually(lambda: broker.is_idle("mail"), timeout=SOON)
    assert attempts == [1] * (seen + 1)
    assert broker.dead_letters("mail") == ()


async def test_an_unreadable_message_becomes_a_dead_letter_and_affects_no_other() -> None:
    class Unreadable(Flaky):
        @asynccontextmanager
        async def subscribe(self, subscription: Subscription, receive: Receive) -> AsyncIterator[Intake]:
            class Delivery(FlakyDelivery):
                @property
                def message(self) -> Any:
                    if self._delivery.message.body == b"bad":
                        raise KeyError("x-strange")
                    return self._delivery.message

            async with MemoryBroker.subscribe(self, subscription, lambda delivery: receive(Delivery(delivery, self))) as intake:
                yield intake

    broker = Unreadable()
    worker = Running(broker, [Consumer("order.*", mail, queue="mail")], prefetch_count=1, grace_period=TIMEOUT)
    await worker.started(1)
    await broker.send([message("order.placed", b"bad"), message("order.placed", b"good")], timeout=TIMEOUT)
    assert [event.status for event in await worker.processed(2)] == ["undecodable", "success"]
    await worker.stop()


async def test_a_settlement_with_an_unexpected_error_returns_the_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outbox.engine.delivery.UNEXPECTED_PAUSE", timedelta(milliseconds=20))
    broker = Flaky()
    broker.settle_errors = [RuntimeError("a bug in an adapter")]
    worker = Running(broker, [Consumer("order.*", mail, queue="mail")], prefetch_count=1, grace_period=TIMEOUT)
    await worker.started(1)
    await broker.send([message("order.placed")], timeout=TIMEOUT)
    await worker.processed(1)
    assert broker.outcomes == [RETURNED, DONE]
    assert [event.reason for event in worker.recorder.of(SettleFailed)] == ["a bug in an adapter"]
    await worker.stop()


@pytest.mark.parametrize("then", [StaleDeliveryError("not ours"), BrokerUnavailableError("away"), RuntimeError("again")])
async def test_a_message_that_can_be_neither_settled_nor_returned_does_not_end_the_worker(
    monkeypatch: pytest.MonkeyPatch, then: Exception
) -> None:
    monkeypatch.setattr("outbox.engine.delivery.UNEXPECTED_PAUSE", timedelta(milliseconds=20))
    broker = Flaky()
    broker.settle_errors = [RuntimeError("a bug in an adapter"), then]
    worker = Running(broker, [Consumer("order.*", mail, queue="mail")], prefetch_count=2, grace_period=TIMEOUT)
    await worker.started(1)
    await broker.send([message("order.placed")], timeout=TIMEOUT)
    await eventually(lambda: not broker.settle_errors, timeout=SOON)
    await broker.send([message("order.placed")], timeout=TIMEOUT)
    await worker.processed(1)
    await worker.stop()


async def test_a_message_that_cannot_be_returned_for_long_is_returned_with_its_subscription(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("outbox.engine.delivery.UNEXPECTED_PAUSE", timedelta(milliseconds=5))
    monkeypatch.setattr("outbox.engine.delivery.MOST_RETURNS", 3)
    broker = Flaky()
    broker.settle_errors = [RuntimeError("a bug in an adapter")] * 5  # of the outcome, and of four attempts to give it back
    worker = Running(broker, [Consumer("order.*", mail, queue="mail")], prefetch_count=1, grace_period=TIMEOUT)
    await worker.started(1)
    await broker.send([message("order.placed")], timeout=TIMEOUT)
    await worker.processed(1)
    assert broker.outcomes == [DONE]
    assert len(worker.recorder.of(ConsumerStarted)) == 2
    await worker.stop()


@pytest.mark.parametrize("error", [BrokerUnavailableError("away"), RuntimeError("a bug in an adapter")])
async def test_a_queue_is_paused_and_resumed_though_a_delivery_cannot_be_settled(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr("outbox.engine.delivery.UNEXPECTED_PAUSE", timedelta(milliseconds=20))
    broker, gate = Flaky(), HandGate()
    broker.settle_errors = [error] * 1_000_000
    consumers = [Consumer("order.*", mail, queue="mail")]
    worker = Running(broker, consumers, prefetch_count=2, grace_period=TIMEOUT, gate=gate)
    await worker.started(1)
    await broker.send([message("order.placed")], timeout=TIMEOUT)
    await eventually(lambda: worker.recorder.of(SettleFailed), timeout=SOON)
    gate.close()
    await eventually(lambda: worker.recorder.of(Paused), timeout=SOON)
    broker.settle_errors.clear()
    gate.open()
    await worker.processed(1)
    assert broker.outcomes[-1] == DONE
    await worker.stop()


async def test_half_a_surrogate_pair_under_a_masked_key_ends_no_worker() -> None:
    async def refuse(body: bytes) -> None:
        raise ValueError(body)

    broker = MemoryBroker(exchange_name="shop")
    consumer = Consumer("order.*", refuse, queue="mail", retry_delays=())
    worker = Worker(broker=broker, consumers=[consumer], exchange_name="shop", enable_metrics=False)
    await existing(broker, "mail", "order.*")
    async with running(worker):
        await broker.send([message("order.placed", body) for body in (b'{"token":"\\ud800abcdefgh"}', b"{}")], timeout=TIMEOUT)
        await eventually(lambda: len(broker.dead_letters("mail")) == 2, timeout=SOON)


async def test_a_settlement_with_an_unexpected_error_on_its_retry_returns_the_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outbox.engine.delivery.UNEXPECTED_PAUSE", timedelta(milliseconds=20))
    broker = Flaky()
    broker.settle_errors = [BrokerUnavailableError("away"), RuntimeError("a bug in an adapter")]
    worker = Running(broker, [Consumer("order.*", mail, queue="mail")], prefetch_count=1, grace_period=TIMEOUT)
    await worker.started(1)
    await broker.send([message("order.placed")], timeout=TIMEOUT)
    await worker.processed(1)
    assert broker.outcomes == [RETURNED, DONE]
    await worker.stop()


async def test_a_message_model_whose_validator_breaks_is_a_failed_attempt() -> None:
    class Broken(BaseModel):
        id: int

        @field_validator("id")
        @classmethod
        def check(cls, value: int) -> int:
            raise LookupError(f"no such table for {value}")

    async def handle(order: Broken) -> None: ...

    broker = MemoryBroker(exchange_name="shop")
    worker = Running(broker, [Consumer("order.*", handle, queue="mail")], prefetch_count=1, grace_period=TIMEOUT)
    await worker.started(1)
    await broker.send([message("order.placed", b'{"id": 1}')], timeout=TIMEOUT)
    [processed] = await worker.processed(1)
    assert processed.status == "failed"
    await worker.stop()


@pytest.mark.parametrize("given", ["rmq_connection_url", "rmq_connection", "broker"])
async def test_a_worker_on_rabbitmq_takes_a_url_or_a_connection_and_leaves_the_connection_open(
    broker_url: str, given: str
) -> None:
    seen: list[object] = []

    async def handle(body: bytes, message: aio_pika.abc.AbstractIncomingMessage) -> None:
        seen.append((body, message.routing_key, type(message).__module__.partition(".")[0]))

    async with await aio_pika.connect_robust(broker_url) as connection:
        source: Any = connection if given == "rmq_connection" else broker_url
        consumer = Consumer("order.*", handle, queue="mail")
        worker = Worker(consumers=[consumer], exchange_name="shop", enable_metrics=False, **{given: source})
        channel = await connection.channel()
        async with running(worker) as task:
            await eventually(lambda: task.done() or _published(channel), timeout=SOON)
            await eventually(lambda: task.done() or seen, timeout=SOON)
        assert not connection.is_closed
        assert await _published(channel)
    assert seen[0] == (b"{}", "order.placed", "aio_pika")


async def _published(channel: Any) -> bool:
    """Whether the exchange is there, and a queue took the message."""
    if channel.is_closed:
        await channel.reopen()
    try:
        exchange = await channel.get_exchange("shop")
        confirmation = await exchange.publish(aio_pika.Message(b"{}"), "order.placed", mandatory=True)
    except (aio_pika.exceptions.ChannelClosed, aio_pika.exceptions.PublishError):
        return False
    return isinstance(confirmation, pamqp.commands.Basic.Ack)
