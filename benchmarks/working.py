"""How fast one worker empties a queue with a handler that does nothing, and how soon a commit reaches its handler."""

import asyncio
import time

import asyncpg

from benchmarks.measuring import percentile, timed
from benchmarks.servers import PATIENCE, Servers, execute, filled_outbox, running, until_empty
from outbox import Consumer, MessageRelay, Publisher, Worker

LATENCY_RATE = 100
"""Messages per second while latency is measured."""


class Counter:
    """Counts calls of its handler, and signals when there were enough."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.count = 0
        self.reached = asyncio.Event()

    async def handle(self, body: bytes) -> None:
        """Does nothing but count."""
        self._counted(1)

    async def handle_batch(self, bodies: list[bytes]) -> None:
        """The same for several at once."""
        self._counted(len(bodies))

    def _counted(self, number: int) -> None:
        self.count += number
        if self.count >= self.target:
            self.reached.set()

    async def wait(self) -> None:
        """Returns when the target is reached."""
        async with asyncio.timeout(PATIENCE):
            await self.reached.wait()

    @property
    def consumer(self) -> Consumer:
        return Consumer("bench.#", self.handle, queue="bench")

    def with_inbox(self, *, batch: bool) -> Consumer:
        """A consumer whose messages are marked, one by one or a batch at a time."""
        handle = self.handle_batch if batch else self.handle
        return Consumer("bench.#", handle, queue="bench", inbox=True, batch=batch)


async def declared_queue(url: str, broker: str) -> None:
    """Runs a worker until a message has passed through its queue, so that queue and binding are there."""
    counter = Counter(1)
    worker = Worker(broker=broker, db_engine_url=url, consumers=[counter.consumer], enable_metrics=False)
    relay = MessageRelay(db_engine_url=url, broker=broker, enable_metrics=False)
    async with running(worker), running(relay):
        await filled_outbox(url, 1)
        await counter.wait()


async def worker_on_rabbitmq(servers: Servers, count: int) -> dict[str, float]:
    """Messages per second out of a quorum queue, at the default prefetch of 10 and at 100, each acked."""
    async with servers.fresh_database() as url, servers.fresh_vhost() as broker:
        few = await worked_off("worker on RabbitMQ, prefetch 10", url, broker, count, 10)
        return few | await worked_off("worker on RabbitMQ, prefetch 100", url, broker, count, 100)


async def worker_on_postgres(servers: Servers, count: int) -> dict[str, float]:
    """Messages per second out of the delivery table, at the default prefetch of 10."""
    async with servers.fresh_database() as url:
        return await worked_off("worker on PostgreSQL, prefetch 10", url, url, count, 10)


async def inbox_on_rabbitmq(servers: Servers, count: int) -> dict[str, float]:
    """Messages per second with an inbox, one by one and in batches: each in effect once, its mark committed before its ack."""
    async with servers.fresh_database() as url, servers.fresh_vhost() as broker:
        return await _worked_off_once(url, broker, count, "RabbitMQ")


async def inbox_on_postgres(servers: Servers, count: int) -> dict[str, float]:
    """The same without RabbitMQ."""
    async with servers.fresh_database() as url:
        return await _worked_off_once(url, url, count, "PostgreSQL")


async def _worked_off_once(url: str, broker: str, count: int, transport: str) -> dict[str, float]:
    rates: dict[str, float] = {}
    for name, batch, prefetch_count in (("inbox", False, 10), ("inbox", False, 100), ("inbox in batches", True, 100)):
        label = f"{name} on {transport}, prefetch {prefetch_count}"
        rates |= await worked_off(label, url, broker, count, prefetch_count, with_inbox=True, batch=batch)
    return rates


async def worked_off(
    name: str,
    url: str,
    broker: str,
    count: int,
    prefetch_count: int,
    *,
    with_inbox: bool = False,
    batch: bool = False,
    history: bool = True,
) -> dict[str, float]:
    """The rate and own cost of a worker that empties a queue of `count` messages."""
    await declared_queue(url, broker)
    await filled_outbox(url, count)
    async with running(MessageRelay(db_engine_url=url, broker=broker, enable_metrics=False)):
        await until_empty(url, "outbox_table")
    if broker == url:
        await execute(url, "vacuum analyze outbox_delivery")
    counter = Counter(count)
    consumer = counter.with_inbox(batch=batch) if with_inbox else counter.consumer
    worker = Worker(
        broker=broker,
        db_engine_url=url,
        consumers=[consumer],
        prefetch_count=prefetch_count,
        enable_metrics=False,
        history=history,
    )
    with timed() as watch:
        async with running(worker):
            await counter.wait()
    return watch.rates(name, count)


async def latency_on_rabbitmq(servers: Servers, count: int) -> dict[str, float]:
    """Milliseconds from commit to handler at `LATENCY_RATE` messages a second, by way of RabbitMQ."""
    async with servers.fresh_database() as url, servers.fresh_vhost() as broker:
        return await _latency(url, broker, count, "RabbitMQ")


async def latency_on_postgres(servers: Servers, count: int) -> dict[str, float]:
    """The same without RabbitMQ."""
    async with servers.fresh_database() as url:
        return await _latency(url, url, count, "PostgreSQL")


async def _latency(url: str, broker: str, count: int, name: str) -> dict[str, float]:
    handled: dict[int, float] = {}
    everything = asyncio.Event()

    async def handle(body: bytes) -> None:
        handled[int(body)] = time.perf_counter()
        if len(handled) == count:
            everything.set()

    await declared_queue(url, broker)
    worker = Worker(
        broker=broker, db_engine_url=url, consumers=[Consumer("bench.#", handle, queue="bench")], enable_metrics=False
    )
    relay = MessageRelay(db_engine_url=url, broker=broker, enable_metrics=False)
    async with running(worker), running(relay):
        committed = await _publish_steadily(url, count)
        async with asyncio.timeout(PATIENCE):
            await everything.wait()
    settled = [(handled[number] - committed[number]) * 1000 for number in range(LATENCY_RATE // 2, count)]
    return {
        f"commit to handler by {name}, p50": percentile(settled, 0.50),
        f"commit to handler by {name}, p99": percentile(settled, 0.99),
    }


async def _publish_steadily(url: str, count: int) -> list[float]:
    """When the commit of each message, whose body is its number, had returned."""
    publisher, committed = Publisher(), []
    connection = await asyncpg.connect(url)
    try:
        begin = time.perf_counter()
        for number in range(count):
            await asyncio.sleep(max(begin + number / LATENCY_RATE - time.perf_counter(), 0))
            transaction = connection.transaction()
            await transaction.start()
            await publisher.publish_async(connection, "bench.event", str(number).encode())
            await transaction.commit()
            committed.append(time.perf_counter())
    finally:
        await connection.close()
    return committed
