"""Response models of repairs: outcomes for each dead letter, operations with progress, dry runs."""

from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field

from outbox.admin.dlq.models import DeadLetterFilters, Outcome, error_of, outcome_word
from outbox.admin.models import Error, Model, Moment, Page, Seconds, ShapedAs
from outbox.admin.repairs.edits import encode_edit
from outbox.admin.repairs.once import IssuedToken
from outbox.dead_letters import (
    ORIGINAL_ROUTING,
    Action,
    DeadLetter,
    Edit,
    Item,
    ItemOutcome,
    Operation,
    OperationItem,
    OperationState,
    Plan,
    Repaired,
    ToQueue,
)
from outbox.dead_letters.actions import Options
from outbox.masking import Masking, preview


class ItemResponse(Model):
    """The outcome for one dead letter."""

    id: str
    outcome: Outcome
    reason: Annotated[str, Field(description="Why the action was not done. Empty if it was.")]
    done_already: Annotated[
        bool, Field(description="Whether it was skipped because it already is as the action would leave it.")
    ]

    @classmethod
    def of(cls, action: Action, item: Item) -> Self:
        """Converts an item."""
        word, done_already = outcome_word(action, item.outcome), item.is_done_already(action)
        return cls(id=item.id, outcome=word, reason=item.reason, done_already=done_already)


class RepairResponse(Model):
    """The outcome for each id, in the order of the request."""

    action: Action
    counts: dict[Outcome, int]
    items: list[ItemResponse]

    @classmethod
    def of(cls, repaired: Repaired) -> Self:
        """Converts the outcomes of a repair."""
        items = [ItemResponse.of(repaired.action, item) for item in repaired.items]
        counts: dict[Outcome, int] = {}
        for item in items:
            counts[item.outcome] = counts.get(item.outcome, 0) + 1
        return cls(action=repaired.action, counts=counts, items=items)


class CanaryResponse(Model):
    """Number of messages sent first, and the maximum time to wait for their results."""

    count: int
    wait_seconds: Seconds


class OperationOptions(Model):
    """Options of an operation."""

    destination: Annotated[str | None, Field(description="Destination queue. Null: the queue where each message failed.")]
    original_routing: Annotated[bool, Field(description="Whether the routing key decides, instead of one queue.")]
    rate_per_second: float | None
    canary: CanaryResponse | None
    stop_on_failure_ratio: Annotated[
        float | None,
        Field(description="As requested. Null: 0.1, and a canary stops at the first failed attempt. 1: never stop."),
    ]
    force: bool
    starts_at: Annotated[Moment | None, Field(description="Start time. Null: the time when the operation was created.")]
    max_items: Annotated[int | None, Field(description="Maximum number of dead letters, the oldest first.")]

    @classmethod
    def of(cls, options: Options) -> Self:
        """Converts the options that an operation stores."""
        canary, destination = options.canary, options.destination
        return cls(
            destination=destination.queue if isinstance(destination, ToQueue) else None,
            original_routing=destination == ORIGINAL_ROUTING,
            rate_per_second=options.rate,
            canary=None if canary is None else CanaryResponse(count=canary.count, wait_seconds=canary.wait.total_seconds()),
            stop_on_failure_ratio=options.stop_ratio,
            force=options.force,
            starts_at=options.starts_at,
            max_items=options.max_items,
        )


class OperationResults(Model):
    """Results of the messages that a requeue has sent. All counts except `failed` add up to `sent`.

    The counts stay current after the operation has ended.
    """

    sent: Annotated[int, Field(description="Messages put into the outbox again.")]
    waiting: Annotated[int, Field(description="Messages without a recorded attempt.")]
    retrying: Annotated[int, Field(description="Messages with a failed attempt that will be retried.")]
    handled: int
    failed_again: Annotated[int, Field(description="Messages that were dead-lettered again, or parked.")]
    unknown: Annotated[int, Field(description="Messages without data for seven days.")]
    failed: Annotated[int, Field(description="Messages with at least one failed attempt, even if they were handled later.")]


class OperationSelector(BaseModel):
    """Which dead letters were selected. Fields with a default may be missing."""

    ids: list[str] | None = Field(default=None, description="The selected ids; only the first ones if there are many.")
    count: int | None = Field(default=None, description="Number of selected ids.")
    filter: DeadLetterFilters | None = None


class OperationResponse(Model):
    """A change of many dead letters, which maintenance processes in batches: the request and its progress."""

    id: str
    action: Action
    state: OperationState
    active: bool = Field(description="Whether the operation is running or paused.")
    selector: Annotated[
        dict[str, object],
        ShapedAs(OperationSelector),
        Field(description="The requested selection, as resolved at `created_at`."),
    ]
    options: OperationOptions
    reason: str | None
    requested_by: str | None
    created_at: Moment
    updated_at: Moment
    finished_at: Moment | None
    next_batch_at: Annotated[Moment | None, Field(description="When the next batch is due. Null if none is.")]
    canary_started_at: Annotated[Moment | None, Field(description="When the wait for the results of the canary began.")]
    canary_ends_at: Annotated[Moment | None, Field(description="When this wait ends at the latest.")]
    item_count: Annotated[int, Field(description="Number of dead letters in the operation.")]
    settled_count: Annotated[int, Field(description="Items with an outcome, except those skipped when it ended early.")]
    progress: Annotated[float, Field(ge=0, le=1, description="Fraction of items with an outcome.")]
    counts: Annotated[dict[Outcome, int], Field(description="Number of items by outcome.")]
    failed_again_count: Annotated[int, Field(description="The same as `results.failed_again`.")]
    results: Annotated[OperationResults | None, Field(description="Results of requeued messages. Null if it is no requeue.")]
    items_per_second: Annotated[float | None, Field(description="Average rate, without waiting times.")]
    remaining_seconds: Annotated[float | None, Field(description="Estimated from the rate. Null if there is no estimate.")]
    stop_reason: Annotated[str | None, Field(description="Why the operation stopped itself. Null if it did not.")]

    @classmethod
    def of(cls, operation: Operation, *, now: datetime | None = None) -> Self:
        """Converts an operation. `now` is the time that rates and estimates refer to."""
        settled = operation.settled
        now = now or datetime.now(UTC)
        # The average rate since the start, without the wait for the canary.
        until = operation.finished_at or now
        worked = until - max(operation.created_at, operation.options.starts_at or operation.created_at)
        if operation.canary_since is not None and operation.canary_until is not None:
            worked -= max(min(until, operation.canary_until) - operation.canary_since, timedelta(0))
        speed = round(settled / worked.total_seconds(), 3) if worked > timedelta(0) and settled else None
        running = operation.state is OperationState.RUNNING
        # The actual rate may stay below the requested one. There is no estimate for the time until a canary has its results.
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
    """A dead letter of an operation."""

    reason: Annotated[str, Field(description="Why the action was not done, or the error of the new attempt.")]
    position: int
    result: Annotated[Result | None, Field(description="Result of the requeued message. Null if it was not requeued.")]
    failed_attempt_count: Annotated[int, Field(description="Number of failed attempts since the requeue.")]

    @classmethod
    def at(cls, action: Action, item: OperationItem) -> Self:
        """Converts an item of an operation."""
        word = outcome_word(action, item.item.outcome)
        result = None if item.result is None else item.result.name.lower()
        return cls.model_validate(
            {
                "id": item.item.id,
                "outcome": word,
                "reason": item.item.reason,
                "done_already": item.item.is_done_already(action),
                "position": item.position,
                "result": result,
                "failed_attempt_count": item.failed_attempts,
            }
        )


class OperationPage(Page[OperationResponse]):
    """One page of the operations, newest first."""


class OperationItemPage(Page[OperationItemResponse]):
    """One page of an operation's items with their outcomes, failed items first."""


class SampledItem(Model):
    """A matching dead letter, with its preview and error masked."""

    id: str
    queue: str
    routing_key: str
    error: Error
    failed_at: Moment
    size: int
    preview: str

    @classmethod
    def of(cls, letter: DeadLetter, masking: Masking, edit: Edit | None) -> Self:
        """Converts a dead letter whose message and preview are already masked. With `edit`, has its new body.

        Raises `invalid_edit` for a body that cannot be stored.
        """
        shown, size = letter.preview, letter.size
        if edit is not None and edit.body is not None:
            body, content_type = encode_edit(letter, edit)
            shown, size = preview(body, content_type, masking.of_message(body)), len(body)
        return cls(
            id=letter.id,
            queue=letter.queue,
            routing_key=letter.routing_key,
            error=error_of(letter, masking),
            failed_at=letter.failed_at,
            size=size,
            preview=shown,
        )


class DryRunResponse(Model):
    """Result of a dry run: what the request would do now, and the token that confirms it."""

    dry_run: Literal[True] = True
    action: Action
    count: Annotated[int, Field(description="Number of matching dead letters.")]
    by_queue: dict[str, int]
    by_exception: dict[str, int]
    sample: Annotated[list[SampledItem], Field(description="The first matching dead letters.")]
    warnings: Annotated[list[str], Field(description="Risks to consider before you confirm.")]
    confirm_token: Annotated[str, Field(description="Send it with the same request to apply it. Valid once.")]
    expires_at: Moment

    @classmethod
    def of(cls, plan: Plan, token: IssuedToken, masking: Masking, edit: Edit | None) -> Self:
        """Converts a plan, with its token, and the edit that belongs to the request."""
        by_exception = Counter[str]()
        for type_, count in plan.by_exception.items():
            by_exception[masking.masked_text(type_)] += count
        return cls(
            action=plan.action,
            count=plan.count,
            by_queue=dict(plan.by_queue),
            by_exception=dict(by_exception),
            sample=[SampledItem.of(letter, masking, edit) for letter in plan.sample],
            warnings=list(plan.warnings),
            confirm_token=token.token,
            expires_at=token.expires_at,
        )
