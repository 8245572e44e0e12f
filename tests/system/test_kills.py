"""`kill -9` of relays and workers at any moment: all committed messages arrive, no others do, and none is dead."""

from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.servers.proxy import Proxy, Towards
from tests.support import RabbitAdmin, eventually
from tests.system.handlers import Handler
from tests.system.harness import MakeSystem, System
from tests.system.support import all_is_well, depth_is, is_empty, kill_again_and_again

KILLS = 30
CHAOS_KILLS = 300


async def kill_relays(system: System, times: int) -> None:
    system.worker(Handler(queue="mail"))
    await system.queue_is_consumed("mail")
    publishers = [system.publisher(first=first, together=20) for first in (0, 1_000_000)]
    await kill_again_and_again(system, lambda: system.relay(batch_size=50), times)
    await all_is_well(system, publishers)


async def kill_workers(system: System, times: int) -> None:
    handler = Handler(queue="mail", seconds=0.02)
    system.relay()
    publishers = [system.publisher(first=first, together=2) for first in (0, 1_000_000)]
    await kill_again_and_again(system, lambda: system.worker(handler), times)
    await all_is_well(system, publishers)
    interrupted = system.journal.begun() - system.journal.ended()
    assert interrupted.total() >= times / 2


async def test_relays_are_killed_thirty_times_and_nothing_is_lost(system: System) -> None:
    await kill_relays(system, KILLS)


async def test_workers_are_killed_thirty_times_inside_handlers_and_nothing_is_lost(system: System) -> None:
    await kill_workers(system, KILLS)


@pytest.mark.chaos
@pytest.mark.timeout(900)
async def test_relays_are_killed_three_hundred_times(system: System) -> None:
    await kill_relays(system, CHAOS_KILLS)


@pytest.mark.chaos
@pytest.mark.timeout(900)
async def test_workers_are_killed_three_hundred_times(system: System) -> None:
    await kill_workers(system, CHAOS_KILLS)


async def test_a_relay_killed_between_publishing_and_settling_has_lost_nothing(
    database_url: str, broker_url: str, broker_admin: RabbitAdmin, make_system: MakeSystem, proxied: Callable[[str], Proxy]
) -> None:
    """Ten times: the broker has the batch, its confirms are held back, and the relay dies waiting for them."""
    proxy = proxied(broker_url)
    system = await make_system(database_url, broker_url)
    worker = system.worker(Handler(queue="mail"))
    await system.queue_is_consumed("mail")
    worker.terminate()
    await worker.ended()
    for turn in range(10):
        relay = system.relay(broker=proxy.url)
        await system.publish(range(turn * 10, turn * 10 + 1))
        await eventually(lambda: is_empty(system))
        depth = await broker_admin.depth("mail")
        proxy.pause(Towards.CLIENT)
        await system.publish(range(turn * 10 + 1, turn * 10 + 10))
        await eventually(lambda: depth_is(broker_admin, depth + 9))  # noqa: B023  awaited here
        relay.kill()
        proxy.cut()
        proxy.resume()
    system.relay(broker=proxy.url)
    system.worker(Handler(queue="mail"))
    await eventually(lambda: is_empty(system))
    # The second copies are confirmed before they are handled.
    expected = {("mail", number): 1 if number % 10 == 0 else 2 for number in range(100)}
    await eventually(lambda: system.journal.ended() == expected)


@pytest.mark.parametrize("max_deliveries", [2, 10])
async def test_a_message_that_crashes_its_worker_becomes_a_dead_letter_alone(system: System, max_deliveries: int) -> None:
    """Every worker that takes number 13 crashes, with other messages in flight; a supervisor starts the next."""
    handler = Handler(queue="mail", seconds=0.05, fatal=frozenset({13}), max_deliveries=max_deliveries)
    system.relay()
    worker = system.worker(handler)
    await system.queue_is_consumed("mail")
    await system.publish(range(40))
    kills = 0
    while not await system.dead_letters("mail"):
        with suppress(AssertionError):
            await worker.ended(timeout=0.5)  # looking at a process costs nothing, and counting dead letters a connection
        if not worker.alive:
            kills += 1
            assert kills <= max_deliveries + 3, system.tails()
            worker = system.worker(handler)
    try:
        await eventually(lambda: system.journal.numbers("mail") == set(range(40)) - {13}, timeout=40)
    except AssertionError:
        raise AssertionError(f"only {sorted(system.journal.numbers('mail'))} were handled\n{system.tails()}") from None
    assert await system.dead_letters("mail") == 1, system.tails()
    assert await is_empty(system)
    assert kills == max_deliveries + 2
