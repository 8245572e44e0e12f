"""In order: relays, workers and publishers at once, handlers fail, everybody is killed, and no key is ever inverted."""

import random
from collections.abc import Callable

import pytest

from tests.support import eventually
from tests.system.handlers import Handler
from tests.system.harness import Process, System
from tests.system.support import inversions

IN_ORDER = Handler(
    queue="ledger", ordered=True, failing=0.02, retry_delays=("20ms", "20ms", "20ms"), max_deliveries=1_000, seconds=0.001
)
PUBLISHERS = 3


async def no_key_is_inverted(system: System, *, keys: int, messages: int, blows: int, relays: int, workers: int) -> None:
    """Kills relays and workers while publishers that serialise by key commit; then looks at the order of first deliveries."""
    async with system.connection() as connection:
        await connection.execute("create table keys (key integer primary key, place integer not null default 0)")
        await connection.execute("insert into keys select generate_series(0, $1::integer - 1)", keys)
    starts: list[Callable[[], Process]] = [lambda: system.worker(IN_ORDER)] * workers + [system.relay] * relays
    members = [(start, start()) for start in starts]
    await system.queue_is_consumed("ledger")
    publishers = [
        system.ordering_publisher(seed=seed, keys=keys, transactions=messages // PUBLISHERS) for seed in range(PUBLISHERS)
    ]
    for turn in range(blows):
        await some_are_handled(system, messages * turn // (blows + 1))
        index = random.randrange(len(members))
        start, victim = members[index]
        victim.kill()
        members[index] = (start, start())
    for publisher in publishers:
        assert await publisher.ended(timeout=120) == 0
    await some_are_handled(system, messages // PUBLISHERS * PUBLISHERS)
    await eventually(lambda: nothing_waits(system), timeout=60)
    entries = system.journal.entries
    assert inversions(entries) == []
    assert sum(1 for entry in entries if entry.what == "ended" and entry.attempt > 1) > 0


async def some_are_handled(system: System, number: int) -> None:
    await eventually(
        lambda: len(system.journal.numbers("ledger")) >= number,
        timeout=90,
        interval=0.1,
        message=f"{number} are handled\n{system.tails()}",
    )


async def nothing_waits(system: System) -> bool:
    return await system.count() == 0 and await system.count(table="outbox_delivery") == 0


async def test_no_key_gets_out_of_order_while_relays_and_workers_are_killed(system: System) -> None:
    await no_key_is_inverted(system, keys=20, messages=900, blows=8, relays=2, workers=2)


@pytest.mark.chaos
@pytest.mark.timeout(1_800)
async def test_twenty_thousand_messages_of_two_hundred_keys_stay_in_order(system: System) -> None:
    await no_key_is_inverted(system, keys=200, messages=20_000, blows=100, relays=3, workers=4)
