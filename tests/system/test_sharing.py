"""Relays and workers that share the work."""

from tests.system.handlers import Handler
from tests.system.harness import System

MANY = 20_000


async def test_two_relays_and_two_workers_deliver_twenty_thousand_messages_once_each(system: System) -> None:
    workers = [system.worker(Handler(queue="mail")) for _ in range(2)]
    await system.queue_is_consumed("mail", 2)
    system.relay()
    system.relay()
    for first in range(0, MANY, 1_000):
        await system.publish(range(first, first + 1_000))
    await system.everything_is_handled("mail", timeout=240)
    await system.stop()
    assert len(system.journal.begun()) == MANY
    assert set(system.journal.begun().values()) == {1}
    assert system.journal.ended() == system.journal.begun()
    assert await system.count() == 0
    assert {entry.pid for entry in system.journal.entries} == {worker.pid for worker in workers}
