"""How fast rows get into the table: in bulk, and one event a transaction from many writers."""

import asyncio

import asyncpg

from benchmarks.measuring import timed
from benchmarks.servers import BODY, Servers
from outbox import OutboxMessage, Publisher

WRITERS = 32
BULK = 5_000
NOTIFY_ALWAYS = """
    create or replace function always() returns trigger language plpgsql as
        'begin perform pg_notify(''always'', ''''); return null; end';
    drop trigger outbox_table_ring on outbox_table;
    create trigger always after insert on outbox_table for each statement execute function always()
"""


async def bulk_publishing(servers: Servers, count: int) -> dict[str, float]:
    """Rows per second of `bulk_publish_async`, `BULK` messages a call."""
    publisher = Publisher()
    messages = [OutboxMessage("bench.event", BODY) for _ in range(BULK)]
    async with servers.fresh_database() as url:
        connection = await asyncpg.connect(url)
        try:
            with timed() as watch:
                for _ in range(count // BULK):
                    async with connection.transaction():
                        await publisher.bulk_publish_async(connection, messages)
        finally:
            await connection.close()
    return watch.rates("bulk publish", count // BULK * BULK)


async def many_writers(servers: Servers, count: int) -> dict[str, float]:
    """Commits per second of `WRITERS` connections that each publish one event a transaction.

    In turn: with the doorbell while nobody sleeps, without any trigger, and with NOTIFY in each transaction, which is also what
    the doorbell costs while somebody sleeps.
    """
    changes = {
        "32 writers, doorbell": "select 1",
        "32 writers, no trigger": "drop trigger outbox_table_ring on outbox_table",
        "32 writers, NOTIFY in each": NOTIFY_ALWAYS,
    }
    figures: dict[str, float] = {}
    for name, change in changes.items():
        figures |= await _writers(servers, name, count, change)
    return figures


async def _writers(servers: Servers, name: str, count: int, change: str) -> dict[str, float]:
    publisher = Publisher()
    async with servers.fresh_database() as url, asyncpg.create_pool(url, min_size=WRITERS, max_size=WRITERS) as pool:
        await pool.execute(change)

        async def writer() -> None:
            async with pool.acquire() as connection:
                for _ in range(count // WRITERS):
                    async with connection.transaction():
                        await publisher.publish_async(connection, "bench.event", BODY)

        with timed() as watch:
            await asyncio.gather(*(writer() for _ in range(WRITERS)))
    return watch.rates(name, count // WRITERS * WRITERS)
