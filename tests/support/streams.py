"""What the tests of relays and workers on Kafka, NATS, Redis and AWS share."""

from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import asyncpg

from outbox import Consumer, MessageRelay, Publisher, Reject, Worker
from outbox.core.message import OutboxMessage
from outbox.dead_letters import DeadLetters
from tests.relay.support import running as running_relay
from tests.support.eventually import eventually
from tests.worker.support import running as running_worker

OPTIONS: dict[str, Any] = {"enable_metrics": False, "reporting": False, "history": False}


@asynccontextmanager
async def relaying(database: str, url: str, **options: Any) -> AsyncIterator[None]:
    """A relay to the broker at `url`."""
    async with running_relay(MessageRelay(database, broker=url, **{**OPTIONS, **options})):
        yield


@asynccontextmanager
async def working(database: str, url: str, *consumers: Consumer, **options: Any) -> AsyncIterator[None]:
    """A worker on the broker at `url`."""
    worker = Worker(broker=url, db_engine_url=database, consumers=consumers, **{**OPTIONS, **options})
    async with running_worker(worker):
        yield


async def publish(connection: asyncpg.Connection, *messages: OutboxMessage) -> None:
    """Publishes them in one transaction."""
    async with connection.transaction():
        await Publisher().bulk_publish(connection, messages)


def numbered(routing_key: str, count: int, *, keys: int | None = None) -> Sequence[OutboxMessage]:
    """Messages whose bodies are their numbers, of as many ordering keys."""
    return [
        OutboxMessage(routing_key, str(n).encode(), ordering_key=None if keys is None else f"key {n % keys}")
        for n in range(count)
    ]


def collecting(found: list[Any], key: str = "order.placed", *, queue: str = "mail", **options: Any) -> Consumer:
    """A consumer that collects bodies."""

    async def handle(body: bytes) -> None:
        found.append(body)

    return Consumer(key, handle, queue=queue, **options)


async def is_empty(connection: asyncpg.Connection) -> bool:
    """Whether the outbox is empty."""
    return not await connection.fetchval("select exists (select from outbox_table)")


async def is_drained(connection: asyncpg.Connection) -> bool:
    """Whether all that was stored is handled."""
    return not await connection.fetchval("select exists (select from outbox_delivery)")


async def fail_and_requeue(
    database: str, connection: asyncpg.Connection, *, relay_to: str, read_from: str, exchange: str
) -> None:
    """A message fails until it is dead, is requeued, and then reaches the queue in which it failed, and no other."""
    attempts: list[int] = []
    others: list[bytes] = []
    broken = True

    async def handle(body: bytes, attempt_count: int) -> None:
        attempts.append(attempt_count)
        if broken:
            raise LookupError("no such customer")

    consumer = Consumer("order.placed", handle, queue="mail", retry_delays=("0", "100ms"))
    async with relaying(database, relay_to), working(database, read_from, consumer, collecting(others, queue="stock")):
        await publish(connection, OutboxMessage("order.placed", b"1"))
        [dead] = await eventually(lambda: connection.fetch("select * from outbox_dead_letter"))
        assert (dead["queue"], dead["exchange"], dead["cause"], dead["status"]) == ("mail", exchange, "exhausted", "open")
        assert attempts == [1, 2, 3]
        await eventually(lambda: others == [b"1"])
        broken = False
        async with DeadLetters(database, broker=relay_to) as letters:
            await letters.requeue(str(dead["id"]))
        await eventually(lambda: attempts == [1, 2, 3, 1])
        await eventually(lambda: is_drained(connection))
    assert others == [b"1"]
    assert await connection.fetchval("select status from outbox_dead_letter") == "requeued"
    assert await is_empty(connection)


async def keep_the_order_of_each_key(
    database: str, connection: asyncpg.Connection, *, relay_to: str, read_from: str, count: int, workers: int
) -> None:
    """An ordered consumer of several workers handles each key's messages in order while some fail once and some for good.

    A message may be handled twice, when workers that join or leave take over its key.
    """
    seen: dict[int, list[int]] = defaultdict(list)
    failed: set[int] = set()

    async def handle(number: int, message: Any) -> None:
        if number % 5 == 0 and number not in failed:
            failed.add(number)
            raise LookupError("not yet")
        if number % 20 == 19:
            raise Reject("never")
        seen[int(message.headers["x-outbox-ordering-key"])].append(number)

    expected = {key: [n for n in range(key, count, 4) if n % 20 != 19] for key in range(4)}
    consumer = Consumer("order.placed", handle, queue="mail", ordered=True, retry_delays=("10ms",))
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(relaying(database, relay_to))
        for _ in range(workers):
            await stack.enter_async_context(working(database, read_from, consumer))
        await publish(connection, *(OutboxMessage("order.placed", n, ordering_key=str(n % 4)) for n in range(count)))
        wanted = sum(map(len, expected.values()))
        # One message of a key after another, which takes a busy machine a while.
        await eventually(lambda: sum(len(set(numbers)) for numbers in seen.values()) == wanted, timeout=120)
        await eventually(lambda: connection.fetchval("select count(*) = $1 from outbox_dead_letter", count // 20))
    assert {key: list(dict.fromkeys(numbers)) for key, numbers in seen.items()} == expected
