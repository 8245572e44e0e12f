"""`ensure_outbox_table_*` and `ensure_outbox_schema_*`: accepted arguments, and guarantees."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import contextmanager
from typing import Any

import asyncpg
import psycopg
import psycopg2
import psycopg2.extras
import pytest
from psycopg.rows import dict_row
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import create_async_engine

from outbox.embedded.server import wait_until
from outbox.errors import ConfigurationError, DatabaseUnavailableError, SchemaError, UnsupportedHandleError, UrlError
from outbox.postgres.queries import TableName
from outbox.postgres.schema import HEAD, ensure
from outbox.postgres.schema import versions as alone
from outbox.postgres.schema.ensure import _driver_errors
from outbox.schema import (
    ensure_outbox_schema_async,
    ensure_outbox_schema_sync,
    ensure_outbox_table_async,
    ensure_outbox_table_sync,
)
from tests.schema.catalog import catalog, clear
from tests.support import eventually

INSERT = "insert into outbox_table (routing_key, body) values ('order.placed', '')"


async def is_there(connection: asyncpg.Connection, table: str = "outbox_table") -> bool:
    return bool(await connection.fetchval("select to_regclass($1) is not null", table))


@pytest.mark.parametrize(
    "scheme", ["postgresql", "postgres", "postgresql+asyncpg", "postgresql+psycopg", "postgresql+psycopg2"]
)
async def test_every_spelling_of_a_url_is_accepted(connection: asyncpg.Connection, database_url: str, scheme: str) -> None:
    await ensure_outbox_table_async(database_url.replace("postgresql", scheme))
    await connection.execute(INSERT)


async def test_a_url_needs_no_second_driver_and_works_inside_a_running_loop(
    connection: asyncpg.Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(psycopg, "connect", None)
    monkeypatch.setattr(psycopg2, "connect", None)
    ensure_outbox_table_sync(database_url)
    ensure_outbox_schema_sync(database_url)
    await connection.execute(INSERT)


async def test_a_complete_schema_is_not_changed(connection: asyncpg.Connection, database_url: str) -> None:
    await ensure_outbox_schema_async(database_url)
    expected = await catalog(connection)
    oids = await connection.fetch("select oid, xmin::text from pg_class where relnamespace = 'public'::regnamespace order by 1")
    for _ in range(2):
        await ensure_outbox_schema_async(database_url)
        await ensure_outbox_table_async(database_url)
    assert await catalog(connection) == expected
    assert oids == await connection.fetch(
        "select oid, xmin::text from pg_class where relnamespace = 'public'::regnamespace order by 1"
    )


async def test_a_complete_schema_is_only_read(connection: asyncpg.Connection, database_url: str) -> None:
    """Without privileges, without waiting for locks, and also on a standby."""
    await ensure_outbox_schema_async(database_url)
    await connection.execute("create role onlooker_of_the_schema")
    other = await asyncpg.connect(database_url)
    try:
        async with connection.transaction():
            await connection.execute("lock table outbox_table, outbox_delivery in access exclusive mode")
            await other.execute("set role onlooker_of_the_schema; set default_transaction_read_only = on")
            await ensure_outbox_table_async(other)
            await ensure_outbox_schema_async(other)
        await other.execute("set default_transaction_read_only = off")
        await connection.execute("alter table outbox_stats drop column seconds")
        with pytest.raises(SchemaError, match="`outbox migrate` as the owner of the schema"):
            await ensure_outbox_schema_async(other)
    finally:
        await other.close()
        await connection.execute("drop role onlooker_of_the_schema")


async def test_eight_processes_at_once_succeed(connection: asyncpg.Connection, database_url: str) -> None:
    await asyncio.gather(*(ensure_outbox_schema_async(database_url) for _ in range(8)))
    concurrent = await catalog(connection)
    await clear(connection)
    await asyncio.gather(*(ensure_outbox_table_async(database_url) for _ in range(8)))
    await ensure_outbox_schema_async(database_url)
    assert await catalog(connection) == concurrent


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read", "serializable"])
async def test_the_databases_default_isolation_does_not_matter(
    connection: asyncpg.Connection, database_url: str, isolation: str
) -> None:
    name = await connection.fetchval("select current_database()")
    await connection.execute(f"alter database {name} set default_transaction_isolation = '{isolation}'")
    await asyncio.gather(*(ensure_outbox_schema_async(database_url) for _ in range(4)))
    await connection.execute(INSERT)


# --- given connections ---------------------------------------------------------------------------------------------------


@pytest.fixture
async def opened(database_url: str) -> AsyncIterator[Callable[[str], Any]]:
    """Opens an argument of the async functions by kind, and closes it afterwards."""
    alchemy = database_url.replace("postgresql://", "postgresql+asyncpg://")
    engines = [create_async_engine(alchemy), create_async_engine(alchemy.replace("+asyncpg", "+psycopg"))]
    closing: list[Any] = []

    async def open_one(kind: str) -> Any:
        match kind:
            case "asyncpg":
                handle: Any = await asyncpg.connect(database_url)
            case "pool":
                handle = await asyncpg.create_pool(database_url, min_size=1, max_size=1)
            case "psycopg":
                handle = await psycopg.AsyncConnection.connect(database_url, row_factory=dict_row)
            case "psycopg autocommit":
                handle = await psycopg.AsyncConnection.connect(database_url, autocommit=True)
            case "AsyncEngine asyncpg" | "AsyncEngine psycopg":
                return engines["psycopg" in kind]
            case _:
                handle = await engines["psycopg" in kind].connect()
        closing.append(handle)
        return handle

    yield open_one
    for handle in closing:
        await handle.close()
    for engine in engines:
        await engine.dispose()


ASYNC_CONNECTIONS = ["asyncpg", "psycopg", "AsyncConnection asyncpg", "AsyncConnection psycopg"]


@pytest.mark.parametrize(
    "kind", [*ASYNC_CONNECTIONS, "pool", "psycopg autocommit", "AsyncEngine asyncpg", "AsyncEngine psycopg"]
)
async def test_an_idle_connection_commits_by_itself(connection: asyncpg.Connection, opened: Any, kind: str) -> None:
    handle = await opened(kind)
    await ensure_outbox_table_async(handle)
    assert await is_there(connection)
    await ensure_outbox_schema_async(handle)
    assert await is_there(connection, "outbox_delivery")


@pytest.mark.parametrize("kind", ASYNC_CONNECTIONS)
@pytest.mark.parametrize("ensure", [ensure_outbox_table_async, ensure_outbox_schema_async])
async def test_a_callers_transaction_decides(
    connection: asyncpg.Connection, opened: Any, kind: str, ensure: Callable[[Any], Any]
) -> None:
    handle = await opened(kind)
    begun = handle.transaction() if kind == "asyncpg" else None
    if begun:
        await begun.start()
    execute = (lambda sql: handle.execute(text(sql))) if kind.startswith("AsyncConnection") else handle.execute
    await execute("create table business (id bigint)")
    await execute("set local lock_timeout = '7s'")
    await ensure(handle)
    assert not await is_there(connection)
    await execute("do $$ begin assert current_setting('lock_timeout') = '7s'; end $$")
    await execute("do $$ begin assert current_setting('idle_in_transaction_session_timeout') = '0'; end $$")
    await (begun or handle).rollback()
    assert (await catalog(connection))["tables"] == []


@contextmanager
def closing(handle: Any) -> Any:
    try:
        yield handle
    finally:
        handle.close()


@contextmanager
def sync_handle(kind: str, url: str) -> Any:
    engine = create_engine(url.replace("postgresql://", f"postgresql+{kind.rsplit(maxsplit=1)[-1]}://"))
    try:
        match kind.split():
            case ["psycopg"]:
                with closing(psycopg.connect(url, row_factory=dict_row)) as handle:
                    yield handle
            case ["psycopg2"]:
                with closing(psycopg2.connect(url, cursor_factory=psycopg2.extras.RealDictCursor)) as handle:
                    yield handle
            case ["Engine", _]:
                yield engine
            case _:
                with engine.connect() as handle:
                    yield handle
    finally:
        engine.dispose()


SYNC_CONNECTIONS = ["psycopg", "psycopg2", "Connection psycopg", "Connection psycopg2"]


@pytest.mark.parametrize("kind", [*SYNC_CONNECTIONS, "Engine psycopg", "Engine psycopg2"])
async def test_an_idle_sync_connection_commits_by_itself(connection: asyncpg.Connection, database_url: str, kind: str) -> None:
    with sync_handle(kind, database_url) as handle:
        await asyncio.to_thread(ensure_outbox_table_sync, handle)
        assert await is_there(connection)
        await asyncio.to_thread(ensure_outbox_schema_sync, handle)
        assert await is_there(connection, "outbox_delivery")


@pytest.mark.parametrize("kind", ["psycopg", "psycopg2"])
async def test_an_autocommitting_sync_connection_changes_all_or_nothing(
    connection: asyncpg.Connection, database_url: str, kind: str
) -> None:
    with sync_handle(kind, database_url) as handle:
        handle.autocommit = True
        await connection.execute("create table outbox_dead_letter (id bigint)")
        with pytest.raises(Exception, match="does not exist"):
            await asyncio.to_thread(ensure_outbox_schema_sync, handle)
        assert not await is_there(connection)
        await connection.execute("drop table outbox_dead_letter")
        await asyncio.to_thread(ensure_outbox_schema_sync, handle)
        assert await is_there(connection)


@pytest.mark.parametrize("kind", SYNC_CONNECTIONS)
async def test_a_sync_callers_transaction_decides(connection: asyncpg.Connection, database_url: str, kind: str) -> None:
    def use(handle: Any) -> None:
        if kind.startswith("Connection"):
            handle.execute(text("create table business (id bigint)"))
        else:
            handle.cursor().execute("create table business (id bigint)")
        ensure_outbox_schema_sync(handle)
        handle.rollback()

    with sync_handle(kind, database_url) as handle:
        await asyncio.to_thread(use, handle)
    assert (await catalog(connection))["tables"] == []


async def test_an_autocommitting_sqlalchemy_engine_is_refused(connection: asyncpg.Connection, database_url: str) -> None:
    """There is no transaction for the changes, and a lock would not last."""
    for driver in ("asyncpg", "psycopg"):
        url = database_url.replace("postgresql://", f"postgresql+{driver}://")
        engine = create_async_engine(url, isolation_level="AUTOCOMMIT")
        with pytest.raises(ConfigurationError, match="autocommit"):
            await ensure_outbox_table_async(engine)
        await engine.dispose()
    assert not await is_there(connection)


# --- what goes wrong -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("handle", [None, 5, object(), b"postgresql://localhost/x"])
async def test_anything_else_is_refused_with_the_list_of_what_is_accepted(handle: object) -> None:
    with pytest.raises(UnsupportedHandleError, match="an asyncpg connection or pool"):
        await ensure_outbox_table_async(handle)
    with pytest.raises(UnsupportedHandleError, match="a psycopg or psycopg2 connection"):
        ensure_outbox_table_sync(handle)


async def test_the_error_for_a_connection_of_the_other_kind_names_its_function(database_url: str, opened: Any) -> None:
    with sync_handle("psycopg2", database_url) as handle, pytest.raises(UnsupportedHandleError, match="_sync"):
        await ensure_outbox_table_async(handle)
    with pytest.raises(UnsupportedHandleError, match="_async"):
        ensure_outbox_table_sync(await opened("asyncpg"))


async def test_a_url_of_something_else_is_refused() -> None:
    with pytest.raises(UrlError, match="db must be a postgresql:// URL"):
        await ensure_outbox_table_async("amqp://guest:secret@localhost/")


async def test_an_unreachable_server_is_named_without_the_password() -> None:
    with pytest.raises(DatabaseUnavailableError) as error:
        await ensure_outbox_table_async("postgresql://someone:secret@127.0.0.1:1/x")
    assert "secret" not in str(error.value)


async def test_waiting_for_a_table_in_use_has_a_limit(
    connection: asyncpg.Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ensure_outbox_table_async(database_url)
    await connection.execute("drop index outbox_table_sent_idx")
    quick = tuple(statement.replace("10000", "100") for statement in alone.WAIT_FOR_OTHERS)
    monkeypatch.setattr("outbox.postgres.schema.ensure.WAIT_FOR_OTHERS", quick)
    async with connection.transaction():
        await connection.execute(INSERT)
        with pytest.raises(SchemaError, match="nothing was changed: end the long transaction"):
            await ensure_outbox_table_async(database_url)
    await ensure_outbox_table_async(database_url)


async def test_a_process_that_waits_for_another_finds_the_schema_complete(
    connection: asyncpg.Connection, database_url: str
) -> None:
    async with connection.transaction():
        await ensure_outbox_schema_async(connection)
        second = asyncio.create_task(ensure_outbox_schema_async(database_url))
        await eventually(
            lambda: connection.fetchval("select count(*) = 1 from pg_locks where locktype = 'advisory' and not granted")
        )
        assert not second.done()
    await second


async def test_missing_privileges_are_named(connection: asyncpg.Connection, database_url: str) -> None:
    await connection.execute("create role without_any_rights")
    try:
        async with connection.transaction():
            await connection.execute("set local role without_any_rights")
            with pytest.raises(SchemaError, match="`outbox migrate` as the owner of the schema"):
                async with connection.transaction():
                    await ensure_outbox_table_async(connection)
    finally:
        await connection.execute("drop role without_any_rights")


async def test_a_missing_schema_is_named(connection: asyncpg.Connection, database_url: str) -> None:
    with pytest.raises(SchemaError, match="the schema for the tables does not exist"):
        await ensure_outbox_table_async(database_url, "elsewhere.outbox_table")
    with pytest.raises(SchemaError, match="the schema for the tables does not exist"):
        await ensure_outbox_schema_async(database_url, schema="elsewhere")
    await connection.execute("set search_path = nowhere")
    with pytest.raises(SchemaError, match="the schema for the tables does not exist"):
        await ensure_outbox_table_async(connection)


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        ("create table outbox_table (id bigint primary key, name text)", "it has no body, routing_key"),
        ("create table outbox_table (id uuid primary key, routing_key text, body bytea)", "its id is not an integer"),
        ("create table outbox_table (id int, routing_key text primary key, body bytea)", "primary key is not its id"),
        ("create view outbox_table as select 1 as id", "not an ordinary table"),
    ],
)
async def test_a_foreign_table_is_not_changed(
    connection: asyncpg.Connection, database_url: str, made: str, reason: str
) -> None:
    await connection.execute(made)
    before = await catalog(connection)
    with pytest.raises(SchemaError, match=reason):
        await ensure_outbox_table_async(database_url)
    with pytest.raises(SchemaError, match=reason):
        await ensure_outbox_schema_async(database_url)
    assert await catalog(connection) == before


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        ("create table outbox_inbox (name text)", 'column "processed_at" does not exist'),
        ("create view outbox_inbox as select 1 as id", 'cannot create index on relation "outbox_inbox"'),
        ("set default_transaction_read_only = on", "in a read-only transaction"),
    ],
)
@pytest.mark.parametrize("driver", ["asyncpg", "psycopg2"])
async def test_every_refusal_of_the_server_is_one_sentence(
    connection: asyncpg.Connection, database_url: str, made: str, reason: str, driver: str
) -> None:
    if driver == "asyncpg":
        await connection.execute(made)
        with pytest.raises(SchemaError, match=f"^the schema cannot be changed .*{reason}"):
            await ensure_outbox_schema_async(connection)
        return
    with closing(psycopg2.connect(database_url)) as other, other.cursor() as cursor:
        cursor.execute(made)
        other.commit()
        with pytest.raises(SchemaError, match=f"^the schema cannot be changed .*{reason}"):
            ensure_outbox_schema_sync(other)


async def test_a_server_that_is_stopped_meanwhile_is_not_a_refusal(connection: asyncpg.Connection, database_url: str) -> None:
    """The driver's own error, so that a program which waits for its database can distinguish the two."""
    victim = await asyncpg.connect(database_url)
    await victim.execute("begin")
    async with connection.transaction():
        for statement in alone.WAIT_FOR_OTHERS:
            await connection.execute(statement)
        waiting = asyncio.create_task(ensure_outbox_schema_async(victim))
        blocked = "select count(*) = 1 from pg_locks where locktype = 'advisory' and not granted and pid = $1"
        await eventually(lambda: connection.fetchval(blocked, victim.get_server_pid()))
        await connection.execute("select pg_terminate_backend($1)", victim.get_server_pid())
        with pytest.raises(asyncpg.PostgresConnectionError):
            await waiting


async def test_a_schema_of_a_newer_release_is_not_changed(
    connection: asyncpg.Connection, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    await ensure_outbox_schema_async(database_url, destinations=["kafka"])
    await connection.execute("update outbox_schema_version set version_num = '9999'")
    await connection.execute("alter table outbox_delivery drop column crashes")
    for table in ("outbox_table", "outbox_table_kafka"):
        changed = "returns trigger language plpgsql as $$ begin return null; /* newer */ end $$"
        await connection.execute(f"create or replace function {table}_ring() {changed}")
    before = await catalog(connection)
    await ensure_outbox_schema_async(database_url, destinations=["kafka"])
    assert f"the schema has version 9999, and this release knows versions up to {HEAD}: nothing was changed" in caplog.text
    ensure_outbox_schema_sync(database_url)
    caplog.clear()
    await ensure_outbox_table_async(database_url)
    assert "nothing was changed" in caplog.text
    assert await catalog(connection) == before
    assert await connection.fetchval("select version_num from outbox_schema_version") == "9999"
    with pytest.raises(SchemaError, match="create the table of lake with that"):
        await ensure_outbox_schema_async(database_url, destinations=["lake"])


async def test_two_recorded_versions_are_refused(connection: asyncpg.Connection, database_url: str) -> None:
    await ensure_outbox_schema_async(database_url)
    await connection.execute("insert into outbox_schema_version values ('0000')")
    with pytest.raises(SchemaError, match=f"should name one version and names 2: 0000, {HEAD}"):
        await ensure_outbox_schema_async(database_url)


@pytest.mark.parametrize(
    "damage",
    [
        "drop trigger outbox_table_ring on outbox_table",
        "alter table outbox_table disable trigger outbox_table_ring",
        "drop index outbox_table_due_idx",
        "alter table outbox_table drop constraint outbox_table_check_end",
        "alter table outbox_table drop column hlc",
        "alter table outbox_table drop column held_at",
        "alter table outbox_table alter column send_after drop default",
        "alter table outbox_table alter column id drop identity",
        "alter table outbox_table alter column tracking_ids drop not null",
        "drop table outbox_subscription",
        "drop table outbox_table",
        "drop index outbox_delivery_due_idx",
        "drop trigger outbox_delivery_ring on outbox_delivery",
        "drop table outbox_schema_version",
        ("create or replace function outbox_table_ring() returns trigger language plpgsql as $$ begin return null; end $$"),
    ],
)
async def test_damage_is_repaired(connection: asyncpg.Connection, database_url: str, damage: str) -> None:
    await ensure_outbox_schema_async(database_url)
    expected = await catalog(connection)
    await connection.execute(damage)
    assert await catalog(connection) != expected
    await ensure_outbox_schema_async(database_url)
    assert await catalog(connection) == expected


def test_the_errors_of_every_driver_are_recognised() -> None:
    assert {error.__module__.split(".")[0] for error in _driver_errors()} == {
        "asyncpg",
        "psycopg",
        "psycopg2",
        "sqlalchemy",
    }


async def test_a_statement_timeout_that_is_too_short_for_a_change_is_named(
    connection: asyncpg.Connection, database_url: str
) -> None:
    await ensure_outbox_schema_async(database_url)
    await connection.execute("drop index outbox_table_due_idx")
    changing = await asyncpg.connect(database_url, server_settings={"statement_timeout": "100"})
    async with connection.transaction():
        await connection.execute("lock table outbox_table in share mode")
        with pytest.raises(
            SchemaError, match=r"by statement_timeout .* so nothing was changed: set a longer timeout for this role"
        ):
            await ensure_outbox_schema_async(changing)
    await changing.close()


def test_a_process_that_stands_still_in_a_change_loses_its_locks(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    limit, short = (f"set local idle_in_transaction_session_timeout = {milliseconds}" for milliseconds in (60_000, 100))
    assert sum(limit in statement for statement in alone.WAIT_FOR_OTHERS) == 1
    monkeypatch.setattr(ensure, "WAIT_FOR_OTHERS", tuple(each.replace(limit, short) for each in alone.WAIT_FOR_OTHERS))
    locks = "select count(*) from pg_locks where locktype = 'advisory' and database is not null and pid = %s"
    with psycopg.connect(database_url, autocommit=True) as observer, psycopg.connect(database_url) as changing:
        server_process = changing.info.backend_pid

        def count() -> int:
            return int(observer.execute(locks, [server_process]).fetchall()[0][0])

        def fetch(statement: str) -> ensure.Rows:
            cursor = changing.execute(statement)
            rows = cursor.fetchall() if cursor.description else ()
            if count():
                assert wait_until(lambda: not count(), 30)
            return rows

        with (
            pytest.raises(SchemaError, match="no statement for 60 seconds while it changed the schema, so nothing was changed"),
            ensure._explain_errors(),
        ):
            ensure._drive_sync(ensure.ensure_schema(TableName("outbox_table")), fetch)


async def test_a_connection_that_is_lost_in_a_change_is_named(connection: asyncpg.Connection, database_url: str) -> None:
    await ensure_outbox_schema_async(database_url)
    await connection.execute("drop index outbox_table_due_idx")
    waiting = "select pid from pg_locks where relation = 'outbox_table'::regclass and not granted"
    async with connection.transaction():
        await connection.execute("lock table outbox_table in share row exclusive mode")
        changing = asyncio.create_task(ensure_outbox_schema_async(database_url))
        await eventually(lambda: connection.fetchval(f"select exists({waiting})"))
        assert await connection.fetchval(f"select pg_terminate_backend(({waiting}))")
        with pytest.raises(DatabaseUnavailableError, match=r"^changing the schema: .* terminating connection"):
            await changing
