"""Metrics: dashboards and alerts rely on their names, types and labels."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from prometheus_client import REGISTRY
from prometheus_client.samples import Sample

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
    ProcessingStatus,
    QueueMeasured,
    Received,
    RelayStarted,
    RelayStopped,
    Resumed,
    RoundFinished,
    RouteResumed,
    RouteStalled,
    SentMessage,
    WakeMode,
    WakeModeChanged,
)
from outbox.core.outcome import Retry
from outbox.observers.metrics import MOST_DELAYS
from outbox.observers.prometheus import PrometheusObserver
from outbox.runtime.observing import build_observer
from tests.observers import events
from tests.observers.events import FAILURE, MESSAGE

FAMILIES = {
    "outbox_messages_published": ("counter", {"exchange_name"}),
    "outbox_publish_failures": ("counter", {"exchange_name", "failure_type", "error_type"}),
    "outbox_message_age_seconds": ("histogram", {"exchange_name"}),
    "outbox_poll_duration_seconds": ("histogram", {"exchange_name"}),
    "outbox_table_backlog": ("gauge", {"exchange_name"}),
    "outbox_stalled_routes": ("gauge", {"exchange_name"}),
    "outbox_messages_received": ("counter", {"queue", "exchange_name"}),
    "outbox_messages_processed": ("counter", {"queue", "exchange_name", "status"}),
    "outbox_duplicates": ("counter", {"queue", "exchange_name"}),
    "outbox_retry_attempts": ("counter", {"queue", "delay_seconds"}),
    "outbox_message_processing_duration_seconds": ("histogram", {"queue", "exchange_name"}),
    "outbox_dlq_messages": ("gauge", {"queue"}),
    "outbox_queue_messages": ("gauge", {"queue"}),
    "outbox_queue_oldest_age_seconds": ("gauge", {"queue"}),
    "outbox_archived": ("counter", {"queue"}),
    "outbox_dead_letters": ("counter", {"queue", "cause"}),
    "outbox_handler_info": ("gauge", {"queue", "handler"}),
    "outbox_active_consumers": ("gauge", {"queue", "exchange_name"}),
    "outbox_consumer_paused": ("gauge", {"queue", "exchange_name"}),
    "outbox_oldest_unsent_age_seconds": ("gauge", {"exchange_name"}),
    "outbox_wake_mode": ("gauge", {"channel", "mode"}),
    "outbox_health_status": ("gauge", {"status"}),
    "outbox_health_findings": ("gauge", {"code"}),
    "outbox_health_verdict": ("gauge", set()),
    "outbox_components": ("gauge", {"kind", "status"}),
    "outbox_table_messages": ("gauge", {"state"}),
    "outbox_oldest_transaction_age_seconds": ("gauge", set()),
    "outbox_dead_rows": ("gauge", {"table"}),
    "outbox_destination_messages": ("gauge", {"destination"}),
    "outbox_destination_oldest_age_seconds": ("gauge", {"destination"}),
    "outbox_paused": ("gauge", {"queue", "exchange_name"}),
    "outbox_history_lost": ("counter", set()),
}


@pytest.fixture
def observer() -> object:
    """The observer of the process: a registry accepts each metric only once."""
    return build_observer(enable_metrics=True)


class Exchange:
    """The series of one exchange and queue that no other test touches."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.queue = {"queue": f"{name}.queue", "exchange_name": name}

    def value(self, sample: str, **labels: str) -> float | None:
        return REGISTRY.get_sample_value(sample, labels)


@pytest.fixture
def exchange(request: pytest.FixtureRequest) -> Exchange:
    return Exchange(request.node.name)


def samples(family: str) -> Iterator[Sample]:
    for metric in REGISTRY.collect():
        if metric.name == family:
            yield from metric.samples


def test_all_families_are_registered_with_the_first_instance(observer: PrometheusObserver) -> None:
    types = {metric.name: metric.type for metric in REGISTRY.collect() if metric.name.startswith("outbox_")}
    assert types == {name: type_ for name, (type_, _) in FAMILIES.items()}


def test_further_instances_share_them(observer: PrometheusObserver) -> None:
    for _ in range(3):
        build_observer(enable_metrics=True)


def test_every_family_has_its_labels(observer: PrometheusObserver) -> None:
    for event in events.EVENTS:
        observer.notify(event)
    for name, (_, labels) in FAMILIES.items():
        found = {frozenset(sample.labels) - {"le"} for sample in samples(name)}
        assert found == {frozenset(labels)}, name


def test_sent_messages_are_counted_and_their_ages_observed(observer: PrometheusObserver, exchange: Exchange) -> None:
    observer.notify(events.sent(0.02, 0.2, 2, exchange_name=exchange.name))
    observer.notify(events.sent(-0.001, exchange_name=exchange.name))
    labels = {"exchange_name": exchange.name}
    assert exchange.value("outbox_messages_published_total", **labels) == 4
    assert exchange.value("outbox_message_age_seconds_count", **labels) == 4
    assert exchange.value("outbox_message_age_seconds_sum", **labels) == pytest.approx(2.22)
    assert exchange.value("outbox_message_age_seconds_bucket", le="0.25", **labels) == 3


def test_the_age_of_a_scheduled_message_begins_when_it_is_due(observer: PrometheusObserver, exchange: Exchange) -> None:
    timer = SentMessage("1", "order.unpaid", timedelta(hours=1, seconds=2), scheduled=timedelta(hours=1))
    observer.notify(BatchSent(exchange_name=exchange.name, messages=[timer]))
    assert exchange.value("outbox_message_age_seconds_sum", exchange_name=exchange.name) == 2


def test_failed_attempts_are_counted_by_kind_and_error(observer: PrometheusObserver) -> None:
    labels = {"exchange_name": "orders", "failure_type": "refused", "error_type": "ValueError"}
    before = REGISTRY.get_sample_value("outbox_publish_failures_total", labels) or 0
    observer.notify(events.RETRIED)
    assert REGISTRY.get_sample_value("outbox_publish_failures_total", labels) == before + 1


def test_duplicates_are_counted(observer: PrometheusObserver, exchange: Exchange) -> None:
    for _ in range(2):
        observer.notify(Duplicate(**exchange.queue, message=events.MESSAGE))
    assert exchange.value("outbox_duplicates_total", **exchange.queue) == 2


def test_rounds_are_timed(observer: PrometheusObserver, exchange: Exchange) -> None:
    observer.notify(RoundFinished(exchange_name=exchange.name, taken=50, duration=timedelta(seconds=0.25)))
    assert exchange.value("outbox_poll_duration_seconds_sum", exchange_name=exchange.name) == 0.25


@pytest.mark.parametrize(
    ("unsent", "oldest_due", "age"), [(7, timedelta(minutes=1), 60), (0, None, 0), (1, timedelta(seconds=-1), 0)]
)
def test_backlog_and_oldest_age_are_the_latest(
    observer: PrometheusObserver, exchange: Exchange, unsent: int, oldest_due: timedelta | None, age: float
) -> None:
    observer.notify(BacklogMeasured(exchange_name=exchange.name, unsent=99, oldest_due=timedelta(days=1)))
    observer.notify(BacklogMeasured(exchange_name=exchange.name, unsent=unsent, oldest_due=oldest_due))
    assert exchange.value("outbox_table_backlog", exchange_name=exchange.name) == unsent
    assert exchange.value("outbox_oldest_unsent_age_seconds", exchange_name=exchange.name) == age


def test_of_the_wake_modes_one_is_on(observer: PrometheusObserver, exchange: Exchange) -> None:
    for mode, other in ((WakeMode.LISTENING, "polling"), (WakeMode.POLLING, "listening")):
        observer.notify(WakeModeChanged(channel=exchange.name, mode=mode, reason="because"))
        assert exchange.value("outbox_wake_mode", channel=exchange.name, mode=mode.value) == 1
        assert exchange.value("outbox_wake_mode", channel=exchange.name, mode=other) == 0


def test_received_and_processed_messages_are_counted_by_status(observer: PrometheusObserver, exchange: Exchange) -> None:
    observer.notify(Received(**exchange.queue, message=MESSAGE, attempt=1))
    for event in (events.HANDLED, events.HANDLED, events.FAILED, events.REJECTED, events.UNDECODABLE):
        observer.notify(_in(exchange, event))
    assert exchange.value("outbox_messages_received_total", **exchange.queue) == 1
    by_status = {
        status.value: exchange.value("outbox_messages_processed_total", **exchange.queue, status=status.value)
        for status in ProcessingStatus
    }
    assert by_status == {"success": 2, "failed": 1, "rejected": 1, "undecodable": 1}
    assert exchange.value("outbox_message_processing_duration_seconds_sum", **exchange.queue) == 1.25


@pytest.mark.parametrize(
    ("delay", "label"),
    [
        (timedelta(0), "0"),
        (timedelta(seconds=1), "1"),
        (timedelta(seconds=10), "10"),
        (timedelta(minutes=5), "300"),
        (timedelta(days=30), "2592000"),
        (timedelta(milliseconds=500), "0.5"),
        (timedelta(minutes=1, milliseconds=250), "60.25"),
    ],
)
def test_retries_are_counted_by_their_delay_in_plain_seconds(
    observer: PrometheusObserver, exchange: Exchange, delay: timedelta, label: str
) -> None:
    observer.notify(_in(exchange, events.processed(ProcessingStatus.FAILED, Retry(delay, FAILURE))))
    assert exchange.value("outbox_retry_attempts_total", queue=exchange.queue["queue"], delay_seconds=label) == 1


def test_delays_that_a_handler_invents_share_one_series_beyond_a_limit(
    observer: PrometheusObserver, exchange: Exchange
) -> None:
    for seconds in (*range(MOST_DELAYS + 7), 3):
        observer.notify(_in(exchange, events.processed(ProcessingStatus.FAILED, Retry(timedelta(seconds=seconds), FAILURE))))
    queue = exchange.queue["queue"]
    assert exchange.value("outbox_retry_attempts_total", queue=queue, delay_seconds="other") == 7
    assert exchange.value("outbox_retry_attempts_total", queue=queue, delay_seconds="3") == 2


def test_dead_letters_are_counted_by_cause_and_begin_with_0(observer: PrometheusObserver, exchange: Exchange) -> None:
    observer.notify(ConsumerStarted(**exchange.queue, binding_key="#", handler="shop.mail"))
    for event in (events.EXHAUSTED, events.EXHAUSTED, events.REJECTED, events.FAILED, events.HANDLED):
        observer.notify(_in(exchange, event))
    queue = exchange.queue["queue"]
    causes = ("exhausted", "rejected", "expired", "undecodable", "crashed")
    found = [exchange.value("outbox_dead_letters_total", queue=queue, cause=cause) for cause in causes]
    assert found == [2, 1, 0, 0, 0]


def test_messages_that_a_relay_parks_are_dead_letters_without_a_queue(observer: PrometheusObserver, exchange: Exchange) -> None:
    observer.notify(RelayStarted(exchange_name=exchange.name, table="outbox_table"))
    before = exchange.value("outbox_dead_letters_total", queue="", cause="refused")
    assert before is not None
    observer.notify(events.PARKED)
    assert exchange.value("outbox_dead_letters_total", queue="", cause="refused") == before + 1


def test_a_queue_is_known_by_its_handler(observer: PrometheusObserver, exchange: Exchange) -> None:
    observer.notify(ConsumerStarted(**exchange.queue, binding_key="#", handler="shop.mail"))
    assert exchange.value("outbox_handler_info", queue=exchange.queue["queue"], handler="shop.mail") == 1


@pytest.mark.parametrize(("status", "number"), [("ok", 0), ("warning", 1), ("error", 2)])
def test_the_verdict_is_a_number(observer: PrometheusObserver, exchange: Exchange, status: str, number: int) -> None:
    observer.notify(HealthJudged(status=status, findings={}))
    assert exchange.value("outbox_health_verdict") == number


def measured(*queues: str) -> InstallationMeasured:
    return InstallationMeasured(
        components={("relay", "alive"): 2, ("relay", "lost"): 0},
        messages={"held": 4},
        queues=[QueueMeasured(queue=queue, depth=7, oldest_due=timedelta(minutes=1)) for queue in queues],
        oldest_transaction=timedelta(minutes=20),
        dead_rows={"outbox_table": 5},
        destinations={"kafka": (3, timedelta(seconds=9))},
    )


def test_figures_of_the_installation_are_the_latest(observer: PrometheusObserver, exchange: Exchange) -> None:
    observer.notify(measured(exchange.name))
    assert exchange.value("outbox_components", kind="relay", status="alive") == 2
    assert exchange.value("outbox_table_messages", state="held") == 4
    assert exchange.value("outbox_oldest_transaction_age_seconds") == 1200
    assert exchange.value("outbox_dead_rows", table="outbox_table") == 5
    assert exchange.value("outbox_destination_messages", destination="kafka") == 3
    assert exchange.value("outbox_destination_oldest_age_seconds", destination="kafka") == 9
    assert exchange.value("outbox_queue_messages", queue=exchange.name) == 7
    assert exchange.value("outbox_queue_oldest_age_seconds", queue=exchange.name) == 60


def test_a_queue_that_is_deleted_is_empty_unless_the_broker_is_away(observer: PrometheusObserver, exchange: Exchange) -> None:
    observer.notify(measured(exchange.name))
    observer.notify(replace(measured(), queues=None))
    assert exchange.value("outbox_queue_messages", queue=exchange.name) == 7
    observer.notify(measured())
    assert exchange.value("outbox_queue_messages", queue=exchange.name) == 0
    assert exchange.value("outbox_queue_oldest_age_seconds", queue=exchange.name) == 0


def test_a_dead_letter_is_no_retry(observer: PrometheusObserver, exchange: Exchange) -> None:
    observer.notify(_in(exchange, events.EXHAUSTED))
    assert [sample for sample in samples("outbox_retry_attempts") if sample.labels["queue"] == exchange.queue["queue"]] == []


def test_consumers_come_and_go(observer: PrometheusObserver, exchange: Exchange) -> None:
    for _ in range(2):
        observer.notify(ConsumerStarted(**exchange.queue, binding_key="#"))
    assert exchange.value("outbox_active_consumers", **exchange.queue) == 2
    observer.notify(ConsumerStopped(**exchange.queue))
    assert exchange.value("outbox_active_consumers", **exchange.queue) == 1


def test_dead_letters_are_the_latest_count(observer: PrometheusObserver, exchange: Exchange) -> None:
    for count in (5, 3):
        observer.notify(DeadLettersMeasured(queue=exchange.name, count=count))
    assert exchange.value("outbox_dlq_messages", queue=exchange.name) == 3


def test_a_queue_has_its_depth_and_an_age_where_the_broker_knows_one(observer: PrometheusObserver, exchange: Exchange) -> None:
    observer.notify(QueueMeasured(queue=exchange.name, depth=7, oldest_due=None))
    assert exchange.value("outbox_queue_messages", queue=exchange.name) == 7
    assert exchange.value("outbox_queue_oldest_age_seconds", queue=exchange.name) is None
    observer.notify(QueueMeasured(queue=exchange.name, depth=3, oldest_due=timedelta(minutes=1)))
    assert exchange.value("outbox_queue_messages", queue=exchange.name) == 3
    assert exchange.value("outbox_queue_oldest_age_seconds", queue=exchange.name) == 60


def test_archived_dead_letters_are_counted(observer: PrometheusObserver, exchange: Exchange) -> None:
    for count in (5, 3):
        observer.notify(Archived(queue=exchange.name, count=count))
    assert exchange.value("outbox_archived_total", queue=exchange.name) == 8


def _in(exchange: Exchange, event: Any) -> Any:
    return replace(event, **exchange.queue)


WITHOUT_CLIENT = """
import logging, sys
sys.modules["prometheus_client"] = None  # as if it were not installed
logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s %(message)s", stream=sys.stdout)
from outbox.core.events import Advice
from outbox.runtime.observing import build_observer
for _ in range(3):
    build_observer(enable_metrics=True).notify(Advice(text="still logged"))
"""


def test_without_prometheus_client_metrics_are_off_with_one_info_line() -> None:
    finished = subprocess.run([sys.executable, "-c", WITHOUT_CLIENT], capture_output=True, text=True, timeout=60, check=True)
    lines = finished.stdout.splitlines()
    assert [line for line in lines if line.startswith("INFO")] == [
        'INFO outbox metrics are off: prometheus-client is not installed (pip install "fastapi-outbox[metrics]")'
    ]
    assert lines.count("WARNING outbox still logged") == 3


SWITCHED_OFF = """
import sys
from outbox.runtime.observing import build_observer
build_observer(enable_metrics=False)
assert "prometheus_client" not in sys.modules
"""


def test_metrics_that_are_off_load_nothing() -> None:
    subprocess.run([sys.executable, "-c", SWITCHED_OFF], timeout=60, check=True)


def test_a_consumer_is_paused_from_the_opening_of_its_circuit_to_its_closing(
    observer: PrometheusObserver, exchange: Exchange
) -> None:
    observer.notify(CircuitOpened(**exchange.queue, pause=timedelta(seconds=30)))
    assert exchange.value("outbox_consumer_paused", **exchange.queue) == 1
    observer.notify(CircuitClosed(**exchange.queue))
    assert exchange.value("outbox_consumer_paused", **exchange.queue) == 0


def test_pauses_of_operators_are_counted_while_they_last(observer: PrometheusObserver, exchange: Exchange) -> None:
    for _ in range(2):
        observer.notify(Paused(**exchange.queue))
    observer.notify(Resumed(exchange_name=exchange.name, queue=exchange.queue["queue"]))
    observer.notify(Paused(exchange_name=exchange.name))
    assert exchange.value("outbox_paused", **exchange.queue) == 1
    assert exchange.value("outbox_paused", queue="", exchange_name=exchange.name) == 1


def test_facts_that_the_history_lost_are_counted(observer: PrometheusObserver, exchange: Exchange) -> None:
    before = exchange.value("outbox_history_lost_total") or 0
    observer.notify(HistoryLost(count=3, reason="the database is away"))
    assert exchange.value("outbox_history_lost_total") == before + 3


def test_stalled_routes_are_counted_until_they_accept_messages_again(observer: PrometheusObserver, exchange: Exchange) -> None:
    for routing_key in ("a", "b"):
        observer.notify(RouteStalled(exchange_name=exchange.name, routing_key=routing_key, queue=None, failure=FAILURE))
    assert exchange.value("outbox_stalled_routes", exchange_name=exchange.name) == 2
    observer.notify(RouteResumed(exchange_name=exchange.name, routing_key="a", queue=None))
    assert exchange.value("outbox_stalled_routes", exchange_name=exchange.name) == 1


@pytest.mark.parametrize("event", [RelayStarted, RelayStopped])
def test_a_relay_that_starts_or_has_stopped_knows_of_no_stalled_routes(
    observer: PrometheusObserver, exchange: Exchange, event: type[RelayStarted | RelayStopped]
) -> None:
    for routing_key in ("a", "a", "b"):  # a relay that was restarted reports its routes again
        observer.notify(RouteStalled(exchange_name=exchange.name, routing_key=routing_key, queue=None, failure=FAILURE))
    assert exchange.value("outbox_stalled_routes", exchange_name=exchange.name) == 2
    observer.notify(event(exchange_name=exchange.name, table="outbox_table"))
    assert exchange.value("outbox_stalled_routes", exchange_name=exchange.name) == 0
