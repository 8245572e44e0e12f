"""The tables of destinations: created next to the outbox table, upgraded with it, and part of what operators see."""

import asyncio
import re

import asyncpg
import pytest
from alembic.migration import MigrationContext
from alembic.operations import Operations
from click.testing import CliRunner
from sqlalchemy import create_engine

from outbox.cli import main as cli
from outbox.errors import ConfigurationError, SchemaError
from outbox.postgres.schema import HEAD
from outbox.schema import (
    create_destination,
    downgrade,
    ensure_outbox_schema_async,
    ensure_outbox_schema_sync,
    include_name,
    include_name_beside,
    migrate,
    schema_sql,
    upgrade,
)
from tests.schema.catalog import catalog, clear
from tests.schema.support import REPOSITORY, Alembic

OF_KAFKA = "select count(*) from pg_indexes where tablename = 'outbox_table_kafka'"


async def test_every_way_creates_the_same_table(connection: asyncpg.Connection, database_url: str) -> None:
    await ensure_outbox_schema_async(database_url, destinations=["kafka"])
    expected = await catalog(connection)
    indexes = await connection.fetchval(OF_KAFKA)
    assert indexes == await connection.fetchval(OF_KAFKA.replace("_kafka", ""))

    await clear(connection)
    await migrate(database_url, destinations=["kafka", "default"])
    assert await catalog(connection) == expected

    await clear(connection)
    await connection.execute(schema_sql(destinations=["kafka"]))
    assert await catalog(connection) == expected

    await clear(connection)
    ensure_outbox_schema_sync(database_url)
    ensure_outbox_schema_sync(database_url, destinations=("kafka",))
    assert await catalog(connection) == expected

    await clear(connection)
    engine = create_engine(database_url.replace("postgresql", "postgresql+psycopg"))
    with engine.begin() as host:
        op = Operations(MigrationContext.configure(host))
        upgrade(op, to=HEAD)
        create_destination(op, "kafka", to=HEAD)
        create_destination(op, "kafka", to=HEAD)
    engine.dispose()
    assert await catalog(connection) == expected


async def test_the_page_s_revision_creates_the_table(connection: asyncpg.Connection, database_url: str) -> None:
    page = (REPOSITORY / "docs" / "destinations.md").read_text()
    (revision,) = re.findall(r"```python\n(from alembic import op\n.*?)```", page, re.DOTALL)
    await ensure_outbox_schema_async(database_url)
    engine = create_engine(database_url.replace("postgresql", "postgresql+psycopg"))
    with engine.begin() as host, Operations.context(MigrationContext.configure(host)):
        exec(f"{revision}\nupgrade()", {})
    engine.dispose()
    assert await connection.fetchval(OF_KAFKA) > 0
    await ensure_outbox_schema_async(database_url, destinations=["kafka"])


async def test_the_page_s_statements_remove_everything_of_a_destination(
    connection: asyncpg.Connection, database_url: str
) -> None:
    await ensure_outbox_schema_async(database_url)
    before = await catalog(connection)
    await ensure_outbox_schema_async(database_url, destinations=["kafka"])
    (statements,) = re.findall(r"```sql\n(.*?)```", (REPOSITORY / "docs" / "destinations.md").read_text(), re.DOTALL)
    await connection.execute(statements)
    assert await catalog(connection) == before


async def test_the_command_creates_and_prints_it(connection: asyncpg.Connection, database_url: str) -> None:
    answer = await _invoked("migrate", "--database-url", database_url, "--destination", "kafka", "--destination", "lake")
    assert answer.startswith("The table outbox_table and the other tables of Outbox are ready for this release.")
    found = await connection.fetch(
        "select inhrelid::regclass::text from pg_inherits where inhparent = 'outbox_table'::regclass order by 1"
    )
    assert [row[0] for row in found] == ["outbox_table_kafka", "outbox_table_lake"]
    assert "outbox_table_lake" in await _invoked("migrate", "--sql", "--destination", "lake")


async def _invoked(*arguments: str) -> str:
    answer = await asyncio.to_thread(CliRunner().invoke, cli, arguments)
    assert answer.exit_code == 0, answer.output
    return answer.output


async def test_rows_of_all_destinations_have_different_ids(connection: asyncpg.Connection, database_url: str) -> None:
    await ensure_outbox_schema_async(database_url, destinations=["kafka"])
    for table in ("outbox_table", "outbox_table_kafka") * 2:
        await connection.execute(f"insert into {table} (routing_key, body) values ('a', '')")
    assert [row["id"] for row in await connection.fetch("select id from outbox_table order by id")] == [1, 2, 3, 4]
    assert await connection.fetchval("select outbox_table_kafka_publish('order.placed', '{}') is not null")
    assert await connection.fetchval("select count(*) from only outbox_table_kafka") == 3


async def test_a_repair_covers_the_tables_of_destinations_and_changes_nothing_else(
    connection: asyncpg.Connection, database_url: str
) -> None:
    await ensure_outbox_schema_async(database_url, destinations=["kafka"])
    await connection.execute("insert into outbox_table_kafka (routing_key, body) values ('a', '')")
    expected = await catalog(connection)
    await connection.execute(
        "drop index outbox_table_kafka_due_idx; drop trigger outbox_table_kafka_ring on outbox_table_kafka"
    )
    await ensure_outbox_schema_async(database_url)
    assert await catalog(connection) == expected
    assert await connection.fetchval("select id from outbox_table_kafka") == 1


async def test_a_database_is_upgraded_and_downgraded_with_its_destinations(
    connection: asyncpg.Connection, database_url: str
) -> None:
    engine = create_engine(database_url.replace("postgresql", "postgresql+psycopg"))
    with engine.begin() as host:
        op = Operations(MigrationContext.configure(host))
        upgrade(op, to="0005")
        create_destination(op, "kafka", to="0005")
    before = await catalog(connection)
    await ensure_outbox_schema_async(database_url)
    with engine.begin() as host:
        downgrade(Operations(MigrationContext.configure(host)), since=HEAD, to="0005")
    assert await catalog(connection) == before
    engine.dispose()


async def test_a_destination_is_complete_after_a_downgrade_and_an_upgrade(
    connection: asyncpg.Connection, database_url: str, alembic: Alembic
) -> None:
    await ensure_outbox_schema_async(database_url, destinations=["kafka"])
    before = await catalog(connection)
    await alembic.downgrade("0001")
    await alembic.upgrade()
    assert await catalog(connection) == before


async def test_a_single_name_is_one_destination_and_not_one_for_each_letter(
    connection: asyncpg.Connection, database_url: str
) -> None:
    await ensure_outbox_schema_async(database_url, destinations="kafka")
    ensure_outbox_schema_sync(database_url, destinations="kafka")
    await migrate(database_url, destinations="kafka")
    await connection.execute(schema_sql(destinations="kafka"))
    children = "select relname from pg_inherits join pg_class c on c.oid = inhrelid where inhparent = 'outbox_table'::regclass"
    assert [row["relname"] for row in await connection.fetch(children)] == ["outbox_table_kafka"]


async def test_a_table_of_the_application_is_not_taken_for_a_destination(
    connection: asyncpg.Connection, database_url: str
) -> None:
    await connection.execute("create table outbox_table_kafka (id integer)")
    with pytest.raises(SchemaError, match="does not belong to"):
        await ensure_outbox_schema_async(database_url, destinations=["kafka"])


async def test_a_name_that_no_table_can_have_is_refused_before_anything_is_created(
    connection: asyncpg.Connection, database_url: str
) -> None:
    with pytest.raises(ConfigurationError, match="lower-case letters"):
        await ensure_outbox_schema_async(database_url, destinations=["Kafka"])
    assert await connection.fetchval("select to_regclass('outbox_table') is null")


async def test_a_table_with_destinations_is_not_dropped(connection: asyncpg.Connection, database_url: str) -> None:
    await ensure_outbox_schema_async(database_url, destinations=["kafka"])
    engine = create_engine(database_url.replace("postgresql", "postgresql+psycopg"))
    with pytest.raises(Exception, match="outbox_table_kafka depends on"), engine.begin() as host:
        downgrade(Operations(MigrationContext.configure(host)), since=HEAD)
    engine.dispose()
    assert await connection.fetchval("select to_regclass('outbox_table') is not null")


def test_autogenerate_leaves_the_tables_of_destinations_alone() -> None:
    assert not include_name("outbox_table_kafka", "table", {})
    assert not include_name_beside("events")("events_kafka", "table", {})
    assert include_name_beside("events")("eventsource", "table", {})
