"""`python on_predecessor.py FOLDER NAME URL COUNT DATABASE`: does with the predecessor what `ours.py` does with Outbox."""

import asyncio
import json
import logging
import sys

from meter import BODY, Meter

SETTINGS = {"default": 10, "prefetch 100": 100}
FIRST = "first"
"""Body of a message that is not counted. Its arrival shows that the queue is bound."""


async def worked_off(broker: str, count: int, database: str, prefetch: int) -> None:
    """Fills the queue by way of the table, as users do, then handles."""
    from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

    from outbox.message_relay import MessageRelay
    from outbox.publisher import OutboxMessage, Publisher
    from outbox.utils import ensure_outbox_table_async
    from outbox.worker import Consumer, Worker

    meter = Meter(count)

    async def handle(body: str) -> None:
        if body != FIRST:
            meter.handled()

    def worker() -> Worker:
        consumer = Consumer("bench.#", handle, queue="bench")
        return Worker(rmq_connection_url=broker, consumers=[consumer], prefetch_count=prefetch, enable_metrics=False)

    await ensure_outbox_table_async(database)
    await run_until(worker(), is_declared(broker))
    async with AsyncSession(create_async_engine(database.replace("postgresql://", "postgresql+asyncpg://", 1))) as session:
        for start in range(0, count, 1000):
            messages = [OutboxMessage("bench.message", BODY) for _ in range(start, min(start + 1000, count))]
            await Publisher().bulk_publish(session, messages)
        await session.commit()
    relay = MessageRelay(db_engine_url=database, rmq_connection_url=broker, enable_metrics=False)
    await run_until(relay, is_filled(broker, count))
    await worker().run()


async def run_until(process: object, done: object) -> None:
    """Runs a relay or worker until `done` has ended."""
    running = asyncio.create_task(process.run())
    await asyncio.wait_for(done, 120)
    running.cancel()
    await asyncio.wait([running])


async def is_declared(broker: str) -> None:
    """Ends when the worker has bound its queue."""
    import aio_pika

    async with await aio_pika.connect(broker) as connection:
        while True:
            try:
                channel = await connection.channel(on_return_raises=True)
                exchange = await channel.get_exchange("outbox", ensure=True)
                await exchange.publish(aio_pika.Message(json.dumps(FIRST).encode()), "bench.first", mandatory=True)
            except aio_pika.exceptions.AMQPError:
                await asyncio.sleep(0.05)
            else:
                return


async def is_filled(broker: str, count: int) -> None:
    """Ends when the queue has all messages."""
    import aio_pika

    async with await aio_pika.connect(broker) as connection:
        channel = await connection.channel()
        while (await channel.declare_queue("bench", passive=True)).declaration_result.message_count < count:
            await asyncio.sleep(0.1)


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    sys.path.insert(0, sys.argv[1])
    asyncio.run(worked_off(sys.argv[3], int(sys.argv[4]), sys.argv[5], SETTINGS[sys.argv[2].partition(", ")[2]]))
