"""A transaction elsewhere keeps dead rows in the index: claims step over them, and what lies among them is found."""

from collections.abc import AsyncIterator
from datetime import timedelta

import asyncpg
import pytest

from outbox import ensure_outbox_schema_async
from outbox.core.outcome import DONE
from outbox.postgres.pool import Pool, open_pool
from outbox.postgres.queries import TableName
from outbox.postgres.store import PostgresStore
from tests.relay.support import ScriptedTransport, entries_read, relaying
from tests.support.eventually import eventually

DEAD = 20_000


@pytest.fixture(autouse=True)
def _every_claim_counts_as_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outbox.postgres.index_positions.SLOW_SECONDS", 0.0)


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    await ensure_outbox_schema_async(database_url)
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


async def test_claims_step_over_dead_rows_that_a_transaction_retains(
    connection: asyncpg.Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.postgres.index_positions.REST", 10_000)
    await connection.execute("alter table outbox_table set (autovacuum_enabled = off)")
    await connection.execute(
        "insert into outbox_table (routing_key, body, send_after) "
        "select 'dead', '', now() - interval '1 hour' from generate_series(1, $1)",
        DEAD,
    )
    pool = await open_pool(database_url, size=1, application_name="tests")
    old_snapshot = await asyncpg.connect(database_url)
    try:
        async with old_snapshot.transaction(isolation="repeatable_read"):
            await old_snapshot.execute("select from outbox_table limit 1")
            await connection.execute("delete from outbox_table")
            await connection.execute(
                "insert into outbox_table (routing_key, body) select 'live', '' from generate_series(1, 20)"
            )
            store = PostgresStore(pool, TableName("outbox_table"), keep_sent=False, longest_send=timedelta(seconds=10))
            reads = [await _reads_of_a_claim(store, pool, "outbox_table_due_idx") for _ in range(2)]
    finally:
        await old_snapshot.close()
        await pool.close()
    assert reads[0] >= DEAD
    assert reads[1] <= 100


async def test_claims_of_rows_without_keys_step_over_dead_ones_with_keys(
    connection: asyncpg.Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.postgres.index_positions.REST", 10_000)
    await connection.execute("alter table outbox_table set (autovacuum_enabled = off)")
    await connection.execute("insert into outbox_table (routing_key, body, ordering_key) values ('last', '', 'k')")
    pool = await open_pool(database_url, size=1, application_name="tests")
    old_snapshot = await asyncpg.connect(database_url)
    store = PostgresStore(pool, TableName("outbox_table"), keep_sent=False, longest_send=timedelta(seconds=10))
    try:
        claim = await store.claim(1)
        assert claim is not None
        async with claim:
            await claim.settle([DONE])
        await connection.execute(
            "insert into outbox_table (routing_key, body, ordering_key, send_after) "
            "select 'dead', '', 'k' || i, now() - interval '1 hour' from generate_series(1, $1) as i",
            DEAD,
        )
        async with old_snapshot.transaction(isolation="repeatable_read"):
            await old_snapshot.execute("select from outbox_table limit 1")
            await connection.execute("delete from outbox_table")
            await connection.execute(
                "insert into outbox_table (routing_key, body) select 'live', '' from generate_series(1, 15)"
            )
            reads = [await _reads_of_a_claim(store, pool, "outbox_table_ordered_due_idx", 5) for _ in range(3)]
    finally:
        await old_snapshot.close()
        await pool.close()
    assert max(reads) <= 100


async def _reads_of_a_claim(store: PostgresStore, pool: Pool, index: str, count: int = 10) -> int:
    """How many entries of `index` a claim of some rows read, dead ones included. The pool has one connection."""
    before = await entries_read(pool, index)
    claim = await store.claim(count)
    assert claim is not None
    async with claim:
        await claim.settle([DONE] * count)
    return await entries_read(pool, index) - before


async def test_what_was_committed_late_is_found_all_the_same(connection: asyncpg.Connection, database_url: str) -> None:
    """Its transaction began long before the rows that the relay has claimed meanwhile."""
    transport = ScriptedTransport()
    async with relaying(database_url, transport):
        await connection.execute("insert into outbox_table (routing_key, body) values ('first', '')")
        await eventually(lambda: "first" in transport.routing_keys)
        await connection.execute(
            "insert into outbox_table (routing_key, body, send_after) values ('late', '', now() - interval '1 hour')"
        )
        await eventually(lambda: "late" in transport.routing_keys)
