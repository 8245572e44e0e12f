"""How fast one relay empties the table, at its defaults: into a quorum queue, and into the queues of its own database."""

from benchmarks.measuring import timed
from benchmarks.servers import Servers, filled_outbox, running, until_empty
from outbox import MessageRelay, Worker, consume


@consume("bench.#", queue="bench")
async def _taken(body: bytes) -> None:
    """Never runs: the worker that declares the queue stops before the relay starts."""


async def relay_to_rabbitmq(servers: Servers, count: int) -> dict[str, float]:
    """Messages per second, confirmed by a quorum queue, persistent and mandatory."""
    async with servers.fresh_database() as url, servers.fresh_vhost() as broker:
        await _declare(Worker(broker=broker, consumers=[_taken], enable_metrics=False))
        await filled_outbox(url, count)
        relay = MessageRelay(db_engine_url=url, broker=broker, enable_metrics=False)
        with timed() as watch:
            async with running(relay):
                await until_empty(url, "outbox_table")
    return {"relay to RabbitMQ": watch.rate(count)}


async def relay_to_postgres(servers: Servers, count: int) -> dict[str, float]:
    """Messages per second, handed over to one queue."""
    async with servers.fresh_database() as url:
        await _declare(Worker(broker=url, db_engine_url=url, consumers=[_taken], enable_metrics=False))
        await filled_outbox(url, count)
        relay = MessageRelay(db_engine_url=url, broker=url, enable_metrics=False)
        with timed() as watch:
            async with running(relay):
                await until_empty(url, "outbox_table")
    return {"relay to PostgreSQL": watch.rate(count)}


async def _declare(worker: Worker) -> None:
    """Runs the worker until its queue is there."""
    async with running(worker, until_started=True):
        pass
