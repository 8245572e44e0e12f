"""Publishing in transactions that are prepared first, which PostgreSQL refuses to one that has notified."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from outbox import Publisher, ensure_outbox_schema_async, ensure_outbox_table_async
from tests.publisher.onlooker import Onlooker
from tests.relay.support import ScriptedTransport, relaying
from tests.servers.postgres import OwnPostgres
from tests.support.eventually import eventually

INSERT = "insert into outbox_table (routing_key, body) values ('a', '')"


@pytest.fixture
async def url(own_postgres: OwnPostgres) -> AsyncIterator[str]:
    """A database with an outbox table, on a server that lets transactions be prepared."""
    connection = await asyncpg.connect(own_postgres.url)
    await connection.execute("alter system set max_prepared_transactions = 4")
    await connection.close()
    own_postgres.restart()
    await ensure_outbox_table_async(own_postgres.url)
    yield own_postgres.url
    connection = await asyncpg.connect(own_postgres.url)
    await connection.execute("alter system reset max_prepared_transactions")
    await connection.close()
    own_postgres.restart()


@pytest.fixture
async def connection(url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(url)
    yield connection
    await connection.close()


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
async def test_a_two_phase_session_publishes_while_a_relay_sleeps(
    url: str, connection: asyncpg.Connection, driver: str
) -> None:
    onlooker = Onlooker(connection)

    def publish() -> None:
        engine = create_engine(url.replace("postgresql://", f"postgresql+{driver}://"))
        with Session(engine, twophase=True) as session:
            Publisher().publish(session, "order.placed", {"id": 1})
            session.prepare()
            session.commit()
        engine.dispose()

    async with onlooker.asleep():
        await asyncio.to_thread(publish)
        assert (await onlooker.row())["routing_key"] == "order.placed"


async def test_a_two_phase_session_cancels_an_ordered_message_with_several_destinations(
    url: str, connection: asyncpg.Connection
) -> None:
    """The message behind it is due then, so relays of every destination are woken."""
    await ensure_outbox_schema_async(url, destinations=["kafka"])
    await Publisher().publish(connection, "order.placed", {}, ordering_key="1", dedup_key="first")
    await Publisher().publish(connection, "order.paid", {}, ordering_key="1")
    await connection.execute("update outbox_table set last_error = 'blocked' where routing_key = 'order.paid'")

    def cancel() -> bool:
        engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
        with Session(engine, twophase=True) as session:
            withdrawn = Publisher().cancel(session, "first")
            session.prepare()
            session.commit()
        engine.dispose()
        return withdrawn

    assert await asyncio.to_thread(cancel)
    row = await Onlooker(connection).row()
    assert (row["routing_key"], row["last_error"]) == ("order.paid", None)


async def test_a_transaction_that_turns_the_doorbell_off_can_be_prepared_and_the_setting_ends_with_it(
    url: str, connection: asyncpg.Connection
) -> None:
    writer = await asyncpg.connect(url)
    async with Onlooker(connection).asleep() as rings:
        await writer.execute(f"begin; set local outbox.doorbell = 'off'; {INSERT}; prepare transaction 'one'")
        await writer.execute("commit prepared 'one'")
        await writer.execute(INSERT)
        async with asyncio.timeout(30):
            assert await rings.get() == ""
        assert rings.empty()
    await writer.close()


async def test_a_relay_that_falls_asleep_while_a_transaction_is_prepared_is_woken_by_its_commit(
    url: str, connection: asyncpg.Connection
) -> None:
    await connection.execute(f"begin; set local outbox.doorbell = 'off'; {INSERT}; prepare transaction 'one'")
    transport = ScriptedTransport()
    async with relaying(url, transport):
        await eventually(
            lambda: connection.fetchval("select exists(select from pg_locks where mode = 'ShareLock' and pid <> 0)")
        )
        await connection.execute("commit prepared 'one'")
        await eventually(lambda: transport.routing_keys == ["a"])
