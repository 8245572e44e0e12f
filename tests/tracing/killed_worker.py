"""A traced worker whose handler never ends: `killed_worker.py database broker`. Prints the name of each span that has ended."""

import asyncio
import logging
import sys
from datetime import timedelta

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

from outbox import Consumer, Worker
from outbox.observers.logging import LoggingObserver
from outbox.postgres.queries import TableName
from outbox.transports.postgres import PostgresBroker


async def handle(body: int) -> None:
    trace.get_tracer("test").start_span("inside").end()
    await asyncio.Event().wait()


def leased(url: str) -> PostgresBroker:
    """Returns a PostgreSQL broker that hands on the deliveries of a killed worker after two seconds."""
    table = TableName.parse("outbox_table")
    return PostgresBroker(url, table=table, exchange_name="shop", observer=LoggingObserver(), lease=timedelta(seconds=2))


if __name__ == "__main__":
    database, broker = sys.argv[1:]
    logging.basicConfig(level=logging.INFO)
    logging.getLogger("outbox").setLevel(logging.DEBUG)
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(formatter=lambda span: f"ended {span.name}\n")))
    trace.set_tracer_provider(provider)
    worker = Worker(
        broker=broker if broker.startswith("amqp") else leased(broker),
        db_engine_url=database,
        consumers=[Consumer("a", handle, queue="q")],
        exchange_name="shop",
        enable_metrics=False,
    )
    asyncio.run(worker.run())
