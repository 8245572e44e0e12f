"""The doorbell's guarantees: no wake-up is lost, writers do not wait, and notify only if there are sleepers."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

import asyncpg
import pytest

from outbox.core.events import Event, WakeMode, WakeModeChanged
from outbox.postgres.doorbell import PostgresDoorbell, bell_of
from outbox.postgres.pool import connect_to
from outbox.postgres.queries import BellName, TableName, queries
from outbox.postgres.schema.objects import FIRST_RING_BODY, table_names
from tests.servers.proxy import Proxy
from tests.support.eventually import eventually

INSERT = "insert into outbox_table (routing_key, body) values ('a', '')"
LOCKS = """
    select from pg_locks
    where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())
"""
LONG = timedelta(hours=1)
"""Longer than any test: a sleeper that wakes was rung for."""


class Recorder:
    """Keeps the events."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def notify(self, event: Event) -> None:
        self.events.append(event)

    @property
    def modes(self) -> list[WakeMode]:
        return [event.mode for event in self.events if isinstance(event, WakeModeChanged)]


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
async def bell(url: str, recorder: Recorder) -> AsyncIterator[PostgresDoorbell]:
    """A doorbell that listens."""
    bell = PostgresDoorbell(
        connect_to(url, application_name="test bell"), bell_of(TableName("outbox_table")), observer=recorder
    )
    task = asyncio.create_task(bell.run())
    await eventually(lambda: bell.longest_nap is None)
    yield bell
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
async def heard(url: str) -> AsyncIterator[list[object]]:
    """Every notification on the table's channel."""
    payloads: list[object] = []
    listener = await asyncpg.connect(url)
    await listener.add_listener(BellName.of("public", "outbox_table").channel, lambda *call: payloads.append(call[-1]))
    yield payloads
    await listener.close()


async def everything_delivered(connection: asyncpg.Connection, heard: list[object]) -> list[object]:
    """What was notified until now: notifications arrive in commit order, so behind a marker there is nothing more."""
    await connection.execute("select pg_notify($1, 'marker')", BellName.of("public", "outbox_table").channel)
    await eventually(lambda: "marker" in heard)
    before = heard[: heard.index("marker")]
    heard.clear()
    return [payload for payload in before if payload == ""]


async def test_a_commit_wakes_a_sleeper(bell: PostgresDoorbell, connection: asyncpg.Connection) -> None:
    async with bell.asleep() as nap:
        await connection.execute(INSERT)
        async with asyncio.timeout(30):
            await nap.wait(LONG)


async def test_writers_notify_only_while_a_relay_sleeps(
    bell: PostgresDoorbell, connection: asyncpg.Connection, heard: list[object]
) -> None:
    await connection.execute(INSERT)
    assert await everything_delivered(connection, heard) == []
    async with bell.asleep():
        await connection.execute(INSERT)
        assert await everything_delivered(connection, heard) == [""]
    await connection.execute(INSERT)
    assert await everything_delivered(connection, heard) == []


async def test_a_rolled_back_insert_wakes_no_sleeper(
    bell: PostgresDoorbell, connection: asyncpg.Connection, heard: list[object]
) -> None:
    async with bell.asleep():
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(INSERT)
        await transaction.rollback()
        assert await everything_delivered(connection, heard) == []


async def test_a_sleeper_is_woken_by_the_commit_of_a_writer_that_was_already_open(
    bell: PostgresDoorbell, connection: asyncpg.Connection
) -> None:
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute(INSERT)
    async with bell.asleep() as nap:
        sleeper = asyncio.create_task(nap.wait(LONG))
        await asyncio.sleep(0)
        assert not sleeper.done()
        await transaction.commit()
        async with asyncio.timeout(30):
            await sleeper


async def test_an_open_writer_does_not_keep_others_from_ringing(
    url: str, bell: PostgresDoorbell, connection: asyncpg.Connection
) -> None:
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute(INSERT)
    other = await asyncpg.connect(url)
    async with bell.asleep() as nap:
        await other.execute(INSERT)
        async with asyncio.timeout(30):
            await nap.wait(LONG)
    await transaction.rollback()
    await other.close()


async def test_several_sleepers_all_wake_and_writers_are_quiet_after_the_last_has_risen(
    bell: PostgresDoorbell, connection: asyncpg.Connection, heard: list[object]
) -> None:
    async def sleep() -> None:
        async with bell.asleep() as nap, asyncio.timeout(30):
            asleep.release()
            await nap.wait(LONG)

    asleep = asyncio.Semaphore(0)
    sleepers = [asyncio.create_task(sleep()) for _ in range(3)]
    for _ in sleepers:
        await asleep.acquire()
    await connection.execute(INSERT)
    await asyncio.gather(*sleepers)
    await everything_delivered(connection, heard)
    await connection.execute(INSERT)
    assert await everything_delivered(connection, heard) == []


async def test_a_lost_connection_is_rebuilt_and_rings_once_for_what_was_missed(
    bell: PostgresDoorbell, connection: asyncpg.Connection, recorder: Recorder
) -> None:
    async with bell.asleep() as nap:
        await connection.execute("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'test bell'")
        async with asyncio.timeout(30):
            await nap.wait(LONG)
    await eventually(lambda: recorder.modes[-2:] == [WakeMode.POLLING, WakeMode.LISTENING])
    async with bell.asleep() as nap:
        await connection.execute(INSERT)
        async with asyncio.timeout(30):
            await nap.wait(LONG)


async def test_a_table_that_is_away_for_a_while_is_listened_for_again(
    url: str, connection: asyncpg.Connection, recorder: Recorder
) -> None:
    """A migration may rename it: sleepers poll meanwhile, and commits wake them again afterwards."""

    async def come_back() -> None:
        await eventually(lambda: recorder.modes == [WakeMode.POLLING])
        await connection.execute("alter table elsewhere rename to outbox_table")

    await connection.execute("alter table outbox_table rename to elsewhere")
    coming_back = asyncio.create_task(come_back())
    async with ringing(url, recorder):
        await coming_back
    assert recorder.modes == [WakeMode.POLLING, WakeMode.LISTENING]
    assert "the table outbox_table does not exist" in str(recorder.events[0])


async def test_a_sleeper_is_woken_by_commits_after_its_connection_was_reopened(
    bell: PostgresDoorbell, connection: asyncpg.Connection, recorder: Recorder
) -> None:
    async with bell.asleep() as nap:
        await connection.execute("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'test bell'")
        await eventually(lambda: recorder.modes[-2:] == [WakeMode.POLLING, WakeMode.LISTENING])
        await nap.wait(timedelta(0))  # the rings for what was missed
        await connection.execute(INSERT)
        async with asyncio.timeout(30):
            await nap.wait(LONG)


async def test_idle_sleepers_cost_less_than_a_transaction_a_second_each_and_wait_for_no_lock(
    url: str, connection: asyncpg.Connection, recorder: Recorder
) -> None:
    """All go back to sleep after a commit that woke them, whichever got the row."""
    sleepers, seconds = 14, 3
    looks = asyncio.Semaphore(0)

    async def sleep(bell: PostgresDoorbell) -> None:
        while True:
            async with bell.asleep() as nap:
                looks.release()
                await nap.wait(LONG)

    async with AsyncExitStack() as stack:
        bells = [await stack.enter_async_context(ringing(url, recorder)) for _ in range(sleepers)]
        tasks = [asyncio.create_task(sleep(bell)) for bell in bells]
        stack.callback(lambda: [task.cancel() for task in tasks])
        for _ in tasks:
            await looks.acquire()
        await connection.execute(INSERT)
        for _ in tasks:
            await looks.acquire()
        await settled(connection)
        before = await transactions(connection)
        for _ in range(seconds):
            assert await connection.fetchval("select not exists(select from pg_locks where not granted)")
            await asyncio.sleep(1)
        assert await transactions(connection) - before < sleepers * seconds


async def settled(connection: asyncpg.Connection) -> None:
    """Returns when the server has counted no more than a few transactions for a second, which idle sessions report late."""

    async def quiet() -> bool:
        before = await transactions(connection)
        await asyncio.sleep(1)
        return await transactions(connection) - before < 14

    await eventually(quiet)


async def transactions(connection: asyncpg.Connection) -> int:
    """How many the server has counted in this database."""
    count: int = await connection.fetchval(
        "select xact_commit + xact_rollback from pg_stat_database where datname = current_database()"
    )
    return count


async def test_where_the_trigger_is_of_the_release_before_sleepers_poll(
    url: str, connection: asyncpg.Connection, recorder: Recorder
) -> None:
    names = table_names(TableName("outbox_table")) | {"ring_body": FIRST_RING_BODY}
    await connection.execute(queries("ring.sql", **names)["function"])
    bell = PostgresDoorbell(connect_to(url, application_name="bell"), bell_of(TableName("outbox_table")), observer=recorder)
    task = asyncio.create_task(bell.run())
    await eventually(lambda: recorder.events)
    [event] = recorder.events
    assert isinstance(event, WakeModeChanged)
    assert event.mode is WakeMode.POLLING
    assert "outbox migrate" in event.reason
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_where_notifications_do_not_arrive_sleepers_poll(url: str, recorder: Recorder) -> None:
    bell = PostgresDoorbell(
        connect_to(url, application_name="never run"),
        bell_of(TableName("outbox_table")),
        observer=recorder,
        poll_interval=timedelta(milliseconds=10),
    )
    async with bell.asleep() as nap, asyncio.timeout(30):
        await nap.wait(LONG)


async def test_bells_of_one_table_name_in_two_schemas_are_two() -> None:
    one, other = BellName.of("one", "outbox_table"), BellName.of("other", "outbox_table")
    assert one.channel != other.channel
    assert one.lock_key != other.lock_key
    assert len(one.channel) <= 63


async def test_thirty_two_writers_and_a_sleeper_that_comes_and_goes_miss_nothing(url: str, bell: PostgresDoorbell) -> None:
    """Whatever the interleaving: a row that is committed is seen by a look after entering, or rings."""
    writers, each = 32, 20
    async with asyncpg.create_pool(url, min_size=writers, max_size=writers + 1) as pool:

        async def write() -> None:
            async with pool.acquire() as connection:
                for _ in range(each):
                    async with connection.transaction():
                        await connection.execute(INSERT)

        async def read() -> int:
            seen = 0
            while seen < writers * each:
                async with bell.asleep() as nap:
                    found = len(await pool.fetch("delete from outbox_table returning id"))
                    if not found:
                        await nap.wait(LONG)
                seen += found
            return seen

        reader = asyncio.create_task(read())
        await asyncio.gather(*(write() for _ in range(writers)))
        async with asyncio.timeout(30):
            assert await reader == writers * each


async def test_sleepers_cancelled_at_any_moment_leave_no_lock(bell: PostgresDoorbell, connection: asyncpg.Connection) -> None:
    for moment in range(100):
        sleeper = asyncio.create_task(lie_down(bell))
        await asyncio.sleep(moment / 50_000)
        sleeper.cancel()
        await asyncio.gather(sleeper, return_exceptions=True)
        await eventually(lambda: connection.fetchval(f"select not exists({LOCKS})"))


async def test_connections_that_fall_silent_block_no_other_and_are_reopened(
    url: str, connection: asyncpg.Connection, recorder: Recorder, proxied: Callable[[str], Proxy]
) -> None:
    """As when a router forgets an idle connection: nothing is closed, and nothing arrives any more."""
    proxy = proxied(url)
    async with ringing(proxy.url, recorder) as bell:
        async with bell.asleep():
            proxy.pause()
        async with asyncio.timeout(60), bell.asleep() as nap:
            await nap.wait(LONG)
        proxy.resume()
        await eventually(lambda: recorder.modes[-2:] == [WakeMode.POLLING, WakeMode.LISTENING])


async def lie_down(bell: PostgresDoorbell) -> None:
    async with bell.asleep() as nap:
        await nap.wait(LONG)


@asynccontextmanager
async def ringing(url: str, recorder: Recorder) -> AsyncIterator[PostgresDoorbell]:
    """A doorbell that listens, by way of `url`."""
    bell = PostgresDoorbell(connect_to(url, application_name="bell"), bell_of(TableName("outbox_table")), observer=recorder)
    task = asyncio.create_task(bell.run())
    try:
        await eventually(lambda: bell.longest_nap is None)
        yield bell
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
