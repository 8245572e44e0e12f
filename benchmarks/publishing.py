"""How fast rows get into the table: in bulk, and one event a transaction from many writers; what encryption costs."""

import asyncio

import asyncpg

from benchmarks.measuring import OWN_COST, timed
from benchmarks.servers import BODY, Servers
from outbox import OutboxMessage, Publisher
from outbox.encryption import Encryption, StaticKeys

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


async def encrypting_bodies(servers: Servers, count: int) -> dict[str, float]:
    """Processor time to encrypt and to decrypt a body of 256 bytes and of 64 kB."""
    encryption = Encryption(StaticKeys({"bench": bytes(32)}, current="bench"))
    figures: dict[str, float] = {}
    for name, size in (("256 B", 256), ("64 kB", 65_536)):
        body, header = encryption.encrypt(bytes(size), message_id="1")
        with timed() as watch:
            for _ in range(count):
                encryption.encrypt(bytes(size), message_id="1")
        figures[f"encrypt {name}{OWN_COST}"] = watch.processor_seconds / count * 1e6
        with timed() as watch:
            for _ in range(count):
                encryption.decrypt(body, header, message_id="1")
        figures[f"decrypt {name}{OWN_COST}"] = watch.processor_seconds / count * 1e6
    return figures


async def many_writers(servers: Servers, count: int) -> dict[str, float]:
    """Commits per second of `WRITERS` connections that each publish one event a transaction.

    In turn: with the doorbell while no relay sleeps, without any trigger, and with NOTIFY in each transaction, which is also
    what the doorbell costs while a relay sleeps.
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
