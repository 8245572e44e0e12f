"""Requeue policies: a group is requeued automatically, within a limit, until one of its messages fails again."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from outbox import Maintenance
from outbox.dead_letters import DeadLetters
from outbox.dead_letters.policies import RequeuePolicies, RequeuePolicy
from outbox.errors import ConfigurationError
from outbox.postgres.pool import Pool
from outbox.postgres.queries import TableName
from tests.dead_letters.repairs import add_dead_letters, add_fact
from tests.support import eventually

TABLE = TableName("outbox_table")


@pytest.fixture
async def group(pool: Pool) -> str:
    """Id of a group of five dead letters."""
    await add_dead_letters(pool, 5)
    found: str = await pool.fetchval("select min(fingerprint) from outbox_dead_letter")
    return found


@pytest.fixture
async def dead_letters(database: str) -> AsyncIterator[DeadLetters]:
    async with DeadLetters(database) as opened:
        yield opened


async def have(pool: Pool, group: str, per_hour: int | None) -> RequeuePolicies:
    policies = RequeuePolicies(pool, TABLE)
    async with pool.acquire() as connection:
        await policies.set(connection, group, per_hour, set_by="ada")
    return policies


async def policy_of(pool: Pool, group: str) -> RequeuePolicy:
    async with pool.acquire() as connection:
        return (await RequeuePolicies(pool, TABLE).all(connection))[group]


async def an_hour_later(pool: Pool) -> None:
    await pool.execute("update outbox_requeue_policy set started_at = started_at - interval '1 hour'")


async def finish(dead_letters: DeadLetters) -> None:
    runner = await dead_letters.runner()
    while await runner.run_once():
        pass
    await runner.refresh_results()


async def test_at_most_so_many_an_hour_are_requeued_after_the_first_was_handled(
    pool: Pool, dead_letters: DeadLetters, group: str
) -> None:
    policies = await have(pool, group, 2)
    assert await policies.apply() == 1
    assert await policies.apply() == 0
    await finish(dead_letters)
    await add_fact(pool, "processed", "m1")
    await finish(dead_letters)
    await add_fact(pool, "processed", "m2")
    [operation] = await dead_letters.operations()
    assert (operation.requested_by, operation.total, operation.results.handled) == ("policy:ada", 2, 2)
    assert await policies.apply() == 0
    await an_hour_later(pool)
    assert await policies.apply() == 1
    policy = await policy_of(pool, group)
    assert policy.operation_id is not None
    assert policy.operation_id > operation.id
    assert policy.stopped_at is None


async def test_the_first_message_that_fails_again_stops_it_until_it_is_set_again(
    pool: Pool, dead_letters: DeadLetters, group: str
) -> None:
    policies = await have(pool, group, 3)
    await policies.apply()
    await finish(dead_letters)
    await pool.execute(
        "with failed as (update outbox_dead_letter set status = 'open', deaths = deaths + 1, requeue_count = requeue_count + 1"
        " where status = 'requeued' returning id) update outbox_operation_item set outcome = 'died again', check_at = now()"
        " from failed where letter = failed.id::text and outcome = 'done'"
    )
    await finish(dead_letters)
    assert await policies.apply() == 1
    policy = await policy_of(pool, group)
    assert policy.stopped_at is not None
    assert policy.stopped_because == f"1 of the messages of operation {policy.operation_id} failed again"
    await an_hour_later(pool)
    assert await policies.apply() == 0
    await have(pool, group, 3)
    assert await policies.apply() == 1


async def test_a_cancelled_operation_stops_it(pool: Pool, dead_letters: DeadLetters, group: str) -> None:
    policies = await have(pool, group, 3)
    await policies.apply()
    [operation] = await dead_letters.operations()
    await dead_letters.cancel(operation.id)
    assert await policies.apply() == 1
    assert (await policy_of(pool, group)).stopped_because == f"operation {operation.id} was cancelled"


async def test_an_operation_whose_messages_are_all_refused_stops_it(pool: Pool, dead_letters: DeadLetters, group: str) -> None:
    await pool.execute("update outbox_dead_letter set created_at = now() - interval '31 days' where message_id <> 'm3'")
    policies = await have(pool, group, 2)
    await policies.apply()
    await finish(dead_letters)
    assert await policies.apply() == 1
    policy = await policy_of(pool, group)
    assert policy.stopped_because is not None
    assert policy.stopped_because.startswith(
        f"operation {policy.operation_id} requeued nothing, because all was refused: older than the deduplication window"
    )


async def test_an_operation_whose_messages_are_refused_in_part_does_not_stop_it(
    pool: Pool, dead_letters: DeadLetters, group: str
) -> None:
    await pool.execute("update outbox_dead_letter set created_at = now() - interval '31 days' where message_id = 'm1'")
    policies = await have(pool, group, 2)
    await policies.apply()
    await finish(dead_letters)
    assert await policies.apply() == 0
    assert (await policy_of(pool, group)).stopped_at is None


async def test_two_processes_start_one_operation(pool: Pool, dead_letters: DeadLetters, group: str) -> None:
    policies = await have(pool, group, 3)
    started = await asyncio.gather(*(policies.apply() for _ in range(4)))
    assert sum(started) == 1
    assert len(await dead_letters.operations()) == 1


async def test_without_open_letters_or_a_policy_nothing_starts(pool: Pool, dead_letters: DeadLetters, group: str) -> None:
    policies = await have(pool, group, 3)
    await have(pool, group, None)
    assert await policies.apply() == 0
    await have(pool, group, 3)
    await pool.execute("update outbox_dead_letter set status = 'discarded', resolved_at = now()")
    assert await policies.apply() == 0
    assert await dead_letters.operations() == []


async def test_a_policy_has_at_least_one_an_hour(pool: Pool) -> None:
    with pytest.raises(ConfigurationError, match="per_hour"):
        await have(pool, "g", 0)


async def test_maintenance_applies_them(
    database: str, pool: Pool, dead_letters: DeadLetters, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.maintenance._OFTEN", timedelta(milliseconds=100))
    await have(pool, group, 2)
    maintenance = Maintenance(database)
    task = asyncio.create_task(maintenance.run(handle_signals=False))
    try:
        await eventually(lambda: pool.fetchval("select count(*) = 1 from outbox_dead_letter where status = 'requeued'"))
        await add_fact(pool, "processed", "m1")
        await eventually(lambda: pool.fetchval("select count(*) = 2 from outbox_dead_letter where status = 'requeued'"))
    finally:
        maintenance.stop()
        await task
    [operation] = await dead_letters.operations()
    assert operation.ended
