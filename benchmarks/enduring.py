"""What a long life does to the rate: a transaction that keeps dead rows from being removed, and maintenance at work."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from benchmarks.measuring import percentile
from benchmarks.servers import BODY, Servers, execute, running
from outbox import MessageRelay, Worker, consume
from outbox.maintenance import Maintenance

SHARE_MEASURED = 0.2
"""The rate is that of the last fifth of the time."""
PAUSE = 0.02
TOGETHER = 80
"""Messages that are published at once, every `PAUSE` seconds: about four thousand a second."""


async def pinned_transaction(servers: Servers, seconds: int) -> dict[str, float]:
    """Messages handled a second, under a steady load, with and without a transaction open beside it all the time."""
    rates = {}
    for name, pinned in (("nobody else", False), ("a transaction open beside it", True)):
        async with servers.fresh_database() as url, _beside(url, pinned=pinned):
            rates[f"handled, {name}"] = await _handled(url, url, seconds)
    return rates


async def maintenance(servers: Servers, rows: int) -> dict[str, float]:
    """How long commits take, in milliseconds, before and while maintenance deletes and drops so many rows of each kind.

    A long query reads the history all the while, as that of a chain may, so that its partitions are not to be had at once.
    """
    figures = {}
    async with servers.fresh_database() as url:
        await _age(url, rows)
        relay = MessageRelay(db_engine_url=url, broker=url, enable_metrics=False)
        async with running(relay):
            for name, engine in (("before", None), ("meanwhile", Maintenance(url, enable_metrics=False))):
                async with _long_query(url), _publishing(url) as took:
                    await (asyncio.sleep(QUIET_SECONDS) if engine is None else _maintained(url, engine))
                figures[f"commit, maintenance {name}, median"] = percentile(took, 0.5)
                figures[f"commit, maintenance {name}, p99"] = percentile(took, 0.99)
    return figures


QUIET_SECONDS = 10


async def _age(url: str, rows: int) -> None:
    """Old marks, old facts in partitions of their own, and letters that were resolved long ago."""
    await execute(
        url,
        "insert into outbox_inbox (queue, message_id, processed_at) "
        "select 'bench', n::text, now() - interval '60 days' from generate_series(1, $1) as n",
        rows,
    )
    for day in ("2020-01-01", "2020-01-02"):
        name = f"outbox_history_p{day.replace('-', '')}"
        bounds = f"from ('{day}Z') to ('{day}Z'::timestamptz + interval '1 day')"
        await execute(url, f"create table {name} partition of outbox_history for values {bounds}")
        await execute(
            url,
            "insert into outbox_history (at, fact, message_id, root_id, routing_key) "
            f"select '{day} 12:00Z', 'sent', n::text, n::text, 'bench.event' from generate_series(1, $1::integer / 2) as n",
            rows,
        )
    await execute(
        url, "insert into outbox_subscription (exchange, queue, binding_key, pattern) values ('outbox', 'bench', '#', '.*')"
    )


async def _maintained(url: str, engine: Maintenance) -> None:
    """Until everything old is gone; partitions only once the long query has let them go."""
    task = asyncio.create_task(engine.run(handle_signals=False))
    connection = await asyncpg.connect(url)
    try:
        while await connection.fetchval("select exists(select from outbox_inbox)"):
            await asyncio.sleep(0.5)
        await asyncio.sleep(QUIET_SECONDS)
    finally:
        await connection.close()
        engine.stop()
        await task


@asynccontextmanager
async def _long_query(url: str) -> AsyncIterator[None]:
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            await connection.execute("select count(*) from outbox_history")
            yield
    finally:
        await connection.close()


@asynccontextmanager
async def _beside(url: str, *, pinned: bool) -> AsyncIterator[None]:
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction(isolation="repeatable_read"):
            if pinned:
                await connection.execute("select count(*) from outbox_table")
            yield
    finally:
        await connection.close()


async def _handled(url: str, broker: str, seconds: int) -> float:
    handled = 0

    @consume("bench.*", queue="bench")
    async def count(_: bytes) -> None:
        nonlocal handled
        handled += 1

    relay = MessageRelay(db_engine_url=url, broker=broker, enable_metrics=False)
    worker = Worker(broker=broker, db_engine_url=url, consumers=[count], enable_metrics=False, prefetch_count=100)
    async with running(worker), running(relay), _publishing(url):
        await asyncio.sleep(seconds * (1 - SHARE_MEASURED))
        before, began = handled, time.perf_counter()
        await asyncio.sleep(seconds * SHARE_MEASURED)
        return (handled - before) / (time.perf_counter() - began)


@asynccontextmanager
async def _publishing(url: str) -> AsyncIterator[list[float]]:
    """Publishes all the time; the list has what each commit took, in milliseconds."""
    took: list[float] = []
    task = asyncio.create_task(_publish(url, took))
    try:
        yield took
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _publish(url: str, took: list[float]) -> None:
    connection = await asyncpg.connect(url)
    statement = "insert into outbox_table (routing_key, body) select 'bench.event', $1 from generate_series(1, $2)"
    try:
        while True:
            began = time.perf_counter()
            await connection.execute(statement, BODY, TOGETHER)
            took.append((time.perf_counter() - began) * 1e3)
            await asyncio.sleep(PAUSE)
    finally:
        await connection.close()
