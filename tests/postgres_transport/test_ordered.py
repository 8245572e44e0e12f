"""Ordered queues: the deliveries of a key come one after another, with any number of workers, and no key waits for another."""

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from uuid import uuid4

import pytest

from outbox.core.outcome import DONE, RETURNED, Cause, Dead, DeliveryOutcome, Postponed, Retry
from outbox.errors import StaleDeliveryError
from outbox.ports import Broker, Delivery
from outbox.postgres.pool import Connection, Pool
from outbox.transports.postgres import PostgresBroker
from outbox.transports.postgres.subscription import PostgresIntake
from outbox.transports.postgres.tables import Statements
from tests.contract.harness import EXCHANGE
from tests.contract.support import FAILURE, Taken, taking
from tests.postgres_transport.support import TABLES, a_session_waits, deliveries, new_broker
from tests.support import eventually

SQL = TABLES.queries("delivery.sql")
LEASE = timedelta(seconds=30)
MOMENT = timedelta(milliseconds=200)


async def put(pool: Pool, *keys: str | None, queue: str = "mail") -> None:
    """Inserts a delivery per key, in this order, with its position as the body."""
    await pool.executemany(
        "insert into outbox_delivery (exchange, queue, message_id, routing_key, body, tracking_ids, ordering_key) "
        "values ($1, $2, $3, 'a.b', convert_to($3, 'UTF8'), jsonb_build_array($3::text), $4)",
        [(EXCHANGE, queue, str(place), key) for place, key in enumerate(keys)],
    )


async def put_many(pool: Pool, key: str, count: int, *, queue: str = "mail") -> None:
    await pool.execute(
        "insert into outbox_delivery (exchange, queue, message_id, routing_key, body, tracking_ids, ordering_key) "
        "select $1, $2, n::text, 'a.b', convert_to(n::text, 'UTF8'), jsonb_build_array(n::text), $3 "
        "from generate_series(1, $4) as n",
        EXCHANGE,
        queue,
        key,
        count,
    )


@asynccontextmanager
async def taking_in_order(broker: Broker, *, prefetch_count: int = 10) -> AsyncIterator[Taken]:
    async with taking(broker, "mail", "a.*", prefetch_count=prefetch_count, ordered=True) as taken:
        yield taken


async def claim(connection: Connection | Pool, limit: int = 10, *, look: int = 1_000) -> tuple[list[bytes], int, int]:
    """Returns the bodies of a claim, how many deliveries were due, and how many were left."""
    rows = await connection.fetch(SQL["claim_ordered"], "mail", limit, uuid4(), LEASE, look, 10**9, 10**9)
    return [row["body"] for row in rows if row["id"] is not None], rows[0]["seen"], rows[0]["left"]


async def end(pool: Pool | Connection, body: bytes) -> None:
    """Ends a claimed delivery, and releases the next one of its key."""
    [row] = await pool.fetch("select id, lease_token, ordering_key from outbox_delivery where body = $1", body)
    assert await pool.fetch(SQL["done"], [row["id"]], [row["lease_token"]])
    await pool.fetch(SQL["release"], "mail", [row["ordering_key"]])


async def test_the_first_delivery_of_each_key_comes_first_and_the_next_after_its_end(
    broker: PostgresBroker, pool: Pool
) -> None:
    await put(pool, "a", "a", "b", None, "a", "b", None)
    async with taking_in_order(broker) as taken:
        first = {delivery.message.body: delivery for delivery in await taken.several(4)}
        assert set(first) == {b"0", b"2", b"3", b"6"}
        await taken.nothing_more()
        await first[b"0"].settle(DONE)
        assert (await taken.next()).message.body == b"1"
        await first[b"2"].settle(Dead(Cause.REJECTED, FAILURE))
        assert (await taken.next()).message.body == b"5"
        await taken.nothing_more(MOMENT)


@pytest.mark.parametrize("outcome", [Retry(MOMENT, FAILURE), Postponed(MOMENT), RETURNED])
async def test_a_returned_delivery_comes_before_later_ones_of_its_key(
    broker: PostgresBroker, pool: Pool, outcome: Retry | Postponed
) -> None:
    await put(pool, "a", "a", "b")
    async with taking_in_order(broker) as taken:
        first, other = await taken.several(2)
        await first.settle(outcome)
        await other.settle(DONE)
        again = await taken.next()
        assert again.message.body == b"0"
        await taken.nothing_more(MOMENT)
        await again.settle(DONE)
        assert (await taken.next()).message.body == b"1"


async def test_workers_share_the_keys(broker: PostgresBroker, other_broker: PostgresBroker, pool: Pool) -> None:
    await put(pool, "a", "b", "a", "b")
    async with taking_in_order(broker, prefetch_count=1) as first, taking_in_order(other_broker, prefetch_count=1) as second:
        one, two = await first.next(), await second.next()
        assert {one.message.body, two.message.body} == {b"0", b"1"}
        await one.settle(DONE)
        follower = await first.next()
        assert follower.message.ordering_key == one.message.ordering_key


async def test_deliveries_of_a_crashed_worker_come_to_another_before_later_ones(
    broker: PostgresBroker, database: str, pool: Pool
) -> None:
    await put(pool, "a", "a")
    assert (await claim(pool))[0] == [b"0"]
    async with taking_in_order(broker) as taken:
        await taken.nothing_more(MOMENT)
        await pool.execute(
            "update outbox_delivery set leased_until = now(), available_at = now() where lease_token is not null"
        )
        await put(pool, None, queue="elsewhere")  # rings
        delivery = await taken.next()
        assert (delivery.message.body, delivery.crashes) == (b"0", 1)
        await delivery.settle(DONE)
        assert (await taken.next()).message.body == b"1"


async def test_a_delivery_that_ends_during_a_claim_neither_lets_one_skip_nor_leaves_one_waiting(pool: Pool) -> None:
    """All interleavings of a claim and the end of a delivery."""
    await put(pool, "a", "a", "a")
    assert await claim(pool) == ([b"0"], 3, 0)
    await pool.execute("update outbox_delivery set available_at = now() where lease_token is null")  # no worker looked yet
    async with pool.acquire() as ending:
        transaction = ending.transaction()
        await transaction.start()
        await end(ending, b"0")
        # Not ended for other workers: the follower is neither taken nor delayed, since no worker would resume it; another is.
        bodies, _, left = await claim(pool)
        assert (bodies, left) == ([], 2)
        await transaction.commit()
    assert (await claim(pool))[0] == [b"1"]
    await end(pool, b"1")
    assert (await claim(pool))[0] == [b"2"]


async def test_an_end_that_waits_for_a_claim_releases_what_the_claim_deferred(pool: Pool) -> None:
    await put(pool, "a", "a")
    assert (await claim(pool, look=1))[0] == [b"0"]
    async with pool.acquire() as claiming:
        transaction = claiming.transaction()
        await transaction.start()
        assert await claim(claiming) == ([], 1, 0)
        ending = asyncio.create_task(end_in_one_transaction(pool, b"0"))
        await eventually(lambda: a_session_waits(pool))
        await transaction.commit()
        await asyncio.wait_for(ending, 30)
    assert (await claim(pool))[0] == [b"1"]


async def test_the_server_ends_the_transaction_of_a_worker_that_is_frozen_in_it(pool: Pool) -> None:
    """Or whose host vanishes: until then, its locks keep other workers from the delivery that it ends and those behind it."""
    setting = ("select current_setting('idle_in_transaction_session_timeout')",)
    [[row]] = await Statements(pool).fetch_atomically(setting, timeout=timedelta(seconds=20))
    assert row[0] == "20s"
    assert await pool.fetchval(*setting) == "0"


async def test_looks_become_rare_while_another_session_locks_the_first_of_a_key(
    broker: PostgresBroker, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[timedelta] = []
    pause = PostgresIntake._pause

    async def noted(self: PostgresIntake, length: timedelta) -> None:
        pauses.append(length)
        await pause(self, length)

    monkeypatch.setattr(PostgresIntake, "_pause", noted)
    await put(pool, "a", "a")
    async with taking_in_order(broker) as taken:
        async with pool.acquire() as other, other.transaction():
            assert (await taken.next()).message.body == b"0"
            # Its worker is ending it, and never commits.
            await other.execute("delete from outbox_delivery where body = '0'")
            await pool.execute("update outbox_delivery set available_at = now() where body = '1'")
            await eventually(lambda: len(pauses) > 8)
            assert pauses[8] > 10 * pauses[0]
        assert (await taken.next()).message.body == b"1"


async def end_in_one_transaction(pool: Pool, body: bytes) -> None:
    async with pool.acquire() as connection, connection.transaction():
        await end(connection, body)


async def test_two_claims_at_once_never_take_two_of_one_key(pool: Pool) -> None:
    await put(pool, *(f"key {number % 5}" for number in range(50)))
    async with pool.acquire() as one, pool.acquire() as two:
        first, second = one.transaction(), two.transaction()
        await first.start()
        await second.start()
        taken = [await claim(one, look=7), await claim(two, look=40)]
        await first.commit()
        await second.commit()
    rows = await pool.fetch("select body, ordering_key from outbox_delivery where lease_token is not null order by id")
    assert sorted(taken[0][0] + taken[1][0]) == sorted(row["body"] for row in rows)
    assert [row["body"] for row in rows] == [b"0", b"1", b"2", b"3", b"4"]


async def test_a_key_with_very_many_deliveries_does_not_delay_the_others(broker: PostgresBroker, pool: Pool) -> None:
    await put_many(pool, "poison", 20_000)
    await put(pool, "other")
    async with taking_in_order(broker) as taken:
        poison, other = await taken.several(2)
        assert (poison.message.ordering_key, other.message.ordering_key) == ("poison", "other")
        # Once looked at, they are out of the way.
        assert await pool.fetchval("select count(*) from outbox_delivery where available_at <= now()") == 0
        await poison.settle(Retry(MOMENT, FAILURE))
        for _ in range(3):
            await put(pool, "other")
            await other.settle(DONE)
            other = await taken.next()
            if other.message.ordering_key == "poison":
                poison, other = other, await taken.next()


@pytest.mark.parametrize("deleted", [False, True])
async def test_a_key_continues_after_a_delivery_that_a_worker_without_order_ended_or_an_operator_deleted(
    database: str, broker: PostgresBroker, pool: Pool, deleted: bool
) -> None:
    """As when a queue becomes ordered: workers of the release before still have deliveries of it."""
    await put(pool, "a", "a", "a", "a", "a")
    ordered = new_broker(database, lease=timedelta(seconds=1))
    async with taking(broker, "mail", "a.*", prefetch_count=2) as before:
        first, second = await before.several(2)
        assert before.intake is not None
        await before.intake.stop()
        await eventually(lambda: pool.fetchval("select count(*) = 2 from outbox_delivery where lease_token is not null"))
        async with taking_in_order(ordered) as taken:
            waits = "select min(available_at) > now() from outbox_delivery where lease_token is null"
            await eventually(lambda: pool.fetchval(waits))
            if deleted:
                await pool.execute("delete from outbox_delivery where lease_token is not null")
            else:
                await first.settle(DONE)
                await second.settle(DONE)
            for body in (b"2", b"3", b"4"):
                delivery = await taken.next()
                assert delivery.message.body == body
                await delivery.settle(DONE)
    await ordered.close()


async def test_deliveries_behind_a_row_that_is_deleted_by_hand_come_eventually(pool: Pool) -> None:
    await put(pool, "a", "a")
    assert (await claim(pool))[0] == [b"0"]
    [waits] = await pool.fetch("select available_at - now() as wait from outbox_delivery where body = '1'")
    assert timedelta(minutes=3) < waits["wait"] < timedelta(minutes=7)


async def test_every_key_is_handled_in_order_by_workers_that_fail_stop_and_lose_connections(database: str, pool: Pool) -> None:
    """Each worker holds its deliveries for a moment, and is closed in the middle, repeatedly."""
    chance = random.Random(7)
    keys = [f"key {number % 20}" for number in range(400)]
    chance.shuffle(keys)
    await put(pool, *keys)
    seen: defaultdict[str | None, list[bytes]] = defaultdict(list)

    async def handle(delivery: Delivery) -> None:
        key, body = delivery.message.ordering_key, delivery.message.body
        if body not in seen[key]:
            seen[key].append(body)
        await asyncio.sleep(0.002)
        outcomes: list[DeliveryOutcome] = [DONE, RETURNED, Retry(timedelta(milliseconds=20), FAILURE)]
        [outcome] = chance.choices(outcomes, (18, 1, 1))
        with suppress(StaleDeliveryError):
            await delivery.settle(outcome)

    async def work() -> None:
        while await deliveries(pool):
            broker = new_broker(database, lease=timedelta(seconds=1))
            with suppress(TimeoutError):
                async with (
                    taking_in_order(broker) as taken,
                    asyncio.timeout(chance.uniform(0.3, 1)),
                    asyncio.TaskGroup() as tasks,
                ):
                    while True:
                        tasks.create_task(handle(await taken.next()))
            await broker.close()

    async with asyncio.TaskGroup() as workers:
        for _ in range(3):
            workers.create_task(work())
    assert seen == {key: [str(place).encode() for place, of in enumerate(keys) if of == key] for key in keys}


async def test_one_busy_key_does_not_wait_for_a_poll(broker: PostgresBroker, pool: Pool) -> None:
    await put_many(pool, "hot", 100)
    async with taking_in_order(broker) as taken:
        for _ in range(100):
            await (await taken.next()).settle(DONE)  # the poll would come after an hour
