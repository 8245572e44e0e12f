"""Typed events through a real outbox and worker: every version arrives as the newest model, and none is lost."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aio_pika
import asyncpg
import pytest
from pydantic import BaseModel

from outbox import BoundPublisher, Consumer, MessageRelay, Publisher, Worker, consume
from outbox.contracts import Event
from outbox.schema import ensure_outbox_schema_async
from tests.support import eventually
from tests.worker.support import running

SOON = 30.0


class OldOrder(BaseModel):
    id: int


class Order(BaseModel):
    number: int


before = Event("order.placed", OldOrder)
after = Event("order.placed", Order, version=2)


@after.upcast(from_=1)
def rename(body: dict[str, Any]) -> dict[str, Any]:
    return {"number": body["id"]}


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    await ensure_outbox_schema_async(database_url)
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


async def relayed(database_url: str, connection: asyncpg.Connection, *queues: str) -> None:
    """Moves all messages of the outbox into the queues, which exist without their workers."""
    for queue in queues:
        await connection.execute(
            "insert into outbox_subscription (exchange, queue, binding_key) values ('outbox', $1, 'order.placed') "
            "on conflict do nothing",
            queue,
        )
    relay = MessageRelay(database_url, broker=database_url)
    task = asyncio.create_task(relay.run(handle_signals=False))
    pending = "select count(*) = 0 from outbox_table where sent_at is null"
    await eventually(lambda: connection.fetchval(pending), timeout=SOON)
    relay.stop()
    await task


async def dead_letters(connection: asyncpg.Connection) -> list[asyncpg.Record]:
    rows: list[asyncpg.Record] = await connection.fetch("select cause, exception_type from outbox_dead_letter")
    return rows


@pytest.mark.parametrize("batch", [False, True])
async def test_messages_of_old_and_new_publishers_reach_the_handler_as_the_newest_model(
    database_url: str, connection: asyncpg.Connection, batch: bool
) -> None:
    async with connection.transaction():
        await Publisher().publish(connection, before, OldOrder(id=1))
        await BoundPublisher(Publisher(), connection).publish(after, Order(number=2))
        await Publisher().bulk_publish(connection, [after.message(Order(number=3))])
        await Publisher().publish(connection, "order.placed", {"id": 4})
    await relayed(database_url, connection, "mail")
    handled: list[Order] = []

    async def handle(order: Order) -> None:
        handled.append(order)

    async def handle_all(orders: list[Order]) -> None:
        handled.extend(orders)

    consumer = consume(after, "mail", batch=batch)(handle_all if batch else handle)
    async with running(Worker(broker=database_url, consumers=[consumer])):
        await eventually(lambda: len(handled) == 4, timeout=SOON)
    assert sorted(order.number for order in handled) == [1, 2, 3, 4]
    assert all(type(order) is Order for order in handled)


@pytest.mark.parametrize("ordered", [False, True])
async def test_a_newer_version_is_retried_until_a_newer_worker_takes_it(
    database_url: str, connection: asyncpg.Connection, ordered: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with connection.transaction():
        await Publisher().publish(connection, after, Order(number=1), ordering_key="1" if ordered else None)
    await relayed(database_url, connection, "mail")
    handled: list[int] = []

    async def handle_old(order: OldOrder) -> None:
        handled.append(-1)

    async def handle_new(order: Order) -> None:
        handled.append(order.number)

    retries: Any = {"retry_delays": ("10ms",) * 50, "ordered": ordered}
    async with running(Worker(broker=database_url, consumers=[consume(before, "mail", **retries)(handle_old)])):
        await eventually(lambda: any("attempt 3" in message for message in caplog.messages), timeout=SOON)
    assert await dead_letters(connection) == []
    async with running(Worker(broker=database_url, consumers=[consume(after, "mail", **retries)(handle_new)])):
        await eventually(lambda: handled, timeout=SOON)
    assert handled == [1]


@pytest.mark.rabbitmq
async def test_the_version_survives_retries_on_rabbitmq(
    database_url: str, connection: asyncpg.Connection, broker_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    handled: list[int] = []

    @consume(before, "mail", ("100ms",) * 50)
    async def handle_old(order: OldOrder) -> None:
        handled.append(-order.id)

    @consume(after, "mail", ("100ms",) * 50)
    async def handle_new(order: Order) -> None:
        handled.append(order.number)

    async with connection.transaction():
        await Publisher().publish(connection, before, OldOrder(id=1))
        await Publisher().publish(connection, after, Order(number=2))
    relay = MessageRelay(database_url, broker=broker_url)
    task = asyncio.create_task(relay.run(handle_signals=False))
    async with running(Worker(broker=broker_url, consumers=[handle_old], reporting=False)):
        await eventually(lambda: handled and any("attempt 2" in message for message in caplog.messages), timeout=SOON)
    async with running(Worker(broker=broker_url, consumers=[handle_new], reporting=False)):
        await eventually(lambda: len(handled) == 2, timeout=SOON)
    assert handled == [-1, 2]
    amqp = await aio_pika.connect(broker_url)
    channel = await amqp.channel()
    exchange = await channel.get_exchange("outbox")
    await exchange.publish(aio_pika.Message(b'{"id": 3}', headers={"event-version": "1"}), "order.placed")
    await amqp.close()
    async with running(Worker(broker=broker_url, consumers=[handle_new], reporting=False)):
        await eventually(lambda: len(handled) == 3, timeout=SOON)
    assert handled[-1] == 3
    relay.stop()
    await task


async def test_without_retries_a_newer_version_is_a_dead_letter_that_can_be_requeued(
    database_url: str, connection: asyncpg.Connection
) -> None:
    async with connection.transaction():
        await Publisher().publish(connection, after, Order(number=1))
    await relayed(database_url, connection, "mail")

    async def handle(order: OldOrder) -> None:
        """Never called."""

    async with running(Worker(broker=database_url, consumers=[consume(before, "mail", ())(handle)])):
        await eventually(lambda: dead_letters(connection), timeout=SOON)
    (dead,) = await dead_letters(connection)
    assert (dead["cause"], dead["exception_type"]) == ("exhausted", "outbox.errors.UnsupportedVersionError")


async def test_an_unreadable_body_or_version_is_dead_lettered_at_once(
    database_url: str, connection: asyncpg.Connection
) -> None:
    async with connection.transaction():
        await Publisher().publish(connection, "order.placed", {"number": "seven"}, headers={"event-version": 2})
        await Publisher().publish(connection, "order.placed", {"number": 7}, headers={"event-version": "newest"})
        await Publisher().publish(connection, "order.placed", b"\xff", headers={"event-version": 1})
    await relayed(database_url, connection, "mail")

    async def handle(order: Order) -> None:
        """Never called."""

    consumer = Consumer("order.placed", handle, "mail", event=after)
    async with running(Worker(broker=database_url, consumers=[consumer])):
        await eventually(lambda: _all_dead(connection, 3), timeout=SOON)
    assert {dead["cause"] for dead in await dead_letters(connection)} == {"undecodable"}


async def _all_dead(connection: asyncpg.Connection, count: int) -> bool:
    return len(await dead_letters(connection)) == count
