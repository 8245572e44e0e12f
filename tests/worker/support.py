"""A worker in memory, to try consumers with."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from outbox import Archiver, Consumer, MessageRelay, Worker
from outbox.core.message import Message
from outbox.transports.memory import MemoryBroker
from tests.contract.support import existing, message
from tests.support import eventually

SOON = 30.0
TIMEOUT = timedelta(seconds=5)


@asynccontextmanager
async def running(worker: Worker | MessageRelay | Archiver) -> AsyncIterator[asyncio.Task[None]]:
    """The worker runs within the block, and is stopped and awaited after it."""
    task = asyncio.create_task(worker.run(handle_signals=False))
    try:
        yield task
    finally:
        worker.stop()
        await asyncio.wait_for(task, SOON)


async def handled(consumer: Consumer, *bodies: bytes, **options: Any) -> list[Message]:
    """Has `consumer` handle messages with these bodies, until its queue is empty; what was sent."""
    broker = MemoryBroker(exchange_name="shop")
    messages = [message("order.placed", body) for body in bodies]
    await existing(broker, consumer.queue, consumer.binding_key)
    worker = Worker(broker=broker, consumers=[consumer], exchange_name="shop", enable_metrics=False, **options)
    async with running(worker) as task:
        await broker.send(messages, timeout=TIMEOUT)
        await eventually(lambda: task.done() or broker.is_idle(consumer.queue), timeout=SOON)
    dead = broker.dead_letters(consumer.queue)
    assert not dead, dead[0].failure.traceback or dead[0].failure
    return messages
