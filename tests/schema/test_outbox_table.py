"""Values that the outbox table accepts and refuses, its names, and privileges to write to it."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from outbox.errors import IdentifierError
from outbox.postgres.queries import LONGEST_IDENTIFIER, TableName
from outbox.postgres.schema.objects import SATELLITES, outbox_names
from outbox.schema import ensure_outbox_schema_async, ensure_outbox_table_async, ensure_outbox_table_sync
from tests.schema.catalog import catalog


async def test_routing_key_and_body_suffice(connection: asyncpg.Connection, database_url: str) -> None:
    await ensure_outbox_table_async(database_url)
    await connection.execute("insert into outbox_table (routing_key, body) values ('order.placed', 'hello'), ('', '')")
    first, second = await connection.fetch("select *, tracking_ids ->> 0 as tracking_id from outbox_table order by id")
    assert (first["id"], second["id"]) == (1, 2)
    assert first["body"] == b"hello"
    assert UUID(first["tracking_id"]) != UUID(second["tracking_id"])
    assert first["created_at"] == first["send_after"] is not None
    untouched = ("expiration", "sent_at", "headers", "content_type", "ordering_key", "dedup_key", "target_queue")
    assert [first[name] for name in (*untouched, "last_error", "failed_at", "hlc")] == [None] * 10
    assert (first["priority"], first["attempts"]) == (0, 0)


async def test_a_producer_may_provide_an_id(connection: asyncpg.Connection, database_url: str) -> None:
    await ensure_outbox_table_async(database_url)
    await connection.execute("insert into outbox_table (id, routing_key, body) values (1000, 'a', '')")


@pytest.mark.parametrize("length", [1, 255, 300, 100_000])
async def test_a_routing_key_may_be_longer_than_a_broker_allows(
    connection: asyncpg.Connection, database_url: str, length: int
) -> None:
    await ensure_outbox_table_async(database_url)
    await connection.execute("insert into outbox_table (routing_key, body) values ($1, '')", "ä" * length)


IMPOSSIBLE = {
    "attempts": "attempts = -1",
    "priority": "priority = 10",
    "negative priority": "priority = -1",
    "sent and failed at once": "sent_at = now(), failed_at = now(), last_error = 'x'",
    "failed without an error": "failed_at = now()",
    "expired before it began": "expiration = interval '0'",
    "a negative expiration": "expiration = interval '-1 second'",
    "priority and order": "priority = 1, ordering_key = 'k'",
    "no routing key": "routing_key = null",
    "no body": "body = null",
    "no tracking ids": "tracking_ids = null",
    "no time": "send_after = null",
}


@pytest.mark.parametrize("change", IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys())
async def test_an_invalid_row_is_refused(connection: asyncpg.Connection, database_url: str, change: str) -> None:
    await ensure_outbox_table_async(database_url)
    await connection.execute("insert into outbox_table (routing_key, body) values ('a', '')")
    with pytest.raises(asyncpg.IntegrityConstraintViolationError):
        await connection.execute(f"update outbox_table set {change}")


IMPOSSIBLE_DELIVERIES = {
    "a lease without a token": "leased_until = now()",
    "a token without a lease": "lease_token = gen_random_uuid()",
    "no attempt": "attempt = 0",
    "negative crashes": "crashes = -1",
    "negative requeues": "requeue_count = -1",
}


@pytest.mark.parametrize("change", IMPOSSIBLE_DELIVERIES.values(), ids=IMPOSSIBLE_DELIVERIES.keys())
async def test_an_invalid_delivery_is_refused(connection: asyncpg.Connection, database_url: str, change: str) -> None:
    await ensure_outbox_schema_async(database_url)
    await connection.execute(
        "insert into outbox_delivery (exchange, queue, message_id, routing_key, body, tracking_ids) "
        "values ('e', 'q', 'i', 'a', '', '[]')"
    )
    with pytest.raises(asyncpg.CheckViolationError):
        await connection.execute(f"update outbox_delivery set {change}")


async def test_clocks_are_never_compared(connection: asyncpg.Connection, database_url: str) -> None:
    """A producer with a wrong clock, or that publishes for later, is not refused."""
    await ensure_outbox_table_async(database_url)
    await connection.execute(
        "insert into outbox_table (routing_key, body, created_at, send_after, sent_at) values "
        "('a', '', now() + interval '1 year', now() - interval '1 year', now() - interval '2 years'), "
        "('a', '', '-infinity', 'infinity', null)"
    )


# --- names ---------------------------------------------------------------------------------------------------------------

LONG = "x" * 53


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("orders", "bills"),
        ("one.outbox_table", "other.outbox_table"),
        ("Orders", "orders"),
        (f"{LONG}_first_one", f"{LONG}_other_one"),
        (f"{LONG}_a", f"{LONG}_b"),
        ("select", "Order"),
        ("a", "a_pending"),
        ("a_check", "a"),
    ],
)
async def test_two_tables_share_nothing(connection: asyncpg.Connection, database_url: str, one: str, other: str) -> None:
    await connection.execute("create schema one; create schema other")
    await ensure_outbox_table_async(database_url, one)
    before = [await catalog(connection, schema) for schema in ("public", "one")]
    await ensure_outbox_table_async(database_url, other)
    await connection.execute(f"insert into {TableName.parse(other).sql} (routing_key, body) values ('a', '')")
    await connection.execute(f"drop table {TableName.parse(other).sql}")
    for function in ("ring_function", "publish_function"):
        await connection.execute(f"drop function {outbox_names(TableName.parse(other))[function]}")
    assert [await catalog(connection, schema) for schema in ("public", "one")] == before
    await connection.execute(f"insert into {TableName.parse(one).sql} (routing_key, body) values ('a', '')")


@pytest.mark.parametrize("length", range(40, LONGEST_IDENTIFIER + 1))
def test_derived_names_fit_and_differ(length: int) -> None:
    names = [outbox_names(TableName("x" * (length - 1) + letter)) for letter in "ab"]
    bare = [[value for key, value in table.items() if key.endswith("_name")] for table in names]
    assert all(len(name) <= LONGEST_IDENTIFIER for table in bare for name in table)
    assert len({name for table in bare for name in table}) == len(bare[0]) + len(bare[1])


async def test_a_table_with_a_name_of_sixty_three_bytes_is_upgraded_in_place(
    connection: asyncpg.Connection, database_url: str
) -> None:
    name = "o" * 63
    await connection.execute(f"create table {name} (id serial primary key, routing_key text, body bytea)")
    await connection.execute(f"insert into {name} (routing_key, body) values ('a', '')")
    await ensure_outbox_table_async(database_url, name)
    upgraded = await catalog(connection)
    await connection.execute(f"drop table {name}")
    await ensure_outbox_table_async(database_url, name)
    assert await catalog(connection) == upgraded


@pytest.mark.parametrize(
    "name",
    [
        'outbox"; drop table business; --',
        "outbox'",
        "out box",
        "outbox-table",
        "a.b.c",
        "",
        ".outbox",
        "outbox.",
        "1outbox",
        "tabelle_ä",
        "x" * 64,
        "outbox\n",
        None,
        7,
    ],
)
async def test_a_hostile_name_is_refused_before_anything_is_opened(name: Any) -> None:
    with pytest.raises(IdentifierError):
        await ensure_outbox_table_async("postgresql://user@127.0.0.1:1/nowhere", name)
    with pytest.raises(IdentifierError):
        ensure_outbox_table_sync("postgresql://user@127.0.0.1:1/nowhere", name)
    with pytest.raises(IdentifierError):
        await ensure_outbox_schema_async("postgresql://user@127.0.0.1:1/nowhere", schema=f"{name}.")


@pytest.mark.parametrize("name", ["outbox_delivery", "outbox_schema_version", "app.outbox_dead_letter", "outbox_history"])
async def test_the_names_of_other_outbox_tables_are_reserved(name: str) -> None:
    with pytest.raises(IdentifierError, match="reserved for another table"):
        await ensure_outbox_table_async("postgresql://user@127.0.0.1:1/nowhere", name)


async def test_an_unqualified_name_means_the_first_schema_of_the_search_path(
    connection: asyncpg.Connection, database_url: str
) -> None:
    await connection.execute('create schema "my-schema"; set search_path = "my-schema", public')
    await ensure_outbox_schema_async(connection)
    assert (await catalog(connection))["tables"] == []
    others = ["outbox_table", "outbox_schema_version", "outbox_history_default"]
    assert len((await catalog(connection, "my-schema"))["tables"]) == len(SATELLITES) + len(others)


# --- rights --------------------------------------------------------------------------------------------------------------


async def test_a_role_that_may_only_insert_can_publish(connection: asyncpg.Connection, database_url: str) -> None:
    """The doorbell runs with the producer's privileges and needs none, neither on the function nor on the sequence."""
    await ensure_outbox_table_async(database_url)
    await connection.execute(
        "create role only_a_producer; grant insert on outbox_table to only_a_producer; "
        "revoke execute on all functions in schema public from public"
    )
    try:
        await connection.execute("set role only_a_producer")
        await connection.execute("insert into outbox_table (routing_key, body) values ('a', '')")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.fetch("select * from outbox_table")
    finally:
        await connection.execute("reset role; drop owned by only_a_producer; drop role only_a_producer")


async def test_a_hostile_search_path_changes_nothing_for_the_doorbell(
    connection: asyncpg.Connection, database_url: str
) -> None:
    await ensure_outbox_table_async(database_url)
    await connection.execute("""
        create schema trap;
        create function trap.pg_try_advisory_xact_lock_shared(bigint) returns boolean language sql
            as $$ select 1 / 0 = 1 $$;
        create function trap.sha256(bytea) returns bytea language sql as $$ select (1 / 0)::text::bytea $$;
        set search_path = trap, pg_catalog, public
    """)
    await connection.execute("insert into public.outbox_table (routing_key, body) values ('a', '')")


async def test_busy_tables_are_vacuumed_by_their_number_of_changes(connection: asyncpg.Connection, database_url: str) -> None:
    await ensure_outbox_schema_async(database_url)
    for table in ("outbox_table", "outbox_delivery"):
        options = await connection.fetchval("select reloptions from pg_class where oid = to_regclass($1)", table)
        assert {"autovacuum_vacuum_scale_factor=0.02", "autovacuum_vacuum_threshold=1000"} <= set(options)


async def test_rows_keep_the_order_of_their_ids(connection: asyncpg.Connection, database_url: str) -> None:
    await ensure_outbox_table_async(database_url)
    await connection.executemany(
        "insert into outbox_table (routing_key, body, expiration) values ($1, '', $2)",
        [(str(number), timedelta(minutes=number)) for number in range(1, 4)],
    )
    assert [row["routing_key"] for row in await connection.fetch("select * from outbox_table order by id")] == ["1", "2", "3"]
