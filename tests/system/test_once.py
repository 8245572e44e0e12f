"""Once in effect: every message delivered at least twice, everybody killed at random, connections cut, and the sum is exact."""

import random
from collections.abc import Callable

import pytest

from tests.servers.proxy import Proxy
from tests.support import eventually
from tests.system.handlers import Handler
from tests.system.harness import MakeSystem, Process, System

DEPOSIT = Handler(queue="deposits", does="deposit", max_deliveries=1_000)
COUNT = Handler(queue="children", binding_key="deposit.*", does="count", max_deliveries=1_000)
BATCH = 100


async def prepared(system: System) -> None:
    async with system.connection() as connection:
        await connection.execute("create table account (balance bigint); insert into account values (0)")
        await connection.execute("create table children (number bigint)")


async def deposits_are_exact(system: System, proxy: Proxy, messages: int, blows: int) -> None:
    """Everything goes through `proxy` to the broker, twice; components are killed or cut off again and again."""
    await prepared(system)

    def relay() -> Process:
        return system.relay(broker=proxy.url, doubling=True)

    def worker() -> Process:
        return system.worker(DEPOSIT, COUNT, broker=proxy.url, db_engine_url=system.database_url)

    members = [(relay, relay()), (relay, relay()), (worker, worker()), (worker, worker())]
    await system.queue_is_consumed("deposits")
    await system.queue_is_consumed("children")
    for first in range(0, messages, BATCH):
        await system.publish(range(first, first + BATCH))
    for turn in range(blows):
        await some_are_deposited(system, messages * turn // (blows + 1))
        index = random.randrange(len(members) + 1)
        if index == len(members):
            proxy.cut()
        else:
            start, victim = members[index]
            victim.kill()
            members[index] = (start, start())
    await eventually(lambda: all_is_booked(system, messages), timeout=60 + messages / 50, interval=0.25)
    await eventually(lambda: nothing_waits(system), timeout=60)
    async with system.connection() as connection:
        assert await connection.fetchval("select balance from account") == messages * (messages - 1) // 2
        counted = await connection.fetchrow("select count(*), count(distinct number) from children")
        assert counted is not None
        assert tuple(counted) == (messages, messages)
        assert await connection.fetchval("select count(*) from outbox_inbox") == 2 * messages
    begun = system.journal.begun()
    assert sum(begun.values()) >= 2 * messages
    assert await system.dead_letters("deposits") == await system.dead_letters("children") == 0


async def some_are_deposited(system: System, number: int) -> None:
    async def reached() -> bool:
        return await system.count(table="outbox_inbox", where="queue = 'deposits'") >= number

    await eventually(reached, timeout=60, interval=0.1, message=f"{number} are deposited\n{system.tails()}")


async def all_is_booked(system: System, messages: int) -> bool:
    return await system.count(table="outbox_inbox") >= 2 * messages


async def nothing_waits(system: System) -> bool:
    return await system.count() == 0 and await system.count(table="outbox_delivery") == 0


@pytest.fixture(params=[pytest.param("rabbitmq", marks=pytest.mark.rabbitmq), "postgres"])
def broker(request: pytest.FixtureRequest, database_url: str) -> str:
    """Each broker's address. Named before the system, it outlives it."""
    url: str = request.getfixturevalue("broker_url") if request.param == "rabbitmq" else database_url
    return url


@pytest.fixture
async def behind_a_proxy(
    database_url: str, broker: str, make_system: MakeSystem, proxied: Callable[[str], Proxy]
) -> tuple[System, Proxy]:
    options = {"worker_options": {"lease": 2.0}} if broker == database_url else {}
    return await make_system(database_url, broker, **options), proxied(broker)


async def test_a_balance_and_the_children_are_exact_through_kills_and_cuts(behind_a_proxy: tuple[System, Proxy]) -> None:
    await deposits_are_exact(*behind_a_proxy, messages=300, blows=5)


@pytest.mark.chaos
@pytest.mark.timeout(1_800)
async def test_ten_thousand_deposits_are_exact(behind_a_proxy: tuple[System, Proxy]) -> None:
    await deposits_are_exact(*behind_a_proxy, messages=10_000, blows=100)
