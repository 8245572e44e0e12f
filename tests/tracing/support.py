"""Reads spans, and runs a relay and a worker around them."""

import logging
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

import asyncpg
from opentelemetry import trace
from opentelemetry.sdk.metrics.export import Histogram, InMemoryMetricReader, Metric
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext

from outbox import Consumer, MessageRelay, Publisher, Worker
from tests.relay.support import running as running_relay
from tests.support import eventually
from tests.worker.support import running

TRACE = "0af7651916cd43dd8448eb211c80319c"
TRACEPARENT = f"00-{TRACE}-b7ad6b7169203331-01"
NO_METRICS = {"enable_metrics": False}


class Spans:
    """The spans in an exporter."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self._exporter = exporter

    @property
    def all(self) -> Sequence[ReadableSpan]:
        return self._exporter.get_finished_spans()

    def named(self, name: str) -> list[ReadableSpan]:
        """The spans with this name, in the order in which they ended."""
        return [span for span in self.all if span.name == name]

    async def ended(self, name: str, count: int = 1) -> list[ReadableSpan]:
        """Waits until `count` spans with this name have ended, and returns them."""
        await eventually(lambda: len(self.named(name)) >= count, message=f"{[span.name for span in self.all]}")
        return self.named(name)

    def clear(self) -> None:
        self._exporter.clear()


class Meters:
    """The metrics of the scope `outbox` that a reader collects, now."""

    def __init__(self, reader: InMemoryMetricReader) -> None:
        self._reader = reader

    @property
    def all(self) -> dict[str, Metric]:
        data = self._reader.get_metrics_data()
        scopes = [scope for resource in data.resource_metrics for scope in resource.scope_metrics] if data is not None else []
        return {metric.name: metric for scope in scopes if scope.scope.name == "outbox" for metric in scope.metrics}

    def unit(self, name: str) -> str | None:
        return self.all[name].unit

    def points(self, name: str, **attributes: str) -> list[Any]:
        """The series of a metric that have these attributes."""
        metric = self.all.get(name)
        points: list[Any] = [] if metric is None else list(metric.data.data_points)
        return [point for point in points if (point.attributes or {}).items() >= attributes.items()]

    def values(self, name: str, **attributes: str) -> list[float]:
        return [point.value for point in self.points(name, **attributes)]

    def exemplars(self) -> dict[str, list[tuple[int | None, int | None]]]:
        """The ids of trace and span of the exemplars of each metric, which are those since the last collection."""
        return {
            name: [(each.trace_id, each.span_id) for point in metric.data.data_points for each in point.exemplars]
            for name, metric in self.all.items()
            if isinstance(metric.data, Histogram)
        }


def context_of(span: ReadableSpan) -> SpanContext:
    context = span.get_span_context()
    assert context is not None
    return context


def is_child(span: ReadableSpan, parent: ReadableSpan) -> bool:
    return span.parent is not None and span.parent.span_id == context_of(parent).span_id


def links_to(span: ReadableSpan, *others: ReadableSpan) -> bool:
    return {link.context.span_id for link in span.links} == {context_of(other).span_id for other in others}


def events_of(span: ReadableSpan) -> list[str]:
    return [event.name for event in span.events]


def attributes_of(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


@asynccontextmanager
async def system(
    database: str,
    broker: str,
    *consumers: Consumer,
    relay: bool = True,
    metrics: Mapping[str, bool] = NO_METRICS,
    **options: Any,
) -> AsyncIterator[list[str]]:
    """A worker, and a relay if wanted, run within the block, both with these options for `metrics`.

    The queues exist when it begins. Yields the lines of the log.
    """
    async with AsyncExitStack() as stack:
        lines = stack.enter_context(_log_lines())
        worker = Worker(
            broker=broker,
            db_engine_url=database,
            consumers=consumers,
            exchange_name="shop",
            **{"retry_delays": ("0s",), **metrics, **options},
        )
        await stack.enter_async_context(running(worker))
        await eventually(lambda: sum("consumes queue" in line for line in lines) == len(consumers))
        if relay:
            await stack.enter_async_context(running_relay(new_relay(database, broker, **metrics)))
        yield lines


def new_relay(database: str, broker: str, **options: Any) -> MessageRelay:
    return MessageRelay(database, broker=broker, exchange_name="shop", **{**NO_METRICS, **options})


async def publish(database: str, routing_key: str, body: object = 1, *, count: int = 1, **options: Any) -> list[str | None]:
    """Publishes within a span `request`, one message after another in one transaction; returns their ids."""
    connection = await asyncpg.connect(database)
    try:
        with trace.get_tracer("test").start_as_current_span("request"):
            async with connection.transaction():
                return [await Publisher().publish(connection, routing_key, body, **options) for _ in range(count)]
    finally:
        await connection.close()


@contextmanager
def _log_lines() -> Iterator[list[str]]:
    lines: list[str] = []
    logger, handler = logging.getLogger("outbox"), logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    level = logger.level
    logger.setLevel(logging.DEBUG)
    logger.addHandler(handler)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
