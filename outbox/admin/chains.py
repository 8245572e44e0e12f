"""`GET /chains` and `GET /chains/{tracking_id}`."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import BeforeValidator, Field

from outbox.admin.access import Viewer, area
from outbox.admin.models import (
    Cursor,
    Direction,
    Error,
    Instant,
    Model,
    Moment,
    Page,
    Request,
    Text,
    decode_cursor,
    invalid_cursor,
)
from outbox.admin.problems import Code, Problem, problem_responses
from outbox.chains import MOST_NODES, AttemptOutcome, ChainState, WaitReason, chain
from outbox.chains.model import masked
from outbox.chains.pages import ChainFilter, read_page
from outbox.chains.traces import MOST_ATTEMPTS, ChainListReader, Position, TimeRange
from outbox.masking import Masking
from outbox.postgres.pool import unavailable_errors

Length = Annotated[
    float, BeforeValidator(lambda value: value.total_seconds() if isinstance(value, timedelta) else value), Field(ge=0)
]
"""A length of time, which the library has as a timedelta, in seconds."""


_AS_ERROR = BeforeValidator(lambda text: None if text is None else Error(type="", message=text))


class ChainAttempt(Model):
    """One attempt of a handler."""

    ended_at: Moment | None = Field(validation_alias="at")
    attempt: int
    outcome: AttemptOutcome = Field(description="`duplicate`: it had been handled before.")
    handling_seconds: Length | None = Field(validation_alias="handling", description="How long the handler ran.")
    error: Error | None
    component: str = Field(description="The worker that it ran in.")


class QueueAttempt(ChainAttempt):
    """One attempt of a queue's handler, and the message that it was of."""

    message_id: str
    root_id: str = Field(description="The beginning of its chain.")
    routing_key: str
    waited_seconds: Length | None = Field(
        validation_alias="waited", description="From when it was published until the handler began, with earlier attempts."
    )


class QueueAttemptsResponse(Model):
    """Attempts of a queue's handler."""

    after: Moment
    before: Moment
    examined: int | None = Field(description="With the order `slowest`: of so many latest attempts at most.")
    items: list[QueueAttempt]


class QueueAttemptParameters(Request):
    """What `GET /attempts` takes."""

    queue: Annotated[Text, Field(min_length=1, max_length=255)]
    order: Annotated[
        Literal["latest", "slowest"], Field(description="`slowest`: the longest first, of the latest 20,000 of that time.")
    ] = "latest"
    outcome: Annotated[tuple[AttemptOutcome, ...], Field(description="One of these; otherwise all.")] = ()
    after: Annotated[Instant | None, Field(description="Ended then or later; otherwise in the hour until `before`.")] = None
    before: Annotated[Instant | None, Field(description="Ended before then; otherwise until now.")] = None
    limit: Annotated[int, Field(ge=1, le=200, description="At most so many items.")] = 20


class DeliveryWait(Model):
    """Why a delivery waits."""

    reason: WaitReason = Field(
        description="`paused`; `no_consumer`: no worker consumes the queue; `failing`: its worker pauses itself because its "
        "handler fails; `retry`: its next attempt is due later; `behind`: others are due before it; `next`: no worker has "
        "taken it yet."
    )
    text: str = Field(description="The same in words.")
    ahead_count: int | None = Field(
        validation_alias="ahead", description="How many are due before it, up to 10,001; null: no data, as on RabbitMQ."
    )
    paused_by: str | None
    paused_at: Moment | None
    pause_reason: str | None


class ChainDelivery(Model):
    """The delivery of a message to one queue."""

    queue: str
    state: ChainState
    attempt_count: int
    received_at: Moment | None = Field(description="When a handler began with it first.")
    waited_seconds: Length | None = Field(validation_alias="waited", description="In the broker, before the first attempt.")
    handling_seconds: Length | None = Field(
        validation_alias="handling", description="How long handlers ran, all attempts together."
    )
    due_at: Moment | None = Field(description="When it is tried again; of RabbitMQ known only where the delays are fixed.")
    waiting: DeliveryWait | None = Field(description="Why it waits in the queue; null: it does not.")
    attempts: list[ChainAttempt] = Field(description="Those on record, oldest first.")


class ChainMessage(Model):
    """One message: its time in the outbox, then its delivery to each queue."""

    id: str
    parent_id: str | None = Field(description="The message whose handling published it.")
    depth: int = Field(description="0 for the beginning of a chain.")
    state: ChainState = Field(description="The most urgent of its deliveries', or what it waits for in the outbox.")
    routing_key: str
    published_at: Moment | None
    sent_at: Moment | None = Field(description="When it left the outbox.")
    waited_seconds: Length | None = Field(validation_alias="waited", description="In the outbox.")
    due_at: Moment | None = Field(description="When it is sent, for a message that waits for its time.")
    held_at: Moment | None = Field(description="Since when it is unroutable, or its route is stalled.")
    relay: str
    last_error: Annotated[Error | None, _AS_ERROR] = Field(description="What keeps it in the outbox.")
    requeue_count: int = Field(description="How often it was sent again after it had failed for good.")
    deliveries: list[ChainDelivery]


class ChainResponse(Model):
    """A tree of messages as a list: each after its parent, and before its next sibling."""

    root_id: str
    state: ChainState = Field(description="The worst of any message's.")
    duration_seconds: Length | None = Field(
        validation_alias="duration", description="Time from its first to its last recorded event."
    )
    critical_path: list[str] = Field(description="The ids from the beginning to the message to which something happened last.")
    truncated: bool = Field(description="There are more messages: ask for more with `max_nodes`.")
    gaps: list[str] = Field(validation_alias="unknown", description="What is not on record, and why, as sentences.")
    nodes: list[ChainMessage]


class ChainSummary(Model):
    """A chain in a list, from its first 200 facts of the history."""

    root_id: str
    routing_key: str = Field(description="The routing key of its first message.")
    state: ChainState = Field(description="The worst state of its messages in the history.")
    sent_at: Moment | None = Field(description="When its first message left the outbox.")
    last_activity_at: Moment | None = Field(validation_alias="last_at", description="When something last happened.")
    duration_seconds: Length | None = Field(validation_alias="duration", description="From the one to the other.")
    message_count: int = Field(validation_alias="messages", description="How many of its messages are on record.")
    dead_letter_count: int = Field(validation_alias="deaths")
    truncated: bool = Field(
        validation_alias="more", description="There are more facts than were looked at: the numbers are those of the first 200."
    )


class ChainPage(Page[ChainSummary]):
    """Chains, the newest first. Under a filter a page may hold fewer than asked for, though `next` leads on."""


LONGEST_ID = 4_000
"""Most characters of an id: servers refuse an address of more than 64 KiB, and a character may take twelve bytes of it."""

router = area("chains")


class ChainParameters(Request):
    """What `GET /chains/{tracking_id}` takes."""

    id: Annotated[
        str | None,
        Field(min_length=1, max_length=LONGEST_ID, description="The id, in place of one that a path cannot carry: `..`"),
    ] = None
    max_nodes: Annotated[int, Field(ge=1, le=MOST_NODES, description="Most messages that are answered.")] = 500


class ChainListParameters(Request):
    """What `GET /chains` takes."""

    routing_key: Annotated[Text | None, Field(description="That of the first message, exactly.")] = None
    state: Annotated[
        ChainState | None,
        Field(description="The worst state of its messages."),
    ] = None
    sent_after: Annotated[Instant | None, Field(description="Its first message was sent then or later.")] = None
    sent_before: Annotated[Instant | None, Field(description="Its first message was sent before then.")] = None
    limit: Annotated[int, Field(ge=1, le=200, description="At most so many items.")] = 50
    cursor: Annotated[
        str | None, Field(max_length=2_000, description="`next` or `previous` of a page before; with its filter.")
    ] = None

    def bound_to(self) -> Mapping[str, Any]:
        """What says which filter this is."""
        return {"chains": True, **self.model_dump(exclude={"limit", "cursor"}, exclude_none=True)}


@router.get(
    "/chains", operation_id="outbox_chains_list", responses=problem_responses(Code.INVALID_CURSOR, Code.CURSOR_MISMATCH)
)
async def list_chains(context: Viewer, wanted: Annotated[ChainListParameters, Query()]) -> ChainPage:
    """Lists the latest chains, newest first: how each began, its worst state, and how long it took.

    Chains are found in the history: messages that are still in the outbox, or whose history was pruned, are not included.
    """
    bound_to = wanted.bound_to()
    cursor = decode_cursor(wanted.cursor, bound_to, (str, int))
    place = None
    if cursor is not None:
        # What a cursor says may be anything, since clients can make their own.
        at, hash_ = cursor.keys
        try:
            place = Position(datetime.fromisoformat(at).astimezone(UTC), hash_)
        except (ValueError, OverflowError):
            raise invalid_cursor() from None
        if abs(hash_) >= _TOO_LARGE:
            raise invalid_cursor()
    filter_ = ChainFilter(
        routing_key=wanted.routing_key,
        state=wanted.state,
        after=wanted.sent_after,
        before=wanted.sent_before,
    )
    async with context.admin.reading("listing chains") as connection:
        page = await read_page(
            ChainListReader(connection, context.admin.table),
            filter_,
            wanted.limit,
            place,
            backwards=cursor is not None and cursor.direction == "previous",
        )
    return ChainPage(
        items=[ChainSummary.model_validate(item) for item in page.items],
        next=_cursor("next", page.next, bound_to),
        previous=_cursor("previous", page.previous, bound_to),
    )


@router.get("/chains/{tracking_id:path}", operation_id="outbox_chains_show", responses=problem_responses(Code.NOT_FOUND))
async def show_chain(
    context: Viewer,
    tracking_id: Annotated[str, Path(description="The id of any message of the chain.", max_length=LONGEST_ID)],
    wanted: Annotated[ChainParameters, Query()],
) -> ChainResponse:
    """Shows the whole chain of a message: its causes, its effects, and the outcome of each.

    Times are those of the database. A message that is only named by others has the state `unknown`.
    """
    with unavailable_errors("reading a chain"):
        found = await chain(
            context.admin.pool,
            wanted.id or tracking_id,
            max_nodes=wanted.max_nodes,
            table_name=str(context.admin.table),
            bounded=True,
        )
    if not found.found:
        nothing = "nothing is known of that id: look at how it is written, and whether the history goes back that far"
        raise Problem(Code.NOT_FOUND, "; ".join((nothing, *found.unknown)))
    return ChainResponse.model_validate(masked(found, context.masking))


attempts = area("attempts")


@attempts.get("/attempts", operation_id="outbox_attempts_list", summary="List Attempts")
async def list_attempts(context: Viewer, wanted: Annotated[QueueAttemptParameters, Query()]) -> QueueAttemptsResponse:
    """Lists the latest, or the slowest, attempts of a queue's handler, with their messages.

    They are found in the history, where workers write it. Without a time it is the last hour.
    """
    before = wanted.before or datetime.now(UTC)
    after = wanted.after or before - timedelta(hours=1)
    is_slowest = wanted.order == "slowest"
    time_range, outcomes = TimeRange(after=after, before=before), wanted.outcome or tuple(AttemptOutcome)
    async with context.admin.reading("listing attempts") as connection:
        rows = await ChainListReader(connection, context.admin.table).attempts(
            wanted.queue, time_range, outcomes, wanted.limit, slowest=is_slowest
        )
    return QueueAttemptsResponse(
        after=after,
        before=before,
        examined=MOST_ATTEMPTS if is_slowest else None,
        items=[_attempt(row, context.masking) for row in rows],
    )


def _attempt(row: Mapping[str, Any], masking: Masking) -> QueueAttempt:
    error = None
    if row["error_type"] is not None:
        error = Error(type=masking.error_type(row["error_type"]), message=masking.error_text(row["error_message"] or ""))
    return QueueAttempt.model_validate(
        {
            **row,
            "outcome": AttemptOutcome.of_fact(row["fact"]),
            "attempt": row["attempt"] or 1,
            "handling": row["ran"],
            "error": error,
        }
    )


_TOO_LARGE = 2**63 - 1


def _cursor(direction: Direction, place: Position | None, bound_to: Mapping[str, Any]) -> str | None:
    return None if place is None else Cursor(direction, (place.at.isoformat(), place.hash)).encode(bound_to)
