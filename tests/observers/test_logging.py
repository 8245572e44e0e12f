"""Log lines: which level, what is in them, and what never is."""

import logging
from typing import get_args

import pytest

from outbox.events import (
    Advice,
    Archived,
    BacklogMeasured,
    BatchFailed,
    BatchSent,
    CircuitClosed,
    CircuitOpened,
    CleanedUp,
    ConsumerStarted,
    ConsumerStopped,
    DeadLettersMeasured,
    DependencyLost,
    DependencyRestored,
    Duplicate,
    DutyDone,
    DutyFailed,
    Event,
    HandlersAbandoned,
    HistoryLost,
    IsolationStep,
    MaintenanceStarted,
    MaintenanceStopped,
    Paused,
    PoisonIsolated,
    Processed,
    Received,
    RelayStarted,
    RelayStopped,
    Resumed,
    RoundFinished,
    RouteResumed,
    RouteStalled,
    SendFailed,
    SettleFailed,
    WakeMode,
    WakeModeChanged,
)
from outbox.observers.logging import LoggingObserver
from tests.observers import events

observer = LoggingObserver()

LEVELS: list[tuple[Event, int]] = [
    (events.HANDLED, logging.INFO),
    (events.FAILED, logging.WARNING),
    (events.EXHAUSTED, logging.WARNING),
    (events.REJECTED, logging.WARNING),
    (events.UNDECODABLE, logging.ERROR),
    (events.CRASHED, logging.ERROR),
    (events.GIVEN_BACK, logging.DEBUG),
    (events.RETRIED, logging.WARNING),
    (events.PARKED, logging.WARNING),
    (events.PROBE, logging.WARNING),
    (events.HELD, logging.DEBUG),
    (events.RETURNED_TO_TABLE, logging.DEBUG),
    (events.DROPPED, logging.WARNING),
    *((event, logging.INFO) for event in events.of(Archived, BatchSent, RelayStarted, RelayStopped, DependencyRestored)),
    *((event, logging.INFO) for event in events.of(MaintenanceStarted, MaintenanceStopped, DutyDone, Paused, Resumed)),
    *((event, logging.INFO) for event in events.of(CircuitClosed, RouteResumed)),
    *((event, logging.WARNING) for event in events.of(CircuitOpened, RouteStalled)),
    *(
        (event, logging.INFO if event.step is IsolationStep.ENDED else logging.WARNING)
        for event in events.EVENTS
        if isinstance(event, PoisonIsolated)
    ),
    *((event, logging.ERROR) for event in events.of(DutyFailed, HandlersAbandoned)),
    *((event, logging.WARNING) for event in events.of(DependencyLost, SettleFailed, BatchFailed, Advice, HistoryLost)),
    *(
        (event, logging.DEBUG)
        for event in events.of(
            RoundFinished,
            BacklogMeasured,
            CleanedUp,
            ConsumerStarted,
            ConsumerStopped,
            Received,
            DeadLettersMeasured,
            Duplicate,
        )
    ),
    *(
        (event, logging.INFO if event.mode is WakeMode.LISTENING else logging.WARNING)
        for event in events.EVENTS
        if isinstance(event, WakeModeChanged)
    ),
]


@pytest.fixture(autouse=True)
def _everything_is_on(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="outbox")


def test_the_examples_cover_every_kind_of_event() -> None:
    assert {type(event) for event in events.EVENTS} == set(get_args(Event))
    assert len(LEVELS) == len(events.EVENTS)


@pytest.mark.parametrize(("event", "level"), LEVELS, ids=lambda value: type(value).__name__)
def test_each_event_has_its_level_on_the_logger_outbox(event: Event, level: int, caplog: pytest.LogCaptureFixture) -> None:
    observer.notify(event)
    assert {(record.name, record.levelno) for record in caplog.records} == {("outbox", level)}


@pytest.mark.parametrize("event", events.EVENTS, ids=lambda event: type(event).__name__)
def test_a_line_is_one_line_without_secrets_and_without_the_body(event: Event, caplog: pytest.LogCaptureFixture) -> None:
    observer.notify(event)
    for record in caplog.records:
        line = record.getMessage()
        assert "\n" not in line
        assert "geheim" not in line
        assert "4111" not in line
        assert record.exc_info is None


@pytest.mark.parametrize("event", events.of(BatchSent, SendFailed, Received, Processed), ids=lambda event: type(event).__name__)
def test_what_is_about_a_message_names_its_id_and_routing_key(event: Event, caplog: pytest.LogCaptureFixture) -> None:
    observer.notify(event)
    assert caplog.records
    for record in caplog.records:
        assert events.MESSAGE.id in record.getMessage()
        assert "order.placed" in record.getMessage()


def test_the_lines_of_a_handler_read_like_this(caplog: pytest.LogCaptureFixture) -> None:
    for event in (events.HANDLED, events.FAILED, events.REJECTED):
        observer.notify(event)
    subject = f"{events.MESSAGE.id} 'order.placed' of queue mail"
    assert [record.getMessage() for record in caplog.records] == [
        f"processed {subject} in 0.250 s",
        f"attempt 2 at {subject} failed, again in 60.000 s: ValueError: no luck with amqp://ada:***@rabbit/",
        f"attempt 2 at {subject} made it a dead letter, rejected: ValueError: no luck with amqp://ada:***@rabbit/",
    ]


def test_the_lines_of_a_relay_read_like_this(caplog: pytest.LogCaptureFixture) -> None:
    for event in (events.sent(0.5), events.RETRIED, events.PARKED, events.PROBE):
        observer.notify(event)
    subject = f"{events.MESSAGE.id} 'order.placed'"
    reason = "ValueError: no luck with amqp://ada:***@rabbit/"
    assert [record.getMessage() for record in caplog.records] == [
        f"published {subject} to exchange orders, 0.500 s after it was written",
        f"refused {subject}, tried again in 4.000 s: {reason}",
        f"refused {subject}, parked for good: {reason}",
        f"unroutable {subject}, held until a queue is bound: {reason}",
    ]


def test_a_batch_has_a_line_for_each_message(caplog: pytest.LogCaptureFixture) -> None:
    observer.notify(events.sent(0.1, 0.2, 0.3))
    assert len(caplog.records) == 3


@pytest.mark.parametrize("text", ["two\nlines", "two\r\nlines", "two\u2028lines", "\x1b[31mred", "nul\0", "x" * 100_000])
def test_what_others_wrote_cannot_forge_or_flood_a_line(text: str, caplog: pytest.LogCaptureFixture) -> None:
    observer.notify(events.with_text(events.REJECTED, text))
    (record,) = caplog.records
    line = record.getMessage()
    assert len(line.splitlines()) == 1
    assert line.isprintable()
    assert len(line) < 2000


def test_nothing_is_put_together_for_a_level_that_is_off(caplog: pytest.LogCaptureFixture) -> None:
    class Untouchable:
        def __getattr__(self, name: str) -> object:
            raise AssertionError(f"looked at {name}")

    caplog.set_level(logging.WARNING, logger="outbox")
    observer.notify(BatchSent(exchange_name="orders", messages=[Untouchable()]))  # type: ignore[list-item]
    message = Untouchable()
    observer.notify(Received(queue="mail", exchange_name="orders", message=message, attempt=1))  # type: ignore[arg-type]
    assert caplog.records == []
