"""Log lines: their levels and contents, without secrets."""

import dataclasses
import json
import logging
from dataclasses import replace
from enum import StrEnum
from typing import Any, get_args

import pytest

from outbox.cli.logs import JsonFormatter
from outbox.core.events import (
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
    HealthJudged,
    HistoryLost,
    InstallationMeasured,
    IsolationStep,
    MaintenanceStarted,
    MaintenanceStopped,
    Paused,
    PoisonIsolated,
    Processed,
    QueueMeasured,
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
from outbox.core.outcome import Cause, Dead, Failure, Retry
from outbox.core.tracking import tracking
from outbox.observers.logging import FIELDS, LoggingObserver
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
    (events.PROBED_AGAIN, logging.DEBUG),
    (events.HELD, logging.DEBUG),
    (events.RETURNED_TO_TABLE, logging.DEBUG),
    (events.DROPPED, logging.WARNING),
    *((event, logging.INFO) for event in events.of(Archived, BatchSent, RelayStarted, RelayStopped, DependencyRestored)),
    *((event, logging.INFO) for event in events.of(MaintenanceStarted, MaintenanceStopped, DutyDone, Paused, Resumed)),
    *((event, logging.INFO) for event in events.of(CircuitClosed, ConsumerStarted, RouteResumed)),
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
            ConsumerStopped,
            Received,
            DeadLettersMeasured,
            QueueMeasured,
            HealthJudged,
            InstallationMeasured,
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
def test_lines_about_a_message_have_its_id_and_routing_key(event: Event, caplog: pytest.LogCaptureFixture) -> None:
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
        f"attempt 2 at {subject} dead-lettered it, rejected: ValueError: no luck with amqp://ada:***@rabbit/",
    ]


@pytest.mark.parametrize("dead", [False, True])
def test_the_line_of_a_failed_attempt_names_the_line_of_code_that_failed(dead: bool, caplog: pytest.LogCaptureFixture) -> None:
    traceback = (
        "Traceback (most recent call last):\n"
        '  File "/app/.venv/lib/python3.12/site-packages/outbox/engine/attempt.py", line 90, in run\n    await call()\n'
        '  File "/app/orders/handlers.py", line 12, in charge\n    pay(order)\n'
        '  File "/app/orders/payment.py", line 34, in pay\n    client.post(order)\n'
        '  File "/app/.venv/lib/python3.12/site-packages/httpx/_client.py", line 90, in post\n    raise\n'
        "ValueError: no luck\n"
    )
    failure = Failure("ValueError", "no luck", traceback)
    event = events.EXHAUSTED if dead else events.FAILED
    outcome = Dead(Cause.EXHAUSTED, failure) if dead else Retry(events.MINUTE, failure)
    observer.notify(replace(event, outcome=outcome))
    (record,) = caplog.records
    assert record.getMessage().endswith(": ValueError: no luck (/app/orders/payment.py:34 in pay)")


def test_the_lines_of_a_relay_read_like_this(caplog: pytest.LogCaptureFixture) -> None:
    for event in (events.sent(0.5), events.RETRIED, events.PARKED, events.PROBE):
        observer.notify(event)
    subject = f"{events.MESSAGE.id} 'order.placed'"
    reason = "ValueError: no luck with amqp://ada:***@rabbit/"
    assert [record.getMessage() for record in caplog.records] == [
        f"published {subject} to exchange orders, 0.500 s after it was written",
        f"refused {subject}, retrying in 4.000 s: {reason}",
        f"refused {subject}, parked: {reason}",
        f"unroutable {subject}, held until a queue is bound: {reason}",
    ]


def test_the_time_of_a_scheduled_message_counts_from_when_it_was_due(caplog: pytest.LogCaptureFixture) -> None:
    sent = events.sent(60.25)
    observer.notify(replace(sent, messages=[replace(sent.messages[0], scheduled=events.MINUTE)]))
    assert caplog.records[0].getMessage().endswith("to exchange orders, 0.250 s after it was due")


def test_a_batch_has_a_line_for_each_message(caplog: pytest.LogCaptureFixture) -> None:
    observer.notify(events.sent(0.1, 0.2, 0.3))
    assert len(caplog.records) == 3


@pytest.mark.parametrize("text", ["two\nlines", "two\r\nlines", "two\u2028lines", "\x1b[31mred", "nul\0", "x" * 100_000])
def test_foreign_text_cannot_forge_or_flood_a_line(text: str, caplog: pytest.LogCaptureFixture) -> None:
    observer.notify(events.with_text(events.REJECTED, text))
    (record,) = caplog.records
    line = record.getMessage()
    assert len(line.splitlines()) == 1
    assert line.isprintable()
    assert len(line) < 2000


def test_nothing_is_formatted_for_a_disabled_level(caplog: pytest.LogCaptureFixture) -> None:
    class Untouchable:
        def __getattr__(self, name: str) -> object:
            raise AssertionError(f"looked at {name}")

    caplog.set_level(logging.WARNING, logger="outbox")
    observer.notify(BatchSent(exchange_name="orders", messages=[Untouchable()]))  # type: ignore[list-item]
    message = Untouchable()
    observer.notify(Received(queue="mail", exchange_name="orders", message=message, attempt=1))  # type: ignore[arg-type]
    assert caplog.records == []


def test_a_held_message_is_logged_as_a_warning_once_and_not_at_each_probe(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="outbox")
    for event in (events.PROBE, events.PROBED_AGAIN, events.PROBED_AGAIN):
        observer.notify(event)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_a_worker_says_what_it_consumes(caplog: pytest.LogCaptureFixture) -> None:
    (event,) = events.of(ConsumerStarted)
    observer.notify(event)
    assert [record.getMessage() for record in caplog.records] == [
        "consumes queue mail, bound to exchange orders with 'order.*'"
    ]


def test_a_binding_key_of_an_enum_is_shown_by_its_value(caplog: pytest.LogCaptureFixture) -> None:
    class Event(StrEnum):
        PLACED = "order.placed"

    caplog.set_level(logging.INFO, logger="outbox")
    (event,) = events.of(ConsumerStarted)
    assert isinstance(event, ConsumerStarted)
    observer.notify(replace(event, binding_key=Event.PLACED))
    assert caplog.records[-1].getMessage() == "consumes queue mail, bound to exchange orders with 'order.placed'"


# --- as JSON ------------------------------------------------------------------------------------------------------------


def as_json(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    lines = [JsonFormatter().format(record) for record in caplog.records]
    assert all(len(line.splitlines()) == 1 for line in lines)
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("event", events.EVENTS, ids=lambda event: type(event).__name__)
def test_each_event_is_an_object_a_line_with_its_name_and_no_secret(event: Event, caplog: pytest.LogCaptureFixture) -> None:
    observer.notify(event)
    for line in as_json(caplog):
        assert set(line) >= {"time", "level", "logger", "message", "event"}
        assert set(line) <= {"time", "level", "logger", "message", *FIELDS}
        assert line["event"].replace("_", "") == type(event).__name__.lower()
        assert "geheim" not in str(line)
        assert "4111" not in str(line)


def test_records_about_a_message_have_its_ids_as_fields(caplog: pytest.LogCaptureFixture) -> None:
    for event in (events.FAILED, events.sent(0.5), events.RETRIED):
        observer.notify(event)
    id_ = events.MESSAGE.id
    failed, sent, refused = as_json(caplog)
    of_message = {"message_id": id_, "routing_key": "order.placed", "exchange_name": "orders"}
    ids = {"tracking_ids": [id_]}
    fields = {"queue": "mail", "attempt": 2, "outcome": "retry", "event": "processed", "level": "WARNING"}
    assert failed.items() >= (of_message | fields).items()
    assert failed["tracking_ids"] == ids["tracking_ids"]
    assert sent.items() >= (of_message | {"event": "batch_sent", "level": "INFO"}).items()
    assert refused.items() >= (of_message | {"event": "send_failed", "outcome": "retry"}).items()


def test_a_long_chain_keeps_its_root_and_its_end(caplog: pytest.LogCaptureFixture) -> None:
    chain = tuple(f"id {number}" for number in range(256))
    observer.notify(dataclasses.replace(events.HANDLED, message=dataclasses.replace(events.MESSAGE, tracking_ids=chain)))
    (line,) = as_json(caplog)
    assert line["tracking_ids"] == ["id 0", *(f"id {number}" for number in range(241, 256))]


def test_what_a_handler_logs_has_the_chain_it_is_in_and_its_traceback_is_masked(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with tracking(["root", "here"]):
        try:
            int("password=geheim")
        except ValueError:
            logging.getLogger("shop").exception("no mail for %s\nat all", "ada", stack_info=True)
        (line,) = as_json(caplog)
    assert line["tracking_ids"] == ["root", "here"]
    assert line["message"] == "no mail for ada\nat all"
    assert "ValueError" in line["exception"]
    assert "test_what_a_handler_logs" in line["stack"]
    assert "geheim" not in str(line)
