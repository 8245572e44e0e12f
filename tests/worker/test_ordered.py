"""Ordered consumers when deliveries are lost, cannot be settled, or crash their workers: no message is overtaken."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pydantic import RootModel

from outbox import Consumer, Reject
from outbox.core.events import CircuitOpened, ConsumerStarted, DependencyRestored, Processed, SettleFailed
from outbox.core.failures import FailedAttempt
from outbox.core.outcome import DONE, Cause, Dead, DeliveryOutcome, Done, Failure, Retry
from outbox.engine import ordered as keyed
from outbox.engine.lifecycle import Stopping, run_until_stopped
from outbox.engine.worker import WorkerRunner, WorkSettings
from outbox.errors import BrokerUnavailableError, MarkHeldError, StaleDeliveryError
from outbox.ports import Delivery, Ending, Intake, Marks, NotSent, Receive, SendResult, Subscription, Unit
from outbox.retry import constant
from outbox.transports.memory import MemoryBroker
from outbox.transports.rabbitmq import RabbitBroker
from outbox.transports.rabbitmq import settlement as settling
from tests.contract.harness import Recorder
from tests.contract.support import existing, message, send
from tests.contract.workers import working
from tests.servers.proxy import Proxy
from tests.support import eventually
from tests.worker.support import SOON, TIMEOUT


class Streaming(MemoryBroker):
    """Delivers like RabbitMQ: in order, and the next messages while one is in flight.

    `settling` is called before each settlement, and may raise.
    """

    def __init__(self) -> None:
        super().__init__(exchange_name="shop")
        self.settling: Callable[[Any, DeliveryOutcome], None] = lambda delivery, outcome: None
        self.watched: type[_Watched] = _Watched

    @asynccontextmanager
    async def subscribe(self, subscription: Subscription, receive: Receive) -> AsyncIterator[Intake]:
        def receive_watched(delivery: Delivery) -> None:
            receive(self.watched(delivery, self))

        async with super().subscribe(replace(subscription, ordered=False), receive_watched) as intake:
            yield intake


class _Watched:
    def __init__(self, delivery: Delivery, broker: Streaming) -> None:
        self._delivery = delivery
        self._broker = broker

    def __getattr__(self, name: str) -> Any:
        return getattr(self._delivery, name)

    async def settle(self, outcome: DeliveryOutcome) -> None:
        self._broker.settling(self, outcome)
        await self._delivery.settle(outcome)


async def loaded(bodies: Sequence[bytes], *, key: str = "k") -> Streaming:
    """A broker with these messages of one key."""
    broker = Streaming()
    await existing(broker, "mail", "#")
    await broker.send([message("order.placed", body, ordering_key=key) for body in bodies], timeout=TIMEOUT)
    return broker


BODIES = [str(number).encode() for number in range(8)]


# --- context variables -------------------------------------------------------------------------------------------------


tenant: ContextVar[bytes] = ContextVar("tenant", default=b"none")


async def test_a_handler_does_not_see_the_context_variables_of_the_message_before() -> None:
    broker, seen = await loaded(BODIES), []

    async def handle(body: bytes) -> None:
        seen.append((body, tenant.get()))
        tenant.set(body)

    async with working(broker, Consumer("#", handle, "mail", ordered=True)):
        await eventually(lambda: broker.is_idle("mail"), timeout=SOON)
    assert seen == [(body, b"none") for body in BODIES]


# --- lost deliveries ---------------------------------------------------------------------------------------------------


async def test_successors_of_a_lost_delivery_wait_for_its_redelivery() -> None:
    broker, calls, lost = await loaded(BODIES), [], False

    async def handle(body: bytes) -> None:
        nonlocal lost
        calls.append(body)
        if body == b"2" and not lost:
            lost = True
            broker.crash("mail")

    async with working(broker, Consumer("#", handle, "mail", ordered=True)) as worker:
        await eventually(lambda: broker.is_idle("mail"), timeout=SOON)
    assert calls == [b"0", b"1", b"2", *BODIES[2:]]
    assert len(worker.recorder.of(SettleFailed)) == 1


async def test_a_message_that_was_lost_while_it_waited_keeps_its_attempts_and_its_delay() -> None:
    broker, attempts, times = await loaded(BODIES[:3]), [], []

    async def handle(body: bytes, attempt_count: int) -> None:
        attempts.append((body, attempt_count))
        times.append(asyncio.get_running_loop().time())
        if body == b"0" and attempt_count < 3:
            raise ConnectionError("away")

    consumer = Consumer("#", handle, "mail", ordered=True, retry=constant("300ms", attempts=3))
    async with working(broker, consumer) as worker:
        for failed in (1, 2):
            await eventually(lambda failed=failed: len(worker.recorder.of(Processed)) == failed, timeout=SOON)  # type: ignore[misc]
            broker.crash("mail")
        await eventually(lambda: broker.is_idle("mail"), timeout=SOON)
    assert attempts == [(b"0", 1), (b"0", 2), (b"0", 3), (b"1", 1), (b"2", 1)]
    assert times[1] - times[0] >= 0.28
    assert times[2] - times[1] >= 0.28


async def test_a_dead_letter_has_the_failures_of_lost_deliveries() -> None:
    broker = await loaded(BODIES[:1])

    async def handle(body: bytes) -> None:
        raise ConnectionError("away")

    consumer = Consumer("#", handle, "mail", ordered=True, retry=constant("50ms", attempts=3))
    async with working(broker, consumer) as worker:
        await eventually(lambda: bool(worker.recorder.of(Processed)), timeout=SOON)
        broker.crash("mail")
        await eventually(lambda: bool(broker.dead_letters("mail")), timeout=SOON)
    [dead] = broker.dead_letters("mail")
    assert (dead.attempt, [failed.attempt for failed in dead.failures]) == (3, [1, 2, 3])


async def test_a_delivery_lost_during_a_pause_does_not_run() -> None:
    broker, calls = await loaded(BODIES[:3]), []

    async def handle(body: bytes, attempt_count: int) -> None:
        calls.append((body, attempt_count))
        if len(calls) == 1:
            raise ConnectionError("away")

    consumer = Consumer(
        "#", handle, "mail", ordered=True, retry=constant(0, attempts=3), pause_on=ConnectionError, pause_after=1, pause_for=0.2
    )
    async with working(broker, consumer) as worker:
        await eventually(lambda: bool(worker.recorder.of(CircuitOpened)), timeout=SOON)
        for _ in range(10):  # turns of the loop, in which it comes to wait for the end of the pause
            await asyncio.sleep(0)
        broker.crash("mail")
        await eventually(lambda: broker.is_idle("mail"), timeout=SOON)
    assert calls == [(b"0", 1), (b"0", 2), (b"1", 1), (b"2", 1)]


async def test_a_delivery_lost_again_before_its_failures_are_restored_does_no_harm() -> None:
    broker, calls = await loaded(BODIES[:2]), []

    class Forgetful(_Watched):
        async def note_failed(self, failed: FailedAttempt) -> None:
            if len(noted) < 2:
                noted.append(failed)
                broker.crash("mail")
                raise StaleDeliveryError("not ours any more")
            await self._delivery.note_failed(failed)

    noted: list[FailedAttempt] = []
    broker.watched = Forgetful

    async def handle(body: bytes, attempt_count: int) -> None:
        calls.append((body, attempt_count))
        if len(calls) == 1:
            raise ConnectionError("away")

    async with working(broker, Consumer("#", handle, "mail", ordered=True, retry=constant("20ms", attempts=3))):
        await eventually(lambda: broker.is_idle("mail"), timeout=SOON)
    assert calls == [(b"0", 1), (b"0", 2), (b"1", 1)]


async def test_a_requeued_message_starts_with_its_first_attempt_even_if_earlier_ones_are_remembered() -> None:
    broker, attempts = await loaded([]), []
    first = message("order.placed", b"0", ordering_key="k")

    def settling(delivery: Delivery, outcome: DeliveryOutcome) -> None:
        if delivery.message.requeue_count == 0:
            raise StaleDeliveryError("not ours any more")

    async def handle(body: bytes, attempt_count: int) -> None:
        attempts.append((body, attempt_count))
        if attempts == [(b"0", 1)]:
            raise ConnectionError("away")

    broker.settling = settling
    async with working(broker, Consumer("#", handle, "mail", ordered=True, retry=constant("20ms", attempts=3))):
        await broker.send([first, replace(first, body=b"1", requeue_count=1)], timeout=TIMEOUT)
        await eventually(lambda: len(attempts) == 3, timeout=SOON)
    assert attempts == [(b"0", 1), (b"0", 2), (b"1", 1)]


@pytest.mark.rabbitmq
async def test_a_cut_connection_keeps_the_order(broker_url: str, proxied: Callable[[str], Proxy]) -> None:
    proxy = proxied(broker_url)
    broker = RabbitBroker(proxy.url, exchange_name="shop", observer=Recorder())
    ledger: dict[str, list[int]] = {}
    running: set[str] = set()
    failed: set[bytes] = set()

    async def handle(body: bytes) -> None:
        key, number = body.decode().split(":")
        assert key not in running
        running.add(key)
        try:
            await asyncio.sleep(0.002)
            if int(number) % 7 == 3 and body not in failed:
                failed.add(body)
                raise ConnectionError("once")
            ledger.setdefault(key, []).append(int(number))
        finally:
            running.discard(key)

    bodies = [f"k{number % 8}:{number}".encode() for number in range(1_200)]
    consumer = Consumer("#", handle, "mail", ordered=True, retry=constant("5ms", attempts=3))
    async with working(broker, consumer, prefetch_count=40) as worker:
        await send(broker, *(message("order.placed", body, ordering_key=body.decode().split(":")[0]) for body in bodies))
        for cut_at in (100, 400, 800):
            await eventually(lambda cut_at=cut_at: handled(ledger) >= cut_at, timeout=SOON)  # type: ignore[misc]
            # What was prefetched is handled also while the connection comes back from the cut before.
            await eventually(lambda: proxy.cut() > 0, timeout=SOON)
        await eventually(lambda: handled(ledger) == 1_200, timeout=2 * SOON)
        dead_letters = [event for event in worker.recorder.of(Processed) if isinstance(event.outcome, Dead)]
    await broker.close()
    assert {key: list(dict.fromkeys(numbers)) for key, numbers in ledger.items()} == {
        f"k{key}": list(range(key, 1_200, 8)) for key in range(8)
    }
    assert dead_letters == []
    assert sum(map(len, ledger.values())) > 1_200, "nothing was redelivered, so nothing was shown"


@pytest.mark.rabbitmq
async def test_after_a_cut_the_redelivery_is_handled_before_its_successors(
    broker_url: str, proxied: Callable[[str], Proxy]
) -> None:
    proxy, recorder = proxied(broker_url), Recorder()
    broker = RabbitBroker(proxy.url, exchange_name="shop", observer=recorder)
    calls: list[bytes] = []
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def handle(body: bytes) -> None:
        calls.append(body)
        begun.set()
        await go_on.wait()

    async with working(broker, Consumer("#", handle, "mail", ordered=True)) as worker:
        await send(broker, *(message("order.placed", body, ordering_key="k") for body in BODIES))
        await begun.wait()
        proxy.cut()
        await eventually(lambda: bool(recorder.of(DependencyRestored)), timeout=SOON)
        go_on.set()
        await eventually(lambda: len(worker.recorder.of(Processed)) == 8, timeout=SOON)
    await broker.close()
    assert calls == [b"0", *BODIES]


def handled(ledger: dict[str, list[int]]) -> int:
    return sum(len(set(numbers)) for numbers in ledger.values())


# --- settling ----------------------------------------------------------------------------------------------------------


async def test_a_settlement_with_an_unexpected_error_returns_everything_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed, "UNEXPECTED_PAUSE", timedelta(milliseconds=10))
    broker, calls = await loaded([]), []
    broken = {b"2"}

    def settling(delivery: Delivery, outcome: DeliveryOutcome) -> None:
        if delivery.message.body in broken:
            broken.clear()
            raise RuntimeError("a mistake of ours")

    async def handle(body: bytes) -> None:
        calls.append(body)

    broker.settling = settling
    async with working(broker, Consumer("#", handle, "mail", ordered=True)) as worker:
        await broker.send([message("order.placed", body, ordering_key="k") for body in BODIES], timeout=TIMEOUT)
        await eventually(lambda: len(worker.recorder.of(ConsumerStarted)) == 2, timeout=SOON)
        await eventually(lambda: broker.is_idle("mail"), timeout=SOON)
    assert calls == [b"0", b"1", b"2", *BODIES[2:]]


async def test_a_message_without_a_key_whose_settlement_fails_unexpectedly_is_returned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("outbox.engine.delivery.UNEXPECTED_PAUSE", timedelta(milliseconds=10))
    broker, calls, broken = await loaded([]), [], [RuntimeError("a mistake of ours")]

    def settling(delivery: Delivery, outcome: DeliveryOutcome) -> None:
        if broken:
            raise broken.pop()

    async def handle(body: bytes) -> None:
        calls.append(body)

    broker.settling = settling
    async with working(broker, Consumer("#", handle, "mail", ordered=True)):
        await broker.send([message("order.placed", b"0")], timeout=TIMEOUT)
        await eventually(lambda: broker.is_idle("mail"), timeout=SOON)
    assert calls == [b"0", b"0"]


async def test_successors_wait_while_an_outcome_cannot_be_recorded() -> None:
    broker, calls, refusals = await loaded(BODIES), [], 3

    def settling(delivery: Delivery, outcome: DeliveryOutcome) -> None:
        nonlocal refusals
        if delivery.message.body == b"2" and refusals:
            refusals -= 1
            raise BrokerUnavailableError("away")

    async def handle(body: bytes) -> None:
        calls.append(body)
        assert body in (b"0", b"1", b"2") or not refusals

    broker.settling = settling
    async with working(broker, Consumer("#", handle, "mail", ordered=True)) as worker:
        await eventually(lambda: broker.is_idle("mail"), timeout=SOON)
    assert calls == BODIES
    assert all(event.outcome == DONE for event in worker.recorder.of(Processed))


@pytest.mark.rabbitmq
async def test_successors_wait_while_a_dead_letter_cannot_be_published(
    broker_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settling, "PATIENCE", timedelta(milliseconds=200))
    publish, refusals = settling.CopySettlement._publish, 0
    calls: list[bytes] = []

    async def handle(body: bytes) -> None:
        calls.append(body)
        if body == b"0":
            raise Reject("no")
        assert refusals >= 5, "overtaken"

    async def refuse_at_first(self: settling.CopySettlement, make_copy: settling.MakeCopy) -> SendResult:
        nonlocal refusals
        refusals += 1
        return NotSent(Failure("away", "no answer")) if refusals <= 5 else await publish(self, make_copy)

    monkeypatch.setattr(settling.CopySettlement, "_publish", refuse_at_first)
    broker = RabbitBroker(broker_url, exchange_name="shop", observer=Recorder())
    async with working(broker, Consumer("#", handle, "mail", ordered=True)) as worker:
        await send(broker, *(message("order.placed", body, ordering_key="k") for body in BODIES))
        await eventually(lambda: len(worker.recorder.of(Processed)) == 8, timeout=SOON)
    await broker.close()
    assert calls == BODIES


# --- expiration, bodies, inbox -----------------------------------------------------------------------------------------


class Number(RootModel[int]):
    """A body that is a number."""


async def test_expired_and_unreadable_messages_do_not_block_the_next_one() -> None:
    broker, calls = Streaming(), []
    await existing(broker, "mail", "#")
    kinds = [(b"0", {}), (b"1", {"expiration": timedelta(seconds=1)}), (b"no number", {}), (b"3", {})]
    await broker.send(
        [message("order.placed", body, ordering_key="k", **options) for body, options in kinds],  # type: ignore[arg-type]
        timeout=TIMEOUT,
    )

    async def handle(number: Number, attempt_count: int) -> None:
        calls.append(number.root)
        if number.root == 0 and attempt_count == 1:
            raise ConnectionError("away")

    consumer = Consumer("#", handle, "mail", ordered=True, retry=constant("1s200ms", attempts=2))
    async with working(broker, consumer):
        await eventually(lambda: broker.is_idle("mail"), timeout=SOON)
    assert calls == [0, 0, 3]
    assert [dead.cause for dead in broker.dead_letters("mail")] == [Cause.EXPIRED, Cause.UNDECODABLE]


class BusyElsewhere:
    """Transactions. The first ones find the mark held by another transaction."""

    def __init__(self, times: int) -> None:
        self.left = times

    @asynccontextmanager
    async def begin(
        self, wanted: frozenset[str], marks: Marks | None = None, ending: Ending | None = None
    ) -> AsyncIterator[Unit]:
        assert marks is not None
        if self.left:
            self.left -= 1
            raise MarkHeldError("elsewhere")
        yield Unit(resources={}, marked=frozenset(marks.message_ids))


async def test_a_message_that_is_being_handled_elsewhere_keeps_its_position(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outbox.engine.transactions.HELD_PAUSE", timedelta(milliseconds=30))
    broker, calls, recorder, stopping = await loaded(BODIES), [], Recorder(), Stopping()

    async def handle(body: bytes, attempt_count: int) -> None:
        calls.append((body, attempt_count))

    consumer = Consumer("#", handle, "mail", ordered=True, inbox=True)
    settings = WorkSettings(exchange_name="shop", retry_delays=(), prefetch_count=10)
    work = WorkerRunner(broker, [consumer], BusyElsewhere(3), recorder, settings)
    task = asyncio.create_task(run_until_stopped(work.run, stopping, handle_signals=False))
    await eventually(lambda: broker.is_idle("mail"), timeout=SOON)
    stopping.request()
    await asyncio.wait_for(task, SOON)
    assert calls == [(body, 1) for body in BODIES]


# --- stopping ----------------------------------------------------------------------------------------------------------


async def test_the_running_message_is_finished_and_those_behind_it_are_returned() -> None:
    broker, calls = await loaded(BODIES), []
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def handle(body: bytes) -> None:
        calls.append(body)
        begun.set()
        await go_on.wait()

    async with working(broker, Consumer("#", handle, "mail", ordered=True)) as worker:
        await begun.wait()
        worker.stopping.request()
        await eventually(lambda: worker.broker.stopped == 1, timeout=SOON)
        go_on.set()
    assert calls == [b"0"]
    assert broker.depth("mail") == 7
    assert [event.outcome for event in worker.recorder.of(Processed)] == [DONE]


# --- poison messages ---------------------------------------------------------------------------------------------------


def crashed(broker: Streaming, times: int) -> None:
    """Waiting messages have crashed that many workers."""
    queue = broker._queue("mail")
    entries = [replace(entry, crashes=times) for entry in queue.ready]
    queue.ready.clear()
    queue.ready.extend(entries)


async def test_poison_messages_run_alone_and_keep_their_position() -> None:
    broker, calls, at_once, most = await loaded(BODIES), [], 0, 0
    await broker.send([message("order.placed", b"other", ordering_key="other")], timeout=TIMEOUT)
    crashed(broker, 4)

    async def handle(body: bytes) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.001)
        calls.append(body)
        at_once -= 1

    async with working(broker, Consumer("#", handle, "mail", ordered=True, max_deliveries=3)):
        await eventually(lambda: broker.is_idle("mail"), timeout=SOON)
    assert [body for body in calls if body != b"other"] == BODIES
    assert most == 1


async def test_of_several_poison_messages_only_the_first_becomes_a_dead_letter() -> None:
    broker, calls = await loaded(BODIES), []
    crashed(broker, 7)

    async def handle(body: bytes) -> None:
        calls.append(body)

    async with working(broker, Consumer("#", handle, "mail", ordered=True, max_deliveries=3)):
        await eventually(lambda: broker.is_idle("mail"), timeout=SOON)
    [dead] = broker.dead_letters("mail")
    assert (dead.message.body, dead.cause) == (b"0", Cause.CRASHED)
    assert calls == BODIES[1:]


# --- what it costs -----------------------------------------------------------------------------------------------------


async def test_a_key_costs_one_task_and_not_one_for_each_message_in_flight() -> None:
    broker, go_on, tasks = await loaded(BODIES), asyncio.Event(), []

    async def handle(body: bytes) -> None:
        tasks.append(len(asyncio.all_tasks()))
        await go_on.wait()

    async with working(broker, Consumer("#", handle, "mail", ordered=True)):
        await eventually(lambda: bool(tasks))
        go_on.set()
        await eventually(lambda: broker.is_idle("mail"), timeout=SOON)
    assert len(tasks) == len(BODIES)
    # With a task for each message in flight there would be one less after each.
    assert max(tasks) - min(tasks) < len(BODIES) - 2


async def test_retries_in_flight_are_reported_as_retries() -> None:
    broker = await loaded(BODIES[:1])

    async def handle(body: bytes, attempt_count: int) -> None:
        if attempt_count < 3:
            raise ConnectionError("away")

    async with working(broker, Consumer("#", handle, "mail", ordered=True, retry=constant(0, attempts=3))) as worker:
        processed = await worker.processed(3)
    assert [(event.attempt, type(event.outcome)) for event in processed] == [(1, Retry), (2, Retry), (3, Done)]
