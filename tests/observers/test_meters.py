"""The instruments of OpenTelemetry: their names, what they report for each event, and that the documentation lists them."""

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import Histogram, InMemoryMetricReader, Metric, Sum
from prometheus_client import REGISTRY

from outbox.core.events import (
    BatchSent,
    CircuitClosed,
    CircuitOpened,
    Paused,
    ProcessingStatus,
    Resumed,
    RoundFinished,
    RouteResumed,
    RouteStalled,
    SentMessage,
)
from outbox.core.outcome import Cause, Dead, Retry
from outbox.observers.meters import MeterObserver
from outbox.observers.metrics import MOST_DELAYS
from outbox.runtime import observing
from tests.observers import events
from tests.observers.events import FAILURE, MINUTE, QUEUE

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
ROW = re.compile(
    r"^\| `(?P<name>(?:outbox|messaging)\.[\w.]+)` \| (?P<kind>[^|]+) \| (?P<unit>[^|]+) \| (?P<attributes>[^|]*) \|",
    re.MULTILINE,
)
CONVENTIONS = {
    "messaging.client.sent.messages": "{message}",
    "messaging.client.consumed.messages": "{message}",
    "messaging.client.operation.duration": "s",
    "messaging.process.duration": "s",
}
ONLY_IN_PROMETHEUS = {
    "outbox_database_up",
    "outbox_components",
    "outbox_dead_rows",
    "outbox_destination_messages",
    "outbox_destination_oldest_age_seconds",
    "outbox_health_findings",
    "outbox_health_status",
    "outbox_health_verdict",
    "outbox_oldest_transaction_age_seconds",
    "outbox_table_messages",
}
"""Those of the verdict, which are measured when they are read."""
BY_THE_CONVENTIONS = {
    "outbox_messages_published_total",
    "outbox_publish_failures_total",
    "outbox_poll_duration_seconds",
    "outbox_messages_received_total",
    "outbox_messages_processed_total",
    "outbox_message_processing_duration_seconds",
}


class Instruments:
    """An observer on meters, and what a reader collects from them."""

    def __init__(self, provider: MeterProvider, reader: InMemoryMetricReader) -> None:
        self._reader = reader
        self.notify = MeterObserver(provider.get_meter("outbox"), system="rabbitmq").notify

    def collect(self) -> dict[str, Metric]:
        data = self._reader.get_metrics_data()
        scopes = [scope for resource in data.resource_metrics for scope in resource.scope_metrics] if data is not None else []
        return {metric.name: metric for scope in scopes for metric in scope.metrics}

    def series(self, name: str) -> dict[tuple[tuple[str, Any], ...], float]:
        """The values of a counter or gauge by its attributes."""
        points: Any = self.collect()[name].data.data_points
        return {tuple(sorted(point.attributes.items())): point.value for point in points}


@pytest.fixture
def instruments() -> Iterator[Instruments]:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    yield Instruments(provider, reader)
    provider.shutdown()


@pytest.fixture
def collected(instruments: Instruments) -> dict[str, Metric]:
    """The metrics after one event of each kind."""
    for event in events.EVENTS:
        instruments.notify(event)
    instruments.notify(RoundFinished(exchange_name="orders", taken=2, duration=MINUTE, failed=[events.HELD]))
    return instruments.collect()


def _kind(metric: Metric) -> str:
    if isinstance(metric.data, Histogram):
        return "histogram"
    if isinstance(metric.data, Sum):
        return "counter" if metric.data.is_monotonic else "up-down counter"
    return "gauge"


def test_names_are_those_of_the_conventions_or_of_prometheus(collected: dict[str, Metric]) -> None:
    observing.build_observer(enable_metrics=True)
    prometheus = {
        metric.name + ("_total" if metric.type == "counter" else "")
        for metric in REGISTRY.collect()
        if metric.name.startswith("outbox_")
    }
    ours = {name: metric.unit for name, metric in collected.items()}
    assert {name: unit for name, unit in ours.items() if name.startswith("messaging.")} == CONVENTIONS
    exported = {
        name.replace(".", "_") + ("_seconds" if unit == "s" else "") + ("_total" if _kind(collected[name]) == "counter" else "")
        for name, unit in ours.items()
        if name.startswith("outbox.")
    }
    assert exported == prometheus - BY_THE_CONVENTIONS - ONLY_IN_PROMETHEUS


def test_the_documentation_lists_them(collected: dict[str, Metric]) -> None:
    documented = {
        match["name"]: (match["kind"], match["unit"].strip("`"), set(re.findall(r"`([\w.]+)`", match["attributes"])))
        for match in ROW.finditer(PAGE.read_text())
    }
    assert documented == {
        name: (
            _kind(metric),
            metric.unit,
            {attribute for point in metric.data.data_points for attribute in point.attributes or {}},
        )
        for name, metric in collected.items()
    }


def test_measurements_of_one_of_several_databases_have_its_name() -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    instruments = Instruments(provider, reader)
    instruments.notify = MeterObserver(provider.get_meter("outbox"), system="rabbitmq", database="acme").notify
    for event in events.EVENTS:
        instruments.notify(event)
    found = instruments.collect()
    assert found
    for name, metric in found.items():
        assert {(point.attributes or {}).get("outbox.database") for point in metric.data.data_points} == {"acme"}, name
    provider.shutdown()


def test_no_attribute_has_a_value_that_comes_with_messages(collected: dict[str, Metric]) -> None:
    values = {
        str(value)
        for metric in collected.values()
        for point in metric.data.data_points
        for value in (point.attributes or {}).values()
    }
    assert not [value for value in values if events.MESSAGE.id in value or "order.placed" in value or "geheim" in value]


def test_a_queue_has_at_most_51_delays(instruments: Instruments) -> None:
    for seconds in range(MOST_DELAYS + 7):
        instruments.notify(events.processed(ProcessingStatus.FAILED, Retry(timedelta(seconds=seconds), FAILURE)))
    found = instruments.series("outbox.retry_attempts")
    assert len(found) == MOST_DELAYS + 1
    assert found[("outbox.delay_seconds", "other"), ("outbox.queue", "mail")] == 7


def test_an_age_begins_when_a_message_is_due_and_is_never_negative(instruments: Instruments) -> None:
    timer = SentMessage("1", "order.unpaid", timedelta(hours=1, seconds=2), scheduled=timedelta(hours=1))
    early = SentMessage("2", "order.unpaid", timedelta(seconds=-1))
    instruments.notify(BatchSent(exchange_name="orders", messages=[timer, early]))
    data = instruments.collect()["outbox.message_age"].data
    assert isinstance(data, Histogram)
    (point,) = data.data_points
    assert (point.count, point.sum) == (2, 2)


def test_pauses_and_stalled_routes_are_counted_while_they_last(instruments: Instruments) -> None:
    for event in (Paused(**QUEUE), Resumed(exchange_name="orders", queue="mail"), Paused(exchange_name="orders")):
        instruments.notify(event)
    for routing_key in ("a", "b"):
        instruments.notify(RouteStalled(exchange_name="orders", routing_key=routing_key, queue=None, failure=FAILURE))
    instruments.notify(RouteResumed(exchange_name="orders", routing_key="a", queue=None))
    relay, consumer = ("messaging.destination.name", "orders"), ("messaging.destination.name", "orders:mail")
    assert instruments.series("outbox.paused") == {(relay,): 1, (consumer, ("outbox.queue", "mail")): 0}
    assert instruments.series("outbox.stalled_routes") == {(relay,): 1}


def test_a_gauge_keeps_its_value_between_two_collections(instruments: Instruments) -> None:
    instruments.notify(CircuitOpened(**QUEUE, pause=MINUTE))
    assert [list(instruments.series("outbox.consumer_paused").values()) for _ in range(2)] == [[1], [1]]
    instruments.notify(CircuitClosed(**QUEUE))
    assert list(instruments.series("outbox.consumer_paused").values()) == [0]


def test_a_round_in_which_nothing_was_sent_is_no_operation(instruments: Instruments) -> None:
    instruments.notify(RoundFinished(exchange_name="orders", taken=2, duration=MINUTE))
    assert "messaging.client.operation.duration" not in instruments.collect()


def test_a_dead_letter_of_a_relay_has_no_queue(instruments: Instruments) -> None:
    instruments.notify(events.PARKED)
    instruments.notify(events.processed(ProcessingStatus.FAILED, Dead(Cause.EXHAUSTED, FAILURE)))
    assert instruments.series("outbox.dead_letters") == {
        (("outbox.cause", "refused"), ("outbox.queue", "")): 1,
        (("outbox.cause", "exhausted"), ("outbox.queue", "mail")): 1,
    }
