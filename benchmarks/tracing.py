"""What traces cost a relay and a worker: without a tracer provider, and with one that samples 1 %, in turns."""

from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.util._once import Once

from benchmarks.measuring import timed
from benchmarks.servers import BODY, Servers, execute, running, until_empty
from benchmarks.working import Counter, declared_queue
from outbox import MessageRelay, OutboxMessage, Publisher, Worker

SHARE = 0.01
"""Share of the traces that are sampled."""
REQUEST = 100
"""Messages published in one transaction, each with a trace context of its own."""


async def tracing_on_rabbitmq(servers: Servers, count: int) -> dict[str, float]:
    """Messages per second through a relay, and then through a worker, with tracing off and on."""
    figures = await _on_rabbitmq(servers, "RabbitMQ, tracing off", count)
    with _tracer_provider():
        return figures | await _on_rabbitmq(servers, "RabbitMQ, tracing 1 %", count)


async def tracing_on_postgres(servers: Servers, count: int) -> dict[str, float]:
    """The same without RabbitMQ."""
    figures = await _on_postgres(servers, "PostgreSQL, tracing off", count)
    with _tracer_provider():
        return figures | await _on_postgres(servers, "PostgreSQL, tracing 1 %", count)


async def _on_rabbitmq(servers: Servers, name: str, count: int) -> dict[str, float]:
    async with servers.fresh_database() as url, servers.fresh_vhost() as broker:
        return await _through(name, url, broker, count)


async def _on_postgres(servers: Servers, name: str, count: int) -> dict[str, float]:
    async with servers.fresh_database() as url:
        return await _through(name, url, url, count)


async def _through(name: str, url: str, broker: str, count: int) -> dict[str, float]:
    await declared_queue(url, broker)
    await _publish(url, count)
    with timed() as relaying:
        async with running(MessageRelay(db_engine_url=url, broker=broker, enable_metrics=False)):
            await until_empty(url, "outbox_table")
    if broker == url:
        await execute(url, "vacuum analyze outbox_delivery")
    counter = Counter(count)
    worker = Worker(broker=broker, db_engine_url=url, consumers=[counter.consumer], prefetch_count=100, enable_metrics=False)
    with timed() as working:
        async with running(worker):
            await counter.wait()
    return relaying.rates(f"relay to {name}", count) | working.rates(f"worker on {name}", count)


async def _publish(url: str, count: int) -> None:
    publisher = Publisher()
    connection = await asyncpg.connect(url)
    for _ in range(0, count, REQUEST):
        async with connection.transaction():
            for _ in range(REQUEST):
                await publisher.bulk_publish(connection, [OutboxMessage("bench.event", BODY)])
    await connection.execute("vacuum analyze outbox_table")
    await connection.close()


@contextmanager
def _tracer_provider() -> Iterator[None]:
    before = trace._TRACER_PROVIDER, trace._TRACER_PROVIDER_SET_ONCE  # noqa: SLF001  a process sets a provider only once
    trace._TRACER_PROVIDER, trace._TRACER_PROVIDER_SET_ONCE = None, Once()  # noqa: SLF001
    provider = TracerProvider(sampler=ParentBased(TraceIdRatioBased(SHARE)), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(InMemorySpanExporter()))
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        provider.shutdown()
        trace._TRACER_PROVIDER, trace._TRACER_PROVIDER_SET_ONCE = before  # noqa: SLF001
