"""A system of real processes around real servers: started, killed, frozen and observed by a test."""

import logging
import math
import os
import re
import signal
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any

import aio_pika
import asyncpg

from outbox import ensure_outbox_schema_async
from tests.support import RabbitAdmin, eventually
from tests.support.processes import forks
from tests.system import parts
from tests.system.handlers import Handler

_END_SECONDS = 60.0
_RECORD = re.compile(r"^(?=\d{4}-\d\d-\d\d )", re.MULTILINE)
_COMPLAINT = re.compile(r" ERROR asyncio | WARNING py\.warnings | CRITICAL ")
_DRIVERS_OWN = re.compile(r"unexpected connection_lost\(\) call")
"""asyncpg forgets a future when a connection is lost while it is being made."""


class Process:
    """A process of the system."""

    def __init__(self, name: str, process: ForkServerProcess, log: Path) -> None:
        self.name = name
        self._process = process
        self._log = log

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    @property
    def exit_code(self) -> int | None:
        """0 after an orderly end, minus the signal's number after a kill, None while it lives."""
        return self._process.exitcode

    @property
    def log(self) -> str:
        """What it logged, every logger's lines."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def kill(self) -> None:
        """SIGKILL; it is gone when this returns."""
        self._process.kill()
        self._process.join(_END_SECONDS)

    def freeze(self) -> None:
        """SIGSTOP."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def terminate(self) -> None:
        """SIGTERM, without waiting for what follows."""
        self._process.terminate()

    @property
    def catches_sigterm(self) -> bool:
        """Whether it has come so far that SIGTERM is a request to stop; see proc(5)."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        [caught] = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:")]
        return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)

    async def ended(self, timeout: float = _END_SECONDS) -> int:
        """Waits for its end, and returns its exit code."""
        await eventually(lambda: not self.alive, timeout=timeout, message=f"{self.name} has ended\n{self.log[-3000:]}")
        assert self.exit_code is not None
        return self.exit_code


@dataclass(frozen=True, slots=True)
class Entry:
    """A handler began, or ended well."""

    what: str
    queue: str
    number: int
    attempt: int
    pid: int


@dataclass
class Journal:
    """What workers wrote down."""

    path: Path
    _entries: list[Entry] = field(default_factory=list)
    _read: int = 0

    @property
    def entries(self) -> list[Entry]:
        """Everything so far, in order."""
        if self.path.exists():
            with self.path.open("rb") as file:
                file.seek(self._read)
                written = file.read()
            complete = written[: written.rfind(b"\n") + 1]
            self._read += len(complete)
            self._entries.extend(map(_entry, complete.decode().splitlines()))
        return self._entries

    def begun(self) -> Counter[tuple[str, int]]:
        """How often a handler began, by queue and number."""
        return Counter((entry.queue, entry.number) for entry in self.entries if entry.what == "began")

    def ended(self) -> Counter[tuple[str, int]]:
        """How often a handler ended well, by queue and number."""
        return Counter((entry.queue, entry.number) for entry in self.entries if entry.what == "ended")

    def numbers(self, queue: str) -> set[int]:
        """The numbers that were handled, by queue."""
        return {entry.number for entry in self.entries if entry.what == "ended" and entry.queue == queue}

    def of(self, queue: str, number: int, what: str = "ended") -> list[Entry]:
        """What became of one message."""
        return [entry for entry in self.entries if (entry.what, entry.queue, entry.number) == (what, queue, number)]


def _entry(line: str) -> Entry:
    what, queue, number, attempt, pid = line.split()
    return Entry(what, queue, int(number), int(attempt), int(pid))


@dataclass
class System:
    """One database, perhaps a broker, and processes between them. `broker` is the broker's address, or the database's."""

    database_url: str
    broker: str
    folder: Path
    relay_options: dict[str, Any] = field(default_factory=dict)
    worker_options: dict[str, Any] = field(default_factory=dict)
    log_level: int = logging.WARNING
    processes: list[Process] = field(default_factory=list)
    _forks: ForkServerContext = field(default_factory=forks)

    def __post_init__(self) -> None:
        self.journal = Journal(self.folder / "journal")

    def relay(self, **options: Any) -> Process:
        """Starts a relay."""
        return self._start(
            "relay", parts.relay, {"db_engine_url": self.database_url, "broker": self.broker, **self.relay_options, **options}
        )

    def worker(self, *handlers: Handler, **options: Any) -> Process:
        """Starts a worker."""
        chosen = {"broker": self.broker, **self.worker_options, **options}
        return self._start("worker", parts.worker, {"handlers": list(handlers), "journal": self.journal.path, **chosen})

    def publisher(self, *, first: int, together: int = 1, pause: float = 0.005, **options: Any) -> Process:
        """Starts a publisher of numbers from `first` on."""
        chosen = {"database_url": self.database_url, "first": first, "together": together, "pause": pause, **options}
        return self._start("publisher", parts.publisher, chosen)

    def ordering_publisher(self, *, seed: int, keys: int, transactions: int) -> Process:
        """Starts a publisher that commits so many events of these keys, and ends."""
        options = {"database_url": self.database_url, "seed": seed, "keys": keys, "transactions": transactions}
        return self._start("publisher", parts.ordering_publisher, options)

    def _start(self, name: str, part: Callable[..., Coroutine[Any, Any, None]], options: dict[str, Any]) -> Process:
        name = f"{name}-{len(self.processes) + 1}"
        log = self.folder / f"{name}.log"
        process = self._forks.Process(target=parts.run, args=(part, log, self.log_level, options), name=name)
        process.start()
        self.processes.append(Process(name, process, log))
        return self.processes[-1]

    async def queue_is_consumed(self, queue: str, consumers: int = 1) -> None:
        """Returns when the queue is there, and on RabbitMQ so many consume from it."""
        count = self._consumers_on_rabbitmq if self.broker.startswith("amqp") else self._bindings_in_postgresql
        await eventually(lambda: _reached(count(queue), consumers), message=f"{queue} is consumed\n{self.tails()}")

    async def _consumers_on_rabbitmq(self, queue: str) -> float:
        connection = await aio_pika.connect(self.broker)
        async with connection:
            try:
                channel = await connection.channel()
                declared = await channel.declare_queue(queue, passive=True)
            except aio_pika.exceptions.ChannelNotFoundEntity:
                return 0
            return declared.declaration_result.consumer_count or 0

    async def _bindings_in_postgresql(self, queue: str) -> float:
        async with self.connection() as connection:
            bound = await connection.fetchval("select exists(select from outbox_subscription where queue = $1)", queue)
        return math.inf if bound else 0

    async def dead_letters(self, queue: str) -> int:
        """How many dead letters a queue has."""
        if self.broker.startswith("amqp"):
            return await RabbitAdmin("", self.broker).depth(f"{queue}.dlq")
        return await self.count(f"queue = '{queue}'", "outbox_dead_letter")

    async def publish(self, numbers: range, routing_key: str = "order.placed") -> None:
        """Commits an order with its event for each number, in one transaction."""
        async with self.connection() as connection:
            await parts.write_orders(connection, numbers, routing_key)

    async def orders(self) -> set[int]:
        """The numbers that were committed."""
        async with self.connection() as connection:
            return {row["number"] for row in await connection.fetch("select number from orders")}

    async def count(self, where: str = "true", table: str = "outbox_table") -> int:
        """How many rows a table has."""
        async with self.connection() as connection:
            count: int = await connection.fetchval(f"select count(*) from {table} where {where}")
            return count

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[asyncpg.Connection]:
        """A connection of the test's own."""
        connection = await asyncpg.connect(self.database_url)
        try:
            yield connection
        finally:
            connection.terminate()

    async def everything_is_handled(self, queue: str, timeout: float = 120.0) -> None:
        """Returns when every order that was committed was handled from `queue`; fails if others were."""
        orders = await self.orders()
        try:
            await eventually(lambda: self.journal.numbers(queue) >= orders, timeout=timeout, interval=0.1)
        except AssertionError:
            missing = sorted(orders - self.journal.numbers(queue))
            raise AssertionError(
                f"{len(missing)} of {len(orders)} never handled, among them {missing[:10]}\n{self.tails()}"
            ) from None
        assert self.journal.numbers(queue) == orders

    def tails(self) -> str:
        """The ends of the logs, to explain a failure."""
        return "\n".join(f"--- {process.name}\n{_without_noise(process.log)[-1500:]}" for process in self.processes[-6:])

    async def stop(self) -> None:
        """Ends every process in the orderly way, with exit code 0."""
        for process in self.processes:
            if process.alive:
                process.thaw()
                process.terminate()
        for process in self.processes:
            if process.exit_code is None:
                assert await process.ended() == 0, process.log[-3000:]

    def close(self) -> None:
        """Ends what is left."""
        for process in self.processes:
            if process.alive:
                process.kill()

    def complaints(self) -> list[str]:
        """Log records that no fault of a server or another process explains: leaks, warnings, unexpected errors."""
        return [
            f"{process.name}: {record}"
            for process in self.processes
            for record in _RECORD.split(process.log)
            if _COMPLAINT.search(record) and not _DRIVERS_OWN.search(record)
        ]


async def _reached(count: Awaitable[float], wanted: int) -> bool:
    return await count >= wanted


def _without_noise(log: str) -> str:
    return "\n".join(line for line in log.splitlines() if " DEBUG " not in line)


async def prepare(database_url: str) -> None:
    """Makes the tables of Outbox, and one of orders."""
    await ensure_outbox_schema_async(database_url)
    connection = await asyncpg.connect(database_url)
    await connection.execute("create table orders (number bigint primary key)")
    await connection.close()


MakeSystem = Callable[..., Awaitable[System]]
