"""`before_commit`: a callback that runs in the transaction of an action."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from outbox.dead_letters import DeadLetterFilter, DeadLetters, Edit, ItemOutcome, Operation, OperationState, Repaired
from outbox.errors import CountDriftedError, DatabaseUnavailableError, RefusedError
from outbox.postgres.pool import Connection, Pool
from tests.dead_letters.repairs import add_dead_letters, at_once, operation, outbox, park, statuses

ALL = DeadLetterFilter()


@pytest.fixture
async def dead_letters(database: str, pool: Pool) -> AsyncIterator[DeadLetters]:
    """The dead letters of the test's database, and a table `entry` for the callback to write to."""
    await pool.execute("create table entry (what text not null)")
    async with DeadLetters(database) as opened:
        yield opened


async def entries(pool: Pool) -> list[str]:
    """Rows that the callback has written."""
    return [row["what"] for row in await pool.fetch("select what from entry")]


async def write(connection: Connection, answer: Repaired | Operation) -> None:
    """Writes the result to the table."""
    said = f"{answer.done} at once" if isinstance(answer, Repaired) else f"{answer.state} {answer.total}"
    await connection.execute("insert into entry values ($1)", said)


async def write_and_raise(connection: Connection, answer: Repaired | Operation) -> None:
    """Writes the result to the table, and raises."""
    await write(connection, answer)
    raise LookupError("no")


async def test_before_commit_is_committed_together_with_the_action(pool: Pool, dead_letters: DeadLetters) -> None:
    ids = await add_dead_letters(pool, 4)
    await dead_letters.requeue(ids[0], before_commit=write)
    await dead_letters.discard(ids[1:], before_commit=write)
    await dead_letters.restore(ids[1:3], before_commit=write)
    await dead_letters.purge(ids[3], before_commit=write)
    number = operation(await dead_letters.requeue(ALL, before_commit=write)).id
    await dead_letters.pause(number, before_commit=write)
    await dead_letters.resume(number, before_commit=write)
    await dead_letters.cancel(number, before_commit=write)
    assert await entries(pool) == [
        "1 at once", "3 at once", "2 at once", "1 at once", "running 2", "paused 2", "running 2", "cancelled 2",
    ]  # fmt: skip


Ask = Callable[[DeadLetters, str, Any], Awaitable[object]]


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda dead, id_, before_commit: dead.requeue(id_, before_commit=before_commit), id="requeue"),
        pytest.param(lambda dead, id_, before_commit: dead.discard(id_, before_commit=before_commit), id="discard"),
        pytest.param(lambda dead, id_, before_commit: dead.purge(id_, force=True, before_commit=before_commit), id="purge"),
        pytest.param(lambda dead, id_, before_commit: dead.requeue(ALL, before_commit=before_commit), id="an operation"),
        pytest.param(
            lambda dead, id_, before_commit: dead.requeue(id_, edit=Edit(version=1, body={}), before_commit=before_commit),
            id="an edit",
        ),
    ],
)
async def test_an_error_of_also_rolls_the_action_back(pool: Pool, dead_letters: DeadLetters, ask: Ask) -> None:
    [id_] = await add_dead_letters(pool)
    with pytest.raises(LookupError):
        await ask(dead_letters, id_, write_and_raise)
    assert (await statuses(pool), await outbox(pool), await entries(pool)) == (["open"], [], [])
    assert await dead_letters.operations() == []
    assert await pool.fetchval("select body from outbox_dead_letter") == b'{"id": 7}'


async def test_an_error_of_also_leaves_an_operation_unchanged(pool: Pool, dead_letters: DeadLetters) -> None:
    await add_dead_letters(pool)
    number = operation(await dead_letters.requeue(ALL)).id
    for ask in (dead_letters.pause, dead_letters.cancel):
        with pytest.raises(LookupError):
            await ask(number, before_commit=write_and_raise)
    found = await dead_letters.operation(number)
    assert found is not None
    assert found.state is OperationState.RUNNING
    with pytest.raises(RefusedError):
        await dead_letters.resume(number, before_commit=write)
    assert await entries(pool) == []


async def test_an_error_of_the_driver_in_also_is_a_database_error(pool: Pool, dead_letters: DeadLetters) -> None:
    [id_] = await add_dead_letters(pool)

    async def divide(connection: Connection, answer: Repaired | Operation) -> None:
        await connection.execute("select 1 / 0")

    with pytest.raises(DatabaseUnavailableError):
        await dead_letters.requeue(id_, before_commit=divide)
    assert await statuses(pool) == ["open"]


async def test_before_commit_is_called_for_a_refused_edit(pool: Pool, dead_letters: DeadLetters) -> None:
    [id_] = await add_dead_letters(pool)
    await dead_letters.requeue(id_, edit=Edit(version=3, body={}), before_commit=write)
    assert await entries(pool) == ["0 at once"]


async def test_a_filter_that_matches_another_number_than_expected_does_nothing(pool: Pool, dead_letters: DeadLetters) -> None:
    await add_dead_letters(pool, 3)
    with pytest.raises(CountDriftedError) as raised:
        await dead_letters.discard(ALL, expected=2, before_commit=write)
    assert (raised.value.expected, raised.value.found) == (2, 3)
    assert (await dead_letters.operations(), await entries(pool)) == ([], [])
    assert operation(await dead_letters.discard(ALL, expected=2, max_items=2)).total == 2


async def test_max_items_takes_the_oldest_of_the_given_ids(pool: Pool, dead_letters: DeadLetters) -> None:
    ids, parked = await add_dead_letters(pool, 12), await park(pool)
    given = ["none", parked, *reversed(ids)]
    assert list(at_once(await dead_letters.discard(given, max_items=3))) == [ids[2], ids[1], ids[0]]
    assert len(at_once(await dead_letters.discard(given, max_items=12))) == 12
    assert at_once(await dead_letters.discard(["none", parked], max_items=1)) == {parked: (ItemOutcome.DONE, "")}
    # A dry run counts those of the oldest ones that would change, not others in their place.
    await dead_letters.restore([ids[2], ids[9]])
    plan = await dead_letters.plan("discard", ids, max_items=5)
    changed = at_once(await dead_letters.discard(ids, max_items=5, expected=plan.expected))
    assert (plan.count, [id_ for id_, (outcome, _) in changed.items() if outcome is ItemOutcome.DONE]) == (1, [ids[2]])


async def test_operations_are_read_page_by_page(pool: Pool, dead_letters: DeadLetters) -> None:
    await add_dead_letters(pool)
    for _ in range(5):
        number = operation(await dead_letters.requeue(ALL)).id
        await dead_letters.cancel(number)
    await dead_letters.requeue(ALL)

    async def page(**wanted: Any) -> list[int]:
        return [each.id for each in await dead_letters.operations(limit=2, **wanted)]

    assert [await page(), await page(before=5), await page(before=1)] == [[6, 5], [4, 3], []]
    assert [await page(after=2), await page(after=5), await page(after=6)] == [[4, 3], [6], []]
    assert [await page(active=True), await page(active=True, before=6)] == [[6], []]


async def test_the_documented_audit_is_committed_with_its_action(pool: Pool, dead_letters: DeadLetters) -> None:
    text = (Path(__file__).parents[2] / "docs" / "repair.md").read_text()
    names: dict[str, Any] = {}
    exec(text.split("```python\n")[2].split("```")[0], names)
    await pool.execute("create table audit (who text not null, what text not null)")
    await add_dead_letters(pool, 2)
    await names["discard"](dead_letters, ALL)
    assert await pool.fetchval("select what from audit") == "discarded operation 1"
