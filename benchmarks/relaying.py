"""How fast one relay empties the table: into a quorum queue, and into the queues of its own database."""

from typing import Any

from benchmarks.measuring import timed
from benchmarks.servers import Servers, execute, filled_outbox, running, until_empty
from benchmarks.working import declared_queue
from outbox import MessageRelay

KEYS = 200
"""Ordering keys that messages with a key are spread over."""


async def relay_to_rabbitmq(servers: Servers, count: int) -> dict[str, float]:
    """Messages per second, confirmed by a quorum queue, persistent and mandatory."""
    async with servers.fresh_database() as url, servers.fresh_vhost() as broker:
        return await drained("relay to RabbitMQ", url, broker, count)


async def relay_to_postgres(servers: Servers, count: int) -> dict[str, float]:
    """Messages per second, handed over to one queue in the outbox's database."""
    async with servers.fresh_database() as url:
        return await drained("relay to PostgreSQL", url, url, count)


async def relay_variants_to_rabbitmq(servers: Servers, count: int) -> dict[str, float]:
    """The same without history; and a quarter of as many messages with `KEYS` ordering keys."""
    async with servers.fresh_database() as url, servers.fresh_vhost() as broker:
        return await _variants("RabbitMQ", url, broker, count)


async def relay_variants_to_postgres(servers: Servers, count: int) -> dict[str, float]:
    """The same within the database."""
    async with servers.fresh_database() as url:
        return await _variants("PostgreSQL", url, url, count)


async def _variants(name: str, url: str, broker: str, count: int) -> dict[str, float]:
    figures = await drained(f"relay to {name}, history", url, broker, count)
    figures |= await drained(f"relay to {name}, no history", url, broker, count, history=False)
    return figures | await drained(f"relay to {name}, {KEYS} keys", url, broker, count // 4, keys=KEYS)


async def drained(
    name: str,
    url: str,
    broker: str,
    count: int,
    *,
    keys: int | None = None,
    body_bytes: int | None = None,
    count_by: int = 1,
    **options: Any,
) -> dict[str, float]:
    """The rate and own cost of a relay with `options` that empties a table of `count / count_by` messages."""
    await declared_queue(url, broker)
    await filled_outbox(url, count // count_by)
    if keys is not None:
        await execute(url, "update outbox_table set ordering_key = 'key-' || id % $1", keys)
    if body_bytes is not None:
        await execute(url, "update outbox_table set body = decode(repeat('ab', $1), 'hex')", body_bytes)
    if keys is not None or body_bytes is not None:
        await execute(url, "vacuum analyze outbox_table")
    relay = MessageRelay(db_engine_url=url, broker=broker, enable_metrics=False, **options)
    with timed() as watch:
        async with running(relay):
            await until_empty(url, "outbox_table")
    return watch.rates(name, count // count_by)
