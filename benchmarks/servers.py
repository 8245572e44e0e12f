"""The servers that benchmarks run on: the ones that the tests use, with a PostgreSQL that waits for its disk."""

import asyncio
import gc
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta

import asyncpg

from benchmarks.measuring import parent_of
from outbox import MessageRelay, Worker, ensure_outbox_schema_async
from outbox.embedded import EmbeddedPostgres
from outbox.runtime.gc import freeze_gc
from tests.servers.postgres import fresh_database, with_database
from tests.servers.rabbitmq import NamedRabbitMQ, PrivateRabbitMQ, fresh_vhost, session_rabbitmq, with_vhost
from tests.servers.rabbitmq_installation import ensure_rabbitmq
from tests.servers.session_folder import session_folder

BODY = b"x" * 256
"""Every benchmark's message: 256 bytes."""
PATIENCE = 300.0
"""Longest wait for a benchmark's end, in seconds."""


@dataclass(frozen=True, slots=True)
class Servers:
    """A PostgreSQL and a RabbitMQ that are running."""

    postgres_url: str
    rabbitmq: PrivateRabbitMQ | NamedRabbitMQ

    @asynccontextmanager
    async def fresh_database(self) -> AsyncIterator[str]:
        """A database with the schema in it."""
        with fresh_database(self.postgres_url) as name:
            url = with_database(self.postgres_url, name)
            await ensure_outbox_schema_async(url)
            yield url

    @asynccontextmanager
    async def fresh_vhost(self) -> AsyncIterator[str]:
        """A virtual host."""
        with fresh_vhost(self.rabbitmq) as vhost:
            yield with_vhost(self.rabbitmq.url, vhost)


@contextmanager
def running_servers(*, durable: bool = True) -> Iterator[Servers]:
    """Starts both servers, and ends them."""
    ensure_rabbitmq()
    with session_folder() as folder:
        rabbitmq = session_rabbitmq(folder / "rabbitmq")
        with EmbeddedPostgres(folder / "postgres", durable=durable) as postgres:
            rabbitmq.start()
            try:
                yield Servers(postgres.url, rabbitmq)
            finally:
                rabbitmq.close()


@asynccontextmanager
async def running(engine: MessageRelay | Worker) -> AsyncIterator[None]:
    """A relay or a worker at work, stopped and drained at the end of the block."""
    task = asyncio.create_task(engine.run(handle_signals=False))
    try:
        with freeze_gc(after=timedelta(0)):  # as `outbox relay` and `outbox worker` do
            yield
    finally:
        engine.stop()
        await task
        gc.unfreeze()


@contextmanager
def running_commands(
    arguments: Sequence[str], count: int, settings: Mapping[str, str]
) -> Iterator[Sequence["subprocess.Popen[bytes]"]]:
    """So many processes of an `outbox` command, with `settings` in their environment; ended with the block."""
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "outbox.cli", *arguments],
            env={**os.environ, **settings},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(count)
    ]
    try:
        yield started
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait()


async def filled_outbox(url: str, count: int, routing_key: str = "bench.event") -> None:
    """`count` messages in the outbox table, inserted by the server itself."""
    await execute(
        url,
        "insert into outbox_table (routing_key, body, content_type) "
        "select $1, $2, 'application/octet-stream' from generate_series(1, $3)",
        routing_key,
        BODY,
        count,
    )
    await execute(url, "vacuum analyze outbox_table")


async def until_empty(url: str, table: str) -> None:
    """Returns when `table` has no rows."""
    connection = await asyncpg.connect(url)
    try:
        async with asyncio.timeout(PATIENCE):
            while await connection.fetchval(f"select exists(select from {table})"):
                await asyncio.sleep(0.01)
    finally:
        await connection.close()


async def execute(url: str, statement: str, *arguments: object) -> None:
    """Runs one statement on a connection of its own."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement, *arguments)
    finally:
        await connection.close()


async def server_process(url: str) -> int:
    """Process id of the PostgreSQL server, which starts a process for each connection."""
    connection = await asyncpg.connect(url)
    try:
        return parent_of(connection.get_server_pid())
    finally:
        await connection.close()
