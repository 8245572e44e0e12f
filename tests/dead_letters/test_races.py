"""Operators who requeue and discard parked rows while relays claim and publishers publish."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import asyncpg
import pytest

from outbox import Publisher
from outbox.core.outcome import DONE as SENT
from outbox.dead_letters import DeadLetters, ItemOutcome
from outbox.postgres.pool import Pool
from outbox.postgres.queries import TableName
from outbox.postgres.store import PostgresStore
from tests.dead_letters.repairs import DONE, at_once, outbox, park
from tests.support import eventually

TABLE = TableName("outbox_table")
ALREADY = (ItemOutcome.SKIPPED, "already requeued")
WAITING = """
    select exists(select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')
"""
publisher = Publisher()


def store_on(pool: Pool) -> PostgresStore:
    return PostgresStore(pool, TABLE, keep_sent=False, longest_send=timedelta(seconds=10))


@pytest.fixture
async def dead_letters(pool: Pool) -> AsyncIterator[DeadLetters]:
    async with DeadLetters(db_pool=pool) as opened:
        yield opened


def replaced_by(id_: str) -> tuple[ItemOutcome, str]:
    return (ItemOutcome.REFUSED, f"{id_} has its dedup key and stands for it: discard this one")


async def test_a_change_does_not_wait_for_a_relay_that_has_claimed_the_row(pool: Pool, dead_letters: DeadLetters) -> None:
    id_ = await park(pool, ordering_key="k")
    assert at_once(await dead_letters.requeue(id_)) == {id_: DONE}
    claim = await store_on(pool).claim(10)
    assert claim is not None
    async with claim:
        assert at_once(await dead_letters.discard(id_)) == {id_: ALREADY}
        assert at_once(await dead_letters.requeue(id_)) == {id_: ALREADY}
        assert at_once(await dead_letters.purge(id_, force=True)) == {id_: (ItemOutcome.SKIPPED, "not a dead letter")}
        await claim.settle([SENT])
    assert await outbox(pool) == []


async def test_rows_that_are_requeued_and_discarded_while_relays_claim_are_sent_or_discarded(
    pool: Pool, dead_letters: DeadLetters
) -> None:
    keys = [f"k{number % 4}" for number in range(40)]
    ids = [await park(pool, ordering_key=key) for key in keys]
    over = asyncio.Event()
    sent: list[str] = []

    async def relay() -> None:
        store = store_on(pool)
        while not over.is_set():
            if claim := await store.claim(5):
                async with claim:
                    sent.extend(f"outbox-{pending.row_id}" for pending in claim.messages)
                    await claim.settle([SENT] * len(claim.messages))
            await store.repair_lanes()

    async def requeue(each: list[str]) -> list[str]:
        answers = [at_once(await dead_letters.requeue(id_)) for id_ in each]
        return [id_ for answer in answers for id_, came in answer.items() if came == DONE]

    async def discard(each: list[str]) -> list[str]:
        answers = [at_once(await dead_letters.discard(id_)) for id_ in each]
        return [id_ for answer in answers for id_, came in answer.items() if came == DONE]

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(relay())
        tasks.create_task(relay())
        try:
            first, second, discarded = await asyncio.gather(requeue(ids), requeue(ids[::-1]), discard(ids[::-1]))
            await eventually(lambda: pool.fetchval("select not exists(select from outbox_table)"), timeout=60)
        finally:
            over.set()
    assert sorted(sent) == sorted([*first, *second])
    assert sorted([*sent, *discarded]) == sorted(ids)


async def test_a_parked_message_is_not_requeued_in_addition_to_one_that_replaced_it(
    pool: Pool, dead_letters: DeadLetters
) -> None:
    older, younger = await park(pool, dedup_key="d"), await park(pool, dedup_key="d")
    other = await park(pool, dedup_key="e")
    assert at_once(await dead_letters.requeue([older, younger, other])) == {
        older: replaced_by(younger),
        younger: DONE,
        other: DONE,
    }
    assert at_once(await dead_letters.requeue(older)) == {older: replaced_by(younger)}
    async with pool.acquire() as connection, connection.transaction():
        assert await publisher.cancel_async(connection, "d") is True
    assert at_once(await dead_letters.requeue(older)) == {older: DONE}


async def test_a_parked_message_is_sent_in_place_of_an_older_one_that_was_requeued_before(
    pool: Pool, dead_letters: DeadLetters
) -> None:
    older, younger = await park(pool, dedup_key="d"), await park(pool, dedup_key="d")
    for id_ in (older, younger):  # as two batches of an operation
        assert at_once(await dead_letters.requeue(id_)) == {id_: DONE}
    claim = await store_on(pool).claim(10)
    assert claim is not None
    async with claim:
        assert [f"outbox-{pending.row_id}" for pending in claim.messages] == [younger]
        await claim.settle([SENT])
    assert await outbox(pool) == []


@pytest.mark.parametrize("ends", ["commit", "rollback"])
async def test_a_requeue_comes_before_or_after_publishers_of_its_dedup_key(
    ends: str, database: str, pool: Pool, dead_letters: DeadLetters
) -> None:
    parked = await park(pool, dedup_key="d")
    connection = await asyncpg.connect(database)
    await connection.execute("begin")
    await publisher.publish_async(connection, "new", b"", dedup_key="d")
    requeueing = asyncio.create_task(dead_letters.requeue(parked))
    await eventually(lambda: pool.fetchval(WAITING))
    await connection.execute(ends)
    await connection.close()
    outcome, _ = at_once(await requeueing)[parked]
    assert outcome is (ItemOutcome.REFUSED if ends == "commit" else ItemOutcome.DONE)
    assert await pool.fetchval("select count(*) from outbox_table where failed_at is null") == 1
