"""Answers to the broker while the connection is congested."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from outbox.core.outcome import DONE, RETURNED
from outbox.transports.rabbitmq import RabbitBroker
from outbox.transports.rabbitmq import consume_channel as receiving
from outbox.transports.rabbitmq.delivery import RabbitDelivery
from tests.rabbitmq.support import bound, consuming, deliver, message
from tests.support import eventually


@asynccontextmanager
async def congested(delivery: RabbitDelivery) -> AsyncIterator["asyncio.Queue[object]"]:
    """Keeps the write queue of the connection, with room for one frame, full within the block."""
    connection = delivery.source.channel.connection
    ordinary = connection.write_queue
    queue: asyncio.Queue[object] = asyncio.Queue(1)
    queue.put_nowait(None)
    connection.write_queue = queue
    try:
        yield queue
    finally:
        connection.write_queue = ordinary


async def leave(delivery: RabbitDelivery, frame: object) -> None:
    """Lets `frame` leave the connection."""
    await delivery.source.channel.connection.write_queue.put(frame)


async def test_answers_leave_in_the_order_in_which_they_were_given(broker: RabbitBroker) -> None:
    """A multiple acknowledgement that overtakes the return of its first message would delete that message."""
    await bound(broker)
    await deliver(broker, *(message(body=str(number).encode()) for number in range(3)))
    async with consuming(broker) as inbox:
        first, second, third = [await inbox.next() for _ in range(3)]
        async with congested(first) as queue:
            await first.settle(RETURNED)
            flushing = asyncio.create_task(first.source.flush())
            for _ in range(10):  # until it waits for room
                await asyncio.sleep(0)
            await second.settle(DONE)
            await third.settle(DONE)
            queue.get_nowait()
            frames = [await asyncio.wait_for(queue.get(), 30)]
            while not flushing.done() or not queue.empty():
                await asyncio.sleep(0.01)
                while not queue.empty():
                    frames.append(queue.get_nowait())
                    frames[-1].drain()  # type: ignore[attr-defined]
        for frame in frames:
            await leave(first, frame)
        assert (await inbox.next()).message.body == b"0"
        await inbox.nothing_more()


async def test_answers_that_could_not_leave_in_time_leave_later(broker: RabbitBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiving, "_CLOSING", timedelta(milliseconds=50))
    async with consuming(broker) as inbox:
        await deliver(broker, message())
        delivery = await inbox.next()
        async with congested(delivery) as queue:
            await delivery.settle(DONE)
            await delivery.source.flush()
            queue.get_nowait()
            frame = await asyncio.wait_for(queue.get(), 30)
        await leave(delivery, frame)
        delivery.source.channel.connection.create_task(delivery.source.channel.connection.close())
        await eventually(delivery.source.ended.is_set)
        await inbox.nothing_more(1)
