"""Reading operations takes a few index entries, however many letters they have and whatever the statistics say."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from outbox.admin.repairs.once import Confirmations, Keys
from outbox.admin.repairs.routes import FAILURES_FIRST
from outbox.dead_letters.changes import Statements
from outbox.postgres.pool import Connection, Pool, open_pool
from outbox.postgres.queries import TableName
from tests.postgres_transport.support import explained, rows_read

TABLE = TableName("outbox_table")
LETTERS = 60_000
OPERATIONS = 400
LARGE = {"outbox_operation_item", "outbox_operation", "outbox_confirmation", "outbox_idempotency"}


@pytest.fixture
async def pool(database: str) -> AsyncIterator[Pool]:
    """Connections of the test's own."""
    opened = await open_pool(database, size=2, application_name="tests")
    yield opened
    await opened.close()


@pytest.fixture(params=["never analysed", "analysed"])
async def connection(request: pytest.FixtureRequest, pool: Pool) -> AsyncIterator[Connection]:
    """Many operations, one of them large, many dry runs and many keys."""
    for table in LARGE:
        await pool.execute(f"alter table {table} set (autovacuum_enabled = off)")
    await pool.execute(
        "insert into outbox_operation (action, selector, options, total, done) "
        "select 'requeue', '{}', '{\"retention_seconds\": 1}', 1, 0 from generate_series(1, $1)",
        OPERATIONS,
    )
    await pool.execute(
        "insert into outbox_operation_item (operation_id, position, letter, outcome) "
        "select 1, n, n::text, case when n % 1000 = 0 then 'refused' when n % 2 = 0 then 'done' else 'pending' end "
        "from generate_series(1, $1) as n",
        LETTERS,
    )
    await pool.execute(
        "insert into outbox_confirmation (token_hash, actor, request_hash, total, expires_at) "
        "select decode(md5(n::text), 'hex'), 'ada', '\\x00', 1, now() from generate_series(1, 20000) as n"
    )
    await pool.execute(
        "insert into outbox_idempotency (actor, key, request_hash, token, held_until) "
        "select 'ada', n::text, '\\x00', gen_random_uuid(), now() from generate_series(1, 20000) as n"
    )
    if request.param == "analysed":
        await pool.execute("analyze")
    async with pool.acquire() as opened:
        yield opened


async def read(connection: Connection, statement: str, *arguments: object) -> float:
    """How many rows of large tables the greediest step of a statement has read. None of them is scanned."""
    nodes = await explained(connection, statement, *arguments)
    touching = [node for node in nodes if node.get("Relation Name") in LARGE]
    assert [
        node["Node Type"]
        for node in touching
        if node["Node Type"] == "Seq Scan" and node["Relation Name"] != "outbox_operation"
    ] == []
    return max(map(rows_read, touching))


async def test_reading_an_operation_does_not_count_its_items(pool: Pool, connection: Connection) -> None:
    sql = Statements(pool, TABLE, "operations.sql")
    assert await read(connection, sql["operation"], 1) <= OPERATIONS
    assert await read(connection, sql["operations"], False, 51, None) <= OPERATIONS
    assert await read(connection, sql["newer_operations"], False, 51, 0) <= OPERATIONS


async def test_a_page_of_items_reads_only_that_page(pool: Pool, connection: Connection) -> None:
    sql, outcomes = Statements(pool, TABLE, "operations.sql"), list(FAILURES_FIRST)
    for turn, position in ((1, 0), (5, 30_001), (6, 59_000)):
        assert await read(connection, sql["items_in_turn"], 1, outcomes, turn, position, 50) <= 50 * len(outcomes)
        assert await read(connection, sql["items_in_turn_backwards"], 1, outcomes, turn, position, 50) <= 50 * len(outcomes)
    assert await read(connection, sql["next_items"], 1, 50) <= 60


async def test_results_are_found_by_index(pool: Pool, connection: Connection) -> None:
    await connection.execute(
        "update outbox_operation_item set message_id = 'm' || position, queue = 'mail', result = 'waiting', settled_at = now(),"
        " check_at = now() where outcome = 'done'"
    )
    await connection.execute(
        "insert into outbox_history (at, fact, message_id, root_id, routing_key, queue) "
        "select clock_timestamp(), 'processed', 'm' || n, 'm', 'k', 'mail' from generate_series(1, 20000) as n"
    )
    sql = Statements(pool, TABLE, "results.sql")
    async with connection.transaction():
        await connection.execute(sql["in_order"])
        assert await read(connection, sql["due"], 500) <= 500
    # Without statistics it sorts what is open of the operation.
    assert await read(connection, sql["due_of"], 500, 1, True) <= LETTERS / 2
    ids, positions = [1] * 500, [2 * n for n in range(1, 501)]
    assert await read(connection, sql["look"], ids, positions, timedelta(days=7)) <= 500


async def test_tokens_and_keys_are_found_by_index(pool: Pool, connection: Connection) -> None:
    assert await read(connection, Confirmations(TABLE)._sql["find"], b"\0") <= 1
    assert await read(connection, Keys(TABLE)._sql["known"], "ada", "17") <= 1
