"""A URL that names several hosts works wherever a database URL does: the one that takes writes is used."""

from datetime import timedelta
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app.orders.schema import ensure_order_tables
from outbox import MessageRelay, ensure_outbox_schema_async, ensure_outbox_schema_sync
from outbox.core.urls import redacted
from outbox.doctor import Installation, examine
from outbox.postgres.unit_of_work import handler_engine
from tests.reporting.support import at_work
from tests.support import eventually
from tests.support.processes import free_port


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


def test_the_password_of_such_a_url_is_not_shown(several: str) -> None:
    password = urlsplit(several).password
    assert password
    assert password not in redacted(f"cannot reach {several}")
