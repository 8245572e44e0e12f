"""Metrics on prometheus-client's global registry."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from prometheus_client import Counter, Gauge, Histogram

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
    Event,
    HealthJudged,
    HistoryLost,
    Paused,
    Processed,
    ProcessingStatus,
    Received,
    Resumed,
    RoundFinished,
    RouteResumed,
    RouteStalled,
    SendFailed,
    WakeMode,
    WakeModeChanged,
)
from outbox.core.findings import Severity
from outbox.core.outcome import Retry

AGE_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600, 21600, 86400)
"""From a relay that is awake to an outage that lasted for a day."""
ROUND_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
HANDLER_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)

_LATEST: Final = "livemostrecent"


class PrometheusObserver:
    """Registers every family when it is built, hence once in a process, and counts for all relays and workers of it."""

    def __init__(self) -> None:
        exchange, queue_and_exchange = ("exchange_name",), ("queue", "exchange_name")
        self._published = Counter("outbox_messages_published_total", "Messages confirmed by the broker and settled", exchange)
        self._publish_failures = Counter(
            "outbox_publish_failures_total",
            "Failed publish attempts",
            ("exchange_name", "failure_type", "error_type"),
        )
        self._age = Histogram(
            "outbox_message_age_seconds", "Time in the outbox table before publishing", exchange, buckets=AGE_BUCKETS
        )
        self._poll_duration = Histogram(
            "outbox_poll_duration_seconds", "One claim-send-settle round", exchange, buckets=ROUND_BUCKETS
        )
        self._backlog = Gauge("outbox_table_backlog", "Unsent messages now", exchange, multiprocess_mode=_LATEST)
        self._oldest_due = Gauge(
            "outbox_oldest_unsent_age_seconds",
            "How long the oldest unsent message has been due; 0 without any",
            exchange,
            multiprocess_mode=_LATEST,
        )
        self._wake_mode = Gauge(
            "outbox_wake_mode",
            "1 for the way in which a sleeper learns of new rows on the channel, 0 for the other",
            ("channel", "mode"),
            multiprocess_mode=_LATEST,
        )
        self._received = Counter("outbox_messages_received_total", "Messages received", queue_and_exchange)
        self._processed = Counter(
            "outbox_messages_processed_total", "Messages by outcome", ("queue", "exchange_name", "status")
        )
        self._duplicates = Counter("outbox_duplicates_total", "Messages that the inbox knew already", queue_and_exchange)
        self._retries = Counter("outbox_retry_attempts_total", "Retries by delay", ("queue", "delay_seconds"))
        self._processing_duration = Histogram(
            "outbox_message_processing_duration_seconds", "Handler time", queue_and_exchange, buckets=HANDLER_BUCKETS
        )
        self._dead_letters = Gauge(
            "outbox_dlq_messages", "Dead letters at the broker and archived", ("queue",), multiprocess_mode=_LATEST
        )
        self._archived = Counter("outbox_archived_total", "Dead letters taken from the broker into the database", ("queue",))
        self._active_consumers = Gauge(
            "outbox_active_consumers", "Consumers connected", queue_and_exchange, multiprocess_mode="livesum"
        )
        self._paused = Gauge(
            "outbox_paused",
            'Relays (queue "") and consumers that take nothing new because somebody paused them',
            queue_and_exchange,
            multiprocess_mode="livesum",
        )
        self._stalled_routes = Gauge(
            "outbox_stalled_routes",
            "Routing keys, and queues that are addressed directly, that take no messages though the broker answers",
            exchange,
            multiprocess_mode="livesum",
        )
        self._history_lost = Counter("outbox_history_lost_total", "Facts that were not written to the history")
        self._consumer_paused = Gauge(
            "outbox_consumer_paused",
            "1 while a consumer handles nothing because its handler failed with what it pauses on",
            queue_and_exchange,
            multiprocess_mode="livesum",
        )
        self._health_status = Gauge(
            "outbox_health_status",
            "1 for the status of the verdict on the installation, 0 for the others",
            ("status",),
            multiprocess_mode=_LATEST,
        )
        self._health_findings = Gauge(
            "outbox_health_findings", "Findings of that verdict by code", ("code",), multiprocess_mode=_LATEST
        )
        self._consumers: dict[tuple[str, str], _Consumer] = {}
        self._reactions: Mapping[type, Callable[[Any], None]] = {
            Archived: self._count_archived,
            BacklogMeasured: self._backlog_measured,
            BatchSent: self._batch_sent,
            CircuitClosed: self._circuit_closed,
            CircuitOpened: self._circuit_opened,
            ConsumerStarted: self._consumer_started,
            ConsumerStopped: self._consumer_stopped,
            DeadLettersMeasured: self._dead_letters_measured,
            HealthJudged: self._health_judged,
            Duplicate: self._duplicate,
            HistoryLost: self._count_lost_history,
            Paused: self._count_paused,
            Processed: self._message_processed,
            Received: self._message_received,
            Resumed: self._count_resumed,
            RoundFinished: self._round_finished,
            RouteResumed: self._route_resumed,
            RouteStalled: self._route_stalled,
            SendFailed: self._send_failed,
            WakeModeChanged: self._wake_mode_changed,
        }

    def notify(self, event: Event) -> None:
        """Counts `event`, if it is one of those that metrics are made of."""
        react = self._reactions.get(type(event))
        if react is not None:
            react(event)

    def _batch_sent(self, event: BatchSent) -> None:
        self._published.labels(event.exchange_name).inc(len(event.messages))
        observe_age = self._age.labels(event.exchange_name).observe
        for message in event.messages:
            # The producer's clock and the relay's may differ by a little; nothing is younger than new.
            observe_age(max(message.age.total_seconds(), 0))

    def _send_failed(self, event: SendFailed) -> None:
        self._publish_failures.labels(event.exchange_name, event.type.value, event.failure.type).inc()

    def _route_stalled(self, event: RouteStalled) -> None:
        self._stalled_routes.labels(event.exchange_name).inc()

    def _route_resumed(self, event: RouteResumed) -> None:
        self._stalled_routes.labels(event.exchange_name).dec()

    def _round_finished(self, event: RoundFinished) -> None:
        self._poll_duration.labels(event.exchange_name).observe(event.duration.total_seconds())

    def _backlog_measured(self, event: BacklogMeasured) -> None:
        oldest_due = event.oldest_due or timedelta(0)
        self._backlog.labels(event.exchange_name).set(event.unsent)
        self._oldest_due.labels(event.exchange_name).set(max(oldest_due.total_seconds(), 0))

    def _wake_mode_changed(self, event: WakeModeChanged) -> None:
        for mode in WakeMode:
            self._wake_mode.labels(event.channel, mode.value).set(mode is event.mode)

    def _consumer_started(self, event: ConsumerStarted) -> None:
        self._active_consumers.labels(event.queue, event.exchange_name).inc()

    def _consumer_stopped(self, event: ConsumerStopped) -> None:
        self._active_consumers.labels(event.queue, event.exchange_name).dec()
        self._consumer_paused.labels(event.queue, event.exchange_name).set(0)

    def _circuit_opened(self, event: CircuitOpened) -> None:
        self._consumer_paused.labels(event.queue, event.exchange_name).set(1)

    def _circuit_closed(self, event: CircuitClosed) -> None:
        self._consumer_paused.labels(event.queue, event.exchange_name).set(0)

    def _dead_letters_measured(self, event: DeadLettersMeasured) -> None:
        self._dead_letters.labels(event.queue).set(event.count)

    def _count_archived(self, event: Archived) -> None:
        self._archived.labels(event.queue).inc(event.count)

    def _count_paused(self, event: Paused) -> None:
        self._paused.labels(event.queue or "", event.exchange_name).inc()

    def _count_resumed(self, event: Resumed) -> None:
        self._paused.labels(event.queue or "", event.exchange_name).dec()

    def _count_lost_history(self, event: HistoryLost) -> None:
        self._history_lost.inc(event.count)

    def _health_judged(self, event: HealthJudged) -> None:
        for status in Severity:
            self._health_status.labels(status.value).set(status.value == event.status)
        for code, count in event.findings.items():
            self._health_findings.labels(code).set(count)

    def _message_received(self, event: Received) -> None:
        self._consumer(event).received.inc()

    def _message_processed(self, event: Processed) -> None:
        consumer = self._consumer(event)
        consumer.processed[event.status].inc()
        consumer.duration.observe(event.duration.total_seconds())
        if isinstance(event.outcome, Retry):
            self._retries.labels(event.queue, _plain_seconds(event.outcome.delay)).inc()

    def _duplicate(self, event: Duplicate) -> None:
        self._duplicates.labels(event.queue, event.exchange_name).inc()

    def _consumer(self, event: Received | Processed) -> "_Consumer":
        key = (event.queue, event.exchange_name)
        consumer = self._consumers.get(key)
        if consumer is None:
            consumer = self._consumers[key] = _Consumer(
                received=self._received.labels(*key),
                processed={status: self._processed.labels(*key, status.value) for status in ProcessingStatus},
                duration=self._processing_duration.labels(*key),
            )
        return consumer


@dataclass(frozen=True, slots=True)
class _Consumer:
    """The series of one queue, found once: looking them up for every message costs more than counting it."""

    received: Counter
    processed: Mapping[ProcessingStatus, Counter]
    duration: Histogram


def _plain_seconds(delay: timedelta) -> str:
    """`60` for a minute, `0.5` for half a second; never an exponent."""
    return f"{delay.total_seconds():.3f}".rstrip("0").rstrip(".")
