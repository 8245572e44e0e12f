"""What a message costs the database, counted and not timed: transactions, and bytes of write-ahead log."""

from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from outbox import MessageRelay, OutboxMessage, Publisher
from outbox.core.outcome import DONE
from outbox.ports import Backlog
from outbox.postgres.claiming import FAIR_EVERY
from outbox.postgres.pool import Connector, open_pool
from outbox.postgres.queries import TableName
from outbox.postgres.store import PostgresStore
from outbox.transports.postgres.handover import PostgresHandover
from tests.contract.harness import EXCHANGE
from tests.postgres_transport.support import bind
from tests.relay.support import ScriptedTransport, facts_on, publish, relaying, rows, rows_are, running
from tests.support.eventually import eventually

COUNT = 5_000


async def commits(url: str) -> int:
    """Transactions of the database that this connection does not share with its observers."""
    connection = await asyncpg.connect(url)
    await connection.execute("select pg_stat_force_next_flush()")
    count: int = await connection.fetchval("select xact_commit from pg_stat_database where datname = current_database()")
    await connection.close()
    return count


async def wal(connection: asyncpg.Connection) -> int:
    position: int = await connection.fetchval("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn")
    return position


async def test_a_bulk_publish_is_one_statement_whatever_its_length(connection: asyncpg.Connection) -> None:
    async with connection.transaction():  # once a connection, asyncpg asks for the types of arrays
        await Publisher().publish_async(connection, "first", b"")
    statements: list[str] = []
    connection.add_query_logger(lambda record: statements.append(record.query))
    async with connection.transaction():
        await Publisher().bulk_publish_async(connection, [OutboxMessage("a", b"x" * 256) for _ in range(COUNT)])
    await eventually(lambda: "COMMIT;" in statements)
    assert [statement.split(None, 1)[0] for statement in statements] == ["BEGIN;", "insert", "COMMIT;"]


async def test_looking_after_an_empty_outbox_takes_one_statement_for_repairs_and_one_for_the_backlog(url: str) -> None:
    statements: list[str] = []
    async with await open_pool(url, size=1, application_name="test") as pool:
        async with pool.acquire() as connection:
            connection.add_query_logger(lambda record: statements.append(record.query))
        store = PostgresStore(pool, TableName("outbox_table"), keep_sent=False, longest_send=timedelta(seconds=10))
        assert await store.repair() == 0
        assert await store.backlog() == Backlog(unsent=0, oldest_due=None)
        await pool.execute("select 'the end'")
        await eventually(lambda: "select 'the end'" in statements)
        assert len(statements) == 3


@pytest.mark.parametrize("key", [None, "key"])
@pytest.mark.parametrize("broker", ["RabbitMQ", "PostgreSQL"])
async def test_a_connection_plans_what_it_repeats_for_each_message_once(
    url: str, connection: asyncpg.Connection, broker: str, key: str | None
) -> None:
    table = TableName("outbox_table")
    async with await open_pool(url, size=1, application_name="test", connector=Connector()) as pool:
        await bind(pool, "mail", "#")
        store = PostgresStore(
            pool, table, keep_sent=False, longest_send=timedelta(seconds=10), facts=await facts_on(connection)
        )
        handover = PostgresHandover(pool, table, exchange_name=EXCHANGE, keep_sent=False, facts=await facts_on(connection))
        for _ in range(2 * FAIR_EVERY):
            await connection.execute("insert into outbox_table (routing_key, body, ordering_key) values ('a', '', $1)", key)
            while await rows(connection):
                if broker == "PostgreSQL":
                    await handover.hand_over(10)
                elif claim := await store.claim(10):
                    async with claim:
                        await claim.settle([DONE])
            await store.next_due()
        planned = await pool.fetch(
            "select statement, custom_plans from pg_prepared_statements where generic_plans + custom_plans > 1"
        )
    assert len(planned) >= 3
    assert [row["statement"] for row in planned if row["custom_plans"]] == []


@pytest.mark.parametrize(("unsent", "repairs"), [(0, 0), (1, 1)])
async def test_a_relay_looks_for_what_would_wait_forever_if_anything_is_unsent(
    url: str, connection: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch, unsent: int, repairs: int
) -> None:
    calls: list[str] = []
    for name in ("repair", "stalled_ways"):  # in this order
        original = getattr(PostgresStore, name)

        async def noted(store: PostgresStore, *arguments: Any, name: str = name, original: Any = original) -> Any:
            calls.append(name)
            return await original(store, *arguments)

        monkeypatch.setattr(PostgresStore, name, noted)
    later = "insert into outbox_table (routing_key, body, send_after) select 'a', '', now() + '1 h' from generate_series(1, $1)"
    await connection.execute(later, unsent)
    async with relaying(url, ScriptedTransport()):
        await eventually(lambda: "stalled_ways" in calls)
        assert calls.count("repair") == repairs


async def test_relaying_takes_few_transactions_and_little_log(url: str, connection: asyncpg.Connection) -> None:
    await connection.execute("alter table outbox_table set (autovacuum_enabled = off)")  # which writes to the log, too
    await connection.execute(
        "insert into outbox_table (routing_key, body) "
        f"select 'a', convert_to(repeat('x', 256), 'utf8') from generate_series(1, {COUNT})"
    )
    log_before, commits_before = await wal(connection), await commits(url)
    async with relaying(url, ScriptedTransport(), lanes=1) as relay:
        await eventually(lambda: rows_are(connection, 0), interval=0.5)
        log = await wal(connection) - log_before
        await relay.stopped()
    taken = await commits(url) - commits_before
    batches = 14  # of 50, 100, 200, 400 and then 500 messages
    looks_of_the_test_and_the_idle_relay = 60
    assert taken <= batches + looks_of_the_test_and_the_idle_relay
    assert log / COUNT < 250  # a lock and a deletion of each row, and some full pages


@pytest.mark.parametrize("over", ["own pool", "given pool", "hand-over"])
async def test_the_server_compiles_no_claim(url: str, connection: asyncpg.Connection, over: str) -> None:
    await connection.execute("create table seen (jit text)")
    await connection.execute(
        "create function note() returns trigger language plpgsql as "
        "$$begin insert into seen values (current_setting('jit')); return old; end$$"
    )
    await connection.execute("create trigger note before delete on outbox_table for each row execute function note()")
    await connection.execute("alter database " + await connection.fetchval("select current_database()") + " set jit = on")
    async with asyncpg.create_pool(url, min_size=0) as pool:
        database: dict[str, Any] = {"db_pool": pool} if over == "given pool" else {"db_engine_url": url}
        broker = url if over == "hand-over" else ScriptedTransport()
        await bind(pool, "mail", "#", exchange="outbox")
        async with running(MessageRelay(**database, broker=broker, enable_metrics=False)):
            await connection.execute("insert into outbox_table (routing_key, body) values ('a', '')")
            await publish(connection, "key", "b", "c")
            await eventually(lambda: rows_are(connection, 0))
    assert {row["jit"] for row in await connection.fetch("select jit from seen")} == {"off"}
