"""Everything works through a pooler that shares the server's sessions; without one, statements are kept prepared."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from outbox import Consumer, MessageRelay, OutboxMessage, Publisher, Worker, ensure_outbox_schema_async
from outbox.engine.lifecycle import Stopping
from outbox.engine.observers import Observers
from outbox.postgres.pool import Connector, Pool, connect_to, is_direct, open_pool
from outbox.postgres.queries import TableName
from outbox.reporting import Component, ComponentKind, ReportingSettings, reporting
from outbox.reporting.pauses import Pause, PauseScope, pause
from tests.servers.pgbouncer import SESSIONS, pooled
from tests.support import eventually

pytestmark = pytest.mark.pooler

STATEMENT = "select $1::int + 1"
KEPT = "select count(*) from pg_prepared_statements where statement = $1"
COUNT = 200


@pytest.fixture
def pooled_url(database_url: str, servers_folder: Path) -> Iterator[str]:
    """The test's database through PgBouncer."""
    with pooled(database_url, servers_folder / f"pgbouncer-{database_url.rpartition('/')[2]}") as url:
        yield url


async def kept(pool: Pool) -> int:
    """How many of the statement the server keeps after some uses on a connection."""
    async with pool.acquire() as connection:
        for number in range(8):
            assert await connection.fetchval(STATEMENT, number) == number + 1
        count: int = await connection.fetchval(KEPT, STATEMENT)
        return count


async def test_on_a_direct_connection_statements_are_kept_and_their_plans_are_not(database_url: str) -> None:
    pool = await open_pool(database_url, size=2, application_name="tests", connector=Connector())
    try:
        async with pool.acquire(), pool.acquire() as second:
            assert await is_direct(second)  # type: ignore[arg-type]  # a proxy of one
        assert await kept(pool) == 1
        assert await pool.fetchval("select generic_plans from pg_prepared_statements where statement = $1", STATEMENT) == 0
    finally:
        await pool.close()


async def test_a_pool_that_is_not_asked_to_keeps_none(database_url: str) -> None:
    pool = await open_pool(database_url, size=1, application_name="tests")
    try:
        assert await kept(pool) == 0
    finally:
        await pool.close()


async def test_connections_that_are_opened_at_once_all_keep_their_statements_and_are_opened_once(database_url: str) -> None:
    opened: list[object] = []

    class Noted(asyncpg.Connection):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            opened.append(self)

    connector = Connector()
    pool = await open_pool(database_url, size=8, application_name="tests", connector=connector, connection_class=Noted)
    try:
        assert await asyncio.gather(*(kept(pool) for _ in range(8))) == [1] * 8
    finally:
        pool.terminate()
    assert len(opened) == 8


async def test_through_a_pooler_none_is_kept_in_any_session(pooled_url: str) -> None:
    pool = await open_pool(pooled_url, size=3 * SESSIONS, application_name="tests", connector=Connector())
    try:
        counts = await asyncio.gather(*(kept(pool) for _ in range(3 * SESSIONS)))
        assert counts == [0] * (3 * SESSIONS)
        async with pool.acquire() as connection:
            assert not await is_direct(connection)  # type: ignore[arg-type]  # a proxy of one
            assert await connection.fetchval("show plan_cache_mode") == "auto"
    finally:
        await pool.close()


async def test_a_pooler_that_is_put_in_or_taken_away_is_noticed(database_url: str, pooled_url: str) -> None:
    connector = Connector()
    for url, expected in (
        (database_url, (1, "force_custom_plan")),
        (pooled_url, (0, "auto")),
        (database_url, (1, "force_custom_plan")),
    ):
        pool = await open_pool(url, size=1, application_name="tests", connector=connector)
        try:
            assert (await kept(pool), await pool.fetchval("show plan_cache_mode")) == expected
        finally:
            await pool.close()


async def test_relays_and_workers_share_the_sessions_of_a_pooler(database_url: str, pooled_url: str) -> None:
    await ensure_outbox_schema_async(database_url)
    handled: list[int] = []

    def note(body: dict[str, int]) -> None:
        handled.append(body["n"])

    consumer = Consumer("order.placed", note, queue="orders")
    parts: list[MessageRelay | Worker] = [
        *(MessageRelay(db_engine_url=pooled_url, broker=pooled_url, enable_metrics=False) for _ in range(2)),
        *(Worker(consumers=[consumer], broker=pooled_url, db_engine_url=pooled_url, enable_metrics=False) for _ in range(2)),
    ]
    tasks = [asyncio.create_task(part.run(handle_signals=False)) for part in parts]
    try:
        connection = await asyncpg.connect(database_url)
        for first in range(0, COUNT, 20):
            async with connection.transaction():
                await Publisher().bulk_publish(
                    connection, [OutboxMessage("order.placed", {"n": first + place}) for place in range(20)]
                )
        await connection.close()
        await eventually(lambda: len(handled) >= COUNT, timeout=60)
    finally:
        for part in parts:
            part.stop()
        await asyncio.gather(*tasks)
    assert sorted(handled) == list(range(COUNT))


async def test_relays_start_and_send_through_a_pooler_with_one_session(database_url: str, servers_folder: Path) -> None:
    """None of them holds a session while it waits for another one."""
    await ensure_outbox_schema_async(database_url)
    connection = await asyncpg.connect(database_url)
    await connection.execute(
        "insert into outbox_subscription (exchange, queue, binding_key) values ('outbox', 'orders', 'order.placed')"
    )
    async with connection.transaction():
        await Publisher().bulk_publish(connection, [OutboxMessage("order.placed", {"n": 1})])
    with pooled(database_url, servers_folder / f"one-{database_url.rpartition('/')[2]}", sessions=1) as url:
        relays = [MessageRelay(db_engine_url=url, broker=url, enable_metrics=False) for _ in range(2)]
        tasks = [asyncio.create_task(relay.run(handle_signals=False)) for relay in relays]
        try:

            async def sent() -> bool:
                return bool(await connection.fetchval("select count(*) from outbox_delivery") == 1)

            await eventually(sent)
        finally:
            for relay in relays:
                relay.stop()
            await asyncio.gather(*tasks)
    await connection.close()


@pytest.mark.parametrize("takes", ["connection", "session"])
async def test_handlers_transactions_share_the_sessions_of_a_pooler(database_url: str, pooled_url: str, takes: str) -> None:
    """No statement of theirs is kept by a name: another client would meet it in the session that it gets."""
    await ensure_outbox_schema_async(database_url)
    connection = await asyncpg.connect(database_url)
    await connection.execute("create table sale (n int)")

    async def with_connection(body: dict[str, int], connection: Any) -> None:
        await connection.execute(f"insert into sale values ({body['n']})")

    async def with_session(body: dict[str, int], session: AsyncSession) -> None:
        await session.execute(text(f"insert into sale values ({body['n']})"))

    handler = with_connection if takes == "connection" else with_session
    consumer = Consumer("order.placed", handler, queue="orders", inbox=True, retry_delays=())
    parts: list[MessageRelay | Worker] = [
        MessageRelay(db_engine_url=pooled_url, broker=pooled_url, enable_metrics=False),
        *(Worker(consumers=[consumer], broker=pooled_url, db_engine_url=pooled_url, enable_metrics=False) for _ in range(2)),
    ]
    tasks = [asyncio.create_task(part.run(handle_signals=False)) for part in parts]
    try:
        async with connection.transaction():
            await Publisher().bulk_publish(connection, [OutboxMessage("order.placed", {"n": n}) for n in range(COUNT)])

        async def sold() -> bool:
            return bool(await connection.fetchval("select count(*) from sale") == COUNT)

        await eventually(sold, timeout=60)
    finally:
        for part in parts:
            part.stop()
        await asyncio.gather(*tasks)
    assert await connection.fetchval("select count(distinct n) from sale") == COUNT
    await connection.close()
    async with AsyncExitStack() as sessions:
        for _ in range(SESSIONS):
            client = await asyncpg.connect(pooled_url, statement_cache_size=0)
            sessions.push_async_callback(client.close)
            await client.execute("begin")  # it has a session of the server alone until its end
            assert await client.fetchval("select count(*) from pg_prepared_statements where name ~ '^outbox_[0-9]+$'") == 0


async def test_through_a_pooler_pauses_are_polled(database_url: str, pooled_url: str, caplog: pytest.LogCaptureFixture) -> None:
    await ensure_outbox_schema_async(database_url)
    caplog.set_level(logging.INFO, logger="outbox")
    connect = connect_to(pooled_url, application_name="reports")
    component = Component(kind=ComponentKind.RELAY, name="relay-1")
    settings = ReportingSettings(look_every=timedelta(hours=1))
    connection = await asyncpg.connect(database_url)
    async with reporting(connect, TableName("outbox_table"), component, Observers(()), Stopping(), settings) as reporter:
        gate = reporter.gate()
        await eventually(lambda: "pauses are polled: notifications do not arrive" in caplog.text)
        await pause(connection, Pause(scope=PauseScope.RELAY))
        async with asyncio.timeout(30):
            await gate.wait_until_closed()
    await connection.close()
