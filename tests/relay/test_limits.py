"""What took too long is said as that, and not as a server that is lost."""

import asyncio
import logging
import threading
from contextlib import nullcontext
from datetime import timedelta

import asyncpg
import pytest

from outbox.core.events import Dependency, DependencyLost
from outbox.errors import DatabaseUnavailableError, StatementTimeoutError
from outbox.observers.logging import LoggingObserver
from outbox.ports import Marks
from outbox.postgres.inbox import Inbox
from outbox.postgres.pool import NoConnectionError, open_pool, taken_from, unavailable_errors
from outbox.postgres.queries import TableName
from outbox.postgres.unit_of_work import open_units
from tests.relay.support import ScriptedTransport, relaying
from tests.support.eventually import eventually

INSERT = "insert into outbox_table (routing_key, body) values ('a', '')"


async def test_a_claim_that_waits_too_long_for_a_lock_is_not_reported_as_a_lost_database(
    url: str, connection: asyncpg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="outbox")
    async with relaying(url, ScriptedTransport()) as relay:
        async with connection.transaction():
            await connection.execute("lock table outbox_table in access exclusive mode")
            relay.doorbell.ring()
            await eventually(lambda: relay.recorder.of(DependencyLost))
        event = relay.recorder.of(DependencyLost)[0]
        assert isinstance(event, DependencyLost)
        assert event.dependency is Dependency.DATABASE
        assert event.timed_out
        assert "outbox_table: waited for a lock for longer than lock_timeout of 5 s" in event.reason
        LoggingObserver().notify(event)
        assert "the database took too long, trying again" in caplog.text
        assert "lost the database" not in caplog.text


@pytest.mark.parametrize(
    ("setting", "statement"),
    [("statement_timeout", "select pg_sleep(60)"), ("lock_timeout", "lock table outbox_table in access exclusive mode")],
)
async def test_a_limit_of_the_server_is_named(url: str, connection: asyncpg.Connection, setting: str, statement: str) -> None:
    slow = await asyncpg.connect(url)
    async with connection.transaction():
        await connection.execute("lock table outbox_table in access share mode")
        await slow.execute("begin")
        await slow.execute(f"set local {setting} = '100ms'")
        with pytest.raises(StatementTimeoutError, match=setting), unavailable_errors("testing"):
            await slow.execute(statement)
    await slow.close()


async def test_a_session_ended_for_an_idle_transaction_is_reported_as_that(url: str) -> None:
    frozen = await asyncpg.connect(url)
    await frozen.execute("begin")
    await frozen.execute("set local idle_in_transaction_session_timeout = '100ms'")
    wait = threading.Thread(target=lambda: asyncio.run(_until_ended(url, frozen.get_server_pid())))
    wait.start()
    wait.join()  # as a process that is frozen: what the server says meanwhile is read with the next statement's answer
    with (
        pytest.raises(StatementTimeoutError, match="idle for longer than idle_in_transaction_session_timeout"),
        unavailable_errors("testing"),
    ):
        await frozen.execute("select true")


async def _until_ended(url: str, process_id: int) -> None:
    watching = await asyncpg.connect(url)
    await eventually(lambda: watching.fetchval("select not exists(select from pg_stat_activity where pid = $1)", process_id))
    await watching.close()


async def test_a_limit_exceeded_before_a_handler_runs_is_reported_as_that(url: str, connection: asyncpg.Connection) -> None:
    database = await connection.fetchval("select quote_ident(current_database())")
    await connection.execute(f"alter database {database} set statement_timeout = '1s'")
    inbox = Inbox(TableName("outbox_inbox"))
    marks = Marks(queue="mail", message_ids=("1",), max_wait=timedelta(seconds=5))
    async with (
        open_units(url=url, pool=None, sessions=1, connections=1, bind=lambda _: nullcontext(), inbox=inbox) as units,
        connection.transaction(),
    ):
        await connection.execute("lock table outbox_inbox in access exclusive mode")
        for wanted in ("session", "connection"):
            with pytest.raises(StatementTimeoutError, match=r"beginning a handler's transaction: .*statement_timeout"):
                async with units.begin(frozenset({wanted}), marks):
                    pass


async def test_a_limit_of_the_driver_is_distinguished_from_an_exhausted_pool(url: str) -> None:
    pool = await open_pool(url, size=1, application_name="tests")
    async with taken_from(pool) as connection:
        with (
            pytest.raises(StatementTimeoutError, match=r"testing took longer than its limit of 0\.1 s"),
            unavailable_errors("testing", limit=timedelta(seconds=0.1)),
        ):
            await connection.execute("select pg_sleep(60)", timeout=0.1)
        with pytest.raises(DatabaseUnavailableError) as raised, unavailable_errors("testing"):
            async with taken_from(pool, connect_timeout=timedelta(milliseconds=100)):
                pass
    assert not isinstance(raised.value, StatementTimeoutError)
    assert isinstance(raised.value.__cause__, NoConnectionError)
    await pool.close()
