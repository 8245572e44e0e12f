"""One event of each kind, as the engine emits it."""

import dataclasses
from datetime import UTC, datetime, timedelta

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
    Dependency,
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
    ProcessingStatus,
    QueueMeasured,
    Received,
    RelayStarted,
    RelayStopped,
    Resumed,
    RoundFinished,
    RouteResumed,
    RouteStalled,
    SendFailed,
    SendFailureType,
    SentMessage,
    SettleFailed,
    WakeMode,
    WakeModeChanged,
)
from outbox.core.message import Message
from outbox.core.outcome import DONE, RETURNED, Cause, Dead, DeliveryOutcome, Failure, Held, RelayOutcome, Retry

FAILURE = Failure("ValueError", "no luck with amqp://ada:geheim@rabbit/", "Traceback: geheim")
MESSAGE = Message(
    id="0b5d7c1e-5a4f-4f0e-9a39-2f1f1d6f8f10",
    routing_key="order.placed",
    body=b'{"card": "4111"}',
    created_at=datetime(2030, 1, 1, tzinfo=UTC),
    tracking_ids=("0b5d7c1e-5a4f-4f0e-9a39-2f1f1d6f8f10",),
    headers={"authorization": "geheim"},
)
QUEUE = {"queue": "mail", "exchange_name": "orders"}
MINUTE = timedelta(minutes=1)


def sent(*ages: float, exchange_name: str = "orders") -> BatchSent:
    messages = [SentMessage(MESSAGE.id, MESSAGE.routing_key, timedelta(seconds=age)) for age in ages]
    return BatchSent(exchange_name=exchange_name, messages=messages)


def not_sent(type_: SendFailureType, outcome: RelayOutcome) -> SendFailed:
    return SendFailed(
        exchange_name="orders",
        message_id=MESSAGE.id,
        routing_key=MESSAGE.routing_key,
        type=type_,
        failure=FAILURE,
        outcome=outcome,
    )


def processed(status: ProcessingStatus, outcome: DeliveryOutcome, *, message: Message = MESSAGE) -> Processed:
    return Processed(
        **QUEUE, message=message, attempt=2, status=status, outcome=outcome, duration=timedelta(seconds=0.25), span=None
    )


RETRIED = not_sent(SendFailureType.REFUSED, Retry(timedelta(seconds=4), FAILURE))
PARKED = not_sent(SendFailureType.REFUSED, Dead(Cause.REFUSED, FAILURE))
PROBE = not_sent(SendFailureType.UNROUTABLE, Held(probe_after=timedelta(seconds=1)))
PROBED_AGAIN = dataclasses.replace(PROBE, was_held=True)
HELD = not_sent(SendFailureType.UNROUTABLE, Held())
RETURNED_TO_TABLE = not_sent(SendFailureType.UNAVAILABLE, RETURNED)
DROPPED = not_sent(SendFailureType.UNROUTABLE, DONE)

HANDLED = processed(ProcessingStatus.SUCCESS, DONE)
FAILED = processed(ProcessingStatus.FAILED, Retry(MINUTE, FAILURE))
EXHAUSTED = processed(ProcessingStatus.FAILED, Dead(Cause.EXHAUSTED, FAILURE))
REJECTED = processed(ProcessingStatus.REJECTED, Dead(Cause.REJECTED, FAILURE))
UNDECODABLE = processed(ProcessingStatus.UNDECODABLE, Dead(Cause.UNDECODABLE, FAILURE))
CRASHED = processed(ProcessingStatus.FAILED, Dead(Cause.CRASHED, FAILURE))
GIVEN_BACK = processed(ProcessingStatus.FAILED, RETURNED)

EVENTS: list[Event] = [
    sent(0.5, 0.1),
    RETRIED,
    PARKED,
    PROBE,
    PROBED_AGAIN,
    HELD,
    RETURNED_TO_TABLE,
    DROPPED,
    RoundFinished(exchange_name="orders", taken=50, duration=timedelta(seconds=0.02)),
    BacklogMeasured(exchange_name="orders", unsent=7, oldest_due=MINUTE),
    BacklogMeasured(exchange_name="orders", unsent=0, oldest_due=None),
    RelayStarted(exchange_name="orders", table="outbox_table", destination="RabbitMQ at here:5672, exchange orders"),
    RelayStopped(exchange_name="orders", table="outbox_table"),
    RouteStalled(
        exchange_name="orders", routing_key="order.placed", queue=None, failure=Failure("stalled", "amqp://ada:geheim@rabbit/")
    ),
    RouteStalled(exchange_name="orders", routing_key="order.placed", queue="mail\n", failure=Failure("stalled", "no confirm")),
    RouteResumed(exchange_name="orders", routing_key="order.placed", queue="mail"),
    WakeModeChanged(channel="outbox_1", mode=WakeMode.POLLING, reason="no NOTIFY through amqp://ada:geheim@rabbit/"),
    WakeModeChanged(channel="outbox_1", mode=WakeMode.LISTENING, reason="NOTIFY arrives"),
    DependencyLost(dependency=Dependency.BROKER, reason="refused by amqp://ada:geheim@rabbit/"),
    DependencyRestored(dependency=Dependency.BROKER),
    CleanedUp(table="outbox_table", deleted=100),
    Archived(queue="mail", count=3),
    MaintenanceStarted(),
    MaintenanceStopped(),
    DutyDone(duty="inbox marks pruned", changed=12),
    DutyFailed(duty="inbox marks pruned", failure=Failure("ValueError", "no")),
    ConsumerStarted(**QUEUE, binding_key="order.*"),
    ConsumerStopped(**QUEUE),
    Received(**QUEUE, message=MESSAGE, attempt=1),
    HANDLED,
    FAILED,
    EXHAUSTED,
    REJECTED,
    UNDECODABLE,
    CRASHED,
    GIVEN_BACK,
    Duplicate(**QUEUE, message=MESSAGE),
    BatchFailed(**QUEUE, messages=[MESSAGE] * 10, failure=Failure("ValueError", "no")),
    SettleFailed(**QUEUE, message_id=MESSAGE.id, reason="lost postgresql://ada:geheim@db/"),
    *(PoisonIsolated(**QUEUE, message=MESSAGE, step=step, limit=MINUTE) for step in IsolationStep),
    HandlersAbandoned(**QUEUE, handler="shop.mail", count=2),
    DeadLettersMeasured(queue="mail", count=3),
    QueueMeasured(queue="mail", depth=7, oldest_due=MINUTE),
    QueueMeasured(queue="stock", depth=0, oldest_due=None),
    HealthJudged(status="warning", findings={"paused": 1, "queue_late": 0}),
    InstallationMeasured(
        components={("relay", "alive"): 2},
        messages={"pending": 3},
        queues=[QueueMeasured(queue="mail", depth=7, oldest_due=MINUTE)],
        oldest_transaction=MINUTE,
        dead_rows={"outbox_table": 5},
        destinations={"kafka": (3, MINUTE)},
    ),
    Paused(exchange_name="orders"),
    Paused(**QUEUE),
    Resumed(exchange_name="orders"),
    Resumed(exchange_name="orders", queue="mail"),
    Resumed(exchange_name="orders", queue="mail", stopping=True),
    CircuitOpened(**QUEUE, pause=MINUTE),
    CircuitClosed(**QUEUE),
    HistoryLost(count=3, reason="postgresql://ada:geheim@db/ is away"),
    Advice(text="strengthen amqp://ada:geheim@rabbit/"),
]


def of(*types: type[Event]) -> list[Event]:
    """Events of these types."""
    return [event for event in EVENTS if isinstance(event, types)]


def with_text(event: Processed, text: str) -> Processed:
    """Copies of the events with `text` in every field that foreign text can reach."""
    message = dataclasses.replace(event.message, id=text, routing_key=text)
    return dataclasses.replace(event, message=message, outcome=Dead(Cause.REJECTED, Failure("ValueError", text)))
