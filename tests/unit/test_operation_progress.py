"""How fast an operation is, and how long it will take: without the pause behind its canary, and never faster than it is."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from outbox.admin.repairs.models import OperationResponse
from outbox.dead_letters import Action, Canary, ItemOutcome, Operation, OperationState
from outbox.dead_letters.actions import Options

START = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def operation(
    *, done: int, rate: float | None = None, canary: Canary | None = None, until: datetime | None = None
) -> Operation:
    return Operation(
        id=1,
        action=Action.REQUEUE,
        state=OperationState.RUNNING,
        selector={},
        options=Options(rate=rate, canary=canary),
        reason=None,
        requested_by=None,
        created_at=START,
        updated_at=START,
        finished_at=None,
        continue_at=START,
        canary_since=None if until is None else START,
        canary_until=until,
        total=1_000,
        counts={ItemOutcome.DONE: done, ItemOutcome.PENDING: 1_000 - done},
        stopped_because=None,
    )


@pytest.mark.parametrize(
    ("running", "after", "speed", "left"),
    [
        (operation(done=0), MINUTE, None, None),
        (operation(done=600), MINUTE, 10.0, 40.0),
        (operation(done=0, rate=5), MINUTE, None, 200.0),
        (operation(done=600, rate=1_000_000), MINUTE, 10.0, 40.0),
        (operation(done=10, canary=Canary(10, MINUTE), until=START + 2 * MINUTE), 1.5 * MINUTE, None, None),
        (operation(done=610, canary=Canary(10, MINUTE), until=START + MINUTE), 2 * MINUTE, 10.167, 390 / 10.167),
    ],
    ids=["not begun", "at its speed", "at the rate", "slower than the rate", "while it waits for its canary", "after it"],
)
def test_what_is_left(running: Operation, after: timedelta, speed: float | None, left: float | None) -> None:
    answer = OperationResponse.of(running, now=START + after)
    assert answer.items_per_second == speed
    assert answer.remaining_seconds == (None if left is None else pytest.approx(left, abs=0.1))


@pytest.mark.parametrize(("state", "got_to"), [("stopped", 10), ("cancelled", 10), ("finished", 40)])
def test_what_it_left_out_when_it_was_ended_is_not_counted_as_done(state: str, got_to: int) -> None:
    counts = {ItemOutcome.FAILED_AGAIN: 6, ItemOutcome.DONE: 4, ItemOutcome.SKIPPED: 30}
    ended = replace(operation(done=0), state=OperationState(state), finished_at=START + MINUTE, total=40, counts=counts)
    answer = OperationResponse.of(ended)
    assert (answer.settled_count, answer.progress) == (got_to, got_to / 40)
    assert answer.items_per_second == round(got_to / 60, 3)
