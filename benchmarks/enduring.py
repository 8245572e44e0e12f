"""What a long life does to the rate: long backlogs, a transaction that keeps dead rows, and maintenance at work."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from benchmarks.measuring import percentile
from benchmarks.servers import BODY, PATIENCE, Servers, execute, filled_outbox, running
from benchmarks.working import Counter, declared_queue
from outbox import MessageRelay, Worker, consume
from outbox.maintenance import Maintenance

SHARE_MEASURED = 0.2
"""The rate is that of the last fifth of the time."""
PAUSE = 0.02
TOGETHER = 80
"""Messages that are published at once, every `PAUSE` seconds: about four thousand a second."""


async def long_backlogs(servers: Servers, longest: int) -> dict[str, float]:
    """Messages relayed to RabbitMQ, and handled from PostgreSQL, a second, while up to `longest` of them are waiting."""
    figures = {}
    lengths = [(max(longest // share, SKIPPED + TAKEN + 10_000), 0) for share in (1_000, 10, 1)]
    for waiting, dead in [*lengths, (lengths[0][0], DEAD_LETTERS)]:
        name = f"{waiting:,} waiting" + (f", {dead:,} dead letters" if dead else "")
        async with servers.fresh_database() as url, servers.fresh_vhost() as broker:
            await _dead_letters(url, dead)
            await declared_queue(url, broker)
            await filled_outbox(url, waiting)
            async with running(MessageRelay(db_engine_url=url, broker=broker, enable_metrics=False)):
                figures[f"relayed, {name}"] = await _rate_of_deletions(url, "outbox_table")
        async with servers.fresh_database() as url:
            await _dead_letters(url, dead)
            await declared_queue(url, url)
            await _deliveries(url, waiting)
            worker = Worker(broker=url, db_engine_url=url, consumers=[Counter(waiting + 1).consumer], enable_metrics=False)
            async with running(worker):
                figures[f"handled, {name}"] = await _rate_of_deletions(url, "outbox_delivery")
    return figures


SKIPPED = 5_000
TAKEN = 20_000
"""The rate is that of so many messages, after the first ones."""
DEAD_LETTERS = 1_000_000


async def _rate_of_deletions(url: str, table: str) -> float:
    """Rows that go a second, from the first row on; the table is filled in the order of its ids."""
    connection = await asyncpg.connect(url)
    try:
        first, at, skipped, began = await connection.fetchval(f"select min(id) from {table}"), 0, 0, time.perf_counter()
        async with asyncio.timeout(PATIENCE):
            while at < SKIPPED + TAKEN:
                await asyncio.sleep(0.01)
                at = await connection.fetchval(f"select min(id) from {table}") - first
                if at < SKIPPED:
                    skipped, began = at, time.perf_counter()
        return (at - skipped) / (time.perf_counter() - began)
    finally:
        await connection.close()


async def _deliveries(url: str, count: int) -> None:
    """As a relay that hands over leaves them, in the queue of `declared_queue`."""
    await execute(
        url,
        "insert into outbox_delivery (exchange, queue, message_id, routing_key, body, content_type, tracking_ids) "
        "select 'outbox', 'bench', n::text, 'bench.event', $1, 'application/octet-stream', jsonb_build_array(n::text) "
        "from generate_series(1, $2) as n",
        BODY,
        count,
    )
    await execute(url, "vacuum analyze outbox_delivery")


async def _dead_letters(url: str, count: int) -> None:
    await execute(
        url,
        "insert into outbox_dead_letter (source, exchange, queue, message_id, routing_key, body, tracking_ids, created_at, "
        "attempt, cause, exception_type, exception_message, exception_traceback) "
        "select 'worker', 'outbox', 'bench', n::text, 'bench.event', $1, jsonb_build_array(n::text), now(), "
        "1, 'failed', 'ValueError', '', '' "
        "from generate_series(1, $2) as n",
        BODY,
        count,
    )


async def pinned_transaction(servers: Servers, seconds: int) -> dict[str, float]:
    """Messages handled a second, under a steady load, with and without another transaction open all the time."""
    rates = {}
    for name, pinned in (("alone", False), ("another transaction open", True)):
        async with servers.fresh_database() as url, _other_transaction(url, pinned=pinned):
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
async def _other_transaction(url: str, *, pinned: bool) -> AsyncIterator[None]:
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
