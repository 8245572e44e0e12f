"""Metrics on prometheus-client's global registry."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any, Final, TypeVar, cast

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.registry import Collector

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
    HealthJudged,
    HistoryLost,
    InstallationMeasured,
    Paused,
    Processed,
    ProcessingStatus,
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
from outbox.core.findings import Severity
from outbox.core.outcome import Cause, Dead, Retry
from outbox.observers.metrics import AGE_BUCKETS, DelayLabels, Reactions

ROUND_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
HANDLER_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)

_LATEST: Final = "livemostrecent"
_VERDICTS: Final = {Severity.OK: 0, Severity.WARNING: 1, Severity.ERROR: 2}

DATABASE: Final = "database"
"""The label of processes that serve several databases."""
M = TypeVar("M", bound=MetricWrapperBase)

_BY_EXCHANGE: Final = ("exchange_name",)
_BY_CONSUMER: Final = ("queue", "exchange_name")


class PrometheusObserver(Reactions):
    """Counts events of all relays and workers of the process, or of those of one database.

    It registers its metrics when it is built, so there is one in a process. If the process serves several databases, there is
    one for each, with its name as the label `database` of all series; "" is for components without one.
    """

    def __init__(self, database: str | None = None) -> None:
        super().__init__()
        self._database = database
        self._families: list[MetricWrapperBase] = []
        self._register_relay_metrics()
        self._register_worker_metrics()
        self._register_dead_letter_metrics()
        self._register_queue_metrics()
        self._register_health_metrics()
        self._register_installation_metrics()

    def remove_series(self) -> None:
        """Removes the series of its database. With several processes in one registry, they stay: those have no way to do it."""
        for family in self._families:
            # Before 0.22 prometheus-client could not do it either.
            if "PROMETHEUS_MULTIPROC_DIR" not in os.environ and hasattr(family, "remove_by_labels"):
                family.remove_by_labels({DATABASE: str(self._database)})

    def _create(self, kind: type[M], name: str, text: str, labels: tuple[str, ...] = (), **options: Any) -> M:
        """Registers a metric, or returns that of the observers of all databases, bound to this one."""
        if self._database is None:
            return kind(name, text, labels, **options)
        family = _family(kind, name, text, (*labels, DATABASE), **options)
        self._families.append(family)
        return cast("M", _OfDatabase(family, self._database) if labels else family.labels(self._database))

    def _register_relay_metrics(self) -> None:
        published = self._create(
            Counter, "outbox_messages_published_total", "Messages confirmed by the broker and settled", _BY_EXCHANGE
        )
        self._on(BatchSent, lambda event: published.labels(event.exchange_name).inc(len(event.messages)))

        failures = self._create(
            Counter, "outbox_publish_failures_total", "Failed publish attempts", ("exchange_name", "failure_type", "error_type")
        )
        self._on(
            SendFailed,
            lambda event: failures.labels(event.exchange_name, event.type.value, event.failure.type).inc(),
        )

        age = self._create(
            Histogram,
            "outbox_message_age_seconds",
            "Time in the outbox table before publishing, from when the message was due",
            _BY_EXCHANGE,
            buckets=AGE_BUCKETS,
        )

        def observe_ages(event: BatchSent) -> None:
            observe = age.labels(event.exchange_name).observe
            for message in event.messages:
                # The clocks of producer and relay may differ a little: an age is never negative.
                observe(max((message.age - message.scheduled).total_seconds(), 0), _exemplar(message.sampled_span))

        self._on(BatchSent, observe_ages)

        rounds = self._create(
            Histogram, "outbox_poll_duration_seconds", "One claim-send-settle round", _BY_EXCHANGE, buckets=ROUND_BUCKETS
        )

        def observe_round(event: RoundFinished) -> None:
            # Its own span does not exist yet, and links to the spans of its messages.
            span = next((span for message in event.sent if (span := message.sampled_span) is not None), None)
            rounds.labels(event.exchange_name).observe(event.duration.total_seconds(), _exemplar(span))

        self._on(RoundFinished, observe_round)

        backlog = self._create(Gauge, "outbox_table_backlog", "Unsent messages now", _BY_EXCHANGE, multiprocess_mode=_LATEST)
        self._on(BacklogMeasured, lambda event: backlog.labels(event.exchange_name).set(event.unsent))

        oldest_due = self._create(
            Gauge,
            "outbox_oldest_unsent_age_seconds",
            "Time since the oldest unsent message was due; 0 without any",
            _BY_EXCHANGE,
            multiprocess_mode=_LATEST,
        )
        self._on(
            BacklogMeasured,
            lambda event: oldest_due.labels(event.exchange_name).set(
                max((event.oldest_due or timedelta(0)).total_seconds(), 0)
            ),
        )

        stalled = self._create(
            Gauge,
            "outbox_stalled_routes",
            "Routing keys and directly addressed queues that accept no messages although the broker answers",
            _BY_EXCHANGE,
            multiprocess_mode="livesum",
        )
        self._on_stalled_routes(lambda exchange_name, change: stalled.labels(exchange_name).inc(change))

    def _register_worker_metrics(self) -> None:
        received = self._create(Counter, "outbox_messages_received_total", "Messages received", _BY_CONSUMER)
        processed = self._create(
            Counter, "outbox_messages_processed_total", "Messages by outcome", ("queue", "exchange_name", "status")
        )
        retries = self._create(Counter, "outbox_retry_attempts_total", "Retries by delay", ("queue", "delay_seconds"))
        duration = self._create(
            Histogram, "outbox_message_processing_duration_seconds", "Handler time", _BY_CONSUMER, buckets=HANDLER_BUCKETS
        )
        delays = DelayLabels()

        # Cached, because a lookup of labels costs more than the increment. All statuses of a queue are created with its first
        # message, so that a failure rate without failures is 0 and not missing.
        @cache
        def series_of(queue: str, exchange_name: str) -> tuple[Counter, Mapping[ProcessingStatus, Counter], Histogram]:
            by_status = {status: processed.labels(queue, exchange_name, status.value) for status in ProcessingStatus}
            return received.labels(queue, exchange_name), by_status, duration.labels(queue, exchange_name)

        def count_processed(event: Processed) -> None:
            _, by_status, seconds = series_of(event.queue, event.exchange_name)
            by_status[event.status].inc()
            seconds.observe(event.duration.total_seconds(), _exemplar(event.span))
            if isinstance(event.outcome, Retry):
                retries.labels(event.queue, delays.of(event.queue, event.outcome.delay)).inc()

        self._on(Received, lambda event: series_of(event.queue, event.exchange_name)[0].inc())
        self._on(Processed, count_processed)

        duplicates = self._create(
            Counter, "outbox_duplicates_total", "Messages that the inbox had already recorded", _BY_CONSUMER
        )
        self._on(Duplicate, lambda event: duplicates.labels(event.queue, event.exchange_name).inc())

        consumers = self._create(
            Gauge, "outbox_active_consumers", "Consumers connected", _BY_CONSUMER, multiprocess_mode="livesum"
        )
        self._on(ConsumerStarted, lambda event: consumers.labels(event.queue, event.exchange_name).inc())
        self._on(ConsumerStopped, lambda event: consumers.labels(event.queue, event.exchange_name).dec())

        handlers = self._create(
            Gauge,
            "outbox_handler_info",
            "1 for the function that handles the messages of the queue",
            ("queue", "handler"),
            multiprocess_mode=_LATEST,
        )
        self._on(ConsumerStarted, lambda event: handlers.labels(event.queue, event.handler).set(1))

        paused = self._create(
            Gauge,
            "outbox_consumer_paused",
            "1 while a consumer has paused itself because its handler failed with an error of pause_on",
            _BY_CONSUMER,
            multiprocess_mode="livesum",
        )
        self._on(CircuitOpened, lambda event: paused.labels(event.queue, event.exchange_name).set(1))
        self._on(CircuitClosed, lambda event: paused.labels(event.queue, event.exchange_name).set(0))
        self._on(ConsumerStopped, lambda event: paused.labels(event.queue, event.exchange_name).set(0))

    def _register_dead_letter_metrics(self) -> None:
        dead = self._create(Counter, "outbox_dead_letters_total", "Messages that failed for good, by cause", ("queue", "cause"))

        def count(queue: str, outcome: object) -> None:
            if isinstance(outcome, Dead):
                dead.labels(queue, outcome.cause.value).inc()

        def begin(queue: str, causes: Iterable[Cause]) -> None:
            # `increase()` does not see a series that begins with 1, so each one starts at 0, before the first dead letter.
            for cause in causes:
                dead.labels(queue, cause.value)

        self._on(ConsumerStarted, lambda event: begin(event.queue, set(Cause) - {Cause.REFUSED}))
        self._on(RelayStarted, lambda _: begin("", [Cause.REFUSED]))
        self._on(Processed, lambda event: count(event.queue, event.outcome))
        self._on(SendFailed, lambda event: count("", event.outcome))

        dead_letters = self._create(
            Gauge, "outbox_dlq_messages", "Dead letters at the broker and archived", ("queue",), multiprocess_mode=_LATEST
        )
        self._on(DeadLettersMeasured, lambda event: dead_letters.labels(event.queue).set(event.count))

        archived = self._create(
            Counter, "outbox_archived_total", "Dead letters moved from the broker to the database", ("queue",)
        )
        self._on(Archived, lambda event: archived.labels(event.queue).inc(event.count))

    def _register_queue_metrics(self) -> None:
        depth = self._create(
            Gauge, "outbox_queue_messages", "Messages waiting in a queue", ("queue",), multiprocess_mode=_LATEST
        )
        oldest = self._create(
            Gauge,
            "outbox_queue_oldest_age_seconds",
            "Time since the first message of a queue was due; 0 without any, absent if the broker does not report it",
            ("queue",),
            multiprocess_mode=_LATEST,
        )
        reported: set[str] = set()

        def set_queue(event: QueueMeasured) -> None:
            depth.labels(event.queue).set(event.depth)
            if event.oldest_due is not None:
                oldest.labels(event.queue).set(event.oldest_due.total_seconds())

        def set_queues(event: InstallationMeasured) -> None:
            if event.queues is None:
                return
            for queue in event.queues:
                set_queue(queue)
            present = {queue.queue for queue in event.queues}
            # A deleted queue is reported as empty: prometheus-client cannot remove a series in multiprocess mode.
            for gone in reported - present:
                set_queue(QueueMeasured(queue=gone, depth=0, oldest_due=timedelta(0)))
            reported.clear()
            reported.update(present)

        self._on(QueueMeasured, set_queue)
        self._on(InstallationMeasured, set_queues)

    def _register_health_metrics(self) -> None:
        mode_of = self._create(
            Gauge,
            "outbox_wake_mode",
            "1 for the mode in which a waiting process learns of new rows on the channel, 0 for the other",
            ("channel", "mode"),
            multiprocess_mode=_LATEST,
        )

        def set_wake_mode(event: WakeModeChanged) -> None:
            for mode in WakeMode:
                mode_of.labels(event.channel, mode.value).set(mode is event.mode)

        self._on(WakeModeChanged, set_wake_mode)

        paused = self._create(
            Gauge,
            "outbox_paused",
            'Relays (queue "") and consumers that are paused by an operator',
            _BY_CONSUMER,
            multiprocess_mode="livesum",
        )
        self._on(Paused, lambda event: paused.labels(event.queue or "", event.exchange_name).inc())
        self._on(Resumed, lambda event: paused.labels(event.queue or "", event.exchange_name).dec())

        lost = self._create(Counter, "outbox_history_lost_total", "Facts that were not written to the history")
        self._on(HistoryLost, lambda event: lost.inc(event.count))

        statuses = self._create(
            Gauge,
            "outbox_health_status",
            "1 for the current health status of the installation, 0 for the others",
            ("status",),
            multiprocess_mode=_LATEST,
        )
        verdict = self._create(
            Gauge,
            "outbox_health_verdict",
            "The verdict on the installation: 0 is ok, 1 a warning, 2 an error",
            multiprocess_mode=_LATEST,
        )
        findings = self._create(
            Gauge, "outbox_health_findings", "Findings of the health check by code", ("code",), multiprocess_mode=_LATEST
        )

        def set_health(event: HealthJudged) -> None:
            for status in Severity:
                statuses.labels(status.value).set(status.value == event.status)
            verdict.set(_VERDICTS[Severity(event.status)])
            for code, count in event.findings.items():
                findings.labels(code).set(count)

        self._on(HealthJudged, set_health)

    def _register_installation_metrics(self) -> None:
        components = self._create(
            Gauge,
            "outbox_components",
            "Relays, workers, archivers and maintenance by what their heartbeats say",
            ("kind", "status"),
            multiprocess_mode=_LATEST,
        )
        messages = self._create(
            Gauge,
            "outbox_table_messages",
            "Unsent messages of the outbox table by state",
            ("state",),
            multiprocess_mode=_LATEST,
        )
        transaction = self._create(
            Gauge,
            "outbox_oldest_transaction_age_seconds",
            "Age of the transaction that has kept vacuum from removing dead rows for the longest; 0 without any",
            multiprocess_mode=_LATEST,
        )
        dead_rows = self._create(
            Gauge, "outbox_dead_rows", "Dead rows that vacuum has not removed", ("table",), multiprocess_mode=_LATEST
        )

        unsent = self._create(
            Gauge, "outbox_destination_messages", "Unsent messages by destination", ("destination",), multiprocess_mode=_LATEST
        )
        oldest = self._create(
            Gauge,
            "outbox_destination_oldest_age_seconds",
            "Time since the first message of a destination was due; 0 without any",
            ("destination",),
            multiprocess_mode=_LATEST,
        )

        def set_all(event: InstallationMeasured) -> None:
            for name, (count, due) in event.destinations.items():
                unsent.labels(name).set(count)
                oldest.labels(name).set(due.total_seconds())
            for (kind, status), count in event.components.items():
                components.labels(kind, status).set(count)
            for state, count in event.messages.items():
                messages.labels(state).set(count)
            transaction.set(event.oldest_transaction.total_seconds())
            for table, count in event.dead_rows.items():
                dead_rows.labels(table).set(count)

        self._on(InstallationMeasured, set_all)


class DatabaseCollector(Collector):
    """Shows which of several databases are served, as the functions in `served` say at that moment: by name, whether it is.

    A database that several components serve is shown as served if all of them do.
    """

    def __init__(self, served: Sequence[Callable[[], Mapping[str, bool]]]) -> None:
        self._served = served

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yields the gauge `outbox_database_up`."""
        gauge = GaugeMetricFamily("outbox_database_up", "1 for a database whose component runs", labels=(DATABASE,))
        found: dict[str, bool] = {}
        for each in self._served:
            found |= {name: up and found.get(name, True) for name, up in each().items()}
        for name, up in found.items():
            gauge.add_metric((name,), float(up))
        yield gauge


@cache
def _family(kind: type[MetricWrapperBase], name: str, text: str, labels: tuple[str, ...], **options: Any) -> MetricWrapperBase:
    return kind(name, text, labels, **options)


@dataclass(frozen=True, slots=True)
class _OfDatabase:
    """A metric whose last label is the name of a database."""

    family: MetricWrapperBase
    database: str

    def labels(self, *values: str) -> MetricWrapperBase:
        """Returns the series with these values and the database."""
        return self.family.labels(*values, self.database)


def _exemplar(span: SpanIds | None) -> dict[str, str] | None:
    """Returns the labels of an observation's exemplar, as the conventions of OpenMetrics name them; None without a span."""
    return None if span is None else {"trace_id": span.trace_id, "span_id": span.span_id}
