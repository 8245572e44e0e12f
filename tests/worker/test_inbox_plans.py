"""With hundreds of thousands of marks neither marking nor pruning scans or sorts them, whatever the statistics say."""

from collections.abc import AsyncIterator
from datetime import timedelta

import asyncpg
import pytest

from outbox import ensure_outbox_schema_async
from outbox.errors import DatabaseUnavailableError
from outbox.ports import Marks
from outbox.postgres.inbox import Inbox, PostgresInbox, inbox_table_of
from outbox.postgres.pool import Connection, borrow_from, connect_to
from outbox.postgres.queries import TableName
from tests.postgres_transport.support import Node, explained, rows_read

MARKS = 200_000
LIMIT = 500
"""No step of a plan may read more rows than this."""
INBOX = inbox_table_of(TableName("outbox_table"))
RETENTION = timedelta(days=30)


@pytest.fixture
async def inbox(database_url: str) -> AsyncIterator[Connection]:
    """An inbox with a few old marks and one of this moment."""
    await ensure_outbox_schema_async(database_url)
    connection = await asyncpg.connect(database_url)
    await connection.execute("alter table outbox_inbox set (autovacuum_enabled = off)")
    await _mark(connection, "mail", 5, "31 days")
    await _mark(connection, "stock", 5, "40 days")
    await _mark(connection, "mail", 1, "0", prefix="new")
    yield connection
    await connection.close()


async def _mark(connection: Connection, queue: str, count: int, age: str, prefix: str = "id") -> None:
    await connection.execute(
        "insert into outbox_inbox (queue, message_id, processed_at)"
        " select $1, $4 || n, now() - $3::interval + n * interval '1 millisecond' from generate_series(1, $2::int) as n",
        *(queue, count, _interval(age), prefix),
    )


def _interval(age: str) -> timedelta:
    return timedelta(days=int(age.partition(" ")[0]))


async def test_what_is_too_old_is_pruned_oldest_first_in_batches(database_url: str, inbox: Connection) -> None:
    async with asyncpg.create_pool(database_url, min_size=0, max_size=1) as pool:
        pruning = PostgresInbox(borrow_from(pool), INBOX)
        assert await pruning.prune(RETENTION, 4) == 4
        assert {row["queue"] for row in await inbox.fetch("select queue from outbox_inbox where queue = 'stock'")} == {"stock"}
        assert await pruning.prune(RETENTION, 100) == 6
        assert await pruning.prune(RETENTION, 100) == 0
    assert await inbox.fetchval("select string_agg(message_id, ',') from outbox_inbox") == "new1"


async def test_pruning_waits_for_no_lock(database_url: str, inbox: Connection) -> None:
    async with inbox.transaction():
        await inbox.execute("select from outbox_inbox where queue = 'stock' for update")
        assert await PostgresInbox(connect_to(database_url, application_name="test"), INBOX).prune(RETENTION, 100) == 5


async def test_pruning_says_that_the_database_is_away(own_postgres: object) -> None:
    url = own_postgres.url  # type: ignore[attr-defined]
    own_postgres.stop()  # type: ignore[attr-defined]
    with pytest.raises(DatabaseUnavailableError, match="pruning the inbox"):
        await PostgresInbox(connect_to(url, application_name="test"), INBOX).prune(RETENTION, 100)


@pytest.mark.slow
@pytest.mark.parametrize("statistics", ["missing", "of an empty table", "right"])
async def test_neither_marking_nor_pruning_reads_more_than_a_batch(inbox: Connection, statistics: str) -> None:
    if statistics == "of an empty table":
        await inbox.execute("delete from outbox_inbox; analyze outbox_inbox")
    await _mark(inbox, "big", MARKS // 2, "35 days")
    await _mark(inbox, "huge", MARKS // 2, "1 day")
    if statistics == "right":
        await inbox.execute("analyze outbox_inbox")
    statements = Inbox(INBOX)
    known = [f"id{number}" for number in range(1, 50)]
    for ids in (["id7"], ["unknown"], [*known, "unknown"]):
        marking = statements.marking(Marks(queue="big", message_ids=ids, max_wait=timedelta(seconds=1)))
        _assert_frugal(await explained(inbox, marking.sql))
    _assert_frugal(await explained(inbox, statements.pruning, RETENTION, 100))


def _assert_frugal(nodes: list[Node]) -> None:
    for node in nodes:
        seen = f"{node['Node Type']} on {node.get('Relation Name')} read {rows_read(node)} rows"
        assert not (node["Node Type"] == "Seq Scan" and node["Relation Name"] == "outbox_inbox"), seen
        assert rows_read(node) <= LIMIT, seen
