"""What a handler writes and what it publishes are one: neither is there without the other, whenever its worker dies."""

from tests.support import eventually
from tests.system.handlers import Handler
from tests.system.harness import System
from tests.system.support import all_is_well, kill_again_and_again


async def test_workers_are_killed_again_and_again_and_no_effect_is_without_its_event_nor_an_event_without_its_effect(
    system: System,
) -> None:
    async with system.connection() as connection:
        await connection.execute("create table effects (number bigint generated always as identity primary key, of bigint)")
    system.relay()
    system.worker(Handler(queue="follower", binding_key="effect.*"))
    await system.queue_is_consumed("follower")
    handler = Handler(queue="mail", seconds=0.02, does="effect")
    publishers = [system.publisher(first=first, together=2) for first in (0, 1_000_000)]
    await kill_again_and_again(system, lambda: system.worker(handler, db_engine_url=system.database_url), 10)
    await all_is_well(system, publishers)
    # A second delivery of what a killed worker had done may add effects meanwhile; each has its event in the end.
    await eventually(lambda: effects_and_events_agree(system))


async def effects_and_events_agree(system: System) -> bool:
    events = system.journal.numbers("follower")
    async with system.connection() as connection:
        effects = await connection.fetch("select number, of from effects")
    assert {row["of"] for row in effects} == await system.orders()
    return events == {row["number"] for row in effects}
