"""With hundreds of thousands of rows nothing is scanned or sorted, whatever the statistics say."""

from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import uuid4

import pytest

from outbox.postgres.index_positions import FRONT
from outbox.postgres.pool import Connection, Pool
from outbox.transports.postgres.handover import BEGIN, handover_queries
from tests.contract.harness import EXCHANGE
from tests.postgres_transport.support import TABLES, Node, bind, explained, fill_deliveries, rows_read
from tests.relay.plans import explained_as_kept, keep_plan

DELIVERIES = 300_000
PENDING = 300_000
LATER = 20_000
BINDINGS = 1_500
POISONED = 10_000
KEYS = 1_000
BATCH = 100
LIMIT = 20 * BATCH
"""Most rows that a step of a plan may read."""

HANDOVERS = ("hand_over", "hand_over_fair", "hand_over_lean")
SQL = handover_queries(TABLES)
LARGE_TABLES = {"outbox_table", "outbox_delivery"}
LEASE = timedelta(seconds=30)


@pytest.fixture(params=["never analysed", "analysed when empty", "analysed when full"])
async def connection(request: pytest.FixtureRequest, pool: Pool) -> AsyncIterator[Connection]:
    """A database with long queues and a large outbox, partly held, and with missing, wrong or correct statistics.

    Its connection has planned hand-overs when the outbox was empty.
    """
    await pool.execute("alter table outbox_table set (autovacuum_enabled = off)")
    await pool.execute("alter table outbox_delivery set (autovacuum_enabled = off)")
    if request.param == "analysed when empty":
        await pool.execute("vacuum analyze")
    async with pool.acquire() as opened:
        for name in HANDOVERS:
            await keep_plan(opened, name, SQL[name], begin=BEGIN)
        await fill(pool)
        if request.param == "analysed when full":
            await pool.execute("analyze")
        yield opened


async def fill(pool: Pool) -> None:
    await bind(pool, "mail", "order.*")
    await bind(pool, "stock", "order.placed")
    await fill_deliveries(pool, "mail", DELIVERIES // 2)
    await fill_deliveries(pool, "stock", DELIVERIES // 2)
    await fill_keys(pool, "ledger", waiting=POISONED, others=KEYS)
    await pool.execute(
        "insert into outbox_table (routing_key, body) select 'order.placed', 'x' from generate_series(1, $1)", PENDING // 2
    )
    await pool.execute(
        "insert into outbox_table (routing_key, body, last_error, send_after) "
        "select 'held.' || n % 10, 'x', 'unroutable', 'infinity' from generate_series(1, $1) as n",
        PENDING // 2,
    )
    # Some that may replace others, and some with ordering keys, all for later.
    await pool.execute(
        "insert into outbox_table (routing_key, body, dedup_key, ordering_key, send_after) "
        "select 'later', 'x', n::text, case when n % 2 = 0 then n::text end, now() + interval '1 day' "
        "from generate_series(1, $1) as n",
        LATER,
    )
    await pool.execute(
        "insert into outbox_subscription (exchange, queue, binding_key) select $1, 'q' || n % 10, 'other.' || n "
        "from generate_series(1, $2) as n",
        EXCHANGE,
        BINDINGS,
    )


async def fill_keys(pool: Pool, queue: str, *, waiting: int, others: int) -> None:
    """A queue with very many deliveries of one key, and two of each of many other keys."""
    await pool.execute(
        "insert into outbox_delivery (exchange, queue, message_id, routing_key, body, tracking_ids, ordering_key) "
        "select $1, $2, n::text, 'a.b', 'x', jsonb_build_array(n::text), "
        "case when n <= $3 then 'poison' else 'key ' || n % $4 end "
        "from generate_series(1, $3 + 2 * $4) as n",
        EXCHANGE,
        queue,
        waiting,
        others,
    )


def assert_frugal(nodes: list[Node]) -> None:
    """Asserts that no large table is scanned, nothing large is sorted, and no index is read beyond a few batches."""
    for node in nodes:
        seen = f"{node['Node Type']} on {node.get('Relation Name')} read {rows_read(node)} rows"
        assert not (node["Node Type"] == "Seq Scan" and node["Relation Name"] in LARGE_TABLES), seen
        assert rows_read(node) <= LIMIT, seen


@pytest.mark.slow
async def test_plans_read_no_more_than_a_few_batches(connection: Connection) -> None:
    """One test, because filling the tables takes longer than everything else."""
    await claims_are_frugal(connection)
    await hand_overs_are_frugal(connection)


async def claims_are_frugal(connection: Connection) -> None:
    sql = TABLES.queries("delivery.sql")
    token = uuid4()
    claimed = await connection.fetch(sql["claim"], "mail", BATCH, token, LEASE, FRONT, 10**9, 10**9)
    ids, tokens = [row["id"] for row in claimed], [token] * BATCH
    text, failures = ["x"] * BATCH, ['[{"type": "x"}]'] * BATCH

    assert_frugal(await explained(connection, sql["claim"], "mail", BATCH, token, LEASE, FRONT, 10**9, 10**9))
    assert_frugal(await explained(connection, sql["next_due"], ["mail", "stock", "none"], [FRONT] * 3))
    assert_frugal(await explained(connection, sql["renew"], ids, tokens, LEASE))
    assert_frugal(await explained(connection, sql["done"], ids, tokens))
    assert_frugal(await explained(connection, sql["retry"], ids, tokens, [LEASE] * BATCH, failures))
    assert_frugal(await explained(connection, sql["give_back"], ids, tokens, [False] * BATCH))
    columns = (["worker"] * BATCH, text, text, text, text, failures, text, text, text, text, text)
    assert_frugal(await explained(connection, sql["dead_letter"], ids, tokens, *columns))
    assert_frugal(await explained(connection, sql["whereabouts"], ids))
    # However many wait behind the first one of their key.
    in_order = ("ledger", BATCH, uuid4(), LEASE, 10 * BATCH, 10**9, 10**9)
    assert_frugal(await explained(connection, sql["claim_ordered"], *in_order))
    assert_frugal(await explained(connection, sql["release"], "ledger", ["poison", *(f"key {n}" for n in range(BATCH))]))
    assert (await connection.fetch(sql["claim_ordered"], "ledger", 1, uuid4(), LEASE, POISONED, 10**9, 10**9))[0]["left"] == 0
    assert_frugal(await explained(connection, sql["claim_ordered"], *in_order))
    assert len(await connection.fetch(sql["claim_ordered"], *in_order)) == BATCH


async def hand_overs_are_frugal(connection: Connection) -> None:
    """All kinds, newly planned and as planned before, and again when held rows of ten keys are due while many more wait."""
    fronts, nothing = [FRONT] * 10, [0] * 10
    places = {"hand_over": ([*fronts, FRONT],), "hand_over_fair": ([*fronts, FRONT],), "hand_over_lean": (fronts, nothing)}
    for held_are_due in (False, True):
        if held_are_due:
            await connection.execute(
                "update outbox_table set send_after = now() - interval '1 hour' where id in "
                "(select id from outbox_table where last_error = 'unroutable' order by id limit 200)"
            )
        for name, begin in places.items():
            arguments = (EXCHANGE, BATCH, False, False, [], [], timedelta(seconds=1), None, 10**6, None, 10**6, *begin)
            assert_frugal(await explained(connection, SQL[name], *arguments))
            assert_frugal(await explained_as_kept(connection, name, *arguments, begin=BEGIN))
