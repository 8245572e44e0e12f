"""`GET /deliveries` and `GET /deliveries/{id}`: messages in PostgreSQL queues, and why each is not handled yet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Path, Query
from fastapi import Request as HttpRequest
from pydantic import Field

from outbox.admin.access import Viewer, area, record, require_reveal
from outbox.admin.admin import Admin
from outbox.admin.brokers import BrokerKind, BrokerView, declared_consumers
from outbox.admin.dlq.models import FailureResponse
from outbox.admin.message_list import LARGEST_SEARCHED, SEARCHED_ROWS
from outbox.admin.messages import format_time, headers_of, masked_payload, preview_of, revealed_payload, searching
from outbox.admin.models import (
    MOST_COUNTED,
    BodyAccess,
    Error,
    ExternalLinks,
    Model,
    Moment,
    Page,
    Paged,
    Request,
    Text,
    Total,
    TraceId,
    cursor_page,
    decode_cursor,
    to_total,
)
from outbox.admin.problems import Code, Problem, problem_responses
from outbox.admin.queues import QueueConsumer, QueueSummary, QueuesView
from outbox.chains.traces import ids_of, moment
from outbox.core.codec import TRACEPARENT, trace_id_of
from outbox.core.failures import decode_failures
from outbox.masking import Masking
from outbox.postgres.pool import Connection
from outbox.postgres.queries import TableName, queries
from outbox.postgres.schema.objects import satellite_names
from outbox.reporting.components import ComponentStatus
from outbox.transports.postgres.leases import Lease

Place = tuple[float, int]
DeliveryState = Literal["queued", "in_flight", "retrying", "postponed"]


class DeliveryFilters(Request):
    """Filters of deliveries. A delivery must match all of them."""

    queue: Annotated[Text, Field(min_length=1, description="Name of the queue.")]
    state: Annotated[DeliveryState | None, Field(description="State of the delivery.")] = None
    routing_key: Annotated[Text | None, Field(description="Exact routing key.")] = None
    ordering_key: Annotated[Text | None, Field(description="Exact ordering key.")] = None
    message_id: Annotated[Text | None, Field(description="Id of the message.")] = None

    def values(self) -> tuple[str | None, ...]:
        """Returns the filter as parameters of the statements in `waiting.sql`."""
        return self.queue, self.state, self.routing_key, self.ordering_key, self.message_id


class DeliveryListParameters(DeliveryFilters, Paged):
    """Query parameters of `GET /deliveries`."""

    def bound_to(self) -> Mapping[str, Any]:
        """Returns the filter that a cursor belongs to."""
        return {"of": "deliveries", **self.model_dump(mode="json", exclude={"limit", "cursor", "total"})}


class DeliverySummary(Model):
    """A message in a queue, without its body."""

    id: str = Field(description="The id of the delivery.")
    queue: str
    exchange: str
    message_id: str
    root_id: str | None = Field(description="The id of the first message of its chain.")
    state: DeliveryState = Field(
        description="`queued`: due; `in_flight`: a worker has taken it; `retrying`: an attempt failed and the next one is due "
        "later; `postponed`: due later for another reason, such as an earlier message of its ordering key."
    )
    routing_key: str
    ordering_key: str | None
    attempt: int = Field(description="Number of the running or next attempt.")
    crash_count: int = Field(description="How often a worker crashed with it, or lost its lease.")
    requeue_count: int
    last_error: Error | None = Field(description="The error of the latest failed attempt.")
    created_at: Moment | None = Field(description="Null if the time is outside the supported range.")
    due_at: Moment | None = Field(description="When it is due; while in flight, when its lease ends unless renewed.")
    expires_at: Moment | None
    content_type: str | None
    size: int = Field(description="Size of the body in bytes.")
    preview: str = Field(description="The beginning of the body, masked; for a binary or large body its type and size.")


class DeliveryPage(Page[DeliverySummary]):
    """A page of deliveries, in the order in which they are due."""


class LeaseHolder(Model):
    """The worker that holds the lease."""

    component_id: str
    name: str
    host: str
    process_id: int


class EarlierDelivery(Model):
    """The first delivery with the same ordering key."""

    id: str
    message_id: str
    state: DeliveryState


class DeliveryDetail(DeliverySummary):
    """A message in a queue with all details, and the reason why it is not handled yet."""

    tracking_ids: list[str]
    trace_id: TraceId
    external: ExternalLinks
    headers: dict[str, Any] | None
    body: str | None = Field(description="The body as text, masked unless `reveal=true`; null if it is not text.")
    body_base64: str | None = Field(description="With `reveal=true`: a body that is not text, in base64.")
    body_access: BodyAccess | None = Field(description="Null: the body is in the message, and not encrypted.")
    masked: bool
    failures: list[FailureResponse] = Field(description="Its failed attempts: the first and the latest ones.")
    reason: str = Field(description="Why it is not handled yet, and what happens next.")
    hint: str | None = Field(description="What an operator can do about it; null: nothing to do.")
    leased_at: Moment | None = Field(description="When its worker took it, by the worker's clock.")
    leased_by: LeaseHolder | None = Field(description="Null: not in flight, or the worker sends no heartbeats.")
    ahead_count: Total | None = Field(description="How many messages of the queue are due before it; null: not queued.")
    begins_in_seconds: float | None = Field(description="Estimated time until those are handled, at the current rate.")
    blocked_by: EarlierDelivery | None = Field(description="In an ordered queue: the delivery that must be handled first.")


class Deliveries:
    """Reads the deliveries of one installation. Methods raise the driver's errors."""

    def __init__(self, table: TableName) -> None:
        names = {**satellite_names(table.schema), "table": table.sql, "lock": "no key update"}
        self._sql = queries("waiting.sql", **names, beyond=">", way="asc", first="-infinity")
        self._backwards = queries("waiting.sql", **names, beyond="<", way="desc", first="infinity")["deliveries"]

    async def page(
        self, connection: Connection, parameters: DeliveryListParameters, place: Place | None, *, back: bool, inclusive: bool
    ) -> Sequence[Mapping[str, Any]]:
        """Returns up to one row more than the page has: after `place`, or before it if `back`, nearest first."""
        statement = self._backwards if back else self._sql["deliveries"]
        at = (None, None) if place is None else place
        rows = await connection.fetch(statement, *parameters.values(), parameters.limit + 1, *at, inclusive)
        return [dict(row) for row in rows]

    async def find(self, connection: Connection, filters: DeliveryFilters, most: int) -> list[int]:
        """Returns the ids of the first `most` matching deliveries."""
        return [row["id"] for row in await connection.fetch(self._sql["find_deliveries"], *filters.values(), most)]

    async def one(self, connection: Connection, id_: int) -> Mapping[str, Any] | None:
        """Returns the row of a delivery, with body and headers."""
        row = await connection.fetchrow(self._sql["delivery"], id_)
        return None if row is None else dict(row)

    async def containing(self, connection: Connection, text: str, *, most: int) -> Sequence[int]:
        """Searches small bodies of the newest `SEARCHED_ROWS` deliveries for `text`. Returns ids, newest first."""
        rows = await connection.fetch(self._sql["deliveries_containing"], text.encode(), SEARCHED_ROWS, LARGEST_SEARCHED, most)
        return [row["id"] for row in rows]

    async def ahead(self, connection: Connection, id_: int) -> int:
        """Counts deliveries that are due before it, up to `MOST_COUNTED` + 1."""
        return int(await connection.fetchval(self._sql["ahead"], id_, MOST_COUNTED + 1))

    async def first_of_key(self, connection: Connection, id_: int) -> Mapping[str, Any] | None:
        """Returns the first delivery of its ordering key; None if it is the first."""
        row = await connection.fetchrow(self._sql["first_of_key"], id_)
        return None if row is None else dict(row)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Facts that explain why a delivery waits: its queue, the deliveries before it, and its lease."""

    queue: QueueSummary | None
    ahead: int | None = None
    blocked_by: Mapping[str, Any] | None = None
    leased_at: datetime | None = None
    leased_by: QueueConsumer | None = None

    @property
    def begins_in(self) -> float | None:
        """Estimated seconds until the deliveries before it are handled; None: unknown."""
        rate = None if self.queue is None else self.queue.per_second.outgoing
        return None if self.ahead is None or self.ahead > MOST_COUNTED or not rate else self.ahead / rate


def reason_of(row: Mapping[str, Any], waiting: Waiting) -> str:
    """Explains in one or two sentences why a delivery is not handled yet, and what happens next."""
    due, earlier = moment(row["due_at"]), waiting.blocked_by
    at = "at a time outside the supported range" if due is None else f"at {format_time(due)}"
    match row["state"]:
        case "in_flight":
            worker = "A worker" if waiting.leased_by is None else f"The worker {waiting.leased_by.name}"
            taken_at = "" if waiting.leased_at is None else f" at {format_time(waiting.leased_at)}"
            return f"{worker} took it{taken_at}. If the worker crashes, another one can take it {at}, when the lease ends."
        case "retrying":
            return _with_cause(f"Attempt {row['attempt'] - 1} failed; attempt {row['attempt']} is due {at}.", waiting)
        case _ if earlier is not None:
            state = str(earlier["state"]).replace("_", " ")
            return _with_cause(f"It waits for delivery {earlier['id']} with the same ordering key, which is {state}.", waiting)
        case "postponed":
            return _with_cause(f"It was postponed, and is due {at}.", waiting)
    crashed = "A worker crashed with it, or lost its lease. " if row["lease_token"] is not None else ""
    return crashed + _with_cause(_position_text(waiting), waiting)


def hint_of(row: Mapping[str, Any], waiting: Waiting) -> str | None:
    """Returns what an operator can do about it; None: nothing to do."""
    queue = waiting.queue
    if row["state"] == "in_flight":
        return None
    if queue is not None and queue.pauses:
        pause = queue.pauses[0]
        return f"POST /resume with the scope {pause.scope}" + (f" and the name {pause.name}" if pause.name else "")
    if queue is None or not _is_consumed(queue):
        return f"start a worker that consumes {row['queue']}"
    if waiting.blocked_by is not None:
        return f"GET /deliveries/{waiting.blocked_by['id']} says what that one waits for"
    return "POST /deliveries/retry makes it due now" if row["state"] in ("retrying", "postponed") else None


def _position_text(waiting: Waiting) -> str:
    if not waiting.ahead:
        return "It is due, and is the next one that a worker takes."
    if waiting.ahead > MOST_COUNTED:
        return f"More than {MOST_COUNTED:,} are due before it."
    some = f"{waiting.ahead:,} {'is' if waiting.ahead == 1 else 'are'} due before it"
    begins_in = waiting.begins_in
    return f"{some}." if begins_in is None else f"{some}, about {_duration(begins_in)} at the current rate."


def _duration(seconds: float) -> str:
    for unit, length in (("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{max(seconds, 1):.0f} s"


def _with_cause(sentence: str, waiting: Waiting) -> str:
    queue = waiting.queue
    if queue is not None and queue.pauses:
        pause = queue.pauses[0]
        what = "the queue is" if pause.name else "all workers are"
        end = "" if pause.expires_at is None else f" until {format_time(pause.expires_at)}"
        return f"{sentence} But {what} paused{end}{f' ({pause.reason})' if pause.reason else ''}."
    if queue is None or not _is_consumed(queue):
        return f"{sentence} But no worker consumes the queue."
    if queue.state == "failing":
        return f"{sentence} But the handler keeps failing, and its worker takes one message at a time until one succeeds."
    return sentence


def _is_consumed(queue: QueueSummary) -> bool:
    return any(each.status is not ComponentStatus.LOST for each in queue.consumers)


def require_deliveries(admin: Admin) -> None:
    """Raises `not_supported` unless the queues are in the database."""
    if admin.shared(BrokerView).kind is not BrokerKind.POSTGRESQL:
        raise Problem(
            Code.NOT_SUPPORTED,
            "a message in a RabbitMQ queue cannot be read or changed without consuming it: pause the queue, or let the "
            "message fail and repair its dead letter",
        )


deliveries = area("deliveries")


@deliveries.get(
    "/deliveries",
    operation_id="outbox_deliveries_list",
    responses=problem_responses(Code.INVALID_CURSOR, Code.CURSOR_MISMATCH, Code.FILTER_TOO_BROAD, Code.NOT_SUPPORTED),
)
async def list_deliveries(context: Viewer, parameters: Annotated[DeliveryListParameters, Query()]) -> DeliveryPage:
    """Lists the messages in a PostgreSQL queue, in the order in which they are due.

    With RabbitMQ, which cannot show a message without delivering it, the response is `not_supported`. A filter that takes
    longer than two seconds gets `filter_too_broad`.
    """
    require_deliveries(context.admin)
    bound_to = parameters.bound_to()
    cursor = decode_cursor(parameters.cursor, bound_to, (float, int))
    store = Deliveries(context.admin.table)
    async with searching(context, "listing deliveries", has_cursor=cursor is not None) as connection:
        rows = await store.page(
            connection,
            parameters,
            None if cursor is None else (cursor.keys[0], cursor.keys[1]),
            back=cursor is not None and cursor.direction == "previous",
            inclusive=cursor is not None and cursor.inclusive,
        )
        total = len(await store.find(connection, parameters, MOST_COUNTED + 1)) if parameters.total else None
    page = cursor_page(
        rows, limit=parameters.limit, cursor=cursor, bound_to=bound_to, keys_of=lambda row: (row["due_at"], row["id"])
    )
    return DeliveryPage(
        items=[DeliverySummary(**summary_fields(row, context.masking)) for row in page.items],
        next=page.next,
        previous=page.previous,
        total=None if total is None else to_total(total),
    )


@deliveries.get(
    "/deliveries/{id}",
    operation_id="outbox_deliveries_show",
    summary="Show Delivery",
    responses=problem_responses(Code.NOT_FOUND, Code.CROSS_SITE, Code.NOT_SUPPORTED),
)
async def show_delivery(
    context: Viewer,
    request: HttpRequest,
    id_: Annotated[int, Path(alias="id", ge=1, le=2**63 - 1, description="Id of the delivery.")],
    *,
    reveal: Annotated[bool, Query(description="Show masked values, for operators. Writes an audit entry.")] = False,
) -> DeliveryDetail:
    """Shows one message in a queue, why it is not handled yet, and what happens next."""
    require_deliveries(context.admin)
    if reveal:
        await require_reveal(request)
    opened = context.admin.changing("revealing a delivery") if reveal else context.admin.reading("reading a delivery")
    store = Deliveries(context.admin.table)
    async with opened as connection:
        row = await store.one(connection, id_)
        if row is None:
            raise Problem(
                Code.NOT_FOUND,
                f"no delivery {id_}: it may have been handled, or be a dead letter. GET /chains/{{tracking_id}} with the id "
                "of its message shows the outcome",
            )
        ahead = await store.ahead(connection, id_) if row["state"] == "queued" else None
        earlier = None if row["state"] == "in_flight" else await store.first_of_key(connection, id_)
        if reveal:
            await record(connection, context, action="deliveries.reveal", target=f"delivery {id_}")
    # After the transaction: queue figures use another connection, and one request must not hold two.
    waiting = await _find_waiting(context.admin, row, ahead, earlier)
    masking = context.masking.of_message(row["body"], row["headers"])
    failed_attempts = decode_failures(row["failures"])
    holder, blocked_by = waiting.leased_by, waiting.blocked_by
    trace_id = trace_id_of((headers_of(row) or {}).get(TRACEPARENT))
    return DeliveryDetail(
        **summary_fields(row, masking),
        **(await revealed_payload(context.admin, row) if reveal else masked_payload(context.admin, row, masking)),
        tracking_ids=list(ids_of(row["tracking_ids"])),
        trace_id=trace_id,
        external=ExternalLinks(
            **context.admin.external(
                trace_id=trace_id,
                message_id=row["message_id"],
                root_id=row["root_id"],
                queue=row["queue"],
                routing_key=row["routing_key"],
            )
        ),
        failures=[FailureResponse.of(failed, _error(failed.failure, masking)) for failed in failed_attempts],
        reason=reason_of(row, waiting),
        hint=hint_of(row, waiting),
        leased_at=waiting.leased_at,
        leased_by=None
        if holder is None
        else LeaseHolder(component_id=holder.component_id, name=holder.name, host=holder.host, process_id=holder.process_id),
        ahead_count=None if ahead is None else to_total(ahead),
        begins_in_seconds=None if waiting.begins_in is None else round(waiting.begins_in, 3),
        blocked_by=None
        if blocked_by is None
        else EarlierDelivery(id=str(blocked_by["id"]), message_id=blocked_by["message_id"], state=blocked_by["state"]),
    )


async def _find_waiting(admin: Admin, row: Mapping[str, Any], ahead: int | None, earlier: Mapping[str, Any] | None) -> Waiting:
    listed, observed = (await admin.shared(QueuesView).now()).value
    queue = next((each for each in listed.items if each.name == row["queue"]), None)
    # Only while a running consumer reads in order: for any other one, an ordering key means nothing.
    is_ordered = any(
        each.ordered and each.is_alive for each in declared_consumers(observed.components) if each.queue == row["queue"]
    )
    lease = Lease.parse(row["lease_token"]) if row["state"] == "in_flight" else None
    consumers = () if queue is None or lease is None else queue.consumers
    return Waiting(
        queue=queue,
        ahead=ahead,
        blocked_by=earlier if is_ordered else None,
        leased_at=None if lease is None else lease.since,
        leased_by=next(
            (each for each in consumers if lease is not None and lease.was_made_by(each.host, each.process_id)), None
        ),
    )


def summary_fields(row: Mapping[str, Any], masking: Masking) -> dict[str, Any]:
    """Returns the fields of `DeliverySummary`."""
    beginning = row["shown"]
    failed_attempts = decode_failures(f"[{row['last_failure']}]") if row["last_failure"] is not None else ()
    if beginning is not None and failed_attempts:
        # The error may quote the body: what is secret there must be masked in the error, too.
        masking = masking.of_message(beginning)
    same = ("queue", "exchange", "message_id", "root_id", "state", "routing_key", "ordering_key", "attempt", "requeue_count")
    return {
        **{name: row[name] for name in (*same, "content_type")},
        **{name: moment(row[name]) for name in ("created_at", "due_at", "expires_at")},
        "id": str(row["id"]),
        "crash_count": row["crashes"],
        "last_error": _error(failed_attempts[0].failure, masking) if failed_attempts else None,
        "size": row["size"],
        "preview": preview_of(row, masking),
    }


def _error(failure: Any, masking: Masking) -> Error:
    return Error(
        type=masking.error_type(failure.type),
        message=masking.error_text(failure.message),
        traceback=masking.error_text(failure.traceback) or None,
    )
