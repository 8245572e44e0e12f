"""Operations: many dead letters in batches, which survive whatever happens to the process."""

from collections.abc import AsyncIterator

import pytest

from outbox.dead_letters import DeadLetterFilter, DeadLetters, ItemOutcome, OperationState
from outbox.postgres.pool import Pool
from tests.dead_letters.repairs import bury, operation, outbox, statuses


@pytest.fixture
async def dead_letters(database: str) -> AsyncIterator[DeadLetters]:
    """The dead letters of the test's database, where PostgreSQL is the broker."""
    async with DeadLetters(database) as opened:
        yield opened


async def test_a_group_is_requeued_by_an_operation_whose_letters_are_fixed(pool: Pool, dead_letters: DeadLetters) -> None:
    await bury(pool, 1_200, fingerprint="f1")
    await bury(pool, 3, fingerprint="f2", queue="other")
    created = operation(await dead_letters.requeue(DeadLetterFilter(group_id="f1"), by="ada", reason="fixed"))
    assert (created.state, created.total, created.pending) == (OperationState.RUNNING, 1_200, 1_200)
    await bury(pool, 5, fingerprint="f1", queue="late")
    runner = await dead_letters.runner()
    while await runner.run_once():
        pass
    ended = await dead_letters.operation(created.id)
    assert ended is not None
    assert (ended.state, ended.counts) == (OperationState.FINISHED, {ItemOutcome.DONE: 1_200})
    assert len(await outbox(pool)) == 1_200
    assert (await statuses(pool)).count("requeued") == 1_200
