"""What is published arrives in the table exactly, whichever driver carries it."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import asyncpg
import psycopg
import psycopg2.extensions
import pytest
from psycopg.types.array import register_default_adapters
from psycopg.types.json import JsonbDumper
from psycopg2.extras import Json
from pydantic import BaseModel

from outbox import OutboxMessage, Publisher, ensure_outbox_table_async, tracking
from outbox.errors import ConfigurationError
from tests.publisher.onlooker import Onlooker
from tests.publisher.ways import Way, asyncpg_connection, done

publisher = Publisher()

HARD_TEXT = "ключ.{a,b}.\"quoted\".'single'.\\back\\slash.null.NULL.%s.:name.$1.\n\ttab.😀"
HARD_HEADERS = {
    "text": HARD_TEXT,
    "nested": {"list": [1, 2.5, None, True, "x"], "empty": {}},
    "backslash before u0000": "\\u0000",
    "large": 2**62,
}
EVERY_BYTE = bytes(range(256))


class Placed(BaseModel):
    id: int
    customer: str


async def _publish(way: Way, url: str, *args: Any, by: Publisher = publisher, **keywords: Any) -> str:
    async with way(url) as opened:
        message_id: str = await done(by.publish(opened.handle, *args, **keywords))
        await done(opened.commit())
    return message_id


async def test_text_bytes_and_headers_survive_every_driver(way: Way, outbox_url: str, onlooker: Onlooker) -> None:
    await _publish(way, outbox_url, HARD_TEXT, EVERY_BYTE, headers=HARD_HEADERS)

    row = await onlooker.row()
    assert row["routing_key"] == HARD_TEXT
    assert row["body"] == EVERY_BYTE
    assert row["content_type"] == "application/octet-stream"
    assert row["headers"] == HARD_HEADERS


async def test_expiration_and_due_times_survive_every_driver(way: Way, outbox_url: str, onlooker: Onlooker) -> None:
    eta = datetime(2150, 2, 28, 23, 59, 59, 123457, tzinfo=timezone(timedelta(hours=5, minutes=45)))
    async with way(outbox_url) as opened:
        messages = [
            OutboxMessage("at once", b""),
            OutboxMessage("at an instant", b"", eta=eta, expiration=1.5),
            OutboxMessage(
                "after a while", b"", eta=timedelta(days=40_000 / 24, microseconds=1), expiration=timedelta(days=400)
            ),
        ]
        await done(publisher.bulk_publish(opened.handle, messages))
        await done(opened.commit())

    at_once, at_an_instant, after_a_while = await onlooker.rows()
    assert at_once["expiration"] is None
    assert at_once["send_after"] == at_once["created_at"]
    assert at_an_instant["expiration"] == timedelta(seconds=1.5)
    assert at_an_instant["send_after"] == datetime(2150, 2, 28, 18, 14, 59, 123457, tzinfo=UTC)
    assert after_a_while["expiration"] == timedelta(days=400)
    waits = after_a_while["send_after"] - after_a_while["created_at"]
    assert timedelta(hours=40_000) < waits < timedelta(hours=40_000, minutes=1)


@pytest.mark.parametrize(
    ("body", "stored", "content_type"),
    [
        (Placed(id=1, customer="Ada"), b'{"id":1,"customer":"Ada"}', "application/json"),
        ({"id": 1}, b'{"id": 1}', "application/json"),
        ([1, "two", None], b'[1, "two", null]', "application/json"),
        ("text", b'"text"', "application/json"),
        (None, b"null", "application/json"),
        (b"\x00\xff", b"\x00\xff", "application/octet-stream"),
        (b"", b"", "application/octet-stream"),
    ],
)
async def test_a_body_is_stored_by_its_kind(
    body: object, stored: bytes, content_type: str, outbox_url: str, onlooker: Onlooker
) -> None:
    await _publish(asyncpg_connection, outbox_url, "key", body)

    row = await onlooker.row()
    assert (row["body"], row["content_type"]) == (stored, content_type)


@pytest.mark.parametrize(
    ("default", "own", "stored"),
    [
        (None, None, None),
        (60, None, timedelta(minutes=1)),
        (60, 5, timedelta(seconds=5)),
        (timedelta(hours=1), 0.25, timedelta(seconds=0.25)),
        (None, timedelta(days=2), timedelta(days=2)),
    ],
)
async def test_a_message_s_own_expiration_goes_before_the_publisher_s(
    default: float | timedelta | None,
    own: float | timedelta | None,
    stored: timedelta | None,
    outbox_url: str,
    onlooker: Onlooker,
) -> None:
    await _publish(asyncpg_connection, outbox_url, "key", {}, by=Publisher(default), expiration=own)

    assert (await onlooker.row())["expiration"] == stored


async def test_an_eta_in_milliseconds_counts_from_the_moment_of_publishing(outbox_url: str, onlooker: Onlooker) -> None:
    async with asyncpg_connection(outbox_url) as opened:
        await opened.execute("select pg_sleep(0.3)")  # the transaction's own now() stands still meanwhile
        await publisher.publish(opened.handle, "key", {}, eta=1500)
        await done(opened.commit())

    row = await onlooker.row()
    assert row["send_after"] - row["created_at"] > timedelta(seconds=1.8)


async def test_an_eta_in_the_past_is_due_at_once_and_overtakes_nothing(outbox_url: str, onlooker: Onlooker) -> None:
    async with asyncpg_connection(outbox_url) as opened:
        await publisher.publish(opened.handle, "key", {}, eta=datetime(1066, 10, 14, tzinfo=UTC))
        await publisher.publish(opened.handle, "key", {}, eta=-60_000)
        await done(opened.commit())

    for row in await onlooker.rows():
        assert row["send_after"] == row["created_at"]


async def test_a_naive_eta_means_local_time(outbox_url: str, onlooker: Onlooker) -> None:
    local_time = datetime(2150, 7, 1, 12, 0)  # noqa: DTZ001
    await _publish(asyncpg_connection, outbox_url, "key", {}, eta=local_time)

    assert (await onlooker.row())["send_after"].timestamp() == local_time.timestamp()


async def test_an_event_continues_the_chain_that_its_publisher_is_in(outbox_url: str, onlooker: Onlooker) -> None:
    with tracking(["root", "parent"]):
        child = await _publish(asyncpg_connection, outbox_url, "child", {})
    alone = await _publish(asyncpg_connection, outbox_url, "alone", {})

    assert [row["tracking_ids"] for row in await onlooker.rows()] == [["root", "parent", child], [alone]]


async def test_ids_of_a_chain_may_be_any_text_that_the_table_can_hold(outbox_url: str, onlooker: Onlooker) -> None:
    with tracking([HARD_TEXT, ""]):
        child = await _publish(asyncpg_connection, outbox_url, "child", {})

    assert (await onlooker.row())["tracking_ids"] == [HARD_TEXT, "", child]


async def test_a_routing_key_may_have_any_length(outbox_url: str, onlooker: Onlooker) -> None:
    await _publish(asyncpg_connection, outbox_url, "k" * 100_000, {})

    assert len((await onlooker.row())["routing_key"]) == 100_000


async def test_an_empty_routing_key_is_refused_before_anything_is_written(outbox_url: str, onlooker: Onlooker) -> None:
    async with asyncpg_connection(outbox_url) as opened:
        with pytest.raises(ConfigurationError, match="must be non-empty text"):
            await done(publisher.publish(opened.handle, "", {}))
        await done(opened.commit())

    assert await onlooker.rows() == []


async def test_type_codecs_of_the_caller_s_connection_have_no_say(outbox_url: str, onlooker: Onlooker) -> None:
    def refuse(value: object) -> str:
        raise AssertionError(f"encoded {value!r}")

    connection = await asyncpg.connect(outbox_url)
    for type_name in ("jsonb", "json", "timestamptz", "interval"):
        await connection.set_type_codec(type_name, schema="pg_catalog", encoder=refuse, decoder=str, format="text")
    async with connection.transaction():
        await publisher.publish(
            connection, "key", {"a": 1}, headers={"b": 2}, expiration=3, eta=datetime(2150, 1, 1, tzinfo=UTC)
        )
    await connection.close()

    row = await onlooker.row()
    assert (row["headers"], row["expiration"]) == ({"b": 2}, timedelta(seconds=3))


@pytest.fixture
def lists_as_json() -> Iterator[None]:
    """Adapters of a program that stores lists in columns of JSON."""
    before = psycopg2.extensions.adapters[list, psycopg2.extensions.ISQLQuote]
    psycopg2.extensions.register_adapter(list, Json)
    psycopg.adapters.register_dumper(list, JsonbDumper)
    yield
    register_default_adapters(psycopg.adapters)
    psycopg2.extensions.register_adapter(list, before)


@pytest.mark.usefixtures("lists_as_json")
async def test_adapters_of_lists_have_no_say(way: Way, outbox_url: str, onlooker: Onlooker) -> None:
    await _publish(way, outbox_url, HARD_TEXT, EVERY_BYTE, headers=HARD_HEADERS, ordering_key=HARD_TEXT, expiration=3)

    row = await onlooker.row()
    assert (row["routing_key"], row["body"], row["headers"]) == (HARD_TEXT, EVERY_BYTE, HARD_HEADERS)
    assert (row["ordering_key"], row["expiration"]) == (HARD_TEXT, timedelta(seconds=3))


@pytest.mark.parametrize("settings", [{"timezone": "Asia/Kathmandu", "intervalstyle": "sql_standard", "datestyle": "German"}])
async def test_settings_of_the_caller_s_session_have_no_say(
    way: Way, settings: Mapping[str, str], outbox_url: str, onlooker: Onlooker
) -> None:
    async with way(outbox_url) as opened:
        for name, value in settings.items():
            await done(opened.execute(f"set {name} = '{value}'"))
        await done(
            publisher.publish(opened.handle, "key", {}, expiration=90, eta=datetime(2150, 1, 1, tzinfo=UTC), headers={"a": "b"})
        )
        await done(opened.commit())

    row = await onlooker.row()
    assert row["send_after"] == datetime(2150, 1, 1, tzinfo=UTC)
    assert row["expiration"] == timedelta(seconds=90)


@pytest.mark.parametrize("table", ["billing.outbox_table", "other_outbox", "Mixed_Case$1"])
async def test_a_publisher_writes_into_the_table_that_it_was_given(table: str, outbox_url: str, onlooker: Onlooker) -> None:
    connection = onlooker.connection
    await connection.execute("create schema if not exists billing")
    await ensure_outbox_table_async(connection, table_name=table)
    for way in (asyncpg_connection,):
        await _publish(way, outbox_url, "key", {}, by=Publisher(table_name=table))

    quoted = ".".join(f'"{part}"' for part in table.split("."))
    assert await connection.fetchval(f"select count(*) from {quoted}") == 1
    assert await onlooker.rows() == []
    await connection.execute(f"drop table {quoted}")
