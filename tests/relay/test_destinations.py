"""All relays of an outbox table send to one place, and a second place is refused before anything is taken."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from outbox import MessageRelay
from outbox import relay as relays
from outbox.core.findings import Finding
from outbox.core.urls import server_address
from outbox.doctor import Installation, examine
from outbox.errors import ConfigurationError, DatabaseUnavailableError
from outbox.postgres.queries import TableName, query
from outbox.postgres.relays import RelayDestination
from tests.relay.support import INSERT, ScriptedTransport, running
from tests.support.eventually import eventually

OWN = "PostgreSQL, the outbox's own database, exchange outbox"
SCRIPTED = "tests.relay.support.ScriptedTransport, exchange outbox"
OTHER = (
    "insert into outbox_relay (id, outbox_table, destination, name, held_until) "
    "values (gen_random_uuid(), 'outbox_table'::regclass::oid, 'elsewhere', 'other', 'infinity')"
)


@pytest.fixture(autouse=True)
def saying_so_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relays, "RENEW_EVERY", timedelta(milliseconds=100))
    monkeypatch.setattr(relays, "CHECK_AGAIN", timedelta(milliseconds=20))


def made(url: str, broker: Any = None, **options: Any) -> MessageRelay:
    """A relay without reports, to the outbox's own database unless another broker is given."""
    return MessageRelay(url, broker=broker or url, **{"reporting": False, "history": False, **options})


async def running_relays(connection: asyncpg.Connection) -> list[tuple[str, str]]:
    found = await connection.fetch("select name, destination from outbox_relay where not refused order by name")
    return [tuple(row) for row in found]


async def test_a_relay_with_another_broker_refuses_to_start_and_takes_nothing(url: str, connection: asyncpg.Connection) -> None:
    transport = ScriptedTransport()
    async with running(made(url, transport, name="first")):
        await eventually(lambda: running_relays(connection))
        await connection.execute(INSERT, "order.placed")
        with pytest.raises(ConfigurationError) as refused:
            async with asyncio.timeout(30):
                await made(url, name="second").run(handle_signals=False)
        await eventually(lambda: transport.sent)
    for named in (OWN, SCRIPTED, "first", "OUTBOX_BROKER_URL", "stop the other relays"):
        assert named in str(refused.value)
    assert await connection.fetchval("select count(*) from outbox_delivery") == 0


async def test_relays_with_the_same_destination_run_together(url: str, connection: asyncpg.Connection) -> None:
    async with running(made(url, ScriptedTransport(), name="a")), running(made(url, ScriptedTransport(), name="b")):
        await eventually(lambda: _are(connection, [("a", SCRIPTED), ("b", SCRIPTED)]))
    assert await running_relays(connection) == []


async def _are(connection: asyncpg.Connection, expected: list[tuple[str, str]]) -> bool:
    return await running_relays(connection) == expected


async def test_a_relay_that_ended_does_not_count(url: str, connection: asyncpg.Connection) -> None:
    async with running(made(url, ScriptedTransport(), name="first")):
        await eventually(lambda: running_relays(connection))
    async with running(made(url, name="second")):
        await eventually(lambda: _are(connection, [("second", OWN)]))


async def test_a_crashed_relay_counts_only_until_its_row_expires(url: str, connection: asyncpg.Connection) -> None:
    await connection.execute(
        "insert into outbox_relay (id, outbox_table, destination, name, held_until) "
        "values (gen_random_uuid(), 'outbox_table'::regclass::oid, 'elsewhere', 'dead', clock_timestamp() + interval '1 s')"
    )
    async with running(made(url, name="second")):
        await eventually(lambda: _are(connection, [("second", OWN)]))
        assert await connection.fetchval(
            "select clock_timestamp() > max(held_until) from outbox_relay where name = 'dead'"
        ) in (
            None,
            True,
        )


async def test_of_two_that_start_at_once_one_is_refused(url: str) -> None:
    both = [made(url, ScriptedTransport(), name="a"), made(url, name="b")]
    tasks = [asyncio.create_task(each.run(handle_signals=False)) for each in both]
    try:
        async with asyncio.timeout(30):
            done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            assert [type(task.exception()) for task in done] == [ConfigurationError]
            assert len(pending) == 1
    finally:
        for each in both:
            each.stop()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_relay_that_was_replaced_while_it_could_not_renew_ends(url: str, connection: asyncpg.Connection) -> None:
    task = asyncio.create_task(made(url, name="frozen").run(handle_signals=False))
    await eventually(lambda: running_relays(connection))
    async with connection.transaction():
        await connection.execute("delete from outbox_relay")
        await connection.execute(OTHER)
    with pytest.raises(ConfigurationError, match="other"):
        async with asyncio.timeout(30):
            await task


async def test_a_relay_that_freezes_while_it_starts_keeps_no_other_one(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    locked, thawed, execute = asyncio.Event(), asyncio.Event(), RelayDestination._execute

    async def freezing(self: RelayDestination, connection: Any, name: str, *arguments: object) -> None:
        await execute(self, connection, name, *arguments)
        if name == "serialize" and self.name == "frozen":
            locked.set()
            await thawed.wait()

    monkeypatch.setattr(RelayDestination, "_execute", freezing)
    async with asyncpg.create_pool(url, min_size=0, max_size=2) as pool:
        table = TableName("outbox_table", None)
        frozen = asyncio.create_task(RelayDestination(pool, table, destination="here", name="frozen").hold())
        await locked.wait()

        async def starts() -> bool:
            with suppress(DatabaseUnavailableError):  # it waits no longer than 5 s, and is repeated by its relay
                return await RelayDestination(pool, table, destination="here", name="own").hold() is None
            return False

        await eventually(starts)
        thawed.set()
        with pytest.raises(DatabaseUnavailableError):
            await frozen


@pytest.fixture
async def own(url: str) -> AsyncIterator[RelayDestination]:
    """The record of a relay that runs."""
    async with asyncpg.create_pool(url, min_size=1, max_size=1) as pool:
        record = RelayDestination(pool, TableName("outbox_table", None), destination="here", name="own")
        assert await record.hold() is None
        yield record


async def test_a_valid_record_is_extended_without_the_lock(own: RelayDestination, connection: asyncpg.Connection) -> None:
    await connection.execute("update outbox_relay set held_until = clock_timestamp() + interval '6 seconds'")
    async with connection.transaction():
        await connection.execute(query("relays.sql", "serialize", table="outbox_table"))
        async with asyncio.timeout(5):
            assert await own.hold() is None
    assert await connection.fetchval("select held_until > clock_timestamp() + interval '10 seconds' from outbox_relay")


@pytest.mark.parametrize("left", ["19 seconds", "4 seconds", "-1 second"])
async def test_a_record_is_never_extended_while_a_relay_sends_elsewhere(
    left: str, own: RelayDestination, connection: asyncpg.Connection
) -> None:
    await connection.execute("update outbox_relay set held_until = clock_timestamp() + $1::text::interval", left)
    await connection.execute(OTHER)
    other = await own.hold()
    assert other is not None
    assert (other.name, other.destination) == ("other", "elsewhere")


async def test_without_their_table_relays_run_and_warn(
    url: str, connection: asyncpg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    await connection.execute("drop table outbox_relay")
    transport = ScriptedTransport()
    async with running(made(url, transport)):
        await connection.execute(INSERT, "order.placed")
        await eventually(lambda: transport.sent)
    assert sum("would go unnoticed" in record.getMessage() for record in caplog.records) == 1


async def found(url: str, **settings: Any) -> list[Finding]:
    report = await examine(Installation(database_url=url, consumer_timeout=timedelta(minutes=30), **settings))
    return [finding for finding in report.findings if finding.check == "relays"]


async def test_the_doctor_names_relays_that_disagree_with_each_other_or_with_its_settings(
    url: str, connection: asyncpg.Connection
) -> None:
    assert await found(url) == []
    async with running(made(url, name="first")):
        await eventually(lambda: running_relays(connection))
        # One that was refused earlier, while others sent elsewhere.
        await connection.execute(
            "insert into outbox_relay (id, outbox_table, destination, name, held_until, refused) "
            "values (gen_random_uuid(), 'outbox_table'::regclass::oid, $1, 'second', 'infinity', true)",
            OWN,
        )
        [agreed] = await found(url)
        assert (agreed.severity, agreed.summary) == ("ok", f"all running relays (1) send to {OWN}")
        [differs] = await found(url, broker_url="amqp://ada:secret@rabbit.example/shop")
        assert differs.severity == "warning"
        assert "RabbitMQ at rabbit.example:5672, virtual host shop, exchange outbox" in differs.summary
        assert "secret" not in differs.summary
        with pytest.raises(ConfigurationError):
            await made(url, ScriptedTransport(), name="second").run(handle_signals=False)
        [disagree] = await found(url)
    assert disagree.severity == "error"
    assert f"first sends to {OWN}" in disagree.summary
    assert f"second was refused, as it would send to {SCRIPTED}" in disagree.summary


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("amqp://ada:s3cret@Rabbit/", "RabbitMQ at rabbit:5672, virtual host /"),
        ("amqps://ada:s3@cret@rabbit/shop%2Feu?heartbeat=5", "RabbitMQ at rabbit:5671, virtual host shop/eu"),
        ("amqp://rabbit:5673", "RabbitMQ at rabbit:5673, virtual host /"),
        ("postgresql+asyncpg://ada:s3cret@a,b:5433/shop?password=s3cret", "PostgreSQL at a:5432,b:5433, database shop"),
        ("postgresql:///shop?host=/run/postgres&user=ada", "PostgreSQL at /run/postgres, database shop"),
    ],
)
def test_an_address_names_the_server_and_no_secret(url: str, address: str) -> None:
    assert server_address(url) == address
