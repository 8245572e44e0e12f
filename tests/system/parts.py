"""What runs in the processes of these tests: relays, workers and publishers, made with nothing but the public API."""

import asyncio
import logging
import multiprocessing
import os
import random
import signal
import warnings
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg

from outbox import MessageRelay, OutboxMessage, Publisher, Worker
from tests.system.handlers import Handler

LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"


def run(part: Callable[..., Coroutine[Any, Any, None]], log: Path, level: int, options: dict[str, Any]) -> None:
    """The main function of a process. It ends with the test session, whatever becomes of that."""
    logging.basicConfig(filename=log, level=level, format=LOG_FORMAT, force=True)
    logging.getLogger("aiormq").setLevel(max(level, logging.INFO))  # frame by frame otherwise
    logging.captureWarnings(capture=True)
    warnings.simplefilter("always")
    asyncio.run(_watched(part(**options)))


async def _watched(part: Coroutine[Any, Any, None]) -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    asyncio.get_running_loop().add_reader(parent.sentinel, os._exit, 1)
    await part


async def relay(*, doubling: bool = False, **options: Any) -> None:
    """A relay with these arguments; `doubling`: whatever it sends, it sends twice."""
    if doubling:
        options["broker"] = Doubling(_opened(options["broker"]))
    await MessageRelay(**options).run()


class Doubling:
    """A transport that sends everything twice, and says what came of the second time."""

    def __init__(self, broker: Any) -> None:
        self._broker = broker
        self.open, self.close = broker.open, broker.close

    async def send(self, messages: Any, *, timeout: timedelta) -> Any:
        await self._broker.send(messages, timeout=timeout)
        return await self._broker.send(messages, timeout=timeout)


def _opened(url: str) -> Any:
    from outbox.observers.logging import LoggingObserver
    from outbox.postgres.queries import TableName
    from outbox.runtime.brokers import open_broker

    return open_broker(url, exchange_name="outbox", table=TableName("outbox_table"), observer=LoggingObserver())


async def worker(*, handlers: list[Handler], journal: Path, lease: float | None = None, **options: Any) -> None:
    """A worker that journals; `lease` in seconds shortens that of the Postgres transport."""
    with journal.open("ab", buffering=0) as file:
        consumers = [handler.consumer(file.write) for handler in handlers]
        if lease is not None:
            options["broker"] = _leasing(options["broker"], lease, options.get("exchange_name", "outbox"))
        await Worker(consumers=consumers, **options).run()


def _leasing(url: str, lease: float, exchange_name: str) -> object:
    from outbox.observers.logging import LoggingObserver
    from outbox.postgres.queries import TableName
    from outbox.transports.postgres import PostgresBroker

    return PostgresBroker(
        url,
        table=TableName.parse("outbox_table"),
        exchange_name=exchange_name,
        observer=LoggingObserver(),
        lease=timedelta(seconds=lease),
    )


async def publisher(*, database_url: str, first: int, together: int, pause: float, routing_key: str = "order.placed") -> None:
    """Writes orders, each with its event, until SIGTERM: `together` in a transaction, and every third one rolled back.

    What it commits is in the table `orders`. An outage of the database is waited out, as a service would.
    """
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    number, chance = first, random.Random(first)
    while not stop.is_set():
        try:
            connection = await asyncpg.connect(database_url, timeout=5)
            try:
                while not stop.is_set():
                    numbers = range(number, number + together)
                    number += together
                    await write_orders(connection, numbers, routing_key, roll_back=chance.random() < 1 / 3)
                    await asyncio.sleep(pause)
            finally:
                connection.terminate()
        except Exception:  # noqa: BLE001  asyncpg has many ways to say that a connection was lost
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), 0.05)


async def write_orders(
    connection: asyncpg.Connection, numbers: range, routing_key: str = "order.placed", *, roll_back: bool = False
) -> None:
    """One transaction with an order and an event for each number."""
    transaction = connection.transaction()
    await transaction.start()
    await connection.executemany("insert into orders (number) values ($1)", [(number,) for number in numbers])
    await Publisher().bulk_publish(connection, [OutboxMessage(routing_key, {"number": number}) for number in numbers])
    if roll_back:
        await transaction.rollback()
    else:
        await transaction.commit()


async def ordering_publisher(*, database_url: str, seed: int, keys: int, transactions: int) -> None:
    """Commits so many events, each the next one of a random key, whose row is locked while that is found out.

    Each carries a number made of its key and its place: a million times the one, and the other.
    """
    chance, publisher = random.Random(seed), Publisher()
    connection = await asyncpg.connect(database_url)
    for _ in range(transactions):
        key = chance.randrange(keys)
        async with connection.transaction():
            place = await connection.fetchval("update keys set place = place + 1 where key = $1 returning place", key)
            body = {"number": key * 1_000_000 + place}
            await publisher.publish(connection, "order.placed", body, ordering_key=f"key:{key}")
    await connection.close()
