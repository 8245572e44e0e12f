"""The store's statements stay fast whatever the table holds, and survive the server."""

import asyncio
from datetime import timedelta
from importlib import resources

import asyncpg
import pytest

from outbox import ensure_outbox_schema_async
from outbox.core.message import Way
from outbox.core.outcome import DONE
from outbox.errors import DatabaseUnavailableError, SchemaError
from outbox.postgres.index_positions import FRONT
from outbox.postgres.pool import open_pool
from outbox.postgres.queries import TableName
from outbox.postgres.store import PostgresStore
from tests.relay.plans import SQL, explained
from tests.relay.support import ScriptedTransport, relaying
from tests.servers.postgres import OwnPostgres
from tests.support.eventually import eventually


def test_statements_are_of_characters_that_every_database_encoding_has() -> None:
    for file in resources.files("outbox.postgres").joinpath("sql").iterdir():
        assert file.read_text().isascii(), file.name


@pytest.fixture(scope="module")
def big_table_statement() -> str:
    """Half a million rows: scheduled, held, sent and failed ones in front of, among and behind some due ones."""
    return """
        insert into outbox_table (routing_key, body, send_after, sent_at, failed_at, last_error)
        select 'key' || i % 50, '',
            case i % 5 when 0 then now() + interval '1 day' when 1 then 'infinity' else now() - interval '1 hour' end,
            case when i % 5 = 2 then now() - i * interval '1 s' end,
            case when i % 5 = 3 then now() end,
            case i % 5 when 1 then 'unroutable' when 3 then 'refused' end
        from generate_series(1, 500000) i
    """


@pytest.mark.slow
async def test_no_hot_statement_scans_or_sorts_a_large_table(connection: asyncpg.Connection, big_table_statement: str) -> None:
    await connection.execute(big_table_statement)
    for name, arguments in {
        "claim": (500, 1_000_000, 1_000_000, [FRONT] * 11),
        "next_due": ([FRONT] * 11,),
        "release_held": ("key1", None, 1000),
        "ensure_probes": (),
        "any_held_or_blocked": (),
        "any_unsent": (),
        "delete_sent": (timedelta(hours=1), 1000),
    }.items():
        plan = await explained(connection, SQL[name], *arguments)
        assert not [node for node in plan if node["Node Type"] == "Seq Scan" and node.get("Relation Name")], name
        assert not [node for node in plan if "Sort" in node["Node Type"]], name


@pytest.mark.slow
async def test_claiming_from_a_large_backlog_reads_no_more_than_it_claims(connection: asyncpg.Connection) -> None:
    await connection.execute("insert into outbox_table (routing_key, body) select 'a', '' from generate_series(1, 200000)")
    await connection.execute("vacuum analyze outbox_table")
    plan = await explained(connection, SQL["claim"], 100, 1_000_000, 1_000_000, [FRONT] * 11, analyze=True)
    assert max(node["Actual Rows"] for node in plan) <= 100


@pytest.mark.parametrize("act", ["claim", "claim_stalled", "repair_lanes", "ensure_probes"])
async def test_connections_to_a_server_that_is_a_standby_now_are_not_used_again(
    url: str, connection: asyncpg.Connection, act: str
) -> None:
    """A session keeps the setting with which it began, as a connection keeps the server to which its address led."""
    await connection.execute(
        "insert into outbox_table (routing_key, body, ordering_key, last_error, send_after) "
        "values ('a', '', null, null, now()), ('a', '', 'key', 'blocked', 'infinity'), ('a', '', null, 'stalled', 'infinity')"
    )
    database = f"alter database {url.rpartition('/')[2]} set default_transaction_read_only"
    await connection.execute(f"{database} = on")
    pool = await open_pool(url, size=1, application_name="test")
    store = PostgresStore(pool, TableName("outbox_table"), keep_sent=False, longest_send=timedelta(seconds=1))

    async def write() -> None:
        match act:
            case "claim":
                claim = await store.claim(10)
            case "claim_stalled":
                claim = await store.claim_stalled([(Way("a", None), 1)])
            case _:
                await getattr(store, act)()
                return
        assert claim is not None
        async with claim:
            pass

    with pytest.raises(DatabaseUnavailableError, match="read-only"):
        await write()
    await connection.execute(f"{database} = off")
    await write()
    await pool.close()


async def test_a_large_backlog_is_known_without_counting_it(url: str, connection: asyncpg.Connection) -> None:
    await connection.execute("insert into outbox_table (routing_key, body) select 'a', '' from generate_series(1, 120000)")
    await connection.execute("vacuum analyze outbox_table")
    pool = await open_pool(url, size=1, application_name="test")
    store = PostgresStore(pool, TableName("outbox_table"), keep_sent=False, longest_send=timedelta(seconds=1))
    assert (await store.backlog()).unsent == pytest.approx(120_000, rel=0.01)
    await connection.execute("delete from outbox_table where id > 1000")
    assert (await store.backlog()).unsent == 1000
    await pool.close()
    plan = await explained(connection, SQL["backlog"], analyze=True)
    assert max(node["Actual Rows"] for node in plan) <= 100_000


async def test_a_missing_table_is_named_with_what_to_do(database_url: str) -> None:
    pool = await open_pool(database_url, size=1, application_name="test")
    store = PostgresStore(pool, TableName("no_such_table"), keep_sent=False, longest_send=timedelta(seconds=1))
    with pytest.raises(SchemaError, match=r"no_such_table.*outbox migrate"):
        await store.check()
    await pool.close()


async def test_a_database_that_is_away_is_one_error_without_its_password(own_postgres: OwnPostgres) -> None:
    pool = await open_pool(own_postgres.url, size=1, application_name="test")
    store = PostgresStore(pool, TableName("outbox_table"), keep_sent=False, longest_send=timedelta(seconds=1))
    own_postgres.stop()
    with pytest.raises(DatabaseUnavailableError) as caught:
        await store.claim(1)
    password = own_postgres.url.partition("://")[2].partition("@")[0].partition(":")[2]
    assert password not in str(caught.value)
    pool.terminate()


@pytest.mark.parametrize("outage", ["restart", "kill"])
async def test_a_relay_outlives_its_database(own_postgres: OwnPostgres, outage: str) -> None:
    await ensure_outbox_schema_async(own_postgres.url)
    transport = ScriptedTransport()
    async with relaying(own_postgres.url, transport) as relay:
        await publish(own_postgres.url, "before")
        await eventually(lambda: transport.routing_keys == ["before"])
        await asyncio.to_thread(own_postgres.restart if outage == "restart" else own_postgres.kill)
        await asyncio.to_thread(own_postgres.start)
        await publish(own_postgres.url, "after")
        await eventually(lambda: "after" in transport.routing_keys)
        assert not relay.task.done()


async def publish(url: str, routing_key: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute("insert into outbox_table (routing_key, body) values ($1, '')", routing_key)
    await connection.close()


async def test_a_frozen_relay_loses_its_rows_to_the_server_and_cannot_commit_late(
    url: str, connection: asyncpg.Connection
) -> None:
    """The server ends a transaction that idles longer than the longest send and a margin, here a second in all."""
    await connection.execute("insert into outbox_table (routing_key, body) values ('a', '')")
    frozen_pool = await open_pool(url, size=1, application_name="frozen")
    frozen = PostgresStore(frozen_pool, TableName("outbox_table"), keep_sent=False, longest_send=timedelta(seconds=-4))
    claim = await frozen.claim(1)
    assert claim is not None
    await eventually(lambda: is_claimable(connection))
    with pytest.raises(DatabaseUnavailableError):
        async with claim:
            await claim.settle([DONE])
    assert await connection.fetchval("select count(*) from outbox_table") == 1
    frozen_pool.terminate()


async def is_claimable(connection: asyncpg.Connection) -> bool:
    return await connection.fetchval("select id from outbox_table for update skip locked") is not None
