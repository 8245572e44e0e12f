"""Priority: due messages with higher priority first, and no starvation."""

from collections import Counter
from datetime import timedelta

import asyncpg
import pytest

from outbox.engine.ordering import OrderingRules
from outbox.postgres.history import SentFacts
from outbox.postgres.index_positions import FRONT
from outbox.postgres.ordering import Lanes
from outbox.postgres.queries import TableName
from tests.relay.plans import SQL, explained, explained_as_kept, keep_plan
from tests.relay.support import Recorder, ScriptedTransport, relaying, rows_are
from tests.support.eventually import eventually

LANES_SQL = Lanes(TableName("outbox_table"), OrderingRules()).sql
KEPT = {
    **{name: SQL[name] for name in ("claim", "claim_fair", "claim_lean", "claim_unread", "read", "next_due")},
    **{name: SQL[name] for name in ("supersede", "delete", "keep", "stall")},
    **{name: LANES_SQL[name] for name in ("find_lanes", "claim_runs", "claim_head_unread", "release_next")},
    "record": SentFacts(TableName("outbox_table"), "relay-1", Recorder()).sql["record"],
}
"""Statements that a connection plans once, and keeps the plan of."""


async def fill(connection: asyncpg.Connection, name: str, priority: int, count: int) -> None:
    await connection.execute(
        "insert into outbox_table (routing_key, body, priority) select $1, '', $2 from generate_series(1, $3)",
        name,
        priority,
        count,
    )


async def test_higher_priorities_go_first(url: str, connection: asyncpg.Connection) -> None:
    for priority in (0, 5, 9, 1):
        await fill(connection, str(priority), priority, 3)
    transport = ScriptedTransport()
    async with relaying(url, transport, lanes=1):
        await eventually(lambda: rows_are(connection, 0))
    assert transport.routing_keys == ["9"] * 3 + ["5"] * 3 + ["1"] * 3 + ["0"] * 3


async def test_a_priority_that_is_not_due_is_passed_over(url: str, connection: asyncpg.Connection) -> None:
    await fill(connection, "urgent", 9, 1)
    await connection.execute("update outbox_table set send_after = now() + interval '1 s'")
    await fill(connection, "now", 0, 2)
    transport = ScriptedTransport()
    async with relaying(url, transport, lanes=1):
        await eventually(lambda: rows_are(connection, 0))
    assert transport.routing_keys == ["now", "now", "urgent"]


@pytest.mark.parametrize("batch_size", [1, 10])
async def test_a_low_priority_has_its_share_while_there_is_no_end_of_high_ones(
    url: str, connection: asyncpg.Connection, batch_size: int
) -> None:
    await fill(connection, "low", 0, 2)
    await fill(connection, "middle", 4, 2)
    await fill(connection, "high", 9, 50 * batch_size)
    transport = ScriptedTransport()
    async with relaying(url, transport, lanes=1, batch_size=batch_size):
        await eventually(lambda: rows_are(connection, 0))
    last = {name: place for place, name in enumerate(transport.routing_keys)}
    assert transport.routing_keys[0] == "high"
    assert last["low"] < 20 * batch_size
    assert last["middle"] < 30 * batch_size


async def test_a_low_priority_is_not_preferred_either(url: str, connection: asyncpg.Connection) -> None:
    await fill(connection, "low", 0, 500)
    await fill(connection, "high", 9, 200)
    transport = ScriptedTransport()
    async with relaying(url, transport, lanes=1, batch_size=10):
        await eventually(lambda: rows_are(connection, 0))
    assert Counter(transport.routing_keys[:200])["high"] >= 140


async def test_keyed_rows_have_their_share_while_there_is_no_end_of_high_priorities(
    url: str, connection: asyncpg.Connection
) -> None:
    await fill(connection, "high", 9, 1000)
    await connection.execute(
        "insert into outbox_table (routing_key, body, ordering_key) select 'keyed', '', i::text from generate_series(1, 20) i"
    )
    transport = ScriptedTransport()
    async with relaying(url, transport, lanes=1, batch_size=10):
        await eventually(lambda: rows_are(connection, 0))
    keyed = [place for place, name in enumerate(transport.routing_keys) if name == "keyed"]
    assert 20 <= keyed[0] < 100
    assert keyed[-1] < 400


async def test_keyed_rows_that_come_during_a_long_backlog_have_their_share_of_it(
    url: str, connection: asyncpg.Connection
) -> None:
    await fill(connection, "plain", 0, 2000)
    transport = ScriptedTransport()
    async with relaying(url, transport, lanes=1, batch_size=10):
        await eventually(lambda: len(transport.routing_keys) >= 100)
        await connection.execute(
            "insert into outbox_table (routing_key, body, ordering_key) "
            "select 'keyed', '', i::text from generate_series(1, 20) i"
        )
        came = len(transport.routing_keys)
        await eventually(lambda: rows_are(connection, 0), timeout=60)
    keyed = [place for place, name in enumerate(transport.routing_keys) if name == "keyed"]
    assert keyed[-1] < came + 200


@pytest.mark.slow
@pytest.mark.parametrize("statistics", ["never analysed", "analysed when empty", "analysed when full", "planned when empty"])
async def test_claims_read_no_more_than_they_take_whatever_is_scheduled_held_or_blocked(
    connection: asyncpg.Connection, statistics: str
) -> None:
    await connection.execute("alter table outbox_table set (autovacuum_enabled = off)")
    is_kept = statistics == "planned when empty"
    if is_kept or statistics == "analysed when empty":
        await connection.execute("vacuum analyze outbox_table")
    if is_kept:
        for name, statement in KEPT.items():
            await keep_plan(connection, name, statement)
    await connection.execute(
        "insert into outbox_table (routing_key, body, priority, send_after) "
        "select 'scheduled', '', i % 10, now() + interval '1 day' from generate_series(1, 50000) i"
    )
    await connection.execute(
        "insert into outbox_table (routing_key, body, ordering_key, send_after, last_error) "
        "select 'blocked', '', 'k' || i % 5000, 'infinity', 'blocked' from generate_series(1, 50000) i"
    )
    await connection.execute(
        "insert into outbox_table (routing_key, body, ordering_key, send_after, dedup_key) "
        "select 'timer', '', 'k' || i, now() + interval '1 day', i::text from generate_series(1, 30000) i"
    )
    await connection.execute(
        "insert into outbox_table (routing_key, body, priority) select 'due', '', i % 3 from generate_series(1, 3000) i"
    )
    await connection.execute(
        "insert into outbox_table (routing_key, body, ordering_key) "
        "select 'keyed', '', 'd' || i % 500 from generate_series(1, 3000) i"
    )
    if statistics == "analysed when full":
        await connection.execute("analyze outbox_table")
    rules = ([""], ["block"])
    seen = await connection.fetch(
        "select hashtextextended(ordering_key, 0) as lane, min(id) as head from outbox_table "
        "where routing_key = 'keyed' group by ordering_key"
    )
    lanes, heads = [row["lane"] for row in seen], [row["head"] for row in seen]
    texts, times = ["x"] * 500, [timedelta(seconds=1)] * 500
    for name, statement, arguments in (
        ("claim", SQL["claim"], (500, 1_000_000, 1_000_000, [FRONT] * 11)),
        ("claim_fair", SQL["claim_fair"], (500, 1_000_000, 1_000_000, [FRONT] * 11)),
        ("claim_lean", SQL["claim_lean"], (500, 1_000_000, 1_000_000, [FRONT] * 10, [0] * 10)),
        ("claim_unread", SQL["claim_unread"], (False,)),
        ("claim_unread", SQL["claim_unread"], (True,)),
        ("read", SQL["read"], (heads[0], 1_000_000)),
        ("next_due", SQL["next_due"], ([FRONT] * 11,)),
        ("supersede", SQL["supersede"], (heads,)),
        ("delete", SQL["delete"], (heads,)),
        ("keep", SQL["keep"], (heads,)),
        ("retry", SQL["retry"], (heads, texts, times)),
        ("park", SQL["park"], (heads, texts)),
        ("hold", SQL["hold"], (heads, times)),
        ("stall", SQL["stall"], (heads,)),
        ("record", KEPT["record"], (heads, texts, texts, texts, "x", [None] * 500)),
        ("find_lanes", LANES_SQL["find_lanes"], (*rules, 1000, FRONT, 500)),
        ("claim_runs", LANES_SQL["claim_runs"], (lanes, ["block"] * 500, 6, 500, 1_000_000, 1_000_000)),
        ("claim_head_unread", LANES_SQL["claim_head_unread"], (lanes[0], "block")),
        ("supersede_heads", LANES_SQL["supersede_heads"], (heads,)),
        ("share_heads", LANES_SQL["share_heads"], (heads, ["block"] * 500)),
        ("defer", LANES_SQL["defer"], (lanes, heads, 1000, FRONT)),
        ("park_behind", LANES_SQL["park_behind"], (lanes, heads, 1000, FRONT)),
        ("release_next", LANES_SQL["release_next"], (lanes, ["block"] * 500)),
        ("any_held_or_blocked", SQL["any_held_or_blocked"], ()),
        ("any_unsent", SQL["any_unsent"], ()),
        ("repair_lanes", LANES_SQL["repair_lanes"], (*rules, -(2**63), 1000)),
    ):
        if is_kept and name not in KEPT:
            continue
        nodes = await (
            explained_as_kept(connection, name, *arguments)
            if is_kept
            else explained(connection, statement, *arguments, analyze=True)
        )
        for node in nodes:
            read = node["Actual Rows"] * node["Actual Loops"] + node.get("Rows Removed by Filter", 0) * node["Actual Loops"]
            what = f"{name}: {node['Node Type']} on {node.get('Relation Name') or node.get('CTE Name')} read {read} rows"
            assert not (node["Node Type"] == "Seq Scan" and node.get("Relation Name") == "outbox_table"), what
            assert read <= 12_000, what
            if "Sort" in node["Node Type"]:
                assert read <= 5_000, what
