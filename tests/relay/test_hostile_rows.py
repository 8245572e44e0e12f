"""Rows that any producer may insert and hardly any driver can read: each hurts itself only."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from outbox import ensure_outbox_schema_async
from outbox.core.byte_limits import ByteLimits
from outbox.core.events import BatchSent, SendFailed
from outbox.core.message import Message, PendingMessage
from outbox.core.outcome import DONE, Failure
from outbox.ports import CONFIRMED, UNROUTABLE, Refused, SendResult
from outbox.postgres.claiming import Claimer
from outbox.postgres.pool import open_pool
from outbox.postgres.queries import TableName
from outbox.postgres.store import PostgresStore
from tests.relay.support import INSERT, ScriptedTransport, policy, relaying, rows, rows_are
from tests.support.eventually import eventually


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("expiration", "interval '10000 years'"),
        ("expiration", "interval '170000000 years'"),
        ("created_at", "'infinity'"),
        ("created_at", "'-infinity'"),
        ("created_at", "'4000-01-01 BC'"),
        ("created_at", "'20000-01-01'"),
        ("send_after", "'-infinity'"),
        ("send_after", "'4000-01-01 BC'"),
        ("headers", "jsonb_build_object('n', 1e300::numeric)"),
        ("tracking_ids", "jsonb_build_array(repeat('x', 3000000))"),
    ],
)
async def test_absurd_values_are_sent_like_any_other(url: str, connection: asyncpg.Connection, column: str, value: str) -> None:
    await connection.execute(f"insert into outbox_table (routing_key, body, {column}) values ('absurd', '', {value})")
    await connection.execute(INSERT, "good")
    transport = ScriptedTransport()
    async with relaying(url, transport) as relay:
        await eventually(lambda: rows_are(connection, 0))
        await relay.stopped()
    sent_messages = [message for event in relay.recorder.of(BatchSent) for message in event.messages]
    assert len(sent_messages) == 2
    assert all(message.age >= timedelta(0) for message in sent_messages)
    assert sorted(transport.routing_keys) == ["absurd", "good"]
    assert all(message.created_at.tzinfo is not None for message in transport.sent)
    assert {message.expires_at for message in transport.sent} == {None}


@pytest.mark.parametrize(
    "headers",
    [
        "jsonb_build_object('n', repeat('9', 5000)::numeric)",
        "(repeat('[', 2000) || repeat(']', 2000))::jsonb",
        "'7'",
    ],
)
async def test_headers_that_cannot_be_read_park_their_own_row(url: str, connection: asyncpg.Connection, headers: str) -> None:
    await connection.execute(f"insert into outbox_table (routing_key, body, headers) values ('bad', '', {headers})")
    await connection.execute(INSERT, "good")
    transport = ScriptedTransport()
    async with relaying(url, transport, sending=policy(max_attempts=1)):
        await eventually(lambda: rows_are(connection, 1))
    assert transport.routing_keys == ["good"]
    assert "headers" in await connection.fetchval("select last_error from outbox_table where failed_at is not null")


async def test_tracking_ids_nested_too_deep_give_way_to_an_id_of_the_row(url: str, connection: asyncpg.Connection) -> None:
    await connection.execute(
        "insert into outbox_table (routing_key, body, tracking_ids) "
        "values ('deep', '', (repeat('[', 2000) || repeat(']', 2000))::jsonb)"
    )
    transport = ScriptedTransport()
    async with relaying(url, transport):
        await eventually(lambda: rows_are(connection, 0))
    assert transport.routing_keys == ["deep"]


@pytest.fixture
async def ascii_url(database_url: str) -> AsyncIterator[str]:
    """A database of the encoding SQL_ASCII, which takes any bytes for text."""
    outer = await asyncpg.connect(database_url)
    name = await outer.fetchval("select current_database() || '_ascii'")
    await outer.execute(f"create database {name} encoding 'SQL_ASCII' locale 'C' template template0")
    url = database_url.rpartition("/")[0] + f"/{name}"
    await ensure_outbox_schema_async(url)
    yield url
    await outer.execute(f"drop database {name}")
    await outer.close()


UNREADABLE = "insert into outbox_table (routing_key, body) values (convert_from('\\xff', 'SQL_ASCII'), '') returning id"


async def test_text_that_is_not_text_parks_its_own_row(ascii_url: str) -> None:
    connection = await asyncpg.connect(ascii_url)
    await connection.execute("insert into outbox_table (routing_key, body) select 'before', '' from generate_series(1, 20)")
    await connection.execute(UNREADABLE)
    await connection.execute(INSERT, "after")
    transport = ScriptedTransport()
    async with relaying(ascii_url, transport, sending=policy(max_attempts=1)):
        await eventually(lambda: rows_are(connection, 1))
    assert set(transport.routing_keys) == {"before", "after"}
    assert "cannot be read: invalid byte sequence" in await connection.fetchval(
        "select last_error from outbox_table where failed_at is not null"
    )
    await connection.close()


async def test_text_that_is_not_text_parks_no_row_of_higher_priority(ascii_url: str) -> None:
    connection = await asyncpg.connect(ascii_url)
    unreadable = await connection.fetchval(UNREADABLE)
    await connection.execute(
        "insert into outbox_table (routing_key, body, priority) select 'x', '', 9 from generate_series(1, 9)"
    )
    assert [pending.row_id for pending in await _claims(ascii_url, 5) if pending.malformed] == [unreadable]
    await connection.close()


async def test_text_that_is_not_text_parks_no_other_row_when_another_relay_has_its_own(
    ascii_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = await asyncpg.connect(ascii_url)
    unreadable = await connection.fetchval(UNREADABLE)
    await connection.execute(INSERT, "good")
    claim_unread = Claimer._claim_unkeyed_unread

    async def after_another_relay(*arguments: Any) -> Any:
        await connection.execute("begin")
        await connection.execute("select from outbox_table where id = $1 for update", unreadable)
        return await claim_unread(*arguments)

    monkeypatch.setattr(Claimer, "_claim_unkeyed_unread", after_another_relay)
    assert [(pending.message.routing_key, pending.malformed) for pending in await _claims(ascii_url, 1)] == [("good", None)]
    await connection.close()


async def _claims(url: str, number: int) -> list[PendingMessage]:
    """What so many claims of one row take, each of which is settled as sent."""
    taken: list[PendingMessage] = []
    async with asyncpg.create_pool(url, min_size=1) as pool:
        store = PostgresStore(pool, TableName("outbox_table"), keep_sent=False, longest_send=timedelta(seconds=10))
        for _ in range(number):
            claim = await store.claim(1)
            assert claim is not None
            async with claim:
                taken += claim.messages
                await claim.settle([DONE for _ in claim.messages])
    return taken


async def test_a_database_of_another_encoding_keeps_what_it_can_of_an_error(database_url: str) -> None:
    outer = await asyncpg.connect(database_url)
    name = await outer.fetchval("select current_database() || '_latin'")
    await outer.execute(f"create database {name} encoding 'LATIN1' locale 'C' template template0")
    url = database_url.rpartition("/")[0] + f"/{name}"
    await ensure_outbox_schema_async(url)
    connection = await asyncpg.connect(url)
    await connection.execute(INSERT, "bad")
    transport = ScriptedTransport(lambda message: Refused(Failure("TooBad", "5 → 6")))
    async with relaying(url, transport, sending=policy(max_attempts=1)):
        await eventually(lambda: rows_are(connection, 1, "failed_at is not null"))
    assert await connection.fetchval("select last_error from outbox_table") == "TooBad: 5 \\u2192 6"
    await connection.close()
    await outer.execute(f"drop database {name}")
    await outer.close()


@pytest.mark.parametrize("text", ["with \0 in it", "half a pair: \ud800"])
async def test_an_error_that_postgres_cannot_hold_is_kept_without_what_it_cannot(
    url: str, connection: asyncpg.Connection, text: str
) -> None:
    await connection.execute(INSERT, "bad")
    transport = ScriptedTransport(lambda message: Refused(Failure("TooBad", text)))
    async with relaying(url, transport, sending=policy(max_attempts=1)):
        await eventually(lambda: rows_are(connection, 1, "failed_at is not null"))
    assert (await connection.fetchval("select last_error from outbox_table")).startswith("TooBad: ")


async def test_an_unroutable_key_too_long_for_the_index_of_held_rows_is_parked(
    url: str, connection: asyncpg.Connection
) -> None:
    await connection.execute(
        "insert into outbox_table (routing_key, body) select string_agg(md5(i::text), ''), '' from generate_series(1, 200) i"
    )
    await connection.execute(INSERT, "early")
    transport = ScriptedTransport(lambda message: UNROUTABLE)
    async with relaying(url, transport) as relay:
        await eventually(lambda: rows_are(connection, 1, "failed_at is not null and last_error like 'unroutable%'"))
        await eventually(lambda: rows_are(connection, 1, "last_error = 'unroutable' and attempts = 0"))
        assert len(relay.recorder.of(SendFailed)) >= 2


async def test_a_row_of_countless_attempts_is_parked_like_any_other(url: str, connection: asyncpg.Connection) -> None:
    await connection.execute("insert into outbox_table (routing_key, body, attempts) values ('bad', '', 2147483647)")
    await connection.execute(INSERT, "good")

    def answer(message: Message) -> SendResult:
        return Refused(Failure("TooLarge", "no way")) if message.routing_key == "bad" else CONFIRMED

    async with relaying(url, ScriptedTransport(answer)):
        await eventually(lambda: rows_are(connection, 1, "failed_at is not null"))
        assert await rows(connection) == 1


@pytest.mark.parametrize("when", ["'-infinity'", "'4000-01-01 BC'", "'infinity'", "'200000-01-01'"])
async def test_looking_at_what_is_due_survives_any_time(url: str, connection: asyncpg.Connection, when: str) -> None:
    await connection.execute(f"insert into outbox_table (routing_key, body, send_after) values ('absurd', '', {when})")
    pool = await open_pool(url, size=1, application_name="test")
    store = PostgresStore(pool, TableName("outbox_table"), keep_sent=False, longest_send=policy().publish_timeout)
    await store.next_due()
    assert (await store.backlog()).unsent == 1
    await pool.close()


async def test_a_codec_that_the_pool_has_for_jsonb_changes_nothing(url: str, connection: asyncpg.Connection) -> None:
    """asyncpg's documentation suggests one, so pools that are given may well have it."""

    async def prepare(given: asyncpg.Connection) -> None:
        await given.set_type_codec("jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")

    await connection.execute(
        "insert into outbox_table (routing_key, body, headers, tracking_ids) values ('a', '', '{\"a\": 1}', '[\"id\"]')"
    )
    async with asyncpg.create_pool(url, min_size=1, max_size=1, init=prepare) as pool:
        store = PostgresStore(pool, TableName("outbox_table"), keep_sent=False, longest_send=policy().publish_timeout)
        claim = await store.claim(1)
        assert claim is not None
        async with claim:
            [pending] = claim.messages
    assert (pending.message.id, pending.message.headers) == ("id", {"a": 1})


async def test_the_bytes_of_a_batch_count_all_of_its_columns(url: str, connection: asyncpg.Connection) -> None:
    await connection.execute(
        "insert into outbox_table (routing_key, body, headers) "
        "select 'big', '', jsonb_build_object('h', repeat('x', 9000000)) from generate_series(1, 6)"
    )
    transport = ScriptedTransport()
    async with relaying(url, transport, lanes=1, byte_limits=ByteLimits(batch=40_000_000)):
        await eventually(lambda: rows_are(connection, 0))
    assert [len(batch) for batch in transport.batches] == [4, 2]
