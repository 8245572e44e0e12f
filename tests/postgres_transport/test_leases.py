"""Leases: only the holder may settle, and the deliveries of a crashed worker come to another."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from outbox.core.outcome import DONE, RETURNED, Cause, Dead, DeliveryOutcome, Retry
from outbox.errors import DatabaseUnavailableError, StaleDeliveryError
from outbox.postgres.pool import Pool, open_pool
from outbox.transports.postgres import PostgresBroker
from outbox.transports.postgres.tables import Statements
from tests.contract.support import FAILURE, existing, message, send, taking
from tests.postgres_transport.support import deliveries, fill_deliveries, new_broker
from tests.servers.proxy import Proxy
from tests.support import eventually

SHORT_LEASE = timedelta(seconds=3)

OUTCOMES: list[DeliveryOutcome] = [DONE, Retry(timedelta(seconds=5), FAILURE), Dead(Cause.REJECTED, FAILURE), RETURNED]


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: type(outcome).__name__)
async def test_an_outcome_under_a_stale_token_changes_nothing(
    broker: PostgresBroker, other_broker: PostgresBroker, pool: Pool, outcome: DeliveryOutcome
) -> None:
    async with taking(broker, "mail", "#") as taken:
        await send(broker, message("order.placed"))
        stale = await taken.next()
        assert taken.intake is not None
        await taken.intake.stop()
        await pool.execute("update outbox_delivery set leased_until = now(), available_at = now()")
        async with taking(other_broker, "mail", "#") as other:
            fresh = await other.next()
            before = await deliveries(pool)
            with pytest.raises(StaleDeliveryError):
                await stale.settle(outcome)
            assert await deliveries(pool) == before
            assert await pool.fetchval("select count(*) from outbox_dead_letter") == 0
            with pytest.raises(StaleDeliveryError):
                await stale.isolate()
            await fresh.settle(DONE)
    assert await deliveries(pool) == []


async def test_a_delivery_is_settled_only_once(broker: PostgresBroker) -> None:
    async with taking(broker, "mail", "#") as taken:
        await send(broker, message("order.placed"))
        delivery = await taken.next()
        await delivery.settle(DONE)
        with pytest.raises(StaleDeliveryError):
            await delivery.settle(DONE)


async def test_a_stale_outcome_does_not_affect_others_in_the_same_statement(broker: PostgresBroker, pool: Pool) -> None:
    async with taking(broker, "mail", "#", prefetch_count=20) as taken:
        await send(broker, *(message("order.placed", str(number).encode()) for number in range(20)))
        held = await taken.several(20)
        assert taken.intake is not None
        await taken.intake.stop()
        await pool.execute("update outbox_delivery set lease_token = gen_random_uuid() where body = '7'")
        results = await asyncio.gather(*(delivery.settle(DONE) for delivery in held), return_exceptions=True)
    assert [place for place, result in enumerate(results) if result is not None] == [7]
    assert isinstance(results[7], StaleDeliveryError)
    assert [row["body"] for row in await deliveries(pool)] == [b"7"]


async def test_a_lease_is_renewed_as_long_as_the_handler_runs(database: str, pool: Pool) -> None:
    lease = timedelta(seconds=5)
    slow, other = new_broker(database, lease=lease), new_broker(database, lease=lease)
    async with taking(slow, "mail", "#") as taken, taking(other, "mail", "#", prefetch_count=1) as idle:
        await send(slow, message("order.placed"))
        runner = asyncio.ensure_future(taken.next())
        rival = asyncio.ensure_future(idle.next())
        await asyncio.wait([runner, rival], return_when=asyncio.FIRST_COMPLETED)
        first, second = (runner, rival) if runner.done() else (rival, runner)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(second, 1.5 * lease.total_seconds())
        assert first.result().crashes == 0
        await first.result().settle(DONE)
    assert await deliveries(pool) == []
    for broker in (slow, other):
        await broker.close()


async def test_a_cancellation_is_not_lost_while_the_server_does_not_answer(
    database: str, pool: Pool, proxied: Callable[[str], Proxy]
) -> None:
    """The rollback gets no answer, and closes the connection, which the pool then has back already."""
    proxy = proxied(database)
    own = await open_pool(proxy.url, size=1, application_name="cancelled")
    writing = asyncio.create_task(Statements(own).fetch_atomically(("select pg_sleep(60)",), timeout=timedelta(seconds=60)))
    running = "select exists(select from pg_stat_activity where application_name = 'cancelled' and query like '%pg_sleep%')"
    await eventually(lambda: pool.fetchval(running))
    proxy.pause()
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    own.terminate()


async def test_deliveries_that_were_lost_while_they_waited_do_not_keep_a_worker_from_stopping(
    database: str, pool: Pool
) -> None:
    broker = new_broker(database, lease=SHORT_LEASE)
    await fill_deliveries(pool, "mail", 500)
    async with taking(broker, "mail", "#", prefetch_count=2) as taken:
        for _ in range(100):
            await (await taken.next()).settle(DONE)
        kept, lost = await taken.several(2)
        # Those that were claimed ahead are lost as well.
        await eventually(lambda: pool.fetchval("select count(*) > 10 from outbox_delivery where lease_token is not null"))
        await pool.execute("delete from outbox_delivery where lease_token is not null and message_id <> $1", kept.message.id)
        await eventually(lambda: lost.gone)
        assert taken.intake is not None
        await taken.intake.stop()
        assert not kept.gone
    # The end of the subscription has given back what was in flight, so it does not count as a crash.
    [row] = [each for each in await deliveries(pool) if each["message_id"] == kept.message.id]
    assert (row["lease_token"], row["crashes"]) == (None, 0)
    await broker.close()


async def test_a_lease_outlives_connections_that_are_lost_silently(
    database: str, pool: Pool, proxied: Callable[[str], Proxy]
) -> None:
    proxy = proxied(database)
    broker = new_broker(proxy.url, lease=timedelta(seconds=12))
    async with taking(broker, "mail", "#") as taken:
        await send(broker, message("order.placed"))
        delivery = await taken.next()
        first = await pool.fetchval("select leased_until from outbox_delivery")
        # More than one renewal could take, if each took one of them.
        await asyncio.gather(*(broker.queue_depth("mail") for _ in range(5)))
        proxy.pause()
        proxy.spare_new()
        await eventually(lambda: pool.fetchval("select leased_until > $1 from outbox_delivery", first), timeout=15)
        await delivery.settle(DONE)
        proxy.resume()
    await broker.close()


async def test_a_renewal_that_takes_too_long_is_repeated_before_the_lease_ends(database: str, pool: Pool) -> None:
    broker = new_broker(database, lease=timedelta(seconds=12))
    until = "select leased_until from outbox_delivery"
    async with taking(broker, "mail", "#") as taken:
        # The message that counts comes just after the leases of others were renewed.
        await send(broker, message("order.placed"))
        delivery, claimed = await taken.next(), await pool.fetchval(until)
        await eventually(lambda: pool.fetchval(f"select ({until}) > $1", claimed), timeout=15)
        await delivery.settle(DONE)
        await send(broker, message("order.placed"))
        delivery, claimed = await taken.next(), await pool.fetchval(until)
        async with pool.acquire() as other, other.transaction():
            await other.execute("select from outbox_delivery for update")
            # The server does not notice that nothing waits for the first renewal any more.
            two_wait = "select count(*) = 2 and $1 > clock_timestamp() from pg_locks where not granted"
            await eventually(lambda: pool.fetchval(two_wait, claimed), timeout=15)
        await eventually(lambda: pool.fetchval(f"select ({until}) > $1", claimed))
        await delivery.settle(DONE)
    await broker.close()


async def test_a_renewal_that_the_server_refuses_leaves_the_connections_open(
    database: str, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it has too few of them, those that are open are the only ones that work."""
    fetch = PostgresBroker._fetch
    refused: list[str] = []

    async def refuse_once(broker: PostgresBroker, name: str, *arguments: object) -> object:
        if name == "renew" and not refused:
            refused.append(name)
            raise DatabaseUnavailableError("sorry, too many clients already")
        return await fetch(broker, name, *arguments)

    async def open_connections() -> set[int]:
        of_the_broker = "application_name = 'outbox broker' and datname = current_database()"
        return {row["pid"] for row in await pool.fetch(f"select pid from pg_stat_activity where {of_the_broker}")}

    monkeypatch.setattr(PostgresBroker, "_fetch", refuse_once)
    broker = new_broker(database, lease=SHORT_LEASE)
    async with taking(broker, "mail", "#") as taken:
        await send(broker, message("order.placed"))
        delivery = await taken.next()
        until = await pool.fetchval("select leased_until from outbox_delivery")
        await asyncio.gather(*(broker.queue_depth("mail") for _ in range(5)))
        before = await open_connections()
        await eventually(lambda: pool.fetchval("select leased_until > $1 from outbox_delivery", until))
        assert refused
        # A connection that is to be replaced ends with its next use.
        await asyncio.gather(*(broker.queue_depth("mail") for _ in range(5)))
        assert before
        assert before <= await open_connections()
        await delivery.settle(DONE)
    await broker.close()


async def test_a_killed_worker_is_counted_and_its_deliveries_come_to_another(database: str, pool: Pool) -> None:
    broker = new_broker(database)
    await existing(broker, "mail", "#")
    await send(broker, *(message("order.placed", str(number).encode()) for number in range(3)))
    async with worker_process(database, "mail", "#", prefetch=2) as process:
        assert {await process.line(), await process.line()} == {"0", "1"}
        process.kill()
        async with taking(broker, "mail", "#") as taken:
            # What no worker had in flight comes at once, the rest when the leases end. Each is counted once, not as an attempt.
            arrived = {delivery.message.body: delivery for delivery in await taken.several(3)}
            assert {body: (it.crashes, it.attempt, it.blamed) for body, it in arrived.items()} == {
                b"0": (1, 1, False),
                b"1": (1, 1, False),
                b"2": (0, 1, False),
            }
            for delivery in arrived.values():
                await delivery.settle(DONE)
    assert await deliveries(pool) == []
    await broker.close()


async def test_a_frozen_worker_loses_its_deliveries_and_cannot_settle_them_later(database: str, pool: Pool) -> None:
    broker = new_broker(database)
    await existing(broker, "mail", "#")
    await send(broker, message("order.placed", b"0"))
    async with worker_process(database, "mail", "#", prefetch=1) as process:
        assert await process.line() == "0"
        process.send_signal(signal.SIGSTOP)
        async with taking(broker, "mail", "#") as taken:
            delivery = await taken.next()
            assert delivery.crashes == 1
            process.send_signal(signal.SIGCONT)
            await asyncio.sleep(SHORT_LEASE.total_seconds())  # what is watched is that the other one takes nothing back
            await delivery.settle(DONE)
    assert await deliveries(pool) == []
    await broker.close()


async def test_a_killed_workers_isolated_message_is_blamed_and_others_are_not(database: str, pool: Pool) -> None:
    broker = new_broker(database)
    async with taking(broker, "mail", "#") as taken:
        await send(broker, message("order.placed", b"guilty"), message("order.placed", b"neighbour"))
        [guilty, _neighbour] = await taken.several(2)
        assert await guilty.isolate()
        assert taken.intake is not None
        await taken.intake.stop()
        await pool.execute("update outbox_delivery set leased_until = now(), available_at = now()")
        async with taking(broker, "mail", "#") as again:
            blamed = {delivery.message.body: delivery.blamed for delivery in await again.several(2)}
            assert blamed == {b"guilty": True, b"neighbour": False}
    await broker.close()


async def test_stopping_gives_back_what_was_claimed_ahead_at_once(
    broker: PostgresBroker, other_broker: PostgresBroker, pool: Pool
) -> None:
    await existing(broker, "mail", "#")
    await send(broker, *(message("order.placed", str(number).encode()) for number in range(3000)))
    async with taking(broker, "mail", "#", prefetch_count=5) as taken:
        for _ in range(1000):  # fast enough to claim ahead
            await (await taken.next()).settle(DONE)
        assert taken.intake is not None
        await taken.intake.stop()
        leased = "select count(*) from outbox_delivery where lease_token is not null"
        await eventually(lambda: _is(pool, leased, 5))
    assert await pool.fetchval(leased) == 0
    assert await pool.fetchval("select max(crashes) from outbox_delivery") == 0
    async with taking(other_broker, "mail", "#") as other:
        assert (await other.next()).crashes == 0


async def _is(pool: Pool, query: str, expected: object) -> bool:
    return bool(await pool.fetchval(query) == expected)


class WorkerProcess:
    """A running `dying_worker.py`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.kill = process.kill
        self.send_signal = process.send_signal

    async def line(self) -> str:
        """Returns the body of the next message that it handles."""
        assert self._process.stdout is not None
        async with asyncio.timeout(30):
            return (await self._process.stdout.readline()).decode().strip()


@asynccontextmanager
async def worker_process(url: str, queue: str, binding_key: str, *, prefetch: int) -> AsyncIterator[WorkerProcess]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(Path(__file__).with_name("dying_worker.py")),
        *(url, queue, binding_key, str(prefetch), str(SHORT_LEASE.total_seconds())),
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield WorkerProcess(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
