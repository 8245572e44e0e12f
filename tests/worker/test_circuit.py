"""Consumers that pause: after repeated failures of a given kind nothing is handled until a probe succeeds."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from outbox import Consumer, Reject, RetryAfter
from outbox.core.events import CircuitClosed, CircuitOpened, Processed
from outbox.core.outcome import DONE, Cause, Retry
from outbox.engine import circuit
from outbox.engine.circuit import Breaker, Permit, ProbeResult
from outbox.engine.consumer import Pausing
from outbox.transports.memory import MemoryBroker
from tests.contract.support import existing, message
from tests.contract.workers import working
from tests.support import eventually
from tests.worker.support import SOON, TIMEOUT

PAUSE = timedelta(seconds=30)


# --- who may run -------------------------------------------------------------------------------------------------------


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> Breaker:
    return Breaker(Pausing(kinds=(OSError,), failures=3, pause=PAUSE), clock)


def permit(breaker: Breaker) -> Permit:
    """Requests a permit, which must be granted."""
    answer = breaker.request_permit()
    assert isinstance(answer, Permit)
    return answer


def run(breaker: Breaker, *results: ProbeResult) -> None:
    """Records these results one after another."""
    for result in results:
        breaker.record(permit(breaker), result)


def pause(breaker: Breaker) -> None:
    run(breaker, ProbeResult.PAUSING_FAILURE, ProbeResult.PAUSING_FAILURE, ProbeResult.PAUSING_FAILURE)
    assert breaker.paused


def test_it_pauses_after_the_set_number_of_failures(breaker: Breaker) -> None:
    run(breaker, ProbeResult.PAUSING_FAILURE, ProbeResult.PAUSING_FAILURE)
    assert not breaker.paused
    run(breaker, ProbeResult.PAUSING_FAILURE)
    assert breaker.paused
    assert breaker.request_permit() == PAUSE


def test_only_a_success_resets_the_count(breaker: Breaker) -> None:
    run(
        breaker,
        ProbeResult.PAUSING_FAILURE,
        ProbeResult.PAUSING_FAILURE,
        ProbeResult.SUCCESS,
        ProbeResult.PAUSING_FAILURE,
        ProbeResult.OTHER_FAILURE,
        ProbeResult.INCONCLUSIVE,
        ProbeResult.PAUSING_FAILURE,
    )
    assert not breaker.paused
    run(breaker, ProbeResult.PAUSING_FAILURE)
    assert breaker.paused


def test_after_the_pause_one_probe_runs_and_no_other_handler(breaker: Breaker, clock: Clock) -> None:
    pause(breaker)
    clock.now += 29.5
    assert breaker.request_permit() == timedelta(seconds=0.5)
    clock.now += 0.5
    assert permit(breaker).probe
    assert breaker.request_permit() is None


def test_a_successful_probe_resumes(breaker: Breaker, clock: Clock) -> None:
    pause(breaker)
    clock.now += 30
    run(breaker, ProbeResult.SUCCESS)
    assert not breaker.paused
    assert not permit(breaker).probe
    run(breaker, ProbeResult.PAUSING_FAILURE, ProbeResult.PAUSING_FAILURE)
    assert not breaker.paused


@pytest.mark.parametrize("result", [ProbeResult.PAUSING_FAILURE, ProbeResult.OTHER_FAILURE])
def test_a_failed_probe_pauses_again(breaker: Breaker, clock: Clock, result: ProbeResult) -> None:
    pause(breaker)
    clock.now += 31
    run(breaker, result)
    assert breaker.request_permit() == PAUSE


def test_an_inconclusive_probe_is_followed_by_another_at_once(breaker: Breaker, clock: Clock) -> None:
    pause(breaker)
    clock.now += 30
    run(breaker, ProbeResult.INCONCLUSIVE)
    assert breaker.paused
    assert permit(breaker).probe


def test_results_from_before_the_pause_are_ignored_after_it(breaker: Breaker, clock: Clock) -> None:
    late = [permit(breaker) for _ in range(9)]
    pause(breaker)
    breaker.record(late[0], ProbeResult.SUCCESS)
    assert breaker.request_permit() == PAUSE
    clock.now += 10
    breaker.record(late[1], ProbeResult.PAUSING_FAILURE)
    assert breaker.request_permit() == timedelta(seconds=20)
    clock.now += 20
    run(breaker, ProbeResult.SUCCESS)
    for old in late[2:]:
        breaker.record(old, ProbeResult.PAUSING_FAILURE)
    assert not breaker.paused


# --- a consumer that pauses --------------------------------------------------------------------------------------------


class Service:
    """A dependency of a handler, which may be unavailable."""

    def __init__(self) -> None:
        self.away: BaseException | None = ConnectionError("no route")
        self.calls: list[bytes] = []

    async def handle(self, body: bytes) -> None:
        self.calls.append(body)
        if self.away is not None:
            raise self.away

    def consumer(self, **options: Any) -> Consumer:
        given: dict[str, Any] = {"pause_on": ConnectionError, "pause_after": 2, "pause_for": "100ms", "retry_delays": ()}
        return Consumer("#", self.handle, "mail", **{**given, **options})


async def loaded(count: int, **options: Any) -> MemoryBroker:
    """A broker with `count` messages in its queue."""
    broker = MemoryBroker(exchange_name="shop")
    await existing(broker, "mail", "#")
    await broker.send([message("order.placed", str(n).encode(), **options) for n in range(count)], timeout=TIMEOUT)
    return broker


async def test_a_consumer_pauses_probes_and_resumes() -> None:
    service, broker = Service(), await loaded(20)
    async with working(broker, service.consumer(), prefetch_count=1) as worker:
        await eventually(lambda: len(worker.recorder.of(CircuitOpened)) >= 3, timeout=SOON)
        assert len(service.calls) == 4  # two that opened it, two probes; the others have spent nothing
        service.away = None
        await eventually(lambda: broker.is_idle("mail"), timeout=SOON)
    assert len(broker.dead_letters("mail")) == len(service.calls) - 16 <= 6
    [opened, *_] = worker.recorder.of(CircuitOpened)
    assert (opened.queue, opened.exchange_name, opened.pause) == ("mail", "shop", timedelta(milliseconds=100))
    assert len(worker.recorder.of(CircuitClosed)) == 1


async def test_messages_that_wait_for_a_paused_consumer_use_no_attempt() -> None:
    service, broker = Service(), await loaded(30)
    consumer = service.consumer(pause_after=1, retry_delays=("0", "0", "0"))
    async with working(broker, consumer, prefetch_count=1) as worker:
        await eventually(lambda: len(worker.recorder.of(CircuitOpened)) >= 2, timeout=SOON)
        service.away = None
        await worker.processed(32)
        await eventually(lambda: broker.is_idle("mail"), timeout=SOON)
    processed = worker.recorder.of(Processed)
    failed = [event for event in processed if isinstance(event.outcome, Retry)]
    assert len(failed) == len(worker.recorder.of(CircuitOpened))
    assert sum(event.attempt for event in processed if event.outcome == DONE) == 30 + len(failed)


async def test_stopping_waits_for_no_pause() -> None:
    service, broker = Service(), await loaded(20)
    async with working(broker, service.consumer(pause_for="5m"), prefetch_count=5) as worker:
        await eventually(lambda: bool(worker.recorder.of(CircuitOpened)), timeout=SOON)
        async with asyncio.timeout(30):
            await worker.stop()
    assert broker.depth("mail") + len(broker.dead_letters("mail")) == 20
    assert len(service.calls) == len(broker.dead_letters("mail"))


async def test_a_message_that_waits_for_too_long_goes_to_the_end_of_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(circuit, "LONGEST_WAIT", timedelta(milliseconds=50))
    service, broker = Service(), await loaded(4)
    async with working(broker, service.consumer(pause_for="59s", pause_after=1), prefetch_count=1) as worker:
        # One opened the circuit and is dead; the others are redelivered again and again, and no handler runs.
        await eventually(lambda: broker.depth("mail") == 3, timeout=SOON)
        assert service.calls == [b"0"]
        assert len(worker.recorder.of(Processed)) == 1


async def test_a_message_that_expires_during_a_pause_becomes_a_dead_letter() -> None:
    service = Service()
    broker = await loaded(3, expiration=timedelta(seconds=2))
    async with working(broker, service.consumer(pause_after=1, pause_for="2s500ms"), prefetch_count=3):
        await eventually(lambda: len(broker.dead_letters("mail")) == 3, timeout=SOON)
    assert service.calls == [b"0"]
    causes = [dead.cause for dead in broker.dead_letters("mail")]
    assert causes == [Cause.EXHAUSTED, Cause.EXPIRED, Cause.EXPIRED]


@pytest.mark.parametrize(
    ("error", "pause_on"),
    [
        (ConnectionResetError(), (LookupError, ConnectionError)),
        (ExceptionGroup("tasks", [ValueError(), ConnectionError()]), ConnectionError),
        (RetryAfter(timedelta(seconds=5)), RetryAfter),
    ],
    ids=["a subclass", "in a group", "the handler says so itself"],
)
async def test_a_named_exception_pauses(error: BaseException, pause_on: Any) -> None:
    service, broker = Service(), await loaded(2)
    service.away = error
    async with working(broker, service.consumer(pause_on=pause_on, pause_for="5m")) as worker:
        await eventually(lambda: bool(worker.recorder.of(CircuitOpened)), timeout=SOON)


@pytest.mark.parametrize("error", [ValueError(), Reject("no"), RetryAfter(timedelta(seconds=5)), KeyError()])
async def test_other_exceptions_do_not_pause(error: BaseException) -> None:
    service, broker = Service(), await loaded(10)
    service.away = error
    async with working(broker, service.consumer(pause_on=ConnectionError, pause_for="5m")) as worker:
        await worker.processed(10)
        assert worker.recorder.of(CircuitOpened) == []


async def test_a_time_limit_may_pause_a_consumer() -> None:
    async def handle(body: bytes) -> None:
        await asyncio.sleep(3600)

    broker = await loaded(1)
    consumer = Consumer("#", handle, "mail", timeout="20ms", pause_on=TimeoutError, pause_after=1, pause_for="5m")
    async with working(broker, consumer) as worker:
        await eventually(lambda: bool(worker.recorder.of(CircuitOpened)), timeout=SOON)


async def test_consumers_pause_independently() -> None:
    service, others = Service(), []

    async def other(body: bytes) -> None:
        others.append(body)

    broker = MemoryBroker(exchange_name="shop")
    await existing(broker, "mail", "#")
    await existing(broker, "stock", "#")
    await broker.send([message("order.placed") for _ in range(10)], timeout=TIMEOUT)
    async with working(broker, service.consumer(pause_for="5m"), Consumer("#", other, "stock")) as worker:
        await eventually(lambda: bool(worker.recorder.of(CircuitOpened)), timeout=SOON)
        await eventually(lambda: len(others) == 10, timeout=SOON)
