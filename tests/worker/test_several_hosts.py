"""A URL that names several hosts works wherever a database URL does: the one that takes writes is used."""

from contextlib import nullcontext
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app.orders.schema import ensure_order_tables
from outbox import MessageRelay, ensure_outbox_schema_async, ensure_outbox_schema_sync
from outbox.core.urls import redacted
from outbox.doctor import Installation, examine
from outbox.errors import DatabaseUnavailableError
from outbox.ports import Marks
from outbox.postgres.handler_connections import handler_engine
from outbox.postgres.inbox import Inbox
from outbox.postgres.queries import TableName
from outbox.postgres.unit_of_work import open_units
from tests.reporting.support import at_work
from tests.support import eventually
from tests.support.processes import free_port

MARKS = Marks(queue="mail", message_ids=("1",), max_wait=timedelta(seconds=5))


@pytest.fixture
def several(database_url: str) -> str:
    """The address of a host without a server, and that of the database."""
    address = urlsplit(database_url)
    credentials, _, host = address.netloc.rpartition("@")
    return urlunsplit(
        address._replace(netloc=f"{credentials}@127.0.0.1:{free_port()},{host}", query="target_session_attrs=read-write")
    )


async def test_the_schema_a_relay_and_the_doctor_find_the_host_that_takes_writes(several: str, database_url: str) -> None:
    ensure_outbox_schema_sync(several)
    await ensure_outbox_schema_async(several)
    await ensure_order_tables(several)
    connection = await asyncpg.connect(database_url)
    async with at_work(MessageRelay(several, broker=several)):
        await eventually(lambda: connection.fetchval("select count(*) > 0 from outbox_component"))
    await connection.close()
    report = await examine(Installation(database_url=several, consumer_timeout=timedelta(minutes=30)))
    assert not any("cannot be reached" in finding.summary for finding in report.findings)


async def test_a_handler_s_session_does_too(several: str) -> None:
    engine = handler_engine(several, size=1)
    async with engine.connect() as connection:
        assert (await connection.execute(text("select current_setting('application_name')"))).scalar_one() == "outbox worker"
    await engine.dispose()


async def test_a_handler_s_session_leaves_a_server_that_is_a_standby_now(database_url: str) -> None:
    """A session keeps the setting with which it began, as a connection keeps the server to which its address led."""
    admin = await asyncpg.connect(database_url)
    setting = f"alter database {database_url.rpartition('/')[2]} set default_transaction_read_only"
    await admin.execute(f"create table written (); {setting} = on")
    engine = handler_engine(database_url, size=1)
    with pytest.raises(DBAPIError, match="read-only"):
        async with engine.begin() as connection:
            await connection.execute(text("insert into written default values"))
    await admin.execute(f"{setting} = off")
    async with engine.begin() as connection:
        await connection.execute(text("insert into written default values"))
    await engine.dispose()
    await admin.close()


@pytest.mark.parametrize("wanted", [frozenset[str](), frozenset({"connection"})], ids=["without a connection", "with one"])
@pytest.mark.parametrize("marks", [None, MARKS], ids=["without an inbox", "with one"])
async def test_a_handler_s_connection_does_so_too(database: str, wanted: frozenset[str], marks: Marks | None) -> None:
    admin = await asyncpg.connect(database)
    setting = f"alter database {database.rpartition('/')[2]} set default_transaction_read_only"
    await admin.execute(f"create table written (); {setting} = on")
    inbox, sql = Inbox(TableName("outbox_inbox")), "insert into written default values"
    async with open_units(url=database, pool=None, sessions=0, connections=1, bind=nullcontext, inbox=inbox) as units:
        async with units.begin(wanted):
            pass  # so that a connection is there
        await admin.execute(f"{setting} = off")

        async def handle() -> None:
            async with units.begin(wanted | {"publisher"}, marks) as unit:
                publisher: Any = unit.resources["publisher"]
                await publisher.execute(sql)

        with pytest.raises((asyncpg.ReadOnlySQLTransactionError, DatabaseUnavailableError), match="read-only"):
            await handle()
        await handle()
    assert await admin.fetchval("select count(*) from written") == 1
    await admin.close()


def test_the_password_of_such_a_url_is_not_shown(several: str) -> None:
    password = urlsplit(several).password
    assert password
    assert password not in redacted(f"cannot reach {several}")
