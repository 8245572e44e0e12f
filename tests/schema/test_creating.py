"""Every way to create the tables has the same result."""

import asyncio
import sys
from typing import Any

import asyncpg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.runtime.environment import IncludeNameFn
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import create_async_engine

from outbox.errors import SchemaError
from outbox.postgres.history import ensure_partitions
from outbox.postgres.schema import HEAD
from outbox.postgres.schema.objects import SATELLITES
from outbox.schema import (
    downgrade,
    ensure_outbox_schema_async,
    ensure_outbox_table_async,
    include_name,
    include_name_beside,
    migrate,
    schema_sql,
    upgrade,
)
from tests.schema.catalog import catalog, clear
from tests.schema.support import REPOSITORY, Alembic
from tests.support import eventually


async def test_alembic_and_ensure_outbox_schema_create_the_same_schema(
    alembic: Alembic, connection: asyncpg.Connection, database_url: str
) -> None:
    await alembic.upgrade()
    by_alembic = await catalog(connection)
    await clear(connection)
    await ensure_outbox_schema_async(database_url)
    assert await catalog(connection) == by_alembic
    assert [row[0] for row in by_alembic["tables"]] == [
        "outbox_alert",
        "outbox_alert_delivery",
        "outbox_audit",
        "outbox_component",
        "outbox_confirmation",
        "outbox_control",
        "outbox_dead_letter",
        "outbox_dead_letter_edition",
        "outbox_delivery",
        "outbox_group_mark",
        "outbox_group_note",
        "outbox_history",
        "outbox_history_default",
        "outbox_idempotency",
        "outbox_inbox",
        "outbox_lease",
        "outbox_login_failure",
        "outbox_operation",
        "outbox_operation_item",
        "outbox_relay",
        "outbox_requeue_policy",
        "outbox_revoked_token",
        "outbox_schema_version",
        "outbox_session",
        "outbox_stats",
        "outbox_subscription",
        "outbox_table",
    ]


async def test_the_printed_sql_creates_the_same_schema(connection: asyncpg.Connection, database_url: str) -> None:
    await ensure_outbox_schema_async(database_url)
    expected = await catalog(connection)
    await clear(connection)
    await connection.execute(schema_sql())
    assert await catalog(connection) == expected
    await connection.execute(schema_sql())
    assert await catalog(connection) == expected
    assert await connection.fetchval("select version_num from outbox_schema_version") == HEAD


async def test_alembics_offline_mode_creates_the_same_schema(
    alembic: Alembic, connection: asyncpg.Connection, database_url: str
) -> None:
    await ensure_outbox_schema_async(database_url)
    expected = await catalog(connection)
    await clear(connection)
    await connection.execute(await alembic.upgrade_sql())
    assert await catalog(connection) == expected
    await connection.execute(await alembic.downgrade_sql())
    assert (await catalog(connection))["functions"] == []
    assert [row[0] for row in (await catalog(connection))["tables"]] == ["outbox_schema_version"]


async def test_upgrade_downgrade_upgrade_ends_where_it_began(alembic: Alembic, connection: asyncpg.Connection) -> None:
    await alembic.upgrade()
    first = await catalog(connection)
    await alembic.downgrade()
    below = await catalog(connection)
    assert [row[0] for row in below["tables"]] == ["outbox_schema_version"]
    assert below["functions"] == below["sequences"] == []
    await alembic.upgrade()
    assert await catalog(connection) == first


_DELIVERY = """
    insert into outbox_delivery (exchange, queue, message_id, routing_key, body, tracking_ids)
    values ('e', 'q', 'i', 'a', '', '[]')
"""
_DEAD_LETTER = """
    insert into outbox_dead_letter (source, exchange, queue, routing_key, body, tracking_ids, created_at, attempt,
        cause, exception_type, exception_message, exception_traceback)
    values ('worker', 'e', 'q', 'a', '', '[]', now(), 1, 'rejected', 'E', '', '')
"""


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("insert into outbox_table (routing_key, body) values ('a', '')", "not sent"),
        (_DELIVERY, "not handled"),
        (_DEAD_LETTER, "open dead letters"),
    ],
)
async def test_a_downgrade_never_drops_messages(alembic: Alembic, connection: asyncpg.Connection, row: str, what: str) -> None:
    await alembic.upgrade()
    before = await catalog(connection)
    await connection.execute(row)
    with pytest.raises(Exception, match=what):
        await alembic.downgrade()
    assert await catalog(connection) == before
    assert HEAD in await alembic.current()


async def test_a_database_of_the_first_version_is_upgraded_with_its_rows_and_downgraded(
    alembic: Alembic, connection: asyncpg.Connection, database_url: str
) -> None:
    await ensure_outbox_schema_async(database_url)
    newest = await catalog(connection)
    await clear(connection)
    await _as_host(database_url, lambda op: upgrade(op, to="0001"))
    first = await catalog(connection)
    await connection.execute("insert into outbox_table (routing_key, body) values ('a', '')")
    await connection.execute(_DELIVERY)
    await connection.execute(_DEAD_LETTER)

    await alembic.upgrade()
    assert await catalog(connection) == newest
    await _as_host(database_url, lambda op: downgrade(op, since=HEAD, to="0001"))
    assert await catalog(connection) == first
    await ensure_outbox_schema_async(database_url)
    assert await catalog(connection) == newest

    for table in ("outbox_table", "outbox_delivery", "outbox_dead_letter"):
        assert await connection.fetchval(f"select count(*) from {table}") == 1


async def test_the_index_of_chains_keeps_writers_away_from_the_partition_of_today_only(
    connection: asyncpg.Connection, database_url: str
) -> None:
    """While it is built for the days before, which may have millions of facts."""
    await ensure_outbox_schema_async(database_url)
    await ensure_partitions(connection)
    await _as_host(database_url, lambda op: downgrade(op, since=HEAD, to="0006"))
    today = await connection.fetchval("select 'outbox_history_p' || to_char(now() at time zone 'UTC', 'YYYYMMDD')")
    write = "insert into outbox_history (fact, message_id, root_id, routing_key) values ('sent', 'a', 'a', 'a')"
    locked = (
        "select relation::regclass::text from pg_locks where relation::regclass::text like 'outbox_history%' "
        "and mode = 'ShareLock' and database = (select oid from pg_database where datname = current_database()) and "
    )
    async with connection.transaction():
        await connection.execute(write)
        upgrading = asyncio.create_task(_as_host(database_url, lambda op: upgrade(op, to=HEAD, since="0006")))
        waits = f"select array_agg(relation) = array['{today}'] from ({locked} not granted) as lock"
        await eventually(lambda: connection.fetchval(waits))
        held = {row["relation"] for row in await connection.fetch(f"{locked} granted")}
        await connection.execute(write)
    await upgrading
    assert "outbox_history_default" in held
    assert "outbox_history" not in held
    indexed = "select count(*) from pg_inherits where inhparent = 'outbox_history_child_idx'::regclass"
    assert await connection.fetchval(indexed) == 5
    assert await connection.fetchval("select count(*) from pg_index where indrelid = $1::regclass", today) == 5


async def test_alembic_finds_the_version_that_ensure_recorded(alembic: Alembic, database_url: str) -> None:
    await ensure_outbox_schema_async(database_url)
    assert f"{HEAD} (head)" in await alembic.current()
    await alembic.upgrade()
    await alembic.downgrade()
    await ensure_outbox_schema_async(database_url)
    assert f"{HEAD} (head)" in await alembic.current()


async def test_alembic_run_by_several_at_once_succeeds_for_all(
    alembic: Alembic, database_url: str, connection: asyncpg.Connection
) -> None:
    commands = [
        await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "alembic",
            "-x",
            f"url={database_url}",
            "upgrade",
            "head",
            stderr=asyncio.subprocess.PIPE,
            cwd=REPOSITORY,
        )
        for _ in range(2)
    ]
    ends = [await command.communicate() for command in commands]
    assert [command.returncode for command in commands] == [0, 0], ends
    assert f"{HEAD} (head)" in await alembic.current()


async def test_the_tables_and_alembic_version_of_a_host_are_not_changed(
    alembic: Alembic, connection: asyncpg.Connection
) -> None:
    await connection.execute("create table alembic_version (version_num varchar(32) not null)")
    await connection.execute("insert into alembic_version values ('cafe')")
    await connection.execute("create table orders (id bigint)")
    await alembic.upgrade()
    await alembic.downgrade()
    assert await connection.fetchval("select version_num from alembic_version") == "cafe"
    assert await connection.fetchval("select to_regclass('orders')") is not None


async def test_a_hosts_revision_creates_the_same_schema(connection: asyncpg.Connection, database_url: str) -> None:
    await ensure_outbox_schema_async(database_url)
    expected = await catalog(connection)
    await clear(connection)
    await _as_host(database_url, lambda op: upgrade(op, to=HEAD))
    assert await catalog(connection) == expected
    await ensure_outbox_schema_async(database_url)
    assert await catalog(connection) == expected
    await _as_host(database_url, lambda op: downgrade(op, since=HEAD))
    assert await catalog(connection) == await _empty_catalog(connection)


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
async def test_a_hosts_revision_runs_on_any_driver(connection: asyncpg.Connection, database_url: str, driver: str) -> None:
    def run() -> None:
        engine = create_engine(database_url.replace("postgresql://", f"postgresql+{driver}://"))
        with engine.begin() as sync:
            op = Operations(MigrationContext.configure(sync))
            upgrade(op, to=HEAD, table_name="orders_outbox")
            upgrade(sync, to=HEAD, table_name="bills_outbox")
        engine.dispose()

    await asyncio.to_thread(run)
    for table in ("orders_outbox", "bills_outbox"):
        await connection.execute(f"insert into {table} (routing_key, body) values ('a', '')")


async def test_a_revision_names_an_existing_version(database_url: str) -> None:
    with pytest.raises(SchemaError, match="the versions are 0001, 0002, 0003, 0004, 0005, 0006, 0007"):
        await _as_host(database_url, lambda op: upgrade(op, to="9999"))
    with pytest.raises(SchemaError, match="'8888' is not known"):
        await _as_host(database_url, lambda op: upgrade(op, to="0001", since="8888"))


async def test_autogenerate_does_not_drop_outbox_tables(connection: asyncpg.Connection, database_url: str) -> None:
    from sqlalchemy import MetaData

    await ensure_outbox_schema_async(database_url)
    await ensure_outbox_table_async(database_url, "orders_outbox")

    async def differences(filter_: IncludeNameFn) -> list[str]:
        def compare(sync: Any) -> list[str]:
            context = MigrationContext.configure(sync, opts={"include_name": filter_, "include_object": None})
            return [change[1].name for change in compare_metadata(context, MetaData()) if change[0] == "remove_table"]

        engine = create_async_engine(database_url.replace("postgresql://", "postgresql+asyncpg://"))
        async with engine.connect() as opened:
            found = await opened.run_sync(compare)
        await engine.dispose()
        return found

    assert await differences(include_name) == ["orders_outbox"]
    assert await differences(include_name_beside("outbox_table", "app.orders_outbox")) == []


async def test_migrate_creates_a_table_of_another_name_with_the_others_next_to_it(
    connection: asyncpg.Connection, database_url: str
) -> None:
    await connection.execute("create schema app")
    await migrate(database_url, "app.orders_outbox")
    names = {row[0] for row in (await catalog(connection, "app"))["tables"]}
    assert names == {"orders_outbox", "outbox_history_default", "outbox_schema_version", *SATELLITES.values()}
    assert (await catalog(connection))["tables"] == []


async def test_the_printed_sql_can_be_for_another_table(connection: asyncpg.Connection, database_url: str) -> None:
    await connection.execute("create schema app")
    await migrate(database_url, "app.orders_outbox")
    expected = await catalog(connection, "app")
    await connection.execute("drop schema app cascade; create schema app")
    await connection.execute(schema_sql("app.orders_outbox"))
    assert await catalog(connection, "app") == expected


async def _as_host(url: str, do: object) -> None:
    def revision(sync: Any) -> None:
        do(Operations(MigrationContext.configure(sync)))  # type: ignore[operator]

    engine = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"))
    try:
        async with engine.begin() as opened:
            await opened.run_sync(revision)
    finally:
        await engine.dispose()


async def _empty_catalog(connection: asyncpg.Connection) -> dict[str, list[tuple[object, ...]]]:
    await connection.execute("create schema nothing")
    return await catalog(connection, "nothing")
