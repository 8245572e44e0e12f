"""A copy of every table by logical replication: complete, silent, and a successor once its sequences are set."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import asyncpg
import psycopg2
import pytest

from outbox import Consumer, MessageRelay, Publisher, Reject, Worker, ensure_outbox_schema_sync
from outbox.postgres.history import ensure_partitions
from outbox.postgres.queries import BellName
from tests.servers.postgres import private_postgres
from tests.support import eventually

HISTORY = """
    create publication outbox_history for table outbox_history with (publish = 'insert', publish_via_partition_root = true)
"""
TABLES = """
    select relname from pg_class
    where relname like 'outbox%' and relkind in ('r', 'p') and not relispartition and relname <> 'outbox_schema_version'
    order by relname
"""
NEXT_NUMBERS = """
    select format('select setval(%L, %s);', schemaname || '.' || sequencename, last_value) from pg_sequences
    where sequencename like 'outbox%' and last_value is not null
"""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def published_and_copy(servers_folder: Path) -> Iterator[tuple[str, str]]:
    """The addresses of a database whose tables are all published, and of one that subscribes to them."""
    folder = servers_folder / f"replication-{uuid4().hex[:8]}"
    with private_postgres(folder / "publisher") as publisher, private_postgres(folder / "subscriber") as subscriber:
        _execute(publisher.url, "alter system set wal_level = logical")
        publisher.restart()
        for server in (publisher, subscriber):
            ensure_outbox_schema_sync(server.url)
        tables = ", ".join(table for table in _tables(publisher.url) if table != "outbox_history")
        _execute(publisher.url, f"create publication outbox for table {tables}", HISTORY)
        subscription = f"create subscription copy connection '{publisher.url}' publication outbox, outbox_history"
        _execute(subscriber.url, subscription)
        yield publisher.url, subscriber.url
        _execute(subscriber.url, "drop subscription if exists copy")


def _tables(url: str) -> list[str]:
    connection = psycopg2.connect(url)
    try:
        with connection.cursor() as cursor:
            cursor.execute(TABLES)
            return [name for (name,) in cursor.fetchall()]
    finally:
        connection.close()


def _execute(url: str, *statements: str) -> None:
    connection = psycopg2.connect(url)
    try:
        connection.autocommit = True
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
    finally:
        connection.close()


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


async def rows_of(url: str) -> dict[str, list[str]]:
    rows = {}
    async with connected(url) as connection:
        for table in _tables(url):
            rows[table] = sorted(row[0] for row in await connection.fetch(f"select t::text from {table} as t"))
    return rows


async def work(url: str, count: int) -> None:
    """Publishes, relays and handles messages, of which the first fails for good."""
    handled: list[int] = []

    async def handle(number: int) -> None:
        handled.append(number)
        if number == 0:
            raise Reject("the first one")

    consumer = Consumer("order.*", handle, queue="mail", inbox=True)
    relay = MessageRelay(url, broker=url, clean_up_after="IMMEDIATELY")
    worker = Worker(broker=url, db_engine_url=url, consumers=[consumer])
    tasks = [asyncio.create_task(part.run(handle_signals=False)) for part in (relay, worker)]
    async with connected(url) as connection:
        for number in range(count):
            async with connection.transaction():
                await Publisher().publish(connection, "order.placed", number, ordering_key=f"key:{number % 3}")
    await eventually(lambda: set(handled) == set(range(count)), timeout=60)
    relay.stop()
    worker.stop()
    await asyncio.gather(*tasks)


async def test_a_copy_has_every_row_wakes_no_sleeper_and_can_take_over_once_its_sequences_are_set(
    published_and_copy: tuple[str, str],
) -> None:
    publisher, copy = published_and_copy
    bells = [BellName.of("public", table) for table in ("outbox_table", "outbox_delivery")]
    rung: list[object] = []
    async with connected(copy) as sleeper:
        for bell in bells:
            await sleeper.execute("select pg_advisory_lock($1)", bell.lock_key)
            await sleeper.add_listener(bell.channel, lambda *notice: rung.append(notice))
        await work(publisher, 30)
        async with connected(publisher) as connection:
            assert await ensure_partitions(connection) > 0, "facts move from the default partition, and are counted once"
        original = await rows_of(publisher)
        assert len(original["outbox_dead_letter"]) == 1
        assert len(original["outbox_inbox"]) == 29
        assert original["outbox_history"]

        async def is_copied() -> bool:
            return await rows_of(copy) == original

        await eventually(is_copied, timeout=60)
        await sleeper.execute("select 1")
        assert rung == []

    async with connected(publisher) as connection:
        # What a publication of every table would do: deletes of facts, which have no key, would be refused.
        await connection.execute("create publication everything for all tables")
        with pytest.raises(asyncpg.ObjectNotInPrerequisiteStateError, match="does not have a replica identity"):
            await connection.execute("delete from outbox_history")
        await connection.execute("drop publication everything")
        statements = [row[0] for row in await connection.fetch(NEXT_NUMBERS)]
    _execute(copy, "drop subscription copy")
    async with connected(copy) as connection:
        with pytest.raises(asyncpg.UniqueViolationError):
            await connection.execute(
                "insert into outbox_dead_letter (source, exchange, queue, routing_key, body, tracking_ids, created_at, "
                "attempt, cause, exception_type, exception_message, exception_traceback) "
                "values ('worker', 'outbox', 'mail', 'a', '', '[]', now(), 1, 'rejected', '', '', '')"
            )
    _execute(copy, *statements)
    await work(copy, 5)
    assert len((await rows_of(copy))["outbox_dead_letter"]) == 2
