"""`GET /chains` and `GET /chains/{tracking_id}`."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import BeforeValidator, Field

from outbox.admin.access import ANY_TEXT, Viewer, area
from outbox.admin.admin import Admin
from outbox.admin.models import (
    Cursor,
    Direction,
    Error,
    ExternalLinks,
    Instant,
    Model,
    Moment,
    Page,
    Request,
    Text,
    TraceId,
    decode_cursor,
    invalid_cursor,
)
from outbox.admin.problems import Code, Problem, problem_responses
from outbox.chains import MOST_NODES, AttemptOutcome, ChainState, WaitReason, chain
from outbox.chains.model import masked
from outbox.chains.pages import ChainFilter, read_page
from outbox.chains.traces import MOST_ATTEMPTS, ChainListReader, Position, TimeRange
from outbox.postgres.pool import unavailable_errors

Duration = Annotated[
    float, BeforeValidator(lambda value: value.total_seconds() if isinstance(value, timedelta) else value), Field(ge=0)
]
"""A duration in seconds, converted from a timedelta."""


_AS_ERROR = BeforeValidator(lambda text: None if text is None else Error(type="", message=text))


def _no_links() -> ExternalLinks:
    return ExternalLinks(log_url=None, trace_url=None)


class ChainAttempt(Model):
    """One attempt of a handler."""

    ended_at: Moment | None = Field(validation_alias="at")
    attempt: int
    outcome: AttemptOutcome = Field(description="`duplicate`: the message had been handled before.")
    handling_seconds: Duration | None = Field(validation_alias="handling", description="How long the handler ran.")
    error: Error | None
    component: str = Field(description="The worker that ran the handler.")
    trace_id: str | None = Field(
        description="Trace of the attempt: 32 hexadecimal digits. It may be another one than that of its message. Null if the "
        "trace is not sampled, or the history of the attempt is missing."
    )
    external: ExternalLinks = Field(default_factory=_no_links)


class QueueAttempt(ChainAttempt):
    """One attempt of a queue's handler, with its message."""

    message_id: str
    root_id: str = Field(description="The id of the first message of its chain.")
    routing_key: str
    waited_seconds: Duration | None = Field(
        validation_alias="waited", description="Time from publishing to the start of the handler, including earlier attempts."
    )


class QueueAttemptsResponse(Model):
    """Attempts of a queue's handler."""

    after: Moment
    before: Moment
    examined: int | None = Field(description="With `order=slowest`: largest number of latest attempts searched.")
    items: list[QueueAttempt]


class QueueAttemptParameters(Request):
    """Query parameters of `GET /attempts`."""

    queue: Annotated[Text, Field(min_length=1, max_length=255)]
    order: Annotated[
        Literal["latest", "slowest"], Field(description="`slowest`: longest first, of the latest 20,000 in the time range.")
    ] = "latest"
    outcome: Annotated[tuple[AttemptOutcome, ...], Field(description="Attempts with any of these outcomes. Default: all.")] = ()
    after: Annotated[Instant | None, Field(description="Ended at this time or later. Default: `before` minus 1 h.")] = None
    before: Annotated[Instant | None, Field(description="Ended before this time. Default: now.")] = None
    limit: Annotated[int, Field(ge=1, le=200, description="Maximum number of items.")] = 20


class DeliveryWait(Model):
    """The reason why a delivery waits."""

    reason: WaitReason = Field(
        description="`paused`: the queue or its worker is paused; `no_consumer`: no worker consumes the queue; `failing`: the "
        "worker pauses itself because the handler fails; `retry`: the next attempt is due later; `behind`: other messages are "
        "due before it; `next`: it is due, and no worker has taken it yet."
    )
    text: str = Field(description="The reason as a sentence.")
    ahead_count: int | None = Field(
        validation_alias="ahead", description="How many messages are due before it, up to 10,001; null on RabbitMQ."
    )
    paused_by: str | None
    paused_at: Moment | None
    pause_reason: str | None


class ChainDelivery(Model):
    """The delivery of a message to one queue."""

    queue: str
    state: ChainState
    attempt_count: int
    received_at: Moment | None = Field(description="When a handler first started on it.")
    waited_seconds: Duration | None = Field(
        validation_alias="waited", description="Time at the broker, before the first attempt."
    )
    handling_seconds: Duration | None = Field(
        validation_alias="handling", description="How long handlers ran, in all attempts together."
    )
    due_at: Moment | None = Field(description="When the next attempt is due. On RabbitMQ only for fixed delays.")
    waiting: DeliveryWait | None = Field(description="Why it waits in the queue; null: it does not wait.")
    attempts: list[ChainAttempt] = Field(description="Recorded attempts, oldest first.")


class ChainMessage(Model):
    """One message, and its delivery to each queue."""

    id: str
    parent_id: str | None = Field(description="The message whose handling published it.")
    depth: int = Field(description="0 for the first message of a chain.")
    state: ChainState = Field(description="The most urgent state of its deliveries, or its state in the outbox.")
    routing_key: str
    published_at: Moment | None
    sent_at: Moment | None = Field(description="When it left the outbox.")
    waited_seconds: Duration | None = Field(validation_alias="waited", description="Time in the outbox.")
    due_at: Moment | None = Field(description="When it will be sent, for a scheduled message.")
    held_at: Moment | None = Field(description="Since when it has been unroutable or stalled.")
    relay: str
    last_error: Annotated[Error | None, _AS_ERROR] = Field(description="The error that keeps it in the outbox.")
    requeue_count: int = Field(description="How often it was requeued after being dead-lettered.")
    trace_id: TraceId
    external: ExternalLinks = Field(default_factory=_no_links)
    deliveries: list[ChainDelivery]


class ChainResponse(Model):
    """A chain of messages, as a list in depth-first order: children follow their parent."""

    root_id: str
    state: ChainState = Field(description="The worst state of its messages.")
    duration_seconds: Duration | None = Field(
        validation_alias="duration", description="Time from its first to its last recorded event."
    )
    critical_path: list[str] = Field(description="Message ids from the first message to the one with the latest event.")
    truncated: bool = Field(description="True: there are more messages. Request them with a larger `max_nodes`.")
    gaps: list[str] = Field(validation_alias="unknown", description="Missing records and their reasons, as sentences.")
    nodes: list[ChainMessage]


class ChainSummary(Model):
    """A chain in a list, from the first 200 entries of its history."""

    root_id: str
    routing_key: str = Field(description="The routing key of its first message.")
    state: ChainState = Field(description="The worst state of its messages in the history.")
    sent_at: Moment | None = Field(description="When its first message left the outbox.")
    last_activity_at: Moment | None = Field(validation_alias="last_at", description="Time of its latest event.")
    duration_seconds: Duration | None = Field(
        validation_alias="duration", description="Time from `sent_at` to `last_activity_at`."
    )
    message_count: int = Field(validation_alias="messages", description="How many of its messages are in the history.")
    dead_letter_count: int
    truncated: bool = Field(validation_alias="more", description="True: the numbers cover only the first 200 entries.")


class ChainPage(Page[ChainSummary]):
    """Chains, newest first. With a filter, a page may have fewer items than `limit` even if there are more pages."""


LONGEST_ID = 4_000
"""Characters of an id. Servers refuse a URL above 64 KiB, and one character takes up to twelve bytes in it."""

router = area("chains")


class ChainParameters(Request):
    """Query parameters of `GET /chains/{tracking_id}`."""

    id: Annotated[
        str | None, Field(min_length=1, max_length=LONGEST_ID, description="The id, if a path cannot contain it: `..`")
    ] = None
    max_nodes: Annotated[int, Field(ge=1, le=MOST_NODES, description="Maximum number of messages.")] = 500


class ChainListParameters(Request):
    """Query parameters of `GET /chains`."""

    routing_key: Annotated[Text | None, Field(description="Exact routing key of the first message.")] = None
    state: Annotated[ChainState | None, Field(description="The worst state of its messages.")] = None
    sent_after: Annotated[Instant | None, Field(description="The first message was sent at this time or later.")] = None
    sent_before: Annotated[Instant | None, Field(description="The first message was sent before this time.")] = None
    limit: Annotated[int, Field(ge=1, le=200, description="Maximum number of items.")] = 50
    cursor: Annotated[
        str | None, Field(max_length=2_000, description="`next` or `previous` of an earlier page with the same filter.")
    ] = None

    def bound_to(self) -> Mapping[str, Any]:
        """Returns the filter that a cursor belongs to."""
        return {"chains": True, **self.model_dump(exclude={"limit", "cursor"}, exclude_none=True)}


@router.get(
    "/chains", operation_id="outbox_chains_list", responses=problem_responses(Code.INVALID_CURSOR, Code.CURSOR_MISMATCH)
)
async def list_chains(context: Viewer, parameters: Annotated[ChainListParameters, Query()]) -> ChainPage:
    """Lists chains, newest first, each with its first message, its worst state, and its duration.

    Reads the history: chains that are still in the outbox, or whose history was pruned, are missing.
    """
    bound_to = parameters.bound_to()
    cursor = decode_cursor(parameters.cursor, bound_to, (str, int))
    place = None
    if cursor is not None:
        # Cursors are not signed: a client can put any value into one.
        at, hash_ = cursor.keys
        try:
            place = Position(datetime.fromisoformat(at).astimezone(UTC), hash_)
        except (ValueError, OverflowError):
            raise invalid_cursor() from None
        # A number beyond bigint would fail in PostgreSQL: 500 instead of 400.
        if abs(hash_) >= _HASH_LIMIT:
            raise invalid_cursor()
    filter_ = ChainFilter(
        routing_key=parameters.routing_key,
        state=parameters.state,
        after=parameters.sent_after,
        before=parameters.sent_before,
    )
    async with context.admin.reading("listing chains") as connection:
        page = await read_page(
            ChainListReader(connection, context.admin.table),
            filter_,
            parameters.limit,
            place,
            backwards=cursor is not None and cursor.direction == "previous",
        )
    return ChainPage(
        items=[ChainSummary.model_validate(item) for item in page.items],
        next=_cursor("next", page.next, bound_to),
        previous=_cursor("previous", page.previous, bound_to),
    )


@router.get(
    f"/chains/{{tracking_id:{ANY_TEXT}}}", operation_id="outbox_chains_show", responses=problem_responses(Code.NOT_FOUND)
)
async def show_chain(
    context: Viewer,
    tracking_id: Annotated[str, Path(description="The id of any message of the chain.", max_length=LONGEST_ID)],
    parameters: Annotated[ChainParameters, Query()],
) -> ChainResponse:
    """Shows the chain of a message: causes, effects, and the outcome of each.

    Times are database times. A message that only other messages refer to has the state `unknown`.
    """
    with unavailable_errors("reading a chain"):
        found = await chain(
            context.admin.pool,
            parameters.id or tracking_id,
            max_nodes=parameters.max_nodes,
            table_name=str(context.admin.table),
            bounded=True,
        )
    if not found.found:
        problem = "no chain found for this id: check its spelling, and how long the history is kept"
        raise Problem(Code.NOT_FOUND, "; ".join((problem, *found.unknown)))
    answer = ChainResponse.model_validate(masked(found, context.masking))
    return answer.model_copy(update={"nodes": [_with_links(context.admin, answer.root_id, node) for node in answer.nodes]})


def _with_links(admin: Admin, root_id: str, node: ChainMessage) -> ChainMessage:
    """Adds the external links of a message and of its attempts."""
    facts = {"message_id": node.id, "root_id": root_id, "routing_key": node.routing_key}
    deliveries = [
        delivery.model_copy(
            update={
                "attempts": [
                    attempt.model_copy(
                        update={"external": _links(admin, **facts, queue=delivery.queue, trace_id=attempt.trace_id)}
                    )
                    for attempt in delivery.attempts
                ]
            }
        )
        for delivery in node.deliveries
    ]
    return node.model_copy(update={"external": _links(admin, **facts, trace_id=node.trace_id), "deliveries": deliveries})


def _links(admin: Admin, **facts: str | None) -> ExternalLinks:
    return ExternalLinks(**admin.external(**facts))


attempts = area("attempts")


@attempts.get("/attempts", operation_id="outbox_attempts_list", summary="List Attempts")
async def list_attempts(context: Viewer, parameters: Annotated[QueueAttemptParameters, Query()]) -> QueueAttemptsResponse:
    """Lists the latest or slowest attempts of a queue's handler, with their messages.

    Reads the history, so workers must record it. The default time range is the last hour.
    """
    masking = context.masking
    before = parameters.before or datetime.now(UTC)
    # Not before the year 1.
    after = parameters.after or max(before, _FIRST_HOUR) - timedelta(hours=1)
    is_slowest = parameters.order == "slowest"
    time_range, outcomes = TimeRange(after=after, before=before), parameters.outcome or tuple(AttemptOutcome)
    async with context.admin.reading("listing attempts") as connection:
        rows = await ChainListReader(connection, context.admin.table).attempts(
            parameters.queue, time_range, outcomes, parameters.limit, slowest=is_slowest
        )
    return QueueAttemptsResponse(
        after=after,
        before=before,
        examined=MOST_ATTEMPTS if is_slowest else None,
        items=[
            QueueAttempt.model_validate(
                {
                    **row,
                    "outcome": AttemptOutcome.of_fact(row["fact"]),
                    "attempt": row["attempt"] or 1,
                    "handling": row["ran"],
                    "external": context.admin.external(
                        queue=parameters.queue,
                        **{name: row[name] for name in ("message_id", "root_id", "routing_key", "trace_id")},
                    ),
                    "error": None
                    if row["error_type"] is None
                    else Error(
                        type=masking.error_type(row["error_type"]), message=masking.error_text(row["error_message"] or "")
                    ),
                }
            )
            for row in rows
        ],
    )


_HASH_LIMIT = 2**63 - 1
_FIRST_HOUR = datetime.min.replace(tzinfo=UTC) + timedelta(hours=1)


def _cursor(direction: Direction, place: Position | None, bound_to: Mapping[str, Any]) -> str | None:
    return None if place is None else Cursor(direction, (place.at.isoformat(), place.hash)).encode(bound_to)
