"""Bulk publishing: one statement, ids in order, all or nothing."""

from collections.abc import AsyncIterator

import pytest

from outbox import OutboxMessage, Publisher
from outbox.errors import ConfigurationError
from outbox.postgres.handles import insert
from tests.publisher.onlooker import Onlooker
from tests.publisher.ways import Way, asyncpg_connection, done, psycopg2_connection

publisher = Publisher()


@pytest.fixture
async def statements(onlooker: Onlooker) -> AsyncIterator[list[int]]:
    """A list that `count` fills: how many rows each insert statement brought, counted by the server itself."""
    await onlooker.connection.execute("""
        create table inserted (rows bigint);
        create function count_inserted() returns trigger language plpgsql as
            $$ begin insert into public.inserted select count(*) from brought; return null; end $$;
        create trigger count_inserted after insert on outbox_table referencing new table as brought
            for each statement execute function count_inserted();
    """)
    yield []
    await onlooker.connection.execute("drop function count_inserted() cascade; drop table inserted")


async def test_a_bulk_is_one_statement_and_its_ids_are_in_order(
    way: Way, outbox_url: str, onlooker: Onlooker, statements: list[int]
) -> None:
    messages = [OutboxMessage(f"order.{number}", {"number": number}, headers={"n": number}) for number in range(1000)]
    async with way(outbox_url) as opened:
        ids = await done(publisher.bulk_publish(opened.handle, messages))
        await done(opened.commit())

    rows = await onlooker.rows()
    assert [row["tracking_ids"] for row in rows] == [[id_] for id_ in ids]
    assert [row["routing_key"] for row in rows] == [f"order.{number}" for number in range(1000)]
    assert [row["headers"]["n"] for row in rows] == list(range(1000))
    assert len(set(ids)) == 1000
    assert [row["rows"] for row in await onlooker.connection.fetch("select rows from inserted")] == [1000]


async def test_messages_that_differ_in_what_they_name_share_a_statement(way: Way, outbox_url: str, onlooker: Onlooker) -> None:
    messages = [
        OutboxMessage("plain", {}),
        OutboxMessage("with headers", {}, headers={"a": 1}),
        OutboxMessage("expiring", {}, expiration=1),
        OutboxMessage("late", {}, eta=60_000),
        OutboxMessage("plain again", b"\x00"),
    ]
    async with way(outbox_url) as opened:
        await done(publisher.bulk_publish(opened.handle, messages))
        await done(opened.commit())

    rows = await onlooker.rows()
    assert [row["routing_key"] for row in rows] == [message.routing_key for message in messages]
    assert [row["headers"] for row in rows] == [None, {"a": 1}, None, None, None]
    assert [row["expiration"] is not None for row in rows] == [False, False, True, False, False]
    assert [row["send_after"] > row["created_at"] for row in rows] == [False, False, False, True, False]


async def test_an_empty_bulk_writes_nothing(way: Way, outbox_url: str, statements: list[int], onlooker: Onlooker) -> None:
    async with way(outbox_url) as opened:
        assert await done(publisher.bulk_publish(opened.handle, [])) == []
        await done(opened.commit())

    assert await onlooker.connection.fetch("select rows from inserted") == []


async def test_messages_may_come_from_a_generator(outbox_url: str, onlooker: Onlooker) -> None:
    async with asyncpg_connection(outbox_url) as opened:
        ids = await publisher.bulk_publish(opened.handle, (OutboxMessage("key", number) for number in range(3)))
        await done(opened.commit())

    assert await onlooker.ids() == ids


async def test_one_bad_message_keeps_all_from_being_written(way: Way, outbox_url: str, onlooker: Onlooker) -> None:
    messages = [OutboxMessage("good", {}), OutboxMessage("bad", {}, expiration=-1)]
    async with way(outbox_url) as opened:
        with pytest.raises(ConfigurationError, match="expiration"):
            await done(publisher.bulk_publish(opened.handle, messages))
        await done(opened.commit())

    assert await onlooker.rows() == []


async def test_what_is_no_outbox_message_is_refused_by_name(outbox_url: str) -> None:
    async with asyncpg_connection(outbox_url) as opened:
        with pytest.raises(ConfigurationError, match="not dict"):
            await publisher.bulk_publish(opened.handle, [{"routing_key": "key", "body": {}}])  # type: ignore[list-item]


@pytest.mark.parametrize("open_handle", [asyncpg_connection, psycopg2_connection])
async def test_a_hundred_thousand_messages_go_in_one_statement(
    open_handle: Way, outbox_url: str, onlooker: Onlooker, statements: list[int]
) -> None:
    messages = [OutboxMessage("key", b"x" * 64)] * 100_000
    async with open_handle(outbox_url) as opened:
        ids = await done(publisher.bulk_publish(opened.handle, messages))
        await done(opened.commit())

    assert len(set(ids)) == 100_000
    assert [row["rows"] for row in await onlooker.connection.fetch("select rows from inserted")] == [100_000]


async def test_more_than_a_statement_can_carry_is_split_within_the_transaction(
    way: Way, outbox_url: str, onlooker: Onlooker, statements: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(insert, "STATEMENT_SIZE", 2500)
    messages = [OutboxMessage("key", b"x" * size) for size in (1000, 1000, 1000, 9000, 10, 10)]
    async with way(outbox_url) as opened:
        ids = await done(publisher.bulk_publish(opened.handle, messages))
        await done(opened.commit())

    assert await onlooker.ids() == ids
    assert [row["rows"] for row in await onlooker.connection.fetch("select rows from inserted")] == [2, 1, 1, 2]
