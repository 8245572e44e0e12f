"""Responses about repairs: results for each dead letter, operations with progress, dry runs."""

from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field

from outbox.admin.dlq.models import DeadLetterFilters, Outcome, error_of, outcome_word
from outbox.admin.models import Error, Model, Moment, Page, ShapedAs
from outbox.admin.repairs.once import IssuedToken
from outbox.admin.repairs.requests import OperationOptions
from outbox.dead_letters import (
    Action,
    DeadLetter,
    Item,
    ItemOutcome,
    Operation,
    OperationItem,
    OperationState,
    Plan,
    Repaired,
)
from outbox.masking import Masking


class ItemResponse(Model):
    """One dead letter's part."""

    id: str
    outcome: Outcome
    reason: Annotated[str, Field(description="Why it was not done; empty if it was.")]

    @classmethod
    def of(cls, action: Action, item: Item) -> Self:
        """What came of `item`."""
        return cls(id=item.id, outcome=outcome_word(action, item.outcome), reason=item.reason)


class RepairResponse(Model):
    """The outcome for each id, in the order of the request."""

    action: Action
    counts: dict[Outcome, int]
    items: list[ItemResponse]

    @classmethod
    def of(cls, repaired: Repaired) -> Self:
        """What came of each."""
        items = [ItemResponse.of(repaired.action, item) for item in repaired.items]
        counts: dict[Outcome, int] = {}
        for item in items:
            counts[item.outcome] = counts.get(item.outcome, 0) + 1
        return cls(action=repaired.action, counts=counts, items=items)


class OperationResults(Model):
    """How many messages a requeue has sent again, and their results, which add up to `sent`.

    They are also kept current after the end of the operation.
    """

    sent: Annotated[int, Field(description="How many were put into the outbox again.")]
    waiting: Annotated[int, Field(description="No attempt is on record yet.")]
    retrying: Annotated[int, Field(description="An attempt failed, and another one follows.")]
    handled: int
    failed_again: Annotated[int, Field(description="Dead-lettered again, or parked.")]
    unknown: Annotated[int, Field(description="No data for seven days.")]
    failed: Annotated[int, Field(description="Of all of them, those of which any attempt failed, also if handled since.")]


class OperationSelector(BaseModel):
    """Which dead letters were selected. Fields with a default may be missing."""

    ids: list[str] | None = Field(default=None, description="Of many the first.")
    count: int | None = Field(default=None, description="How many ids there were.")
    filter: DeadLetterFilters | None = None


class OperationResponse(Model):
    """A change of many dead letters, made in batches wherever maintenance runs: what was asked for, and how far it is."""

    id: str
    action: Action
    state: OperationState
    active: bool = Field(description="Whether it has not ended: it is running or paused.")
    selector: Annotated[
        dict[str, object],
        ShapedAs(OperationSelector),
        Field(description="What was selected. The dead letters were fixed at `created_at`."),
    ]
    options: OperationOptions
    reason: str | None
    requested_by: str | None
    created_at: Moment
    updated_at: Moment
    finished_at: Moment | None
    next_batch_at: Annotated[Moment | None, Field(description="When the next batch is due; null when none is.")]
    canary_started_at: Annotated[Moment | None, Field(description="Since then it waits for the results of the canary.")]
    canary_ends_at: Annotated[
        Moment | None, Field(description="Until then it waits for them at most; in the past, once the canary passed.")
    ]
    item_count: Annotated[int, Field(description="How many dead letters it is for.")]
    settled_count: Annotated[
        int, Field(description="How many of its items have an outcome, without those left out when it was ended.")
    ]
    progress: Annotated[float, Field(ge=0, le=1, description="The share of them.")]
    counts: Annotated[dict[Outcome, int], Field(description="How many items ended with each outcome.")]
    failed_again_count: Annotated[
        int, Field(description="How many of those that were requeued failed again: `results.failed_again`.")
    ]
    results: Annotated[
        OperationResults | None, Field(description="The results of the messages that it sent again; null: it sends none.")
    ]
    items_per_second: Annotated[float | None, Field(description="Since it was asked for, until its end.")]
    remaining_seconds: Annotated[float | None, Field(description="Estimated from its progress; null: no estimate.")]
    stop_reason: Annotated[str | None, Field(description="Why it stopped itself; null: it did not.")]

    @classmethod
    def of(cls, operation: Operation, *, now: datetime | None = None) -> Self:
        """The operation, as it is `now`."""
        settled = operation.settled
        now = now or datetime.now(UTC)
        speed = _speed(operation, settled, now)
        running = operation.state is OperationState.RUNNING
        # At the rate that was asked for, or slower if it shows so. How long a canary's results take is not known.
        speeds = [each for each in (operation.options.rate, speed) if each]
        is_predictable = running and bool(speeds) and not (operation.canary_until is not None and operation.canary_until > now)
        return cls(
            id=str(operation.id),
            action=operation.action,
            state=operation.state,
            active=not operation.ended,
            selector=dict(operation.selector),
            options=OperationOptions.of(operation.options),
            reason=operation.reason,
            requested_by=operation.requested_by,
            created_at=operation.created_at,
            updated_at=operation.updated_at,
            finished_at=operation.finished_at,
            next_batch_at=operation.continue_at if running else None,
            canary_started_at=operation.canary_since,
            canary_ends_at=operation.canary_until,
            item_count=operation.total,
            settled_count=settled,
            progress=settled / operation.total if operation.total else 1.0,
            counts={outcome_word(operation.action, outcome): count for outcome, count in operation.counts.items()},
            failed_again_count=operation.counts.get(ItemOutcome.FAILED_AGAIN, 0),
            results=OperationResults(**asdict(operation.results)) if operation.action is Action.REQUEUE else None,
            items_per_second=speed,
            remaining_seconds=round(operation.pending / min(speeds), 1) if is_predictable else None,
            stop_reason=operation.stopped_because,
        )


Result = Literal["waiting", "retrying", "handled", "failed_again", "unknown"]


class OperationItemResponse(ItemResponse):
    """One dead letter of an operation, at its position in it."""

    reason: Annotated[str, Field(description="Why it was not done; of a message that failed again or is retried, the error.")]
    position: int
    result: Annotated[Result | None, Field(description="The result of its message; null: none was sent.")]
    failed_attempt_count: Annotated[int, Field(description="How many attempts failed since it was sent again.")]

    @classmethod
    def at(cls, action: Action, item: OperationItem) -> Self:
        """What came of the letter there."""
        word = outcome_word(action, item.item.outcome)
        result = None if item.result is None else item.result.name.lower()
        return cls.model_validate(
            {
                "id": item.item.id,
                "outcome": word,
                "reason": item.item.reason,
                "position": item.position,
                "result": result,
                "failed_attempt_count": item.failed_attempts,
            }
        )


class OperationPage(Page[OperationResponse]):
    """Operations, the newest first."""


class OperationItemPage(Page[OperationItemResponse]):
    """The items of an operation with their outcomes, those that failed first."""


class SampledItem(Model):
    """One of the matches; its preview and error are masked."""

    id: str
    queue: str
    routing_key: str
    error: Error
    failed_at: Moment
    size: int
    preview: str

    @classmethod
    def of(cls, letter: DeadLetter, masking: Masking) -> Self:
        """What one needs to see of it; message and preview are masked already."""
        return cls(
            id=letter.id,
            queue=letter.queue,
            routing_key=letter.routing_key,
            error=error_of(letter, masking),
            failed_at=letter.failed_at,
            size=letter.size,
            preview=letter.preview,
        )


class DryRunResponse(Model):
    """What would be done now, and the token that lets it be done."""

    dry_run: Literal[True] = True
    action: Action
    count: Annotated[int, Field(description="How many match.")]
    by_queue: dict[str, int]
    by_exception: dict[str, int]
    sample: Annotated[list[SampledItem], Field(description="The first of them.")]
    warnings: Annotated[list[str], Field(description="What to think of before.")]
    confirm_token: Annotated[str, Field(description="Good once, for the same request of the same person.")]
    expires_at: Moment

    @classmethod
    def of(cls, plan: Plan, issue_token: IssuedToken, masking: Masking) -> Self:
        """What `plan` says, with its token."""
        by_exception = Counter[str]()
        for type_, count in plan.by_exception.items():
            by_exception[masking.masked_text(type_)] += count
        return cls(
            action=plan.action,
            count=plan.count,
            by_queue=dict(plan.by_queue),
            by_exception=dict(by_exception),
            sample=[SampledItem.of(letter, masking) for letter in plan.sample],
            warnings=list(plan.warnings),
            confirm_token=issue_token.token,
            expires_at=issue_token.expires_at,
        )


def _speed(operation: Operation, settled: int, now: datetime) -> float | None:
    """Letters a second since it was created, without the wait for its canary."""
    until = operation.finished_at or now
    worked = until - max(operation.created_at, operation.options.starts_at or operation.created_at)
    if operation.canary_since is not None and operation.canary_until is not None:
        worked -= max(min(until, operation.canary_until) - operation.canary_since, _NONE)
    return round(settled / worked.total_seconds(), 3) if worked > _NONE and settled else None


_NONE = timedelta(0)
