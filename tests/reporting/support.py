"""Relays and workers on a database with the schema, for tests of their reports."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from outbox import Consumer, MessageRelay, Publisher, Worker


@asynccontextmanager
async def at_work(*engines: MessageRelay | Worker) -> AsyncIterator[None]:
    """Runs the engines within the block, and drains them at its end."""
    tasks = [asyncio.create_task(engine.run(handle_signals=False)) for engine in engines]
    try:
        yield
    finally:
        for engine in engines:
            engine.stop()
        await asyncio.gather(*tasks)


async def published(connection: asyncpg.Connection, routing_key: str = "order.placed", body: object = None) -> str:
    """Publishes a message and commits it."""
    async with connection.transaction():
        id_ = await Publisher().publish_async(connection, routing_key, body if body is not None else {})
    assert id_ is not None
    return id_


class Box:
    """A consumer that records the bodies it was called with."""

    def __init__(self, queue: str = "mail", binding_key: str = "order.*", *, inbox: bool = False) -> None:
        self.bodies: list[object] = []
        self.consumer = Consumer(binding_key, self.handle, queue=queue, retry_delays=(), inbox=inbox)

    async def handle(self, body: object) -> None:
        self.bodies.append(body)
