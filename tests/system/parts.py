"""What runs in the processes of these tests: relays, workers and publishers, made with nothing but the public API.

Workers write a journal, one line when a handler begins and one when it ends, which outlives any kill.
"""

import asyncio
import logging
import multiprocessing
import os
import random
import signal
import warnings
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg

from outbox import Consumer, MessageRelay, OutboxMessage, Publisher, Reject, Worker

LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"


class Simulated(Exception):
    """What handlers fail with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """A consumer's queue, and what its handler does with a message that carries a number.

    It takes `seconds`, kills its process on the numbers `fatal`, and fails the first `failures` attempts. With `effect` it
    writes a row into `effects` and publishes `effect.made` with the row's number, both in the transaction that it is given.
    """

    queue: str
    binding_key: str = "order.*"
    seconds: float = 0.0
    fatal: frozenset[int] = frozenset()
    rejected: frozenset[int] = frozenset()
    failures: int = 0
    retry_delays: tuple[str, ...] = ("0", "1s", "1s")
    max_deliveries: int = 10
    number_key: str = "number"
    effect: bool = False


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


async def relay(**options: Any) -> None:
    """A relay with these arguments."""
    await MessageRelay(**options).run()


async def worker(*, handlers: list[Handler], journal: Path, lease: float | None = None, **options: Any) -> None:
    """A worker that journals; `lease` in seconds shortens that of the Postgres transport."""
    with journal.open("ab", buffering=0) as file:
        consumers = [_consumer(handler, file.write) for handler in handlers]
        if lease is not None:
            options["broker"] = _leasing(options["broker"], lease, options.get("exchange_name", "outbox"))
        await Worker(consumers=consumers, **options).run()


def _leasing(url: str, lease: float, exchange_name: str) -> object:
    from outbox.observers.logging import LoggingObserver
    from outbox.postgres.names import TableName
    from outbox.transports.postgres import PostgresBroker

    return PostgresBroker(
        url,
        table=TableName.parse("outbox_table"),
        exchange_name=exchange_name,
        observer=LoggingObserver(),
        lease=timedelta(seconds=lease),
    )


def _consumer(handler: Handler, write: Callable[[bytes], object]) -> Consumer:
    def note(what: str, order: dict[str, int], attempt: int) -> None:
        write(f"{what} {handler.queue} {order[handler.number_key]} {attempt} {os.getpid()}\n".encode())

    async def handle(order: dict[str, int], attempt_count: int) -> None:
        note("began", order, attempt_count)
        if handler.seconds:
            await asyncio.sleep(handler.seconds)
        if order[handler.number_key] in handler.fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        if order[handler.number_key] in handler.rejected:
            raise Reject("forbidden")
        if attempt_count <= handler.failures:
            raise Simulated(f"attempt {attempt_count}")
        note("ended", order, attempt_count)

    async def handle_with_effect(
        order: dict[str, int], attempt_count: int, connection: asyncpg.Connection, publisher: Any
    ) -> None:
        effect = await connection.fetchval("insert into effects (of) values ($1) returning number", order["number"])
        await publisher.publish("effect.made", {"number": effect})
        await handle(order, attempt_count)

    return Consumer(
        handler.binding_key,
        handle_with_effect if handler.effect else handle,
        queue=handler.queue,
        retry_delays=handler.retry_delays,
        max_deliveries=handler.max_deliveries,
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
