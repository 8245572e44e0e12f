"""Cancelled anywhere, the relay leaves nothing behind: no connection, no lock, no row that only it has."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import asyncpg
import pytest

from outbox import ensure_outbox_schema_async
from outbox.core.outcome import DONE
from outbox.engine.lifecycle import Stopping
from outbox.engine.relay import Relay
from outbox.engine.rounds import SendingRounds
from outbox.errors import DatabaseUnavailableError
from outbox.ports import Nap
from outbox.postgres.doorbell import PostgresDoorbell, bell_of
from outbox.postgres.pool import borrow_from, open_pool
from outbox.postgres.queries import TableName
from outbox.postgres.store import PostgresStore
from tests.relay.support import INSERT, SETTINGS, Recorder, ScriptedTransport, policy
from tests.servers.postgres import OwnPostgres
from tests.support.eventually import eventually

TABLE = TableName("outbox_table")
ADVISORY_LOCKS = """
    select from pg_locks
    where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())
"""


@pytest.fixture
async def pool(url: str) -> AsyncIterator[asyncpg.Pool]:
    pool = await open_pool(url, size=7, application_name="cancelled")
    yield pool
    pool.terminate()


def store_on(pool: asyncpg.Pool) -> PostgresStore:
    return PostgresStore(pool, TABLE, keep_sent=False, longest_send=timedelta(seconds=10))


class LatePeace:
    """A doorbell whose sleepers rise slowly, and see a new row when they lie down."""

    def __init__(self, before_sleep: Callable[[], Awaitable[object]]) -> None:
        self.before_sleep = before_sleep
        self.rising = asyncio.Event()

    @asynccontextmanager
    async def asleep(self) -> AsyncIterator[Nap]:
        await self.before_sleep()
        yield self  # type: ignore[misc]
        self.rising.set()
        await asyncio.Event().wait()

    def ring(self) -> None:
        return


async def test_a_claim_taken_while_falling_asleep_is_given_back(pool: asyncpg.Pool, connection: asyncpg.Connection) -> None:
    bell = LatePeace(lambda: connection.execute(INSERT, "a"))
    store = store_on(pool)
    relay = Relay(SendingRounds(store, ScriptedTransport(), policy()), store, bell, Recorder(), SETTINGS)
    task = asyncio.create_task(relay.run(Stopping()))
    async with asyncio.timeout(30):
        await bell.rising.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert await connection.fetchval("select id from outbox_table for update nowait") is not None
    assert pool.get_idle_size() == pool.get_size()


@pytest.mark.parametrize("steps", range(0, 60, 2))
async def test_cancelled_after_any_number_of_steps_it_holds_nothing(
    pool: asyncpg.Pool, connection: asyncpg.Connection, steps: int
) -> None:
    """The doorbell, which other sleepers may share, goes on; the sleeper is cancelled after so many turns of the loop."""
    await connection.execute(INSERT, "a")
    store = store_on(pool)
    bell = PostgresDoorbell(borrow_from(pool), bell_of(TABLE), observer=Recorder())
    listening = asyncio.create_task(bell.run())
    await eventually(lambda: bell.longest_nap is None)
    relay = Relay(SendingRounds(store, ScriptedTransport(), policy()), store, bell, Recorder(), SETTINGS)
    task = asyncio.create_task(relay.run(Stopping()))
    for _ in range(steps):
        await asyncio.sleep(0.001 if steps > 20 else 0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await eventually(lambda: connection.fetchval(f"select not exists({ADVISORY_LOCKS})"))
    await eventually(lambda: pool.get_size() - pool.get_idle_size() == 1, message="only the bell's connection is out")
    assert await connection.fetchval("select count(*) from (select id from outbox_table for update skip locked) as free") == (
        await connection.fetchval("select count(*) from outbox_table")
    )
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)


async def test_a_cancellation_is_not_lost_when_the_connection_breaks_too(own_postgres: OwnPostgres) -> None:
    await ensure_outbox_schema_async(own_postgres.url)
    pool = await open_pool(own_postgres.url, size=2, application_name="test")
    store = store_on(pool)
    blocker = await asyncpg.connect(own_postgres.url)
    await blocker.execute("begin; lock outbox_table")
    tasks = [asyncio.create_task(store.claim(1)), asyncio.create_task(store.backlog())]
    waiting = "select count(*) = 2 from pg_stat_activity where wait_event_type = 'Lock'"
    observer = await asyncpg.connect(own_postgres.url)
    await eventually(lambda: observer.fetchval(waiting))
    own_postgres.kill()
    for task in tasks:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [asyncio.CancelledError] * 2
    blocker.terminate()
    observer.terminate()
    pool.terminate()


async def test_the_first_error_is_reported(url: str, connection: asyncpg.Connection, pool: asyncpg.Pool) -> None:
    await connection.execute(INSERT, "a")
    claim = await store_on(pool).claim(1)
    assert claim is not None
    await connection.execute("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'cancelled'")
    with pytest.raises(DatabaseUnavailableError, match="settling a claim"):
        async with claim:
            await claim.settle([DONE])
