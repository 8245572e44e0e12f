"""The public relay: what it refuses, and when; how it starts and ends."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from outbox import MessageRelay, ensure_outbox_schema_async
from outbox.errors import ConfigurationError, SchemaError
from tests.relay.support import INSERT, ScriptedTransport, rows_are, running
from tests.servers.postgres import OwnPostgres
from tests.support.eventually import eventually

NOWHERE = "postgresql://user@127.0.0.1:1/nothing"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"clean_up_after": timedelta(-1)}, "clean_up_after"),
        ({"clean_up_after": timedelta.max}, "clean_up_after"),
        ({"clean_up_after": 3600}, "clean_up_after.*timedelta"),
        ({"clean_up_after": "LATER"}, "clean_up_after.*'NEVER'"),
        ({"expiration": timedelta.max}, "expiration"),
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": True}, "batch_size"),
        ({"batch_size": 2**63}, "batch_size"),
        ({"lanes": 0}, "lanes"),
        ({"publish_timeout": 0}, "publish_timeout"),
        ({"publish_timeout": float("nan")}, "publish_timeout"),
        ({"publish_timeout": timedelta.max}, "publish_timeout"),
        ({"on_unroutable": "park"}, "on_unroutable"),
        ({"exchange_name": "\ud800"}, "exchange_name"),
        ({"exchange_name": "kafka", "broker": NOWHERE}, "exchange name 'kafka' is reserved in PostgreSQL"),
        ({"destination": "Kafka"}, "destination"),
        ({"db_pool": object(), "db_engine_url": None}, "db_pool.*asyncpg"),
    ],
)
def test_invalid_arguments_are_refused_by_name(arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        MessageRelay(**{"db_engine_url": NOWHERE, "broker": ScriptedTransport(), **arguments})


@pytest.mark.parametrize("clean_up_after", ["IMMEDIATELY", "NEVER", timedelta(0), timedelta(days=7)])
def test_clean_up_is_a_word_or_a_time(clean_up_after: Any) -> None:
    MessageRelay(NOWHERE, broker=ScriptedTransport(), clean_up_after=clean_up_after)


async def test_kept_for_no_time_is_deleted_immediately(url: str, connection: asyncpg.Connection) -> None:
    async with running(MessageRelay(url, broker=ScriptedTransport(), clean_up_after=timedelta(0))):
        await connection.execute(INSERT, "a")
        await eventually(lambda: rows_are(connection, 0))


async def test_a_batch_size_of_more_than_a_protocol_can_count_works(url: str, connection: asyncpg.Connection) -> None:
    await connection.execute("insert into outbox_table (routing_key, body) select 'a', '' from generate_series(1, 40000)")
    transport = ScriptedTransport()
    async with running(MessageRelay(url, broker=transport, batch_size=40_000)):
        await eventually(lambda: rows_are(connection, 0))
    assert [len(batch) for batch in transport.batches] == [40_000]


@pytest.mark.parametrize("lacking", ["select", "update", "delete"])
async def test_a_missing_permission_is_reported_at_the_start(url: str, connection: asyncpg.Connection, lacking: str) -> None:
    async with user_who_may(connection, *({"select", "update", "delete"} - {lacking})) as user:
        relay = MessageRelay(as_user(url, user), broker=ScriptedTransport())
        with pytest.raises(SchemaError, match=f"may not {lacking} rows of the table outbox_table: grant"):
            await relay.run(handle_signals=False)


async def test_a_user_with_the_rights_that_are_needed_relays(url: str, connection: asyncpg.Connection) -> None:
    async with (
        user_who_may(connection, "select", "update", "delete") as user,
        running(MessageRelay(as_user(url, user), broker=ScriptedTransport())),
    ):
        await connection.execute(INSERT, "a")
        await eventually(lambda: rows_are(connection, 0))


@asynccontextmanager
async def user_who_may(connection: asyncpg.Connection, *rights: str) -> AsyncIterator[str]:
    user = await connection.fetchval("select 'user_of_' || current_database()")
    await connection.execute(f"create role {user} login password 'secret'")
    await connection.execute(f"grant {', '.join(rights)} on outbox_table to {user}")
    try:
        yield user
    finally:
        await connection.execute(f"drop owned by {user}; drop role {user}")


def as_user(url: str, user: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{user}:secret@{parts.hostname}:{parts.port}"))


async def test_stopped_before_it_runs_it_does_not_begin() -> None:
    relay = MessageRelay(NOWHERE, broker=ScriptedTransport())
    relay.stop()
    async with asyncio.timeout(30):
        await relay.run(handle_signals=False)


async def test_it_waits_for_a_database_that_is_away_and_can_be_stopped_meanwhile(caplog: pytest.LogCaptureFixture) -> None:
    async with running(MessageRelay(NOWHERE, broker=ScriptedTransport())) as task:
        await eventually(lambda: "lost the database" in caplog.text)
        assert not task.done()


async def test_a_database_that_goes_away_does_not_keep_it_from_stopping(
    own_postgres: OwnPostgres, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "outbox")
    await ensure_outbox_schema_async(own_postgres.url)
    async with running(MessageRelay(own_postgres.url, broker=ScriptedTransport())) as task:
        await eventually(lambda: "listening" in caplog.text)
        await asyncio.to_thread(own_postgres.kill)
        await eventually(lambda: "polling" in caplog.text)
        assert not task.done()


async def test_a_given_pool_is_left_as_it_was(url: str, connection: asyncpg.Connection) -> None:
    """No listener, no lock, no setting, no transaction; and open."""
    async with asyncpg.create_pool(url, min_size=0, max_size=8, server_settings={"application_name": "given"}) as pool:
        async with running(MessageRelay(db_pool=pool, broker=ScriptedTransport(), notification_timeout=0.5)):
            for _ in range(3):
                await connection.execute(INSERT, "a")
                await eventually(lambda: rows_are(connection, 0))
        for left in [await pool.acquire() for _ in range(7)]:
            assert await left.fetchval("select count(*) from pg_listening_channels()") == 0
            assert await left.fetchval("select current_setting('enable_seqscan')") == "on"
            assert await left.fetchval("select current_setting('idle_in_transaction_session_timeout')") == "0"
            await pool.release(left)
        mine = "pid in (select pid from pg_stat_activity where application_name = 'given')"
        assert await connection.fetchval(f"select count(*) from pg_locks where locktype = 'advisory' and {mine}") == 0
        assert pool.get_idle_size() == pool.get_size()


async def test_a_pool_without_room_is_refused_at_the_start(url: str) -> None:
    async with asyncpg.create_pool(url, min_size=0, max_size=7) as pool:
        with pytest.raises(ConfigurationError, match="max_size=8"):
            await MessageRelay(db_pool=pool, broker=ScriptedTransport()).run(handle_signals=False)


async def test_cancelled_it_finishes_what_is_in_flight_and_is_cancelled_all_the_same(
    url: str, connection: asyncpg.Connection
) -> None:
    transport = ScriptedTransport()
    transport.may_answer.clear()
    await connection.execute(INSERT, "a")
    relay = MessageRelay(url, broker=transport)
    task = asyncio.create_task(relay.run(handle_signals=False))
    await eventually(lambda: transport.sent)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    transport.may_answer.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await rows_are(connection, 0)


async def test_what_does_not_finish_within_the_grace_period_is_given_back(url: str, connection: asyncpg.Connection) -> None:
    transport = ScriptedTransport()
    transport.may_answer.clear()
    await connection.execute(INSERT, "a")
    async with asyncpg.create_pool(url, min_size=0, max_size=8) as pool:
        relay = MessageRelay(db_pool=pool, broker=transport, grace_period=0.2)
        task = asyncio.create_task(relay.run(handle_signals=False))
        await eventually(lambda: transport.sent)
        relay.stop()
        async with asyncio.timeout(30):
            await task
        assert await connection.fetchval("select id from outbox_table for update nowait") is not None
        assert pool.get_idle_size() == pool.get_size()
