"""Cancelled at any moment, a transaction of the relay ends before its connection goes back, and the driver has no complaint."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from outbox.core.outcome import DONE
from outbox.postgres.pool import open_pool
from outbox.postgres.queries import TableName
from outbox.postgres.store import PostgresStore


async def count(store: PostgresStore) -> None:
    await store.backlog()


async def relay(store: PostgresStore) -> None:
    claim = await store.claim(1)
    assert claim is not None
    async with claim:
        await claim.settle([DONE])


@pytest.fixture
async def store(url: str, connection: asyncpg.Connection) -> AsyncIterator[PostgresStore]:
    await connection.execute("insert into outbox_table (routing_key, body) select 'a', '' from generate_series(1, 500)")
    pool = await open_pool(url, size=1, application_name="cancelled")
    yield PostgresStore(pool, TableName("outbox_table"), keep_sent=False, longest_send=timedelta(seconds=10))
    pool.terminate()


@pytest.mark.parametrize("work", [count, relay])
async def test_a_cancelled_transaction_ends_before_its_connection_goes_back(
    store: PostgresStore, work: Callable[[PostgresStore], Awaitable[None]]
) -> None:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    await work(store)
    for tenths_of_a_millisecond in range(100):
        task = asyncio.ensure_future(work(store))
        await asyncio.wait([task], timeout=tenths_of_a_millisecond / 10_000)
        task.cancel()
        await asyncio.wait([task])
    assert [context["message"] for context in complaints] == []
