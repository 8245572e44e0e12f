"""What becomes of messages in a worker, over every broker."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from outbox import Consumer, Reject, RetryAfter, get_tracking_ids
from outbox.core.events import (
    ConsumerStopped,
    IsolationStep,
    Processed,
    ProcessingStatus,
    Received,
)
from outbox.core.message import Message
from outbox.core.outcome import DONE, Cause, Dead
from outbox.ports import Broker, Intake, Receive, Subscription
from tests.contract.harness import EXCHANGE, Harness
from tests.contract.support import existing, message, send, taking
from tests.contract.workers import SOON, working
from tests.support import eventually


class PaymentError(Exception):
    """What handlers fail with here."""


class Order(BaseModel):
    id: int


class Late:
    """A broker of which one queue is subscribed to only after something has begun."""

    def __init__(self, broker: Broker, queue: str, begun: asyncio.Event) -> None:
        self._broker = broker
        self._queue = queue
        self._begun = begun

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)

    @asynccontextmanager
    async def subscribe(self, subscription: Subscription, receive: Receive) -> AsyncIterator[Intake]:
        if subscription.queue == self._queue:
            await self._begun.wait()
        async with self._broker.subscribe(subscription, receive) as intake:
            yield intake


async def test_a_handler_gets_the_message_and_what_it_asks_for(broker: Broker) -> None:
    seen: list[object] = []

    async def handle(order: Order, routing_key: str, tracking_ids: object, attempt_count: int, message: object) -> None:
        seen.extend([order, routing_key, tracking_ids, attempt_count, message.message_id, get_tracking_ids()])  # type: ignore[attr-defined]

    async with working(broker, Consumer("order.*", handle, queue="mail")) as worker:
        sent = message("order.placed", b'{"id": 7}')
        await send(broker, sent)
        [processed] = await worker.processed(1)
    assert seen == [Order(id=7), "order.placed", sent.tracking_ids, 1, sent.id, sent.tracking_ids]
    assert (processed.status, processed.outcome, processed.attempt) == (ProcessingStatus.SUCCESS, DONE, 1)
    assert (processed.queue, processed.exchange_name, processed.message.id) == ("mail", EXCHANGE, sent.id)
    assert [event.message.id for event in worker.recorder.of(Received)] == [sent.id]
    assert len(worker.recorder.of(ConsumerStopped)) == 1


async def test_a_handled_message_is_not_redelivered(broker: Broker) -> None:
    calls: list[bytes] = []

    async def handle(body: bytes) -> None:
        calls.append(body)

    consumer = Consumer("order.*", handle, queue="mail")
    async with working(broker, consumer) as worker:
        await send(broker, *(message("order.placed", str(number).encode()) for number in range(30)))
        await worker.processed(30)
    async with working(broker, consumer) as worker:
        await send(broker, message("order.placed", b"last"))
        await worker.processed(1)
    assert sorted(calls) == sorted([*(str(number).encode() for number in range(30)), b"last"])


async def test_a_failing_handler_is_retried_after_each_delay_and_then_its_message_is_dead(
    broker: Broker, harness: Harness
) -> None:
    attempts: list[tuple[int, float]] = []

    async def handle(body: bytes, attempt_count: int) -> None:
        attempts.append((attempt_count, time.monotonic()))
        raise PaymentError("the card was declined")

    others: list[bytes] = []

    async def count(body: bytes) -> None:
        others.append(body)

    failing = Consumer("order.*", handle, queue="payment", retry_delays=("0", "1s", "0"))
    async with working(broker, failing, Consumer("order.*", count, queue="stock")) as worker:
        sent = message("order.placed", b'{"id": 7}', headers={"tenant": "acme"})
        await send(broker, sent)
        await worker.processed(5)
        [dead] = await harness.dead_letters("payment")
    assert [attempt for attempt, _ in attempts] == [1, 2, 3, 4]
    assert attempts[2][1] - attempts[1][1] >= 0.95
    assert others == [b'{"id": 7}']
    assert (dead.message_id, dead.routing_key, dict(dead.headers)) == (sent.id, "order.placed", {"tenant": "acme"})
    assert dead.exception_type == f"{__name__}.PaymentError"
    assert dead.exception_message == "the card was declined"
    assert "the card was declined" in dead.exception_traceback
    last = worker.recorder.of(Processed)[-1]
    assert isinstance(last.outcome, Dead)
    assert (last.outcome.cause, last.status) == (Cause.EXHAUSTED, ProcessingStatus.FAILED)


async def test_a_handler_may_choose_its_own_delay(broker: Broker) -> None:
    times: list[tuple[int, float]] = []

    async def handle(body: bytes, attempt_count: int) -> None:
        times.append((attempt_count, time.monotonic()))
        if attempt_count < 3:
            raise RetryAfter(timedelta(milliseconds=400))

    async with working(broker, Consumer("order.*", handle, queue="mail", retry_delays=())) as worker:
        await send(broker, message("order.placed"))
        await worker.processed(3)
    assert [attempt for attempt, _ in times] == [1, 2, 3]
    assert times[1][1] - times[0][1] >= 0.38
    assert times[2][1] - times[1][1] >= 0.38


async def test_a_rejected_message_is_dead_at_once(broker: Broker, harness: Harness) -> None:
    calls: list[int] = []

    async def handle(body: bytes, attempt_count: int) -> None:
        calls.append(attempt_count)
        raise Reject("no such customer")

    async with working(broker, Consumer("order.*", handle, queue="mail", retry_delays=("0", "0"))) as worker:
        await send(broker, message("order.placed"))
        [processed] = await worker.processed(1)
        [dead] = await harness.dead_letters("mail")
    assert calls == [1]
    assert processed.status is ProcessingStatus.REJECTED
    assert (dead.exception_type, dead.exception_message) == ("outbox.errors.Reject", "no such customer")


async def test_a_body_of_the_wrong_type_is_dead_at_once(broker: Broker, harness: Harness) -> None:
    async def handle(order: Order) -> None: ...

    async with working(broker, Consumer("order.*", handle, queue="mail", retry_delays=("0", "0")), prefetch_count=1) as worker:
        await send(
            broker,
            message("order.placed", b"no JSON"),
            message("order.placed", b'{"id": "x"}'),
            message("order.paid", b'{"id": 1}'),
        )
        statuses = [event.status for event in await worker.processed(3)]
        assert len(await harness.dead_letters("mail")) == 2
    assert statuses == [ProcessingStatus.UNDECODABLE, ProcessingStatus.UNDECODABLE, ProcessingStatus.SUCCESS]


async def test_malformed_headers_make_a_dead_letter_and_do_not_stall_the_consumer(broker: Broker, harness: Harness) -> None:
    seen: list[bytes] = []

    async def handle(body: bytes) -> None:
        seen.append(body)

    async with working(broker, Consumer("order.*", handle, queue="mail"), prefetch_count=1) as worker:
        await harness.put_malformed("mail")
        await harness.put_malformed("mail")
        await send(broker, message("order.placed", b"good"))
        events = await worker.processed(3)
        assert len(await harness.dead_letters("mail")) == 2
    assert seen == [b"good"]
    assert sorted(event.status for event in events) == ["success", "undecodable", "undecodable"]


async def test_an_expiring_message_keeps_its_full_delay_and_is_dead_as_expired(broker: Broker, harness: Harness) -> None:
    times: list[float] = []

    async def handle(body: bytes) -> None:
        times.append(time.monotonic())
        raise PaymentError("declined")

    async with working(broker, Consumer("order.*", handle, queue="mail", retry_delays=("1s", "2m"))) as worker:
        await send(broker, message("order.placed", expiration=timedelta(minutes=1)))
        events = await worker.processed(2)
        [dead] = await harness.dead_letters("mail")
    assert len(times) == 2
    assert times[1] - times[0] >= 0.95
    assert isinstance(events[-1].outcome, Dead)
    assert events[-1].outcome.cause is Cause.EXPIRED
    assert dead.exception_message == "declined"


async def test_as_many_handlers_run_as_the_prefetch_count_and_never_more(broker: Broker) -> None:
    running, most = 0, 0
    full = asyncio.Event()

    async def handle(body: bytes) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 4:
            full.set()
        await full.wait()
        await asyncio.sleep(0.01)
        running -= 1

    async with working(broker, Consumer("order.*", handle, queue="mail"), prefetch_count=4) as worker:
        await send(broker, *(message("order.placed") for _ in range(20)))
        await worker.processed(20)
    assert most == 4


async def test_a_stop_waits_for_running_handlers_and_returns_the_rest(broker: Broker) -> None:
    begun = 0
    let_go = asyncio.Event()

    async def handle(body: bytes) -> None:
        nonlocal begun
        begun += 1
        await let_go.wait()

    async with working(broker, Consumer("order.*", handle, queue="mail"), prefetch_count=2) as worker:
        await send(broker, *(message("order.placed", str(number).encode()) for number in range(5)))
        await eventually(lambda: begun == 2)
        worker.stopping.request()
        await eventually(lambda: worker.broker.stopped)
        let_go.set()
        await asyncio.wait_for(worker.task, SOON)
    assert begun == 2
    assert [event.status for event in worker.recorder.of(Processed)] == ["success", "success"]
    async with taking(broker, "mail", "order.*") as taken:
        rest = await taken.several(3)
        assert {delivery.message.body for delivery in rest} == {b"2", b"3", b"4"}
        assert {(delivery.attempt, delivery.crashes) for delivery in rest} == {(1, 0)}
        await taken.nothing_more()


async def test_stops_under_load_lose_nothing_and_spend_no_attempts(broker: Broker) -> None:
    attempts: list[int] = []
    seen: list[bytes] = []

    async def handle(body: bytes, attempt_count: int) -> None:
        attempts.append(attempt_count)
        await asyncio.sleep(0)
        seen.append(body)

    consumer = Consumer("order.*", handle, queue="mail")
    await existing(broker, "mail", "order.*")
    bodies = [str(number).encode() for number in range(300)]
    await send(broker, *(message("order.placed", body) for body in bodies))
    for part in (60, 120, 180):
        async with working(broker, consumer, prefetch_count=5):
            await eventually(lambda: len(seen) >= part, interval=0.001, timeout=SOON)  # noqa: B023
    async with working(broker, consumer):
        await eventually(lambda: len(seen) >= len(bodies), timeout=SOON)
    assert sorted(seen) == sorted(bodies)
    assert set(attempts) == {1}


async def test_a_handler_that_exceeds_the_grace_period_is_cancelled_and_its_message_redelivered(broker: Broker) -> None:
    begun = asyncio.Event()
    cancelled = asyncio.Event()

    async def handle(body: bytes) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    consumer = Consumer("order.*", handle, queue="mail")
    async with working(broker, consumer, grace_period=timedelta(milliseconds=100)) as worker:
        await send(broker, message("order.placed"))
        await begun.wait()
        await worker.stop()
    assert cancelled.is_set()
    async with taking(broker, "mail", "order.*") as taken:
        delivery = await taken.next()
        assert (delivery.attempt, delivery.crashes) == (1, 0)


@pytest.mark.parametrize("awaited", [False, True])
async def test_a_worker_goes_on_after_a_handler_that_raises_generator_exit(
    broker: Broker, harness: Harness, awaited: bool
) -> None:
    calls: list[bytes] = []

    def leave() -> None:
        raise GeneratorExit

    async def handle(body: bytes) -> None:
        calls.append(body)
        if body == b"odd" and awaited:
            await asyncio.to_thread(leave)
        elif body == b"odd":
            leave()

    async with working(broker, Consumer("order.*", handle, queue="mail", retry_delays=("0",))) as worker:
        await send(broker, message("order.placed", b"odd"))
        await eventually(lambda: worker.task.done() or len(worker.recorder.of(Processed)) == 2, timeout=SOON)
        await send(broker, message("order.placed", b"ordinary"))
        await eventually(lambda: worker.task.done() or len(worker.recorder.of(Processed)) == 3, timeout=SOON)
        assert not worker.task.done()
        [dead] = await harness.dead_letters("mail")
    assert calls == [b"odd", b"odd", b"ordinary"]
    assert (dead.cause, dead.exception_type) == (Cause.EXHAUSTED, "RuntimeError" if awaited else "GeneratorExit")


async def test_sync_handlers_that_hang_stop_no_other_consumer(broker: Broker) -> None:
    begun, let_go, calls = [], threading.Event(), []

    def hang(body: bytes) -> None:
        begun.append(body)
        let_go.wait(SOON * 3)

    def handle(body: bytes) -> None:
        calls.append(body)

    hanging, healthy = Consumer("slow.*", hang, queue="slow"), Consumer("order.*", handle, queue="mail")
    async with working(broker, hanging, healthy, prefetch_count=64) as worker:
        try:
            await send(broker, *(message("slow.thing") for _ in range(64)))
            await eventually(lambda: len(begun) == 64, timeout=SOON)
            await send(broker, message("order.placed", b"1"))
            await worker.processed(1)
            assert calls == [b"1"]
        finally:
            let_go.set()
        await worker.processed(65)


async def test_a_poison_message_runs_alone(broker: Broker, harness: Harness) -> None:
    await existing(broker, "risky", "risky.*")
    await send(broker, message("risky.thing"))
    for _ in range(2):
        await harness.die_with_message("risky", "risky.*", isolated=False)
    running: set[str] = set()
    together: list[set[str]] = []
    let_go = asyncio.Event()

    async def ordinary(body: bytes) -> None:
        running.add("ordinary")
        await let_go.wait()
        running.discard("ordinary")

    async def risky(body: bytes) -> None:
        running.add("risky")
        for _ in range(10):
            await asyncio.sleep(0.01)
            together.append(set(running))
        running.discard("risky")

    await existing(broker, "mail", "order.*")
    await send(broker, message("order.placed"))
    async with working(
        broker,
        Consumer("order.*", ordinary, queue="mail"),
        Consumer("risky.*", risky, queue="risky", max_deliveries=1),
    ) as worker:
        await eventually(lambda: len(worker.recorder.of(Received)) == 2 or "risky" in running, timeout=SOON)
        let_go.set()
        await worker.processed(2)
    assert together
    assert all(who == {"risky"} for who in together)


async def test_other_handlers_go_on_while_a_poison_message_waits_for_a_long_one(
    broker: Broker, harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They begin nothing during the first wait; then they have four times as long to themselves."""
    monkeypatch.setattr("outbox.engine.quarantine.FIRST_WAIT", timedelta(seconds=1))
    await existing(broker, "risky", "risky.*")
    await send(broker, message("risky.thing"))
    for _ in range(2):
        await harness.die_with_message("risky", "risky.*", isolated=False)
    begun, let_go, running, overlaps, handled = asyncio.Event(), asyncio.Event(), set[str](), list[set[str]](), list[bytes]()

    async def long(body: bytes) -> None:
        running.add("long")
        begun.set()
        await let_go.wait()
        running.discard("long")

    async def ordinary(body: bytes) -> None:
        running.add("ordinary")
        await asyncio.sleep(0)
        handled.append(body)
        running.discard("ordinary")

    async def risky(body: bytes) -> None:
        overlaps.append(set(running))

    consumers = (Consumer("long.*", long, queue="long"), Consumer("order.*", ordinary, queue="mail"))
    poison = Consumer("risky.*", risky, queue="risky", max_deliveries=1)
    async with working(Late(broker, "risky", begun), *consumers, poison, started=2) as worker:
        try:
            await send(broker, message("long.thing"))
            await eventually(lambda: worker.steps[:1] == [IsolationStep.WAITING], timeout=SOON * 2)
            await send(broker, *(message("order.placed", str(number).encode()) for number in range(50)))
            await eventually(lambda: len(handled) == 50, timeout=SOON * 2)
            assert begun.is_set()
            assert not let_go.is_set()
            assert worker.steps[:2] == [IsolationStep.WAITING, IsolationStep.POSTPONED]
            assert overlaps == []
        finally:
            let_go.set()
        await eventually(lambda: overlaps, timeout=SOON * 3)
        await worker.processed(52)
    assert overlaps == [set()]
    assert worker.steps[-2:] == [IsolationStep.RUNNING, IsolationStep.ENDED]


async def test_a_message_within_its_limit_of_crashes_is_not_poison(broker: Broker, harness: Harness) -> None:
    await existing(broker, "risky", "risky.*")
    await send(broker, message("risky.thing"))
    await harness.die_with_message("risky", "risky.*", isolated=False)
    both = asyncio.Barrier(2)

    async def handle(body: bytes) -> None:
        await both.wait()

    async with working(broker, Consumer("risky.*", handle, queue="risky", max_deliveries=1)) as worker:
        await send(broker, message("risky.thing"))
        assert {event.status for event in await worker.processed(2)} == {ProcessingStatus.SUCCESS}


async def test_a_message_that_crashed_a_worker_while_it_ran_alone_is_dead(broker: Broker, harness: Harness) -> None:
    await existing(broker, "risky", "risky.*")
    sent = message("risky.thing", headers={"tenant": "acme"})
    await send(broker, sent)
    for isolated in (False, False, True):
        await harness.die_with_message("risky", "risky.*", isolated=isolated)
    calls: list[bytes] = []

    async def handle(body: bytes) -> None:
        calls.append(body)

    async with working(broker, Consumer("risky.*", handle, queue="risky", max_deliveries=1)) as worker:
        [processed] = await worker.processed(1)
        [dead] = await harness.dead_letters("risky")
    assert calls == []
    assert isinstance(processed.outcome, Dead)
    assert processed.outcome.cause is Cause.CRASHED
    assert (dead.message_id, dead.exception_type) == (sent.id, "crashed")


async def test_two_workers_share_the_messages_and_each_is_handled_once(broker: Broker, other_broker: Broker) -> None:
    seen: list[bytes] = []

    async def handle(body: bytes) -> None:
        seen.append(body)
        await asyncio.sleep(0)

    consumer = Consumer("order.*", handle, queue="mail")
    bodies = [str(number).encode() for number in range(200)]
    async with working(broker, consumer) as first, working(other_broker, consumer) as second:
        await send(broker, *(message("order.placed", body) for body in bodies))
        await eventually(lambda: len(seen) >= len(bodies), timeout=SOON)
        await eventually(
            lambda: len(first.recorder.of(Processed)) + len(second.recorder.of(Processed)) == len(bodies), timeout=SOON
        )
    assert sorted(seen) == sorted(bodies)


async def test_a_message_that_is_too_late_is_not_handled(broker: Broker, harness: Harness) -> None:
    """Either may find out first: the broker, or the worker that it delivers to."""
    calls: list[bytes] = []

    async def handle(body: bytes) -> None:
        calls.append(body)

    await existing(broker, "mail", "order.*")
    late = message("order.placed", expiration=timedelta(milliseconds=150))
    await send(broker, late, message("order.placed", b"in time"))
    await eventually(lambda: datetime.now(UTC) > _deadline(late) + timedelta(milliseconds=100))
    async with working(broker, Consumer("order.*", handle, queue="mail")) as worker:
        await worker.processed(1)
        await eventually(lambda: calls, timeout=SOON)
        await eventually(lambda: harness.dead_letters("mail"), timeout=SOON)
        [dead] = await harness.dead_letters("mail")
    assert dead.message_id == late.id
    assert calls == [b"in time"]


def _deadline(late: Message) -> datetime:
    assert late.expires_at is not None
    return late.expires_at


@pytest.mark.parametrize("delay", [timedelta(0), timedelta(milliseconds=300)])
async def test_a_sync_handler_works_and_fails_like_an_async_one(broker: Broker, delay: timedelta) -> None:
    seen: list[tuple[int, object]] = []

    def handle(order: Order, attempt_count: int) -> None:
        seen.append((attempt_count, get_tracking_ids()))
        if attempt_count == 1:
            raise PaymentError("declined")

    async with working(broker, Consumer("order.*", handle, queue="mail", retry_delays=(delay,))) as worker:
        sent = message("order.placed", b'{"id": 7}')
        await send(broker, sent)
        await worker.processed(2)
    assert seen == [(1, sent.tracking_ids), (2, sent.tracking_ids)]
