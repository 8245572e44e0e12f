"""Metrics on OpenTelemetry's meters: the facts that `outbox.observers.prometheus` counts, except those of the verdict.

Where the semantic conventions for messaging have a name, it is used, with their units, attributes and buckets. The other names
are those of Prometheus with a dot after `outbox`, without the unit and `_total`, which exporters to Prometheus add again.
No attribute has values that come with messages: neither routing keys nor ids.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, cast

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.metrics import Meter, NoOpMeter, get_meter_provider
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from outbox.core.events import (
    Archived,
    BacklogMeasured,
    BatchSent,
    CircuitClosed,
    CircuitOpened,
    ConsumerStarted,
    ConsumerStopped,
    DeadLettersMeasured,
    Duplicate,
    HistoryLost,
    Paused,
    Processed,
    QueueMeasured,
    Received,
    RelayStarted,
    Resumed,
    RoundFinished,
    SendFailed,
    SpanIds,
    WakeMode,
    WakeModeChanged,
)
from outbox.core.outcome import Cause, Dead, Retry
from outbox.observers.metrics import AGE_BUCKETS, DelayLabels, Reactions
from outbox.observers.opentelemetry import (
    CAUSE,
    DELAY,
    DESTINATION,
    ERROR_TYPE,
    OPERATION_NAME,
    OPERATION_TYPE,
    PROCESS,
    QUEUE,
    SCOPE,
    SEND,
    SYSTEM,
)

SENT_MESSAGES = "messaging.client.sent.messages"
CONSUMED_MESSAGES = "messaging.client.consumed.messages"
OPERATION_DURATION = "messaging.client.operation.duration"
PROCESS_DURATION = "messaging.process.duration"

STATUS = "outbox.status"
ERROR_CLASS = "outbox.error_class"
CHANNEL, MODE = "outbox.channel", "outbox.mode"
DATABASE = "outbox.database"
FUNCTION = "code.function.name"

SECONDS, MESSAGES = "s", "{message}"
DURATION_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
"""Seconds, as the conventions demand. A view of the SDK replaces them."""

_NO_CONTEXT = Context()

Attributes = dict[str, str]


def configured_meter() -> Meter | None:
    """Returns a meter of the configured meter provider; None if no provider is configured, or if the SDK is disabled."""
    provider = get_meter_provider()
    # The API's own providers do nothing. That of an unconfigured process has no public name, and would wait for a later one.
    if type(provider).__module__.startswith("opentelemetry.metrics"):
        return None
    meter = provider.get_meter(SCOPE)
    return None if isinstance(meter, NoOpMeter) else meter


class MeterObserver(Reactions):
    """Reports the events of one relay, worker or archiver to instruments of `meter`, which its process may share.

    `system` is the broker's value of `messaging.system`. `database` is the name of the component's database, in a process that
    serves several: all measurements have it as an attribute.
    """

    def __init__(self, meter: Meter, *, system: str, database: str | None = None) -> None:
        super().__init__()
        self._meter = meter if database is None else cast("Meter", _OfDatabase(meter, database))
        self._system = system
        self._create_relay_instruments()
        self._create_worker_instruments()
        self._create_consumer_instruments()
        self._create_dead_letter_instruments()
        self._create_other_instruments()

    def _create_relay_instruments(self) -> None:
        @cache
        def sending(exchange_name: str) -> Attributes:
            return {SYSTEM: self._system, OPERATION_NAME: SEND, **_exchange(exchange_name)}

        sent = self._meter.create_counter(SENT_MESSAGES, MESSAGES, "Messages that a relay tried to send")
        self._on(BatchSent, lambda event: sent.add(len(event.messages), sending(event.exchange_name)))

        def count_failed(event: SendFailed) -> None:
            error = {ERROR_TYPE: event.type.value, ERROR_CLASS: event.failure.type}
            sent.add(1, sending(event.exchange_name) | error)

        self._on(SendFailed, count_failed)

        rounds = self._meter.create_histogram(
            OPERATION_DURATION,
            SECONDS,
            "One claim-send-settle round",
            explicit_bucket_boundaries_advisory=DURATION_BUCKETS,
        )

        def record_round(event: RoundFinished) -> None:
            if not event.sent and not event.failed:  # nothing was sent, and there is no span
                return
            attributes = sending(event.exchange_name) | {OPERATION_TYPE: SEND}
            if event.failed:
                attributes[ERROR_TYPE] = event.failed[0].type.value
            span = next((span for message in event.sent if (span := message.sampled_span) is not None), None)
            rounds.record(event.duration.total_seconds(), attributes, _context_of(span))

        self._on(RoundFinished, record_round)

        age = self._meter.create_histogram(
            "outbox.message_age",
            SECONDS,
            "Time in the outbox table before publishing, from when the message was due",
            explicit_bucket_boundaries_advisory=AGE_BUCKETS,
        )

        def record_ages(event: BatchSent) -> None:
            attributes = _exchange(event.exchange_name)
            for message in event.messages:
                # The clocks of producer and relay may differ a little: an age is never negative.
                age.record(
                    max((message.age - message.scheduled).total_seconds(), 0), attributes, _context_of(message.sampled_span)
                )

        self._on(BatchSent, record_ages)

        backlog = self._meter.create_gauge("outbox.table_backlog", MESSAGES, "Unsent messages now")
        oldest = self._meter.create_gauge(
            "outbox.oldest_unsent_age", SECONDS, "Time since the oldest unsent message was due; 0 without any"
        )

        def set_backlog(event: BacklogMeasured) -> None:
            attributes = _exchange(event.exchange_name)
            backlog.set(event.unsent, attributes)
            oldest.set(0 if event.oldest_due is None else max(event.oldest_due.total_seconds(), 0), attributes)

        self._on(BacklogMeasured, set_backlog)

        stalled = self._meter.create_up_down_counter(
            "outbox.stalled_routes",
            "{route}",
            "Routing keys and directly addressed queues that accept no messages although the broker answers",
        )
        self._on_stalled_routes(lambda exchange_name, change: stalled.add(change, _exchange(exchange_name)))

    def _create_worker_instruments(self) -> None:
        @cache
        def processing(queue: str, exchange_name: str) -> Attributes:
            return {SYSTEM: self._system, OPERATION_NAME: PROCESS, **_consumer(queue, exchange_name)}

        consumed = self._meter.create_counter(CONSUMED_MESSAGES, MESSAGES, "Messages received")
        self._on(Received, lambda event: consumed.add(1, processing(event.queue, event.exchange_name)))

        duration = self._meter.create_histogram(
            PROCESS_DURATION, SECONDS, "Handler time", explicit_bucket_boundaries_advisory=DURATION_BUCKETS
        )
        retries = self._meter.create_counter("outbox.retry_attempts", MESSAGES, "Retries by delay")
        delays = DelayLabels()

        def record_processed(event: Processed) -> None:
            attributes = processing(event.queue, event.exchange_name) | {STATUS: event.status.value}
            if isinstance(event.outcome, Retry | Dead):
                attributes[ERROR_TYPE] = event.outcome.failure.type
            duration.record(event.duration.total_seconds(), attributes, _context_of(event.span))
            if isinstance(event.outcome, Retry):
                retries.add(1, {QUEUE: event.queue, DELAY: delays.of(event.queue, event.outcome.delay)})

        self._on(Processed, record_processed)

        duplicates = self._meter.create_counter("outbox.duplicates", MESSAGES, "Messages that the inbox had already recorded")
        self._on(Duplicate, lambda event: duplicates.add(1, _consumer(event.queue, event.exchange_name)))

    def _create_consumer_instruments(self) -> None:
        # Added up, because several workers of a process may consume the same queue.
        consumers = self._meter.create_up_down_counter("outbox.active_consumers", "{consumer}", "Consumers connected")
        self._on(ConsumerStarted, lambda event: consumers.add(1, _consumer(event.queue, event.exchange_name)))
        self._on(ConsumerStopped, lambda event: consumers.add(-1, _consumer(event.queue, event.exchange_name)))

        handlers = self._meter.create_gauge(
            "outbox.handler_info", "{handler}", "1 for the function that handles the messages of the queue"
        )
        self._on(ConsumerStarted, lambda event: handlers.set(1, {QUEUE: event.queue, FUNCTION: event.handler}))

        pausing = self._meter.create_gauge(
            "outbox.consumer_paused",
            "{consumer}",
            "1 while a consumer has paused itself because its handler failed with an error of pause_on",
        )
        self._on(CircuitOpened, lambda event: pausing.set(1, _consumer(event.queue, event.exchange_name)))
        self._on(CircuitClosed, lambda event: pausing.set(0, _consumer(event.queue, event.exchange_name)))
        self._on(ConsumerStopped, lambda event: pausing.set(0, _consumer(event.queue, event.exchange_name)))

        paused = self._meter.create_up_down_counter(
            "outbox.paused", "{component}", "Relays and consumers that are paused by an operator"
        )

        def count_paused(event: Paused | Resumed) -> None:
            name = event.exchange_name
            attributes = _exchange(name) if event.queue is None else _consumer(event.queue, name)
            paused.add(1 if isinstance(event, Paused) else -1, attributes)

        self._on(Paused, count_paused)
        self._on(Resumed, count_paused)

    def _create_dead_letter_instruments(self) -> None:
        dead = self._meter.create_counter("outbox.dead_letters", MESSAGES, "Messages that failed for good, by cause")

        def count(queue: str, *causes: Cause, messages: int = 1) -> None:
            for cause in causes:
                dead.add(messages, {QUEUE: queue, CAUSE: cause.value})

        def count_outcome(queue: str, outcome: object) -> None:
            if isinstance(outcome, Dead):
                count(queue, outcome.cause)

        # An increase cannot be seen in a series that begins with 1, so each one starts at 0, before the first dead letter.
        self._on(ConsumerStarted, lambda event: count(event.queue, *(set(Cause) - {Cause.REFUSED}), messages=0))
        self._on(RelayStarted, lambda _: count("", Cause.REFUSED, messages=0))
        self._on(Processed, lambda event: count_outcome(event.queue, event.outcome))
        self._on(SendFailed, lambda event: count_outcome("", event.outcome))

        stored = self._meter.create_gauge("outbox.dlq_messages", MESSAGES, "Dead letters at the broker and archived")
        self._on(DeadLettersMeasured, lambda event: stored.set(event.count, {QUEUE: event.queue}))

        archived = self._meter.create_counter("outbox.archived", MESSAGES, "Dead letters moved from the broker to the database")
        self._on(Archived, lambda event: archived.add(event.count, {QUEUE: event.queue}))

    def _create_other_instruments(self) -> None:
        depth = self._meter.create_gauge("outbox.queue_messages", MESSAGES, "Messages waiting in a queue")
        oldest = self._meter.create_gauge(
            "outbox.queue_oldest_age",
            SECONDS,
            "Time since the first message of a queue was due; 0 without any, absent if the broker does not report it",
        )

        def set_queue(event: QueueMeasured) -> None:
            depth.set(event.depth, {QUEUE: event.queue})
            if event.oldest_due is not None:
                oldest.set(event.oldest_due.total_seconds(), {QUEUE: event.queue})

        self._on(QueueMeasured, set_queue)

        mode_of = self._meter.create_gauge(
            "outbox.wake_mode",
            "{channel}",
            "1 for the mode in which a waiting process learns of new rows on the channel, 0 for the other",
        )

        def set_wake_mode(event: WakeModeChanged) -> None:
            # Also for the mode that ended, or its series would stay at 1.
            for mode in WakeMode:
                mode_of.set(int(mode is event.mode), {CHANNEL: event.channel, MODE: mode.value})

        self._on(WakeModeChanged, set_wake_mode)

        lost = self._meter.create_counter("outbox.history_lost", "{fact}", "Facts that were not written to the history")
        self._on(HistoryLost, lambda event: lost.add(event.count))


class _OfDatabase:
    """A meter, or an instrument, that adds the name of a database to the attributes of each measurement."""

    def __init__(self, wrapped: Any, database: str) -> None:
        self._wrapped = wrapped
        self._database = database

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = getattr(self._wrapped, name)
        if name.startswith("create_"):
            return lambda *arguments, **options: _OfDatabase(function(*arguments, **options), self._database)

        def measure(amount: float, attributes: Attributes | None = None, context: Context | None = None) -> None:
            function(amount, {**(attributes or {}), DATABASE: self._database}, context)

        return measure


def _exchange(exchange_name: str) -> Attributes:
    return {DESTINATION: exchange_name}


def _consumer(queue: str, exchange_name: str) -> Attributes:
    # The name of a `process` span's destination without the routing key, which comes with messages.
    return {DESTINATION: f"{exchange_name}:{queue}", QUEUE: queue}


def _context_of(span: SpanIds | None) -> Context | None:
    """Returns a context with a sampled span, from which the SDK takes an exemplar; None for any other."""
    if span is None:
        return None
    context = SpanContext(
        int(span.trace_id, 16), int(span.span_id, 16), is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED)
    )
    return trace.set_span_in_context(NonRecordingSpan(context), _NO_CONTEXT)
