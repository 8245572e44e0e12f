"""Checks of a relay or worker before it starts."""

import re

import asyncpg
import pytest

from outbox.errors import SchemaError
from outbox.postgres.queries import TableName
from outbox.postgres.schema import HEAD, check_inbox, check_outbox_table, check_transport_tables
from outbox.postgres.schema.check import outbox_differences, satellite_differences
from outbox.postgres.schema.ensure import ensure_schema
from outbox.postgres.schema.versions import downgrade_statements, upgrade_statements
from outbox.schema import ensure_outbox_schema_async, ensure_outbox_table_async

OUTBOX = TableName("outbox_table")


async def test_an_existing_table_is_found_in_its_schema(connection: asyncpg.Connection, database_url: str) -> None:
    await ensure_outbox_schema_async(database_url)
    assert await check_outbox_table(connection, OUTBOX) == "public"
    assert await check_transport_tables(connection, OUTBOX) == "public"
    await connection.execute('create schema "my-app"; set search_path = nowhere, "my-app"')
    with pytest.raises(SchemaError, match="does not exist"):
        await check_outbox_table(connection, OUTBOX)
    assert await check_outbox_table(connection, TableName("outbox_table", "public")) == "public"
    await ensure_outbox_schema_async(connection)
    assert await check_outbox_table(connection, OUTBOX) == "my-app"
    assert await check_transport_tables(connection, OUTBOX) == "my-app"


async def test_a_missing_table_is_named_with_the_command_that_creates_it(
    connection: asyncpg.Connection, database_url: str
) -> None:
    with pytest.raises(
        SchemaError, match=r"the table app\.orders does not exist: create it with `outbox migrate` .*--table-name"
    ):
        await check_outbox_table(connection, TableName("orders", "app"))
    await ensure_outbox_table_async(database_url)
    with pytest.raises(SchemaError, match=r"outbox_subscription, outbox_delivery, outbox_dead_letter, .*\) do not exist"):
        await check_transport_tables(connection, OUTBOX)


@pytest.mark.parametrize("named", [True, False])
async def test_a_role_that_may_not_use_the_schema_gets_the_name_of_the_missing_right(
    connection: asyncpg.Connection, database_url: str, named: bool
) -> None:
    await ensure_outbox_schema_async(database_url)
    await connection.execute(
        'create role outsider; revoke usage on schema public from public; set search_path = nowhere, "public"'
    )
    table = TableName("outbox_table", "public") if named else OUTBOX
    try:
        await connection.execute("set role outsider")
        for check in (check_outbox_table, check_transport_tables, check_inbox):
            with pytest.raises(SchemaError, match=r"may not use: grant usage on schema public to outsider$"):
                await check(connection, table)
    finally:
        await connection.execute("reset role; drop role outsider")


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        ("alter table outbox_table drop column hlc", "column hlc is missing"),
        ("alter table outbox_table alter column tracking_ids type text", "column tracking_ids is text"),
        ("drop trigger outbox_table_ring on outbox_table", "trigger outbox_table_ring is missing"),
        ("alter table outbox_table disable trigger all", "trigger outbox_table_ring is missing"),
        ("alter table outbox_table rename to renamed; create table outbox_table (id int)", "and 18 more"),
    ],
)
async def test_a_table_of_another_shape_is_named(
    connection: asyncpg.Connection, database_url: str, damage: str, named: str
) -> None:
    await ensure_outbox_schema_async(database_url)
    await connection.execute(damage)
    with pytest.raises(SchemaError, match=named):
        await check_outbox_table(connection, OUTBOX)


async def test_a_transport_table_of_another_shape_is_named(connection: asyncpg.Connection, database_url: str) -> None:
    await ensure_outbox_schema_async(database_url)
    await connection.execute("alter table outbox_dead_letter drop column cause")
    with pytest.raises(SchemaError, match=r"in the schema public are not as they should be \(column cause is missing"):
        await check_transport_tables(connection, OUTBOX)


async def test_a_missing_index_does_not_stop_a_relay(connection: asyncpg.Connection, database_url: str) -> None:
    await ensure_outbox_schema_async(database_url)
    await connection.execute("drop index outbox_table_due_idx; alter table outbox_table add column tenant text")
    await check_outbox_table(connection, OUTBOX)


async def test_every_created_object_is_checked(connection: asyncpg.Connection, database_url: str) -> None:
    """`ensure_outbox_schema` notices any missing column, constraint, index, trigger or function."""
    await ensure_outbox_schema_async(database_url)
    looked_at = {
        tuple(re.findall(r"'([^']*)'", line)[:2])
        for query in (outbox_differences(OUTBOX), *satellite_differences(None))
        for line in query.splitlines()
        if line.strip().startswith("('")
    }
    made = await connection.fetch("""
        select 'column', attname from pg_attribute join pg_class c on c.oid = attrelid
        where relnamespace = 'public'::regnamespace and relkind = 'r' and attnum > 0 and relname <> 'outbox_schema_version'
        union all
        select 'constraint', conname from pg_constraint
        where connamespace = 'public'::regnamespace and contype <> 'n' and conname not like 'outbox_schema_version%'
        union all
        select 'index', relname from pg_class join pg_index on indexrelid = oid
        where relnamespace = 'public'::regnamespace and not indisprimary and relname not like 'outbox_history_default%'
        union all
        select 'trigger', tgname from pg_trigger where not tgisinternal
        union all
        select 'function', proname from pg_proc where pronamespace = 'public'::regnamespace and prorettype <> 'trigger'::regtype
    """)
    assert looked_at == {tuple(row) for row in made}


def test_no_statement_contains_what_a_driver_takes_for_a_parameter() -> None:
    """asyncpg, psycopg, psycopg2 and SQLAlchemy's `text` pass all statements on unchanged."""
    table = TableName("outbox_table", "app")
    plan = ensure_schema(table)
    statements = [
        *upgrade_statements(table, to=HEAD),
        *downgrade_statements(table, since=HEAD),
        outbox_differences(table),
        *satellite_differences("app"),
        next(plan),
    ]
    for statement in statements:
        assert "%" not in statement
        assert not re.search(r"(?<![:\w]):\w", statement), statement
