"""What tests of whole systems wait for, and what they do to processes."""

import asyncio
import random
from collections.abc import Callable, Iterable

from tests.support import RabbitAdmin, eventually
from tests.system.harness import Entry, Process, System

TERMINATE = """
    select count(pg_terminate_backend(pid)) from pg_stat_activity
    where application_name like 'outbox%' and datname = current_database()
"""


async def some_time(longest: float) -> None:
    """Waits for a random time."""
    await asyncio.sleep(random.uniform(0, longest))


async def progress(system: System, more: int = 1) -> None:
    """Returns when handlers have ended since the call."""
    before = sum(system.journal.ended().values())
    await eventually(
        lambda: sum(system.journal.ended().values()) >= before + more,
        message=f"messages are handled\n{system.tails()}",
    )


async def kill_again_and_again(system: System, start: Callable[[], Process], times: int) -> None:
    """Kills one of two, each time while messages flow, and starts another in its place."""
    running = [start(), start()]
    for turn in range(times):
        await progress(system)
        await some_time(0.15)
        victim = running[turn % 2]
        assert victim.alive, victim.log
        victim.kill()
        running[turn % 2] = start()


async def all_is_well(system: System, publishers: list[Process]) -> None:
    """All committed messages were handled, and no others; there are no dead letters; nothing is left over."""
    for publisher in publishers:
        publisher.terminate()
    for publisher in publishers:
        assert await publisher.ended() == 0
    await system.everything_is_handled("mail")
    await eventually(lambda: is_empty(system))
    assert await system.dead_letters("mail") == 0


async def is_empty(system: System) -> bool:
    return await system.count() == 0


async def depth_is(admin: RabbitAdmin, wanted: int) -> bool:
    return await admin.depth("mail") == wanted


def inversions(entries: Iterable[Entry]) -> list[str]:
    """Messages that were begun for the first time before the one in front of them had been handled."""
    begun: set[int] = set()
    reached: dict[int, int] = {}
    found = []
    for entry in entries:
        key, place = divmod(entry.number, 1_000_000)
        if entry.what == "ended":
            reached[key] = max(reached.get(key, 0), place)
        elif entry.number not in begun:
            begun.add(entry.number)
            if reached.get(key, 0) < place - 1:
                found.append(f"{place} of key {key} began when {reached.get(key, 0)} was the last that had ended")
    return found
