"""How fast one relay empties the table, at its defaults: into a quorum queue, and into the queues of its own database."""

from benchmarks.measuring import timed
from benchmarks.servers import Servers, filled_outbox, running, until_empty
from benchmarks.working import declared_queue
from outbox import MessageRelay


async def relay_to_rabbitmq(servers: Servers, count: int) -> dict[str, float]:
    """Messages per second, confirmed by a quorum queue, persistent and mandatory."""
    async with servers.fresh_database() as url, servers.fresh_vhost() as broker:
        return await _drained("relay to RabbitMQ", url, broker, count)


async def relay_to_postgres(servers: Servers, count: int) -> dict[str, float]:
    """Messages per second, handed over to one queue in the outbox's database."""
    async with servers.fresh_database() as url:
        return await _drained("relay to PostgreSQL", url, url, count)


async def _drained(name: str, url: str, broker: str, count: int) -> dict[str, float]:
    await declared_queue(url, broker)
    await filled_outbox(url, count)
    relay = MessageRelay(db_engine_url=url, broker=broker, enable_metrics=False)
    with timed() as watch:
        async with running(relay):
            await until_empty(url, "outbox_table")
    return watch.rates(name, count)
