"""What reports cost: a worker and a relay without them, without the history, and with everything, in turn."""

from typing import Any

from benchmarks.measuring import timed
from benchmarks.servers import Servers, execute, filled_outbox, running, server_process, until_empty
from benchmarks.working import Counter, declared_queue
from outbox import MessageRelay, Worker

WAYS: dict[str, dict[str, Any]] = {
    "no reports": {"reporting": False, "history": False},
    "no history": {"reporting": True, "history": False},
    "history": {"reporting": True, "history": True},
}


async def reporting_on_rabbitmq(servers: Servers, count: int) -> dict[str, float]:
    """Messages per second by way of RabbitMQ, prefetch 100."""
    figures: dict[str, float] = {}
    for way, options in WAYS.items():
        async with servers.fresh_database() as url, servers.fresh_vhost() as broker:
            figures |= await _there_and_done("RabbitMQ", way, url, broker, count, options)
    return figures


async def reporting_on_postgres(servers: Servers, count: int) -> dict[str, float]:
    """The same without RabbitMQ."""
    figures: dict[str, float] = {}
    for way, options in WAYS.items():
        async with servers.fresh_database() as url:
            figures |= await _there_and_done("PostgreSQL", way, url, url, count, options)
    return figures


async def _there_and_done(
    transport: str, way: str, url: str, broker: str, count: int, options: dict[str, Any]
) -> dict[str, float]:
    await declared_queue(url, broker)
    await filled_outbox(url, count)
    relay = MessageRelay(db_engine_url=url, broker=broker, enable_metrics=False, **options)
    server = await server_process(url)
    with timed(server) as relaying:
        async with running(relay):
            await until_empty(url, "outbox_table")
    if broker == url:
        await execute(url, "vacuum analyze outbox_delivery")
    counter = Counter(count)
    worker = Worker(
        broker=broker,
        db_engine_url=url,
        consumers=[counter.consumer],
        prefetch_count=100,
        enable_metrics=False,
        **options,
    )
    with timed(server) as working:
        async with running(worker):
            await counter.wait()
    return relaying.rates(f"relay to {transport}, {way}", count) | working.rates(f"worker on {transport}, {way}", count)
