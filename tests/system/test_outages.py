"""Servers that stop, restart, hang or throw everybody out, while everybody works."""

import asyncio
import re
from collections.abc import Callable

from tests.servers.postgres import OwnPostgres
from tests.servers.proxy import Proxy, Towards
from tests.servers.rabbitmq import OwnRabbitMQ
from tests.support import eventually
from tests.system.handlers import Handler
from tests.system.harness import MakeSystem, Process, System
from tests.system.support import TERMINATE, all_is_well, is_empty, progress


async def begin(system: System, *, together: int = 5) -> list[Process]:
    """A relay, a worker and two publishers at work."""
    system.worker(Handler(queue="mail"))
    await system.queue_is_consumed("mail")
    system.relay()
    publishers = [system.publisher(first=first, together=together, pause=0.02) for first in (0, 1_000_000)]
    await progress(system, 50)
    return publishers


async def test_while_rabbitmq_is_stopped_the_business_goes_on_and_no_attempt_is_spent(
    database_url: str, own_rabbitmq: OwnRabbitMQ, make_system: MakeSystem
) -> None:
    system = await make_system(database_url, own_rabbitmq.url)
    publishers = await begin(system)
    await asyncio.to_thread(own_rabbitmq.stop)
    before = await system.orders()
    for number in range(2_000_000, 2_000_100):
        async with asyncio.timeout(30):
            await system.publish(range(number, number + 1))
    await eventually(lambda: many_more_orders(system, before))
    assert await system.count("attempts > 0 or failed_at is not null or last_error is not null") == 0
    await asyncio.to_thread(own_rabbitmq.start)
    await all_is_well(system, publishers)


async def many_more_orders(system: System, before: set[int]) -> bool:
    return len(await system.orders() - before) >= 200


async def test_all_components_survive_a_restart_of_postgresql(
    own_postgres: OwnPostgres, broker_url: str, make_system: MakeSystem
) -> None:
    system = await make_system(own_postgres.url, broker_url)
    publishers = await begin(system)
    for outage in (own_postgres.restart, own_postgres.kill):
        await asyncio.to_thread(outage)
        await asyncio.to_thread(own_postgres.start)
        await progress(system, 20)
    await all_is_well(system, publishers)


async def test_all_components_survive_a_restart_of_postgresql_that_is_also_the_broker(
    own_postgres: OwnPostgres, make_system: MakeSystem
) -> None:
    system = await make_system(own_postgres.url, worker_options={"lease": 2.0})
    publishers = await begin(system)
    for outage in (own_postgres.restart, own_postgres.kill):
        await asyncio.to_thread(outage)
        await asyncio.to_thread(own_postgres.start)
        await progress(system, 20)
    await all_is_well(system, publishers)


async def test_every_connection_to_postgresql_is_terminated_ten_times_and_nothing_is_lost(system: System) -> None:
    publishers = await begin(system)
    async with system.connection() as connection:
        for _ in range(10):
            await eventually(lambda: connection.fetchval(TERMINATE))
            await progress(system, 10)
    await all_is_well(system, publishers)


async def test_every_connection_to_rabbitmq_is_cut_ten_times_and_nothing_is_lost(
    database_url: str, broker_url: str, proxied: Callable[[str], Proxy], make_system: MakeSystem
) -> None:
    proxy = proxied(broker_url)
    system = await make_system(database_url, proxy.url)
    publishers = await begin(system)
    for _ in range(10):
        await eventually(lambda: proxy.connections >= 2)
        proxy.cut()
        await progress(system, 10)
    await all_is_well(system, publishers)


async def test_a_confirm_that_never_comes_ends_in_the_timeout_with_no_transaction_left_open(
    database_url: str, broker_url: str, proxied: Callable[[str], Proxy], make_system: MakeSystem
) -> None:
    proxy = proxied(broker_url)
    system = await make_system(database_url, broker_url)
    system.worker(Handler(queue="mail"))
    await system.queue_is_consumed("mail")
    relay = system.relay(broker=proxy.url, publish_timeout=1.0)
    await system.publish(range(1))
    await eventually(lambda: is_empty(system))

    proxy.swallow(Towards.CLIENT)
    await system.publish(range(1, 11))
    await eventually(lambda: system.journal.numbers("mail") == set(range(11)))
    await eventually(lambda: re.search(r"timeout: .* within (1|0\.\d+) s", relay.log), message="the relay gives up in time")
    await eventually(lambda: no_session_waits_in_a_transaction(system))
    assert await system.count("attempts = 0 and failed_at is null and last_error is null") == 10

    proxy.resume()
    await eventually(lambda: is_empty(system))
    await system.everything_is_handled("mail")


async def no_session_waits_in_a_transaction(system: System) -> bool:
    async with system.connection() as connection:
        open_now = await connection.fetchval(
            "select count(*) from pg_stat_activity "
            "where application_name like 'outbox%' and state like 'idle in transaction%' and datname = current_database()"
        )
        return bool(open_now == 0)
