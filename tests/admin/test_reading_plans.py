"""What the admin reads in addition to its lists is found by indexes, also without statistics of the planner."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from outbox.admin import backlog_reader as backlog
from outbox.admin.message_list import MessageListing
from outbox.dead_letters.reader import GroupNotes
from outbox.postgres.queries import query
from outbox.postgres.schema.objects import outbox_table, satellite_names
from tests.postgres_transport.support import explained, rows_read

TABLE = outbox_table("outbox_table")
ROWS = 5_000
HELD = 20


@pytest.fixture
async def large(database: str) -> AsyncIterator[asyncpg.Connection]:
    """Tables of some size."""
    connection = await asyncpg.connect(database)
    await connection.execute(f"""
        insert into outbox_table (routing_key, body, last_error, send_after, ordering_key, tracking_ids)
        select 'held.' || n % {HELD}, '', 'unroutable', case when n <= {HELD} then now() else 'infinity' end, 'key ' || n % 50,
            jsonb_build_array('m' || n)
        from generate_series(1, {ROWS}) as n;
        insert into outbox_table (routing_key, body, sent_at) select 'k', '', now() from generate_series(1, {ROWS});
        insert into outbox_history (fact, message_id, root_id, routing_key, queue)
        select 'processed', 'm' || n, 'm' || n, 'k', 'q' from generate_series(1, {ROWS}) as n;
        insert into outbox_stats (starts_at, seconds, routing_key, queue, sent)
        select date_trunc('minute', now()) - make_interval(mins => n), 60, 'k' || k, '', 1
        from generate_series(1, {ROWS // 10}) as n, generate_series(1, 10) as k;
        insert into outbox_operation (action, selector) select 'requeue', '{{}}' from generate_series(1, 50);
        insert into outbox_operation_item (operation_id, position, letter, outcome)
        select id, n, n::text, 'done' from outbox_operation, generate_series(1, {ROWS // 50}) as n;
        insert into outbox_group_note (by, group_id, note, noted_by)
        select 'queue', 'g' || n, 'a note', 'ada' from generate_series(1, {ROWS}) as n;
        analyze
    """)
    yield connection
    await connection.close()


async def test_other_reads_than_lists_use_indexes(large: asyncpg.Connection) -> None:
    names = satellite_names(None)
    listing, counting = MessageListing(TABLE)._sql, backlog.backlog_queries(TABLE)
    [(lane, table)] = await large.fetch("select hashtextextended('key 7', 0), 'outbox_table'::regclass::oid")
    asked = {
        "detail": (listing["detail"], (17,), 1),
        "first_of_key": (listing["first_of_key"], (lane, 2_000, table), 1),
        "probe": (listing["probe"], ("held.3", None, table), 1),
        "handled": (listing["handled"], ("m17",), 1),
        "rates": (counting["rates"], (), 60),
        "notes": (GroupNotes(TABLE)._sql["notes"], ("queue", ["g1", "g2"]), 2),
        "requeues_of": (query("dead_letter_list.sql", "requeues_of", **names), ("m17",), 1),
        "operations_of": (query("dead_letter_list.sql", "operations_of", **names), ("17",), 50 + 50),
        "held_keys": (query("topology.sql", "held_keys", table=TABLE.sql), (100,), HELD + 1),
    }
    async with large.transaction():
        await large.execute(counting["settings"])
        for name, (statement, arguments, most) in asked.items():
            for node in await explained(large, statement, *arguments):
                if node.get("Relation Name") == "outbox_operation":
                    continue  # a table of fifty rows
                assert node["Node Type"] != "Seq Scan" or rows_read(node) == 0, (name, node)
                if node["Node Type"].startswith(("Index", "Bitmap Heap")):
                    assert rows_read(node) <= most, (name, node["Node Type"], rows_read(node))
