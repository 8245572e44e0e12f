"""`python -m benchmarks.peers.ours NAME URL COUNT DATABASE`: does with Outbox what the scripts of the peers do."""

import asyncio
import gc
import logging
import sys

from benchmarks.peers.meter import Meter
from benchmarks.servers import execute, filled_outbox, running, until_empty
from benchmarks.working import declared_queue
from outbox import Consumer, MessageRelay, Worker

SETTINGS = {"default": 10, "prefetch 100": 100}
"""Of the worker: the prefetch of each name. History and statistics are on."""


async def worked_off(broker: str, count: int, database: str, prefetch: int) -> None:
    """Fills the queue by way of the outbox, then handles."""
    meter = Meter(count)

    async def handle(body: bytes) -> None:
        meter.handled()

    await declared_queue(database, broker)
    await filled_outbox(database, count)
    async with running(MessageRelay(db_engine_url=database, broker=broker, enable_metrics=False)):
        await until_empty(database, "outbox_table")
    if broker == database:
        await execute(database, "vacuum analyze outbox_delivery")
    gc.freeze()  # as `outbox worker` does
    consumer = Consumer("bench.#", handle, queue="bench")
    await Worker(
        broker=broker, db_engine_url=database, consumers=[consumer], prefetch_count=prefetch, enable_metrics=False
    ).run()


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    name, url, number, db = sys.argv[1:]
    asyncio.run(worked_off(url, int(number), db, SETTINGS[name.partition(", ")[2]]))
