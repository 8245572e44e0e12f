"""Failures of consumers: retry strategies, permanent errors, and the texts of failures."""

import logging
import os
import platform
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from outbox import Consumer, Reject, RetryAfter, Worker, consume
from outbox.core.events import Processed, ProcessingStatus
from outbox.core.outcome import NOT_REDACTED, Cause, Dead, DeliveryOutcome, Failure, Retry
from outbox.errors import ConfigurationError, DurationError
from outbox.ports import Receive, Subscription
from outbox.retry import constant, delays, exponential
from outbox.transports.memory import DeadLetter, MemoryBroker
from tests.contract.support import message
from tests.contract.workers import working
from tests.support import eventually
from tests.worker.support import SOON, TIMEOUT, running


class AwayError(ConnectionError):
    """A dependency is unavailable."""


class Order(BaseModel):
    id: int


async def outcomes(consumer: Consumer, count: int, body: bytes = b"{}", **options: Any) -> list[DeliveryOutcome]:
    """The outcomes of the first `count` attempts with one message."""
    broker = MemoryBroker(exchange_name="shop")
    async with working(broker, consumer) as worker:
        await broker.send([message("order.placed", body, **options)], timeout=TIMEOUT)
        return [processed.outcome for processed in await worker.processed(count)]


async def dead_letter_of(consumer: Consumer, body: bytes = b"{}", **options: Any) -> DeadLetter:
    """The dead letter that a public worker makes of one message."""
    broker = MemoryBroker(exchange_name="shop")
    worker = Worker(broker=broker, consumers=[consumer], exchange_name="shop", enable_metrics=False, **options)
    async with running(worker):
        await eventually(lambda: broker.has_consumer(consumer.queue), timeout=SOON)
        await broker.send([message("order.placed", body)], timeout=TIMEOUT)
        await eventually(lambda: bool(broker.dead_letters(consumer.queue)), timeout=SOON)
    [dead] = broker.dead_letters(consumer.queue)
    return dead


def raising(error: BaseException) -> Callable[[bytes], Awaitable[None]]:
    async def handle(body: bytes) -> None:
        raise error

    return handle


# --- strategies --------------------------------------------------------------------------------------------------------


async def test_a_strategy_spaces_the_attempts_and_ends_them() -> None:
    consumer = Consumer("#", raising(AwayError()), "mail", retry=exponential("1ms", factor=3, attempts=4))
    *retried, last = await outcomes(consumer, 4)
    assert [outcome.delay for outcome in retried if isinstance(outcome, Retry)] == [
        timedelta(milliseconds=milliseconds) for milliseconds in (1, 3, 9)
    ]
    assert isinstance(last, Dead)
    assert last.cause is Cause.EXHAUSTED


async def test_a_callable_gets_the_handler_s_exception() -> None:
    seen: list[tuple[int, BaseException]] = []
    error = AwayError("no route")

    def choose(attempt: int, raised: BaseException) -> float | None:
        seen.append((attempt, raised))
        return 0.001 if attempt < 2 else None

    await outcomes(Consumer("#", raising(error), "mail", retry=choose), 2)
    assert seen == [(1, error), (2, error)]


async def test_a_callable_that_raises_fails_the_message_and_not_the_consumer() -> None:
    def choose(attempt: int, raised: BaseException) -> float:
        raise LookupError("no such table of delays")

    [outcome] = await outcomes(Consumer("#", raising(AwayError("no route")), "mail", retry=choose), 1)
    assert isinstance(outcome, Dead)
    assert (
        outcome.failure.message == "no route (not retried: its retry strategy failed with LookupError: no such table of delays)"
    )


async def test_a_delay_that_the_handler_chooses_comes_before_the_strategy() -> None:
    consumer = Consumer("#", raising(RetryAfter(timedelta(milliseconds=7))), "mail", retry=constant("1s", attempts=1))
    outcome, *_ = await outcomes(consumer, 1)
    assert isinstance(outcome, Retry)
    assert outcome.delay == timedelta(milliseconds=7)


async def test_a_strategy_keeps_within_the_expiration() -> None:
    consumer = Consumer("#", raising(AwayError()), "mail", retry=constant("5m", attempts=None))
    [outcome] = await outcomes(consumer, 1, expiration=timedelta(seconds=30))
    assert isinstance(outcome, Dead)
    assert outcome.cause is Cause.EXPIRED


class Listening(MemoryBroker):
    """Records the subscriptions."""

    def __init__(self) -> None:
        super().__init__(exchange_name="shop")
        self.subscriptions: list[Subscription] = []

    def subscribe(self, subscription: Subscription, receive: Receive) -> Any:
        self.subscriptions.append(subscription)
        return super().subscribe(subscription, receive)


async def test_delays_known_in_advance_are_announced_to_the_broker() -> None:
    broker = Listening()
    consumers = [
        Consumer("#", raising(AwayError()), "given", retry_delays=("1s", "2s")),
        Consumer("#", raising(AwayError()), "named", retry=delays("3s")),
        Consumer("#", raising(AwayError()), "computed", retry=exponential("1s", cap="4s", attempts=None)),
        Consumer("#", raising(AwayError()), "chosen", retry=lambda attempt, error: 1, pause_on=AwayError, pause_for="9s"),
        Consumer("#", raising(AwayError()), "jittery", retry=constant("1s", attempts=9, jitter=0.1), ordered=True),
    ]
    async with working(broker, *consumers):
        subscribed = {subscription.queue: subscription.retry_delays for subscription in broker.subscriptions}
        ordered = {subscription.queue for subscription in broker.subscriptions if subscription.ordered}
    seconds = {queue: [delay.total_seconds() for delay in announced] for queue, announced in subscribed.items()}
    assert seconds == {"given": [1, 2], "named": [3], "computed": [1, 2, 4], "chosen": [9], "jittery": []}
    assert ordered == {"jittery"}


# --- permanent errors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no such customer"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
        ExceptionGroup("two", [AwayError(), ExceptionGroup("one", [ValueError("no such customer")])]),
    ],
    ids=["itself", "a subclass", "in a group"],
)
async def test_a_permanent_error_makes_a_dead_letter_at_once(error: Exception) -> None:
    consumer = Consumer("#", raising(error), "mail", dead_on=(ValueError, LookupError), retry_delays=("1s", "1s"))
    broker = MemoryBroker(exchange_name="shop")
    async with working(broker, consumer) as worker:
        await broker.send([message("order.placed")], timeout=TIMEOUT)
        [processed] = await worker.processed(1)
    assert processed.status is ProcessingStatus.REJECTED
    assert isinstance(processed.outcome, Dead)
    assert processed.outcome.cause is Cause.REJECTED
    assert processed.outcome.failure == Failure.of(error)


async def test_other_errors_are_retried() -> None:
    consumer = Consumer("#", raising(AwayError()), "mail", dead_on=ValueError, retry_delays=("0", "0"))
    assert [type(outcome) for outcome in await outcomes(consumer, 3)] == [Retry, Retry, Dead]


async def test_the_handler_s_choice_takes_precedence_over_permanent_errors() -> None:
    consumer = Consumer("#", raising(RetryAfter(timedelta(0))), "mail", dead_on=Exception)
    outcome, *_ = await outcomes(consumer, 1)
    assert isinstance(outcome, Retry)


async def test_a_validation_error_of_the_handler_s_own_can_be_permanent() -> None:
    async def handle(order: Order) -> None:
        Order.model_validate({"id": "x"})

    consumer = Consumer("#", handle, "mail", dead_on=ValidationError, retry_delays=("0",))
    [outcome] = await outcomes(consumer, 1, b'{"id": 1}')
    assert isinstance(outcome, Dead)
    assert outcome.cause is Cause.REJECTED


# --- arguments ---------------------------------------------------------------------------------------------------------


async def handle(body: bytes) -> None: ...


def handle_in_thread(body: bytes) -> None: ...


async def handle_list(bodies: list[bytes]) -> None: ...


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"retry": delays("1s"), "retry_delays": ("1s",)}, "retry or retry_delays, not both"),
        ({"retry": ("1s", "10s")}, "retry must be one of outbox.retry's"),
        ({"retry": lambda attempt: 1}, "called with attempt and error"),
        ({"dead_on": ("ValueError",)}, "dead_on must be exception types"),
        ({"dead_on": ValueError("no")}, "dead_on must be exception types"),
        ({"dead_on": Reject}, "dead_on must not contain Reject"),
        ({"dead_on": (RetryAfter,)}, "dead_on must not contain RetryAfter"),
        ({"dead_on": KeyboardInterrupt}, "which ends the process"),
        ({"pause_on": (Reject,)}, "pause_on must not contain Reject"),
        ({"pause_on": (int,)}, "pause_on must be exception types"),
        ({"pause_on": OSError, "pause_after": 0}, "pause_after must be a whole number from 1"),
        ({"pause_on": OSError, "pause_for": 0}, "pause_for must be longer than zero"),
        ({"pause_on": OSError, "pause_for": "1h"}, "pause_for: '1h' is not a duration"),
        ({"pause_for": "5s"}, "need pause_on"),
        ({"pause_after": 2}, "need pause_on"),
        ({"timeout": 0}, "timeout must be longer than zero"),
        ({"timeout": "5"}, "timeout: '5' is not a duration"),
        ({"timeout": True}, "timeout: a delay must be a duration"),
    ],
)
def test_invalid_options_are_refused_when_the_consumer_is_created(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        consume("order.*", queue="mail", **options)(handle)


def test_a_time_limit_for_a_thread_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="Write async def, or remove timeout"):
        Consumer("#", handle_in_thread, "mail", timeout=5)


def test_an_ordered_consumer_takes_no_batches() -> None:
    with pytest.raises(ConfigurationError, match="Remove batch or ordered"):
        Consumer("#", handle_list, "mail", ordered=True, batch=True)


def test_times_are_durations_seconds_or_timedeltas() -> None:
    limits = [Consumer("#", handle, timeout=value).options.timeout for value in ("1m30s", 90, 90.0, timedelta(seconds=90))]
    assert set(limits) == {timedelta(seconds=90)}
    with pytest.raises(DurationError):
        Consumer("#", handle, timeout="90 seconds")


def test_consumers_with_the_same_options_are_equal() -> None:
    first, second = (
        Consumer("#", handle, dead_on=errors, timeout=timeout, retry=exponential("1s", attempts=3))
        for errors, timeout in ((ValueError, 5), ([ValueError], "5s"))
    )
    assert first == second
    assert hash(first) == hash(second)


# --- what a failure records -------------------------------------------------------------------------------------------


async def test_a_failure_names_its_worker() -> None:
    dead = await dead_letter_of(Consumer("#", raising(AwayError()), "mail", retry_delays=()), name="blue")
    assert dead.failure.worker == "blue"
    dead = await dead_letter_of(Consumer("#", raising(AwayError()), "mail", retry_delays=()))
    assert dead.failure.worker == f"{platform.node()}:{os.getpid()}"


async def test_the_message_carries_all_its_failures() -> None:
    numbers = iter(range(1, 9))

    async def handle(body: bytes) -> None:
        raise AwayError(f"number {next(numbers)}")

    dead = await dead_letter_of(Consumer("#", handle, "mail", retry=constant(0, attempts=3)), name="blue")
    assert [(failed.attempt, failed.failure.message, failed.failure.worker) for failed in dead.failures] == [
        (1, "number 1", "blue"),
        (2, "number 2", "blue"),
        (3, "number 3", "blue"),
    ]


SECRET = "4111111111111111"


async def test_exception_texts_are_redacted_before_they_are_stored_or_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="outbox")

    async def handle(body: bytes) -> None:
        raise AwayError(f"card {SECRET} was refused") from KeyError(f"inner {SECRET}")

    consumer = Consumer("#", handle, "mail", retry=constant(0, attempts=2))
    dead = await dead_letter_of(consumer, redact=lambda text: text.replace(SECRET, "[card]"))
    assert dead.failure.message == "card [card] was refused"
    assert "inner [card]" in dead.failure.traceback
    assert SECRET not in f"{dead} {caplog.text}"


async def test_the_text_of_a_body_that_cannot_be_read_is_redacted_too(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="outbox")

    async def handle(order: Order) -> None: ...

    dead = await dead_letter_of(
        Consumer("#", handle, "mail"), b'{"id": "%s!"}' % SECRET.encode(), redact=lambda text: text.replace(SECRET, "[card]")
    )
    assert "[card]" in dead.failure.message
    assert SECRET not in f"{dead.failure} {caplog.text}"


async def test_no_half_of_a_secret_is_left_where_a_text_is_cut(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="outbox")
    error = AwayError("x" * 1_992 + SECRET)
    consumer = Consumer("#", raising(error), "mail", retry=constant(0, attempts=2))
    dead = await dead_letter_of(consumer, redact=lambda text: text.replace(SECRET, "[card]"))
    assert dead.failure.message == "x" * 1_992 + "[card]"
    assert SECRET[:8] not in f"{dead.failure.message} {dead.failure.traceback} {dead.failures} {caplog.text}"


def broken(text: str) -> str:
    raise ValueError(text)


@pytest.mark.parametrize("redact", [broken, lambda text: None, lambda text: text.encode()])
async def test_a_text_that_cannot_be_redacted_is_left_out(redact: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="outbox")
    dead = await dead_letter_of(Consumer("#", raising(AwayError(SECRET)), "mail", retry_delays=()), redact=redact)
    assert (dead.failure.message, dead.failure.traceback) == (NOT_REDACTED, NOT_REDACTED)
    assert dead.failure.type.endswith("AwayError")
    assert SECRET not in f"{dead} {caplog.text}"


async def test_the_error_of_a_faulty_strategy_is_redacted_too() -> None:
    def choose(attempt: int, error: BaseException) -> float:
        raise LookupError(SECRET)

    consumer = Consumer("#", raising(AwayError("away")), "mail", retry=choose)
    dead = await dead_letter_of(consumer, redact=lambda text: text.replace(SECRET, "[card]"))
    assert dead.failure.message == "away (not retried: its retry strategy failed with LookupError: [card])"


def test_a_redaction_that_cannot_be_called_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="redact must be a callable"):
        Worker(broker=MemoryBroker(), redact="secrets")  # type: ignore[arg-type]


async def test_attempts_of_many_messages_do_not_mix() -> None:
    """Each message has its own attempts, even when several fail at the same time."""
    consumer = Consumer("#", raising(AwayError()), "mail", retry=exponential("1ms", attempts=3))
    broker = MemoryBroker(exchange_name="shop")
    async with working(broker, consumer) as worker:
        await broker.send([message("order.placed") for _ in range(20)], timeout=TIMEOUT)
        processed = await worker.processed(60)
    by_id: dict[str, list[Processed]] = {}
    for event in processed:
        by_id.setdefault(event.message.id, []).append(event)
    assert all([event.attempt for event in events] == [1, 2, 3] for events in by_id.values())
