"""`python -m benchmarks.counting`: what a message costs, counted and not timed, so that it is the same on every machine.

For each message: round trips to PostgreSQL, rows written, bytes of write-ahead log, bytes and writes to RabbitMQ, and calls of
Python and C functions in our own process. Calls stand in for allocations, which CPython does not count. `counters.json` holds
the figures of this commit. `tests/system/test_counters.py` compares them, and `--write` writes them.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncpg
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from benchmarks.handling import INSERT, ORDERS, Handlers
from benchmarks.servers import BODY, PATIENCE, Servers, execute, filled_outbox, running, running_servers, until_empty
from benchmarks.working import declared_queue
from outbox import Consumer, MessageRelay, OutboxMessage, Publisher, Worker
from tests.servers.proxy import Proxy, Towards

BASELINE = Path(__file__).parent / "counters.json"
FEW, MANY = 200, 4_000
"""Messages that are published or handled one by one, and messages that go in batches."""
TOLERANCES = {"round trips": 0.15, "rows": 0.02, "log": 0.15, "to the broker": 0.1, "writes": 0.3, "calls": 0.15}
"""By how much of itself a figure may differ. Full pages in the log depend on what a page had to hold, and how many frames leave
in one write on when the event loop comes round."""

FLUSH = "select pg_stat_force_next_flush()"
"""Lets the server count what a connection that stays open has written."""

Counts = Mapping[str, float]


@contextmanager
def counted_calls() -> Iterator[Callable[[], int]]:
    """Counts calls of this thread. From Python 3.12 on, `cProfile` counts those of all threads, such as our proxies'."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        del frame, argument
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        yield lambda: count
    finally:
        sys.setprofile(None)


@dataclass(frozen=True, slots=True)
class Place:
    """A database and a virtual host, each behind a proxy that counts."""

    url: str
    postgres: Proxy
    rabbitmq: Proxy

    async def counted(self, messages: int, work: Callable[[], Awaitable[None]]) -> Counts:
        """What `work` takes for each of so many messages."""
        await execute(self.url, "checkpoint")
        connection = await asyncpg.connect(self.url)
        try:
            before = await self._counters(connection)
            with counted_calls() as calls:
                await work()
            after = await self._counters(connection)
        finally:
            await connection.close()
        return {name: round((after[name] - before[name]) / messages, 3) for name in after} | {
            "calls": round(calls() / messages, 1)
        }

    async def _counters(self, connection: "asyncpg.Connection[asyncpg.Record]") -> Counts:
        await connection.execute("select pg_stat_clear_snapshot()")
        return {
            "round trips": self.postgres.parts[Towards.SERVER],
            "rows": float(await connection.fetchval("select sum(n_tup_ins + n_tup_upd + n_tup_del) from pg_stat_user_tables")),
            "log": float(await connection.fetchval("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn")),
            "to the broker": self.rabbitmq.forwarded[Towards.SERVER],
            "writes": self.rabbitmq.parts[Towards.SERVER],
        }


async def quiet(url: str) -> None:
    """Lets a server that nothing else uses do nothing by itself, above all not write to its log."""
    await execute(url, "alter system set autovacuum = off")
    await execute(url, "select pg_reload_conf()")


@asynccontextmanager
async def place(servers: Servers) -> AsyncIterator[Place]:
    """A fresh one."""
    async with servers.fresh_database() as url, servers.fresh_vhost() as broker:
        await execute(url, ORDERS)
        with Proxy(url) as postgres, Proxy(broker) as rabbitmq:
            yield Place(url, postgres, rabbitmq)


# --- publishing --------------------------------------------------------------------------------------------------------


async def publish_on_connection(at: Place) -> Counts:
    """One event in a transaction that inserts one row, on an asyncpg connection."""
    publisher = Publisher()
    connection = await asyncpg.connect(at.postgres.url)

    async def order() -> None:
        async with connection.transaction():
            await connection.execute(INSERT, "ada", "x")
            await publisher.publish_async(connection, "bench.event", BODY)

    async def work() -> None:
        for _ in range(FEW):
            await order()
        await connection.execute(FLUSH)

    try:
        await order()
        await connection.execute(FLUSH)
        return await at.counted(FEW, work)
    finally:
        await connection.close()


async def publish_in_session(at: Place) -> Counts:
    """The same in a SQLAlchemy session with SQLAlchemy's defaults."""
    publisher = Publisher()
    engine = create_async_engine(at.postgres.url.replace("postgresql://", "postgresql+asyncpg://", 1))

    async def order() -> None:
        async with AsyncSession(engine) as session, session.begin():
            await session.execute(text("insert into orders (customer, body) values (:customer, :body)"), _ORDER)
            await publisher.publish_async(session, "bench.event", BODY)

    async def flush() -> None:
        async with engine.connect() as connection:
            await connection.exec_driver_sql(FLUSH)

    async def work() -> None:
        for _ in range(FEW):
            await order()
        await flush()

    try:
        await order()
        await flush()
        return await at.counted(FEW, work)
    finally:
        await engine.dispose()


_ORDER = {"customer": "ada", "body": "x"}


async def publish_in_bulk(at: Place) -> Counts:
    """`MANY` events in one call."""
    publisher = Publisher()
    connection = await asyncpg.connect(at.postgres.url)

    async def work() -> None:
        async with connection.transaction():
            await publisher.bulk_publish_async(connection, [OutboxMessage("bench.event", BODY) for _ in range(MANY)])
        await connection.execute(FLUSH)

    try:
        async with connection.transaction():
            await publisher.publish_async(connection, "bench.event", BODY)
        await connection.execute(FLUSH)
        return await at.counted(MANY, work)
    finally:
        await connection.close()


# --- relaying and handling ---------------------------------------------------------------------------------------------


async def relay_to_rabbitmq(at: Place) -> Counts:
    """`MANY` pending messages, confirmed by a quorum queue."""
    return await _relayed(at, at.rabbitmq.url)


async def relay_to_postgres(at: Place) -> Counts:
    """`MANY` pending messages, handed over to one queue in the same database."""
    return await _relayed(at, at.postgres.url)


async def _relayed(at: Place, broker: str) -> Counts:
    await declared_queue(at.postgres.url, broker)
    await filled_outbox(at.url, MANY)

    async def work() -> None:
        relay = MessageRelay(db_engine_url=at.postgres.url, broker=broker, enable_metrics=False, reporting=False, lanes=1)
        async with running(relay):
            await until_empty(at.url, "outbox_table")
        await _alone(at.url)

    return await at.counted(MANY, work)


async def worker_on_rabbitmq(at: Place) -> Counts:
    """`MANY` messages and a handler that does nothing, at a prefetch of 100."""
    handlers = Handlers(MANY)
    return await _handled(at, at.rabbitmq.url, MANY, handlers, Consumer("bench.#", handlers.nothing, queue="bench"))


async def worker_on_postgres(at: Place) -> Counts:
    """The same on PostgreSQL."""
    handlers = Handlers(MANY)
    return await _handled(at, at.postgres.url, MANY, handlers, Consumer("bench.#", handlers.nothing, queue="bench"))


async def inbox_on_rabbitmq(at: Place) -> Counts:
    """`FEW` messages, one after another, and a handler that inserts a row, each in effect once."""
    handlers = Handlers(FEW)
    consumer = Consumer("bench.#", handlers.with_connection, queue="bench", inbox=True)
    return await _handled(at, at.rabbitmq.url, FEW, handlers, consumer)


async def inbox_with_session(at: Place) -> Counts:
    """The same with an ORM insert in a SQLAlchemy session."""
    handlers = Handlers(FEW)
    consumer = Consumer("bench.#", handlers.with_session, queue="bench", inbox=True)
    return await _handled(at, at.rabbitmq.url, FEW, handlers, consumer)


async def inbox_on_postgres(at: Place) -> Counts:
    """As on RabbitMQ, with the deliveries in PostgreSQL."""
    handlers = Handlers(FEW)
    consumer = Consumer("bench.#", handlers.with_connection, queue="bench", inbox=True)
    return await _handled(at, at.postgres.url, FEW, handlers, consumer)


async def _handled(at: Place, broker: str, count: int, handlers: Handlers, consumer: Consumer) -> Counts:
    await declared_queue(at.postgres.url, broker)
    await filled_outbox(at.url, count)
    relay = MessageRelay(db_engine_url=at.url, broker=broker, enable_metrics=False, reporting=False)
    async with running(relay):
        await until_empty(at.url, "outbox_table")

    async def work() -> None:
        worker = Worker(
            broker=broker,
            db_engine_url=at.postgres.url,
            consumers=[consumer],
            prefetch_count=100 if count == MANY else 1,
            enable_metrics=False,
            reporting=False,
        )
        async with running(worker), asyncio.timeout(PATIENCE):
            await handlers.reached.wait()
        await _alone(at.url)

    return await at.counted(count, work)


async def _alone(url: str) -> None:
    """Returns when no other client is connected: a server process counts what it wrote at its end."""
    others = "select count(*) from pg_stat_activity where datname = current_database() and application_name like 'outbox %'"
    connection = await asyncpg.connect(url)
    try:
        async with asyncio.timeout(PATIENCE):
            while await connection.fetchval(others):
                await asyncio.sleep(0.01)
    finally:
        await connection.close()


SCENARIOS: Mapping[str, Callable[[Place], Awaitable[Counts]]] = {
    "publish, asyncpg": publish_on_connection,
    "publish, session": publish_in_session,
    "publish in bulk": publish_in_bulk,
    "relay to RabbitMQ": relay_to_rabbitmq,
    "relay to PostgreSQL": relay_to_postgres,
    "worker on RabbitMQ": worker_on_rabbitmq,
    "worker on PostgreSQL": worker_on_postgres,
    "inbox and insert on RabbitMQ": inbox_on_rabbitmq,
    "inbox and ORM insert on RabbitMQ": inbox_with_session,
    "inbox and insert on PostgreSQL": inbox_on_postgres,
}


def baseline() -> Mapping[str, Counts]:
    """The committed figures, for each message."""
    figures: Mapping[str, Counts] = json.loads(BASELINE.read_text())
    return figures


async def _all() -> dict[str, Counts]:
    figures = {}
    with running_servers(durable=False) as servers:
        await quiet(servers.postgres_url)
        for name, scenario in SCENARIOS.items():
            async with place(servers) as at:
                figures[name] = await scenario(at)
    return figures


def main() -> None:
    """Counts everything, and prints or writes it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.counting", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {BASELINE.name}")
    wanted = parser.parse_args()
    figures = asyncio.run(_all())
    if wanted.write:
        BASELINE.write_text(json.dumps(figures, indent=2) + "\n")
    for name, counts in figures.items():
        print(f"{name:<36}" + "".join(f"{counts[each]:>12,.3f} {each}" for each in TOLERANCES))


if __name__ == "__main__":
    main()
