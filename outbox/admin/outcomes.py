"""What came of a dead letter, in words that scripts may rely on."""

from collections.abc import Mapping
from typing import Literal

from outbox.dead_letters import Action, ItemOutcome

Outcome = Literal["died-again", "refused", "not-found", "skipped", "pending", "requeued", "discarded", "restored", "purged"]
"""What came of a dead letter, in a word that scripts may rely on."""
_DONE: Mapping[Action, Outcome] = {
    Action.REQUEUE: "requeued",
    Action.DISCARD: "discarded",
    Action.RESTORE: "restored",
    Action.PURGE: "purged",
}
_OTHERS: Mapping[ItemOutcome, Outcome] = {
    ItemOutcome.DIED_AGAIN: "died-again",
    ItemOutcome.REFUSED: "refused",
    ItemOutcome.NOT_FOUND: "not-found",
    ItemOutcome.SKIPPED: "skipped",
    ItemOutcome.PENDING: "pending",
}


def outcome_word(action: Action, outcome: ItemOutcome) -> Outcome:
    """The word for what came of a dead letter."""
    return _DONE[action] if outcome is ItemOutcome.DONE else _OTHERS[outcome]


def outcome_of(word: Outcome, action: Action) -> ItemOutcome | None:
    """What the library calls it; None for what does not come of this action."""
    for outcome in ItemOutcome:
        if outcome_word(action, outcome) == word:
            return outcome
    return None
