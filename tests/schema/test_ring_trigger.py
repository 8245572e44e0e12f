"""The doorbell's trigger notifies sleepers when rows are committed, and does nothing otherwise."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import asyncpg
import pytest

from outbox.postgres.queries import BellName
from outbox.schema import ensure_outbox_schema_async, ensure_outbox_table_async
from tests.support import eventually

BELL = BellName.of("public", "outbox_table")
INSERT = "insert into outbox_table (routing_key, body) values ('a', '')"

Connect = Callable[[], Awaitable[asyncpg.Connection]]


@pytest.fixture
async def connect(database_url: str) -> AsyncIterator[Connect]:
    """Opens connections that are closed at the end."""
    opened = []

    async def open_one() -> asyncpg.Connection:
        opened.append(await asyncpg.connect(database_url))
        return opened[-1]

    yield open_one
    for connection in opened:
        await connection.close()


async def fall_asleep(sleeper: asyncpg.Connection, bell: BellName) -> None:
    """Takes the locks of a sleeper."""
    await sleeper.execute("select pg_advisory_lock_shared(key) from unnest($1::bigint[]) as key", bell.asleep_keys)


class Ear:
    """Listens on a channel and counts notifications."""

    def __init__(self, connection: asyncpg.Connection, *channels: str) -> None:
        self._connection = connection
        self._channels = channels
        self.heard: list[str] = []

    async def __aenter__(self) -> "Ear":
        for channel in (*self._channels, "marks"):
            await self._connection.add_listener(channel, self._hear)
        return self

    async def __aexit__(self, *_: object) -> None:
        for channel in (*self._channels, "marks"):
            await self._connection.remove_listener(channel, self._hear)

    def _hear(self, _connection: object, _pid: int, channel: str, _payload: object) -> None:
        self.heard.append(channel)

    async def everything_so_far(self, by: asyncpg.Connection) -> list[str]:
        """Returns the notifications so far. They arrive in the order of commits, so a marker from `by` comes last."""
        self.heard = [channel for channel in self.heard if channel != "marks"]
        await by.execute("select pg_notify('marks', '')")
        await eventually(lambda: "marks" in self.heard)
        return [channel for channel in self.heard if channel != "marks"]


async def test_without_sleepers_nothing_is_notified(database_url: str, connect: Connect) -> None:
    await ensure_outbox_table_async(database_url)
    writer = await connect()
    async with Ear(await connect(), BELL.channel) as ear:
        for _ in range(3):
            await writer.execute(INSERT)
        assert await ear.everything_so_far(writer) == []


async def test_a_sleeper_is_notified_once_per_commit(database_url: str, connect: Connect) -> None:
    await ensure_outbox_table_async(database_url)
    writer, sleeper = await connect(), await connect()
    await fall_asleep(sleeper, BELL)
    async with Ear(await connect(), BELL.channel) as ear:
        async with writer.transaction():
            await writer.execute(INSERT)
            await writer.execute("insert into outbox_table (routing_key, body) select 'a', '' from generate_series(1, 100)")
            assert await ear.everything_so_far(sleeper) == []
        assert await ear.everything_so_far(writer) == [BELL.channel]


async def test_a_row_that_is_due_later_notifies_as_well(database_url: str, connect: Connect) -> None:
    await ensure_outbox_table_async(database_url)
    writer, sleeper = await connect(), await connect()
    await fall_asleep(sleeper, BELL)
    async with Ear(await connect(), BELL.channel) as ear:
        await writer.execute(
            "insert into outbox_table (routing_key, body, send_after) values ('a', '', now() + interval '1 hour')"
        )
        assert await ear.everything_so_far(writer) == [BELL.channel]


async def test_a_rollback_notifies_no_sleeper(database_url: str, connect: Connect) -> None:
    await ensure_outbox_table_async(database_url)
    writer, sleeper = await connect(), await connect()
    await fall_asleep(sleeper, BELL)
    async with Ear(await connect(), BELL.channel) as ear:
        transaction = writer.transaction()
        await transaction.start()
        await writer.execute(INSERT)
        await transaction.rollback()
        async with writer.transaction():
            savepoint = writer.transaction()
            await savepoint.start()
            await writer.execute(INSERT)
            await savepoint.rollback()
        assert await ear.everything_so_far(writer) == []


async def test_a_writer_that_saw_no_sleeper_is_visible_until_its_transaction_ends(database_url: str, connect: Connect) -> None:
    await ensure_outbox_table_async(database_url)
    writer, sleeper = await connect(), await connect()
    none_in_flight = f"select pg_try_advisory_xact_lock({BELL.lock_key})"
    async with writer.transaction():
        await writer.execute(INSERT)
        assert not await sleeper.fetchval(none_in_flight)
    assert await sleeper.fetchval(none_in_flight)


async def test_with_several_sleepers_the_last_one_ends_the_notifications(database_url: str, connect: Connect) -> None:
    await ensure_outbox_table_async(database_url)
    writer, *sleepers = [await connect() for _ in range(4)]
    for sleeper in sleepers:
        await fall_asleep(sleeper, BELL)
    async with Ear(await connect(), BELL.channel) as ear:
        for number, sleeper in enumerate(sleepers, start=1):
            await writer.execute(INSERT)
            assert await ear.everything_so_far(writer) == [BELL.channel] * number
            await sleeper.execute("select pg_advisory_unlock_all()")
        await writer.execute(INSERT)
        assert await ear.everything_so_far(writer) == [BELL.channel] * len(sleepers)


async def test_a_relay_of_the_previous_release_is_woken(database_url: str, connect: Connect) -> None:
    """It holds the in-flight lock exclusively while it sleeps, or waits for it."""
    await ensure_outbox_table_async(database_url)
    earlier, writer, sleeper = await connect(), await connect(), await connect()
    async with Ear(await connect(), BELL.channel) as ear:
        async with earlier.transaction():
            await earlier.execute(INSERT)
            falling_asleep = asyncio.create_task(sleeper.execute("select pg_advisory_lock($1)", BELL.lock_key))
            await eventually(
                lambda: writer.fetchval("select count(*) = 1 from pg_locks where locktype = 'advisory' and not granted")
            )
            await writer.execute(INSERT)
            assert await ear.everything_so_far(writer) == [BELL.channel]
        await falling_asleep
        await writer.execute(INSERT)
        assert await ear.everything_so_far(writer) == [BELL.channel] * 2


@pytest.mark.parametrize(
    ("one", "other"),
    [("one.outbox_table", "other.outbox_table"), ("one.orders", "one.bills"), (f"one.{'x' * 62}a", f"one.{'x' * 62}b")],
)
async def test_each_table_has_a_separate_bell(database_url: str, connect: Connect, one: str, other: str) -> None:
    writer, sleeper = await connect(), await connect()
    await writer.execute("create schema one; create schema other")
    bells = [BellName.of(*name.split(".")) for name in (one, other)]
    await ensure_outbox_table_async(database_url, one)
    await ensure_outbox_table_async(database_url, other)
    for bell in bells:
        await fall_asleep(sleeper, bell)
    async with Ear(await connect(), *(bell.channel for bell in bells)) as ear:
        await writer.execute(f"insert into {other} (routing_key, body) values ('a', '')")
        assert await ear.everything_so_far(writer) == [bells[1].channel]


async def test_the_bell_follows_a_table_that_is_renamed_or_moved(database_url: str, connect: Connect) -> None:
    await ensure_outbox_table_async(database_url)
    writer, sleeper = await connect(), await connect()
    await writer.execute('create schema "my-app"; alter table outbox_table set schema "my-app"')
    await writer.execute('alter table "my-app".outbox_table rename to orders')
    bell = BellName.of("my-app", "orders")
    await fall_asleep(sleeper, bell)
    async with Ear(await connect(), bell.channel, BELL.channel) as ear:
        await writer.execute("""insert into "my-app".orders (routing_key, body) values ('a', '')""")
        assert await ear.everything_so_far(writer) == [bell.channel]


async def test_deliveries_have_a_bell_as_well(database_url: str, connect: Connect) -> None:
    await ensure_outbox_schema_async(database_url)
    writer, sleeper = await connect(), await connect()
    bell = BellName.of("public", "outbox_delivery")
    await fall_asleep(sleeper, bell)
    async with Ear(await connect(), bell.channel, BELL.channel) as ear:
        await writer.execute(
            "insert into outbox_delivery (exchange, queue, message_id, routing_key, body, tracking_ids) "
            "values ('e', 'q', 'i', 'a', '', '[]')"
        )
        assert await ear.everything_so_far(writer) == [bell.channel]
