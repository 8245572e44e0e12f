"""After any sequence of actions, dead letters and the outbox agree with a simple model."""

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from outbox.dead_letters import Action, DeadLetters, ItemOutcome, Repaired
from outbox.postgres.pool import open_pool
from tests.dead_letters.repairs import add_dead_letters, letters, outbox

LETTERS = 3
COME_BACK = "come back"
Step = tuple[Action | str, int, bool]

steps = st.lists(
    st.tuples(st.sampled_from([*Action, COME_BACK]), st.integers(1, LETTERS), st.booleans()), min_size=1, max_size=12
)


@dataclass(slots=True)
class Model:
    """State of each letter (None: purged), and the counts of its requeues."""

    states: dict[int, str | None] = field(default_factory=lambda: dict.fromkeys(range(1, LETTERS + 1), "open"))
    counts: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(1, LETTERS + 1), 0))
    sent: list[tuple[int, int]] = field(default_factory=list)

    def take(self, action: Action, letter: int, *, force: bool) -> ItemOutcome:
        """Applies `action` as documented."""
        match action, self.states[letter]:
            case _, None:
                return ItemOutcome.NOT_FOUND
            case Action.REQUEUE, "open":
                self.states[letter] = "requeued"
                self.sent.append((letter, self.counts[letter] + 1))
            case Action.DISCARD, "open":
                self.states[letter] = "discarded"
            case Action.RESTORE, "discarded":
                self.states[letter] = "open"
            case Action.PURGE, state if force or state == "discarded":
                self.states[letter] = None
            case Action.PURGE, _:
                return ItemOutcome.REFUSED
            case _:
                return ItemOutcome.SKIPPED
        return ItemOutcome.DONE

    def come_back(self, letter: int) -> None:
        """Dead-letters a requeued message again."""
        if self.states[letter] == "requeued":
            self.states[letter] = "open"
            self.counts[letter] += 1


@pytest.fixture
def url(database: str) -> str:
    """A database with every table."""
    return database


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps)
def test_states_and_outbox_are_what_the_model_says(url: str, given_steps: list[Step]) -> None:
    asyncio.run(_compare(url, given_steps))


async def _compare(url: str, given_steps: list[Step]) -> None:
    model = Model()
    pool = await open_pool(url, size=3, application_name="tests")
    await pool.execute("truncate outbox_table, outbox_dead_letter, outbox_dead_letter_edition, outbox_history restart identity")
    await add_dead_letters(pool, LETTERS)
    async with DeadLetters(db_pool=pool) as dead_letters:
        for action, letter, force in given_steps:
            if isinstance(action, Action):
                outcome = await _take(dead_letters, action, letter, force=force)
                assert outcome is model.take(action, letter, force=force)
            else:
                model.come_back(letter)
                await pool.execute(
                    "update outbox_dead_letter set status = 'open', requeue_count = requeue_count + 1, deaths = deaths + 1 "
                    "where id = $1 and status = 'requeued'",
                    letter,
                )
    states = {row["id"]: row["status"] for row in await letters(pool)}
    assert states == {letter: state for letter, state in model.states.items() if state is not None}
    assert [(int(row["message_id"][1:]), row["requeue_count"]) for row in await outbox(pool)] == model.sent
    await pool.close()


async def _take(dead_letters: DeadLetters, action: Action, letter: int, *, force: bool) -> ItemOutcome:
    options = {"force": force} if action in (Action.REQUEUE, Action.PURGE) else {}
    answer = await getattr(dead_letters, action.value)(str(letter), **options)
    assert isinstance(answer, Repaired)
    return answer.items[0].outcome
