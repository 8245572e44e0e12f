"""`outbox_publish`, by which programs in other languages publish: as a Publisher does, in their own transaction."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from outbox import MessageRelay, Publisher, Worker, consume, ensure_outbox_schema_async, tracking
from outbox.schema import migrate
from tests.schema.catalog import catalog
from tests.support import eventually

COLUMNS = "routing_key, body, content_type, headers, ordering_key, expiration, priority, target_queue, attempts, hlc"


@pytest.fixture
async def connection(outbox_url: str) -> Any:
    """A connection of a program that knows nothing of Outbox."""
    opened = await asyncpg.connect(outbox_url)
    yield opened
    await opened.close()


async def test_a_row_is_what_a_publisher_writes(connection: asyncpg.Connection) -> None:
    await Publisher().publish(
        connection, "order.placed", {"id": 7}, headers={"tenant": "a"}, ordering_key="order 7", expiration=timedelta(hours=1)
    )
    id_ = await connection.fetchval(
        """select outbox_publish('order.placed', '{"id": 7}', headers => '{"tenant": "a"}', ordering_key => 'order 7',
        expiration => interval '1 hour')"""
    )

    own, other = await connection.fetch(f"select {COLUMNS} from outbox_table order by id")
    assert other == own
    stored = await connection.fetchrow("select tracking_ids, send_after <= now() as due from outbox_table where id = 2")
    assert stored is not None
    assert (json.loads(stored["tracking_ids"]), stored["due"]) == ([id_], True)


async def test_what_is_left_out_is_what_a_publisher_leaves_out(connection: asyncpg.Connection) -> None:
    await Publisher().publish(connection, "order.placed", None, headers={})
    await connection.execute("select outbox_publish('order.placed', 'null', '{}')")

    own, other = await connection.fetch(f"select {COLUMNS} from outbox_table order by id")
    assert other == own


async def test_it_belongs_to_the_callers_transaction(connection: asyncpg.Connection) -> None:
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute("select outbox_publish('order.placed', '{}')")
    await transaction.rollback()

    assert await connection.fetchval("select count(*) from outbox_table") == 0


async def test_json_with_quotes_backslashes_and_every_script_arrives_as_it_was(connection: asyncpg.Connection) -> None:
    body = {"path": 'C:\\new\\table "x"', "name": "Ådå 名前 \U0001f600", "lines": "a\nb\t'c'", "amount": 1.10, "big": 2**80}
    await connection.execute("select outbox_publish('order.placed', $1)", json.dumps(body))

    stored = await connection.fetchval("select body from outbox_table")
    assert json.loads(stored) == body
    assert b'"amount": 1.1' in stored


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("'', '{}'", "a routing key is a text such as 'order.placed', and not empty"),
        ("null, '{}'", "a routing key is a text such as 'order.placed', and not empty"),
        ("'k', null", "body is JSON, and the value null is 'null'::jsonb"),
        ("'k', '{}', '[]'", "headers are an object of names and values"),
        ("'k', '{}', 'null'", "headers are an object of names and values"),
        ("""'k', '{}', '{"X-Outbox-Attempt": 1}'""", "the header 'X-Outbox-Attempt' is reserved"),
        ("""'k', '{}', '{"x-encryption": "v=1"}'""", "the header 'x-encryption' is reserved"),
        ("""'k', '{}', '{"a": 1, "X-Body-Store": "v=1"}'""", "the header 'X-Body-Store' is reserved"),
        ("'k', '{}', ordering_key => ''", "ordering_key is a text that is not empty"),
        ("'k', '{}', eta => 'infinity'", "eta is a moment, and not infinite"),
        ("'k', '{}', expiration => interval '0'", "expiration lies above zero and within 36525 days"),
        ("'k', '{}', expiration => interval '36526 days'", "expiration lies above zero and within 36525 days"),
        ("'k', '{}', tracking_ids => '7'", "tracking_ids are a list of texts, root first"),
        ("'k', '{}', tracking_ids => '[7]'", "tracking_ids are a list of texts, root first"),
    ],
)
async def test_what_a_publisher_refuses_is_refused(connection: asyncpg.Connection, arguments: str, reason: str) -> None:
    with pytest.raises(asyncpg.InvalidParameterValueError) as caught:
        await connection.execute(f"select outbox_publish({arguments})")

    assert reason in str(caught.value)
    assert await connection.fetchval("select count(*) from outbox_table") == 0


@pytest.mark.parametrize(("eta", "is_due"), [(timedelta(hours=1), False), (timedelta(hours=-1), True)])
async def test_an_eta_is_when_it_is_due_and_one_in_the_past_overtakes_nothing(
    connection: asyncpg.Connection, eta: timedelta, is_due: bool
) -> None:
    at = datetime.now(UTC) + eta
    row = await connection.fetchrow(
        "with published as (select outbox_publish('timer', '{}', eta => $1)) select now() from published", at
    )
    due = await connection.fetchval("select send_after from outbox_table")

    assert row is not None
    assert due == (row["now"] if is_due else at)


async def test_a_chain_is_continued_and_kept_within_its_limit(connection: asyncpg.Connection) -> None:
    for length in (1, 255, 256, 300):
        chain = [f"id {number}" for number in range(length)]
        id_ = await connection.fetchval("select outbox_publish('k', '{}', tracking_ids => $1)", json.dumps(chain))
        with tracking(chain):
            await Publisher().publish(connection, "k", {})
        own, other = (
            json.loads(row["tracking_ids"])
            for row in await connection.fetch("select tracking_ids from outbox_table order by id desc limit 2")
        )
        assert (other[-1], other[:-1], len(other)) == (id_, own[:-1], min(length + 1, 256))


async def test_the_right_to_insert_suffices(connection: asyncpg.Connection) -> None:
    await connection.execute(
        "drop role if exists outbox_writer; create role outbox_writer; grant insert on outbox_table to outbox_writer"
    )
    try:
        await connection.execute("set role outbox_writer; select outbox_publish('k', '{}'); reset role")
        assert await connection.fetchval("select count(*) from outbox_table") == 1
    finally:
        await connection.execute("reset role; drop owned by outbox_writer; drop role outbox_writer")


async def test_a_relay_that_sleeps_wakes_and_a_handler_gets_it(database_url: str) -> None:
    received: list[tuple[dict[str, int], tuple[str, ...]]] = []

    @consume("order.*", queue="orders")
    async def note(order: dict[str, int], tracking_ids: tuple[str, ...]) -> None:
        received.append((order, tracking_ids))

    await ensure_outbox_schema_async(database_url)
    relay = MessageRelay(db_engine_url=database_url, broker=database_url, notification_timeout=3_600.0)
    worker = Worker(broker=database_url, consumers=[note])
    connection = await asyncpg.connect(database_url)
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(relay.run())
            tasks.create_task(worker.run())
            for number in range(3):
                id_ = await connection.fetchval("select outbox_publish('order.placed', $1)", json.dumps({"id": number}))
                expected = ({"id": number}, (id_,))
                await eventually(lambda: received[-1:] == [expected])  # noqa: B023  awaited here
            relay.stop()
            worker.stop()
    finally:
        await connection.close()


TABLES = {
    "outbox_table": "outbox_publish",
    "outbox": "outbox_table_publish",
    "Shop$Events": '"Shop$Events_publish"',
    "events.outbox_table": "events.outbox_publish",
    'a_b.' + "x" * 63: None,
}  # fmt: skip


@pytest.mark.parametrize("table", TABLES)
async def test_each_outbox_table_has_a_function_of_its_own(database_url: str, table: str) -> None:
    connection = await asyncpg.connect(database_url)
    try:
        await connection.execute("create schema events; create schema a_b")
        await migrate(database_url, table)
        name = TABLES[table]
        if name is None:
            name = await connection.fetchval("select oid::regproc::text from pg_proc where proname like '%publish'")
        await connection.execute(f"set search_path = pg_catalog; select {_qualified(name)}('k', '{{}}'); reset search_path")
        schema, _, bare = table.rpartition(".")
        assert await connection.fetchval(f'select count(*) from {schema or "public"}."{bare}"') == 1
    finally:
        await connection.close()


def _qualified(name: str) -> str:
    return name if "." in name else f"public.{name}"


async def test_two_tables_in_one_schema_do_not_share_it(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    try:
        for table in ("outbox_table", "outbox"):
            await migrate(database_url, table)
        await connection.execute("select outbox_publish('k', '{}')")
        assert await connection.fetchval("select count(*) from outbox_table") == 1
        assert await connection.fetchval("select count(*) from outbox") == 0
    finally:
        await connection.close()


async def test_a_function_that_is_missing_is_made_again(database_url: str) -> None:
    await ensure_outbox_schema_async(database_url)
    connection = await asyncpg.connect(database_url)
    try:
        made = (await catalog(connection))["functions"]
        await connection.execute("drop function outbox_publish")
        await ensure_outbox_schema_async(database_url)
        assert (await catalog(connection))["functions"] == made
    finally:
        await connection.close()


async def test_after_its_schema_is_renamed_it_is_made_for_where_the_table_is_now(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    try:
        await connection.execute("create schema shop")
        await migrate(database_url, "shop.outbox_table")
        await connection.execute("alter schema shop rename to store")
        await migrate(database_url, "store.outbox_table")
        await connection.execute("select store.outbox_publish('k', '{}')")
        assert await connection.fetchval("select count(*) from store.outbox_table") == 1
    finally:
        await connection.close()
