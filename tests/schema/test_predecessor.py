"""Tables of the predecessor are upgraded in place with their rows."""

import json
from collections.abc import Awaitable, Callable
from datetime import timedelta

import asyncpg
import pytest

from outbox.errors import SchemaError
from outbox.postgres.queries import TableName
from outbox.postgres.schema import check_outbox_table
from outbox.schema import ensure_outbox_table_async, migrate, schema_sql
from tests.schema.catalog import catalog, clear, indexes_of, triggers_of
from tests.schema.predecessors import LATEST, NOTIFYING, SHAPES, make
from tests.schema.support import Alembic

ROWS = 7

Method = Callable[[], Awaitable[object]]


@pytest.fixture(params=["ensure", "migrate", "alembic", "sql"])
def method(request: pytest.FixtureRequest, connection: asyncpg.Connection, database_url: str, alembic: Alembic) -> Method:
    """Every way to upgrade."""
    methods: dict[str, Method] = {
        "ensure": lambda: ensure_outbox_table_async(database_url),
        "migrate": lambda: migrate(database_url),
        "alembic": alembic.upgrade,
        "sql": lambda: connection.execute(schema_sql()),
    }
    return methods[request.param]


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_table_of_the_predecessor_becomes_equal_to_a_new_one(
    connection: asyncpg.Connection, database_url: str, method: Method, shape: str
) -> None:
    await method()
    expected = await catalog(connection)
    await clear(connection)
    await make(connection, shape)
    await method()
    assert await catalog(connection) == expected


@pytest.mark.parametrize("shape", SHAPES)
async def test_pending_messages_stay_in_their_order(connection: asyncpg.Connection, database_url: str, shape: str) -> None:
    await make(connection, shape)
    await ensure_outbox_table_async(database_url)
    rows = await connection.fetch("select * from outbox_table where sent_at is null order by send_after, id")
    assert [row["routing_key"] for row in rows] == [f"order.{n}" for n in (6, 1, 2, 4, 5, 7)]
    assert [json.loads(row["body"]) for row in rows] == [{"n": n} for n in (6, 1, 2, 4, 5, 7)]
    assert [json.loads(row["tracking_ids"]) for row in rows] == [["root", f"leaf{n}"] for n in (6, 1, 2, 4, 5, 7)]
    assert {(row["attempts"], row["priority"], row["failed_at"], row["last_error"]) for row in rows} == {(0, 0, None, None)}
    assert await connection.fetchval("select array_agg(routing_key) from outbox_table where sent_at is not null") == ["order.3"]


@pytest.mark.parametrize("shape", SHAPES)
async def test_ids_continue_after_the_highest_one_ever_assigned(
    connection: asyncpg.Connection, database_url: str, shape: str
) -> None:
    await make(connection, shape)
    await connection.execute("delete from outbox_table where id > 5")
    await ensure_outbox_table_async(database_url)
    insert = "insert into outbox_table (routing_key, body) values ('a', '') returning id"
    assert await connection.fetchval(insert) == ROWS + 1
    await ensure_outbox_table_async(database_url)
    assert await connection.fetchval(insert) == ROWS + 2


async def test_ids_continue_after_rows_that_were_copied_in(connection: asyncpg.Connection, database_url: str) -> None:
    await connection.execute(LATEST)
    await connection.execute("insert into outbox_table values (500, 'a', '', '[]', now(), null, now(), null)")
    await ensure_outbox_table_async(database_url)
    assert await connection.fetchval("insert into outbox_table (routing_key, body) values ('a', '') returning id") == 501


async def test_old_messages_are_json_and_new_ones_have_their_content_type(
    connection: asyncpg.Connection, database_url: str
) -> None:
    await make(connection, "latest")
    await ensure_outbox_table_async(database_url)
    await connection.execute("insert into outbox_table (routing_key, body) values ('new', '')")
    types = await connection.fetch("select distinct routing_key = 'new' as new, content_type from outbox_table order by 1")
    assert [tuple(row) for row in types] == [(False, "application/json"), (True, None)]


async def test_the_predecessors_own_insert_still_works(connection: asyncpg.Connection, database_url: str) -> None:
    """So that services can be upgraded one after another."""
    await make(connection, "latest")
    await ensure_outbox_table_async(database_url)
    await connection.execute(
        "insert into outbox_table (routing_key, body, tracking_ids, created_at, expiration, send_after) "
        "values ('a', '{}', '[\"x\"]', now(), null, now())"
    )


async def test_values_that_are_no_longer_allowed_are_corrected(connection: asyncpg.Connection, database_url: str) -> None:
    await connection.execute(SHAPES["with JSON bodies"])
    await connection.execute("""
        insert into outbox_table (routing_key, body, tracking_ids, created_at, send_after, expiration) values
            ('none', '1', null, null, null, interval '0'),
            ('empty', '2', '[]', '2024-01-01', null, null),
            ('text', '3', '"lonely"', null, '2024-01-01', interval '1 second'),
            ('null', '4', 'null', null, '2024-01-01', interval '-1 second')
    """)
    await ensure_outbox_table_async(database_url)
    rows = {row["routing_key"]: row for row in await connection.fetch("select * from outbox_table")}
    assert json.loads(rows["text"]["tracking_ids"]) == ["lonely"]
    assert all(len(json.loads(row["tracking_ids"])) == 1 for row in rows.values())
    assert rows["empty"]["send_after"] == rows["empty"]["created_at"]
    expirations = [rows[key]["expiration"] for key in ("none", "empty", "text", "null")]
    assert expirations == [timedelta(milliseconds=1), None, timedelta(seconds=1), timedelta(milliseconds=1)]


async def test_a_large_table_is_not_rewritten_without_need(connection: asyncpg.Connection, database_url: str) -> None:
    await connection.execute(LATEST.replace("serial", "bigserial").replace("routing_key text", "routing_key varchar(255)"))
    file = await connection.fetchval("select pg_relation_filenode('outbox_table')")
    await ensure_outbox_table_async(database_url)
    assert await connection.fetchval("select pg_relation_filenode('outbox_table')") == file


async def test_a_caller_that_rolls_back_has_the_old_table_again(connection: asyncpg.Connection) -> None:
    await make(connection, "latest")
    before = await catalog(connection)
    transaction = connection.transaction()
    await transaction.start()
    await ensure_outbox_table_async(connection)
    assert await catalog(connection) != before
    await transaction.rollback()
    assert await catalog(connection) == before


async def test_the_error_of_a_relay_says_how_to_upgrade(connection: asyncpg.Connection) -> None:
    await make(connection, "latest")
    with pytest.raises(SchemaError, match=r"of an older release .* upgrade it in place, with its rows, with `outbox migrate`"):
        await check_outbox_table(connection, TableName("outbox_table"))


# --- what is theirs stays theirs -------------------------------------------------------------------------------------------


async def test_a_function_that_serves_another_table_stays(connection: asyncpg.Connection, database_url: str) -> None:
    await make(connection, "latest")
    await connection.execute("""
        create table other_outbox (like outbox_table including all);
        create trigger outbox_notify_trigger after insert on other_outbox
            for each row execute function notify_outbox_insert();
    """)
    await ensure_outbox_table_async(database_url)
    assert await triggers_of(connection) == {"outbox_table_ring"}
    assert await triggers_of(connection, "other_outbox") == {"outbox_notify_trigger"}
    await ensure_outbox_table_async(database_url, "other_outbox")
    assert await triggers_of(connection, "other_outbox") == {"other_outbox_ring"}
    functions = {row[0] for row in (await catalog(connection))["functions"]}
    assert functions == {"outbox_table_ring", "other_outbox_ring", "outbox_publish", "other_outbox_publish"}


async def test_a_trigger_that_does_more_than_notify_stays(connection: asyncpg.Connection, database_url: str) -> None:
    await make(connection, "latest")
    await connection.execute("""
        create table audit (entry text);
        create function remember() returns trigger language plpgsql as $$
        begin
            insert into audit values (new.routing_key);
            perform pg_notify('audit', '');
            return new;
        end $$;
        create trigger remembers after insert on outbox_table for each row execute function remember();
        create function stamp() returns trigger language plpgsql as $$
        begin
            new.routing_key = lower(new.routing_key);
            perform pg_notify('stamps', '');
            return new;
        end $$;
        create trigger stamps before insert on outbox_table for each row execute function stamp();
    """)
    await ensure_outbox_table_async(database_url)
    assert await triggers_of(connection) == {"outbox_table_ring", "remembers", "stamps"}


async def test_a_notifying_trigger_that_is_added_later_stays(connection: asyncpg.Connection, database_url: str) -> None:
    await ensure_outbox_table_async(database_url)
    await connection.execute(NOTIFYING.replace("outbox_notify_trigger", "wakes_something_of_ours"))
    await connection.execute("drop index outbox_table_sent_idx; create index by_creation on outbox_table (created_at)")
    await ensure_outbox_table_async(database_url)
    assert await triggers_of(connection) == {"outbox_table_ring", "wakes_something_of_ours"}
    assert "by_creation" in await indexes_of(connection)


async def test_other_columns_and_indexes_stay(connection: asyncpg.Connection, database_url: str) -> None:
    await make(connection, "latest")
    await connection.execute("""
        alter table outbox_table add column tenant text default 'us';
        create index by_tenant on outbox_table (tenant, send_after);
        create index by_key on outbox_table (lower(routing_key));
        create unique index one_at_a_time on outbox_table (created_at, id);
    """)
    await ensure_outbox_table_async(database_url)
    assert {"by_tenant", "by_key", "one_at_a_time"} <= await indexes_of(connection)
    assert await connection.fetchval("select count(*) from outbox_table where tenant = 'us'") == ROWS


async def test_what_an_older_service_creates_again_is_removed_again(connection: asyncpg.Connection, database_url: str) -> None:
    await ensure_outbox_table_async(database_url)
    expected = await catalog(connection)
    await connection.execute(LATEST.replace("create table", "create table if not exists") + NOTIFYING)
    assert await check_outbox_table(connection, TableName("outbox_table")) == "public"
    await ensure_outbox_table_async(database_url)
    assert await catalog(connection) == expected
