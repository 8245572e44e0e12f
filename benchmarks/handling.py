"""Handlers that write a row, as services do all day, each message in effect once; and pgbench with the same statements."""

import asyncio
import re
import subprocess
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from sqlalchemy import BigInteger
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from benchmarks.measuring import timed
from benchmarks.servers import PATIENCE, Servers, execute, filled_outbox, running, until_empty
from outbox import Consumer, MessageRelay, Worker
from outbox.embedded.binaries import installed_binaries
from outbox.postgres.pool import Connection

CLIENTS = 10
"""Of pgbench, and the prefetch of the worker: so many transactions at once."""
ORDERS = "create table orders (id bigint primary key generated always as identity, customer text not null, body text not null)"
INSERT = "insert into orders (customer, body) values ($1, $2)"
SCRIPT = """\\set n random(1, 9000000000000000000)
begin;
insert into outbox_inbox (queue, message_id) values ('bench', 'pgbench-' || :n || '-' || :client_id) on conflict do nothing;
insert into orders (customer, body) values ('ada', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx');
commit;
"""


class _Base(DeclarativeBase):
    pass


class _Order(_Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    customer: Mapped[str]
    body: Mapped[str]


class Handlers:
    """Inserts an order for each message, through what it was given, until there were `target`."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._count = 0
        self.reached = asyncio.Event()

    async def with_connection(self, body: bytes, connection: Connection) -> None:
        await connection.execute(INSERT, "ada", "x" * 32)
        self._counted()

    async def with_session(self, body: bytes, session: AsyncSession) -> None:
        session.add(_Order(customer="ada", body="x" * 32))
        self._counted()

    async def nothing(self, body: bytes) -> None:
        self._counted()

    def _counted(self) -> None:
        self._count += 1
        if self._count >= self._target:
            self.reached.set()


async def handlers_on_rabbitmq(servers: Servers, count: int) -> dict[str, float]:
    """Orders per second by way of RabbitMQ, with an inbox, at the default prefetch; and what pgbench makes of the same."""
    async with servers.fresh_database() as url, servers.fresh_vhost() as broker:
        return await _measured(url, broker, count, "RabbitMQ")


async def handlers_on_postgres(servers: Servers, count: int) -> dict[str, float]:
    """The same without RabbitMQ."""
    async with servers.fresh_database() as url:
        return await _measured(url, url, count, "PostgreSQL")


async def _measured(url: str, broker: str, count: int, transport: str) -> dict[str, float]:
    await execute(url, ORDERS)
    handlers = Handlers(count)
    by_connection = await worked_off_by(
        f"inbox and insert on {transport}", url, broker, count, handlers, handlers.with_connection
    )
    pgbench = await asyncio.to_thread(_pgbench, url, count)
    handlers = Handlers(count)
    by_session = await worked_off_by(
        f"inbox and ORM insert on {transport}", url, broker, count, handlers, handlers.with_session
    )
    bare = await _bare_sessions(url, count)
    return by_connection | by_session | bare | {"pgbench, the same statements": pgbench}


async def worked_off_by(
    name: str,
    url: str,
    broker: str,
    count: int,
    handlers: Handlers,
    handler: Callable[..., Awaitable[None]],
    *,
    history: bool = True,
) -> dict[str, float]:
    """The rate and own cost of a worker whose `handler` is one of `handlers`, which expect `count` messages."""
    ready = asyncio.Event()

    async def declare(body: bytes) -> None:
        ready.set()

    # A queue that is there, and full, before what is measured begins.
    first = Worker(
        broker=broker, db_engine_url=url, consumers=[Consumer("bench.#", declare, queue="bench")], enable_metrics=False
    )
    async with running(first), running(MessageRelay(db_engine_url=url, broker=broker, enable_metrics=False)):
        await filled_outbox(url, 1)
        async with asyncio.timeout(PATIENCE):
            await ready.wait()
    await filled_outbox(url, count)
    async with running(MessageRelay(db_engine_url=url, broker=broker, enable_metrics=False)):
        await until_empty(url, "outbox_table")
    await execute(url, "vacuum analyze")
    consumer = Consumer("bench.#", handler, queue="bench", inbox=True)
    worker = Worker(broker=broker, db_engine_url=url, consumers=[consumer], enable_metrics=False, history=history)
    with timed() as watch:
        async with running(worker), asyncio.timeout(PATIENCE):
            await handlers.reached.wait()
    return watch.rates(name, count)


async def _bare_sessions(url: str, count: int) -> dict[str, float]:
    """The session's part alone: as many ORM inserts, each in a transaction, ten at once, with SQLAlchemy's own defaults."""
    engine = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://", 1), pool_size=CLIENTS, max_overflow=0)

    async def client() -> None:
        for _ in range(count // CLIENTS):
            async with AsyncSession(engine, expire_on_commit=False) as session:
                session.add(_Order(customer="ada", body="x" * 32))
                await session.commit()

    try:
        with timed() as watch:
            async with asyncio.TaskGroup() as group:
                for _ in range(CLIENTS):
                    group.create_task(client())
    finally:
        await engine.dispose()
    return watch.rates("ORM insert without a worker", count)


def _pgbench(url: str, count: int) -> float:
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(SCRIPT)
        script.flush()
        program = Path(installed_binaries().bin) / "pgbench"
        arguments = ["--no-vacuum", "--protocol=prepared", f"--client={CLIENTS}", "--jobs=2", f"--file={script.name}"]
        done = subprocess.run(
            [program, *arguments, f"--transactions={max(1, 2 * count // CLIENTS)}", url],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
    found = re.search(r"tps = ([0-9.]+)", done.stdout)
    if found is None:
        raise RuntimeError(f"pgbench said no rate: {done.stdout}")
    return float(found[1])
