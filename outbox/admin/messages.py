"""`GET /messages` and `GET /messages/{id}`: the messages in the outbox, and why each one waits."""

import hashlib
import json
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, assert_never

import asyncpg
from fastapi import Path, Query
from fastapi import Request as HttpRequest
from pydantic import Field

from outbox.admin.access import RequestContext, Viewer, area, record, require_reveal
from outbox.admin.admin import Admin
from outbox.admin.backlog import BacklogView, Counted, StateCounts, counted_states
from outbox.admin.backlog_reader import MessageState
from outbox.admin.brokers import route_hint
from outbox.admin.message_list import MessageFilter, MessageListing, order_of
from outbox.admin.models import (
    MOST_COUNTED,
    BodyAccess,
    DestinationName,
    Error,
    ExternalLinks,
    Instant,
    Model,
    Moment,
    Page,
    Paged,
    Request,
    Text,
    TraceId,
    cursor_page,
    decode_cursor,
    invalid_cursor,
    to_total,
)
from outbox.admin.problems import Code, Problem, problem_responses
from outbox.chains.traces import ids_of, moment
from outbox.core.codec import BODY_STORE, TRACEPARENT, trace_id_of
from outbox.core.destinations import DEFAULT
from outbox.masking import Body, Masking, preview, readable, sized
from outbox.postgres.pool import Connection, optional_tables
from outbox.reporting.pauses import Pause, pauses
from outbox.runtime.brokers import stored_label


@dataclass(frozen=True, slots=True, kw_only=True)
class SendConditions:
    """What sending a message depends on.

    `alive_relays` None: unknown. `earlier` is the first unsent message of its ordering key, if it precedes this one. `probe` is
    the message that relays try on behalf of all that wait for the same route.
    """

    pauses: Sequence[Pause]
    alive_relays: int | None
    earlier: Mapping[str, Any] | None
    probe: Mapping[str, Any] | None
    exchange_name: str
    label: str | None

    @property
    def pause(self) -> Pause | None:
        """The pause of all relays, or None."""
        return next((pause for pause in self.pauses if not pause.name), None)


def reason_of(row: Mapping[str, Any], conditions: SendConditions) -> str:
    """Explains in one or two sentences why a message is in its state, and what happens next."""
    state = MessageState(row["state"])
    match state:
        case MessageState.PENDING:
            return _pending(conditions)
        case MessageState.SCHEDULED:
            return _with_blocking_reason(f"It is due {_at(row['due_at'])}.", conditions)
        case MessageState.RETRYING:
            times = "once" if row["attempts"] == 1 else f"{row['attempts']:,} times"
            return _with_blocking_reason(f"The broker refused it {times}. It is sent again {_at(row['due_at'])}.", conditions)
        case MessageState.HELD:
            return _with_blocking_reason(_held(row, conditions), conditions)
        case MessageState.STALLED:
            return _with_blocking_reason(_stalled(row, conditions), conditions)
        case MessageState.BLOCKED:
            text = "The earlier message of its ordering key is gone. A relay will find it due at its next check."
            if conditions.earlier is not None:
                text = f"It waits for {_describe(conditions.earlier)} of its ordering key."
            return _with_blocking_reason(text, conditions)
        case MessageState.PARKED:
            return (
                f"It was parked {_at(row['failed_at'])} with the error shown. It stays parked until an operator requeues or "
                f"discards the dead letter outbox-{row['id']}."
            )
        case MessageState.SENT:
            return f"It was sent {_at(row['sent_at'])}. Clean-up deletes it later."
        case _:
            assert_never(state)


def hint_of(row: Mapping[str, Any], conditions: SendConditions) -> str | None:
    """Suggests what an operator can do, or returns None if nothing needs to be done."""
    match MessageState(row["state"]):
        case MessageState.HELD if row["target_queue"] is not None:
            return f"start a consumer of the queue {row['target_queue']!r}: it declares the queue, and the message is then sent"
        case MessageState.HELD:
            hint = route_hint(row["routing_key"], label=conditions.label, exchange_name=conditions.exchange_name)
            return f"{hint}; all held messages of the routing key are then sent"
        case MessageState.STALLED:
            queues = (
                f"the queue {row['target_queue']!r}" if row["target_queue"] else f"the queues bound for {row['routing_key']!r}"
            )
            return (
                f"check {queues} for one that is full or has lost most of its replicas; once it accepts messages again, all "
                "waiting ones are sent automatically"
            )
        case MessageState.PARKED:
            return f"POST /requeue or /discard with the id outbox-{row['id']}"
        case MessageState.SENT:
            return None
    if conditions.alive_relays == 0:
        destination = row["destination"]
        return "start a relay" if destination == DEFAULT else f"start a relay: `outbox relay --destination {destination}`"
    return "POST /resume with the scope relay" if conditions.pause else None


def _pending(conditions: SendConditions) -> str:
    if conditions.earlier is not None:
        return _with_blocking_reason(f"It is due, after {_describe(conditions.earlier)} of its ordering key.", conditions)
    blocking_reason = _blocking_reason(conditions)
    return f"It is due, but {blocking_reason}." if blocking_reason else "It is due and will be sent in one of the next batches."


def _held(row: Mapping[str, Any], conditions: SendConditions) -> str:
    queue = row["target_queue"]
    problem = f"The queue {queue!r} does not exist" if queue else "No queue is bound for its routing key"
    if conditions.probe is None:
        return f"{problem}. A relay will soon retry one message of the routing key."
    if conditions.probe["id"] == row["id"]:
        return f"{problem}. A relay retries this message {_at(conditions.probe['due_at'])}, on behalf of all that wait."
    return f"{problem}. It waits for message {conditions.probe['id']}, which a relay retries {_at(conditions.probe['due_at'])}."


def _stalled(row: Mapping[str, Any], conditions: SendConditions) -> str:
    queue = f"The queue {row['target_queue']!r}" if row["target_queue"] else "A queue that is bound for its routing key"
    text = f"{queue} accepts no messages: the broker responds, but did not confirm the last message sent there, or refused it."
    if conditions.probe is None:
        return text
    if conditions.probe["id"] == row["id"]:
        return f"{text} A relay retries this message within a minute, on behalf of all that wait."
    return f"{text} It waits for message {conditions.probe['id']}, which a relay retries within a minute."


def _describe(row: Mapping[str, Any]) -> str:
    return f"message {row['id']}, which is {row['state']},"


def _with_blocking_reason(sentence: str, conditions: SendConditions) -> str:
    blocking_reason = _blocking_reason(conditions)
    return f"{sentence} However, {blocking_reason}." if blocking_reason else sentence


def _blocking_reason(conditions: SendConditions) -> str | None:
    """Returns what keeps all messages from being sent, or None."""
    if (pause := conditions.pause) is not None:
        end = "" if pause.until is None else f" until {format_time(pause.until)}"
        reason = f" ({pause.reason})" if pause.reason else ""
        return f"all relays are paused{end}{reason}"
    return "no relay is running" if conditions.alive_relays == 0 else None


def _at(seconds: float | None) -> str:
    at = moment(seconds)
    return "never" if at is None else f"at {format_time(at)}"


def format_time(at: datetime) -> str:
    """Formats a time for a sentence."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


_UNBOUND = {"limit", "cursor", "total"}


class MessageFilters(Request):
    """Conditions that a message must match, all of them."""

    routing_key: Annotated[Text | None, Field(description="Routing key. A trailing `*` matches any ending.")] = None
    ordering_key: Annotated[Text | None, Field(description="Ordering key. Unsent messages are in sending order.")] = None
    message_id: Annotated[Text | None, Field(description="Id of the message itself.")] = None
    tracking_id: Annotated[Text | None, Field(description="Id of the message, or of one of its causes.")] = None
    target_queue: Annotated[Text | None, Field(description="Queue that the message is addressed to.")] = None
    destination: Annotated[DestinationName | None, Field(description="Destination, such as `default`.")] = None
    created_after: Annotated[Instant | None, Field(description="Created at this time or later.")] = None
    created_before: Annotated[Instant | None, Field(description="Created before this time.")] = None

    def as_filter(self) -> MessageFilter:
        """Converts to the filter of the database layer."""
        return MessageFilter(**{name: getattr(self, name) for name in type(self).model_fields if name not in _UNBOUND})


class MessageListFilters(MessageFilters):
    """Filters of the message list."""

    state: Annotated[MessageState | None, Field(description="State of the message. Without it, messages of all states.")] = None


class MessageListParameters(MessageListFilters, Paged):
    """Query parameters of `GET /messages`."""

    def bound_to(self) -> Mapping[str, Any]:
        """Returns what cursors of this list are bound to."""
        return {"of": "messages", **self.model_dump(mode="json", exclude=_UNBOUND)}


class MessageSummary(Model):
    """A message in the outbox, without its body."""

    id: str = Field(description="Number of the row, in insertion order.")
    message_id: str | None = Field(description="Id of the message in every system. Null if a relay assigns it when sending.")
    root_id: str | None = Field(description="Id of the first message of the chain.")
    state: MessageState
    routing_key: str
    target_queue: str | None = Field(description="Queue that the message is addressed to, regardless of bindings.")
    destination: str = Field(description="Which relays send it: `default`, or a name that `Route` or `publish` gave it.")
    ordering_key: str | None
    dedup_key: str | None
    priority: int
    attempt_count: int = Field(description="Number of attempts to send it that the broker refused.")
    requeue_count: int
    last_error: Error | None = Field(description="Last error of the broker, or what the message waits for.")
    created_at: Moment | None = Field(description="Null if the stored time is out of range.")
    due_at: Moment | None = Field(description="When it is due. Null if it waits for an event instead of a time.")
    held_at: Moment | None = Field(description="Since when it is held or stalled. Null if it is not, or if unknown.")
    sent_at: Moment | None
    failed_at: Moment | None
    content_type: str | None
    size: int = Field(description="Size of the body, in bytes.")
    preview: str = Field(description="Beginning of the body, masked; for a binary body, its content type and size.")


class MessagePage(Page[MessageSummary]):
    """One page of the messages, with the number of messages in each state."""

    states: StateCounts | None = Field(description="Message counts by state, as in the backlog. Null if not counted yet.")
    sent_kept: Counted | None
    as_of: Moment | None = Field(description="When the messages were counted.")


def summary_fields(row: Mapping[str, Any], masking: Masking) -> dict[str, Any]:
    """Returns the fields of a `MessageSummary`."""
    shown = row["shown"]
    if shown is not None and row["last_error"] is not None:
        masking = masking.of_message(shown)
    return {
        **{name: row[name] for name in _UNCHANGED},
        **{name: moment(row[name]) for name in ("created_at", "due_at", "held_at", "sent_at", "failed_at")},
        "id": str(row["id"]),
        "attempt_count": row["attempts"],
        "last_error": None if row["last_error"] is None else Error(type="", message=masking.error_type(row["last_error"])),
        "size": row["size"],
        "preview": preview_of(row, masking),
    }


def preview_of(row: Mapping[str, Any], masking: Masking) -> str:
    """Returns the preview of a message in a list: its masked body, or its kind and size."""
    if row["body_store"] is not None:
        return preview(b"", row["content_type"], masking, headers={BODY_STORE: row["body_store"]})
    if row["shown"] is None:
        return sized(row["content_type"], row["size"])
    return preview(row["shown"], row["content_type"], masking)


_UNCHANGED = (
    "message_id",
    "root_id",
    "state",
    "routing_key",
    "target_queue",
    "destination",
    "ordering_key",
    "dedup_key",
    "priority",
    "requeue_count",
    "content_type",
)


class BlockingPause(Model):
    """A pause that keeps relays from sending."""

    scope: Literal["relay"]
    name: str = Field(description="Name of the relay. Empty for a pause of all relays.")
    reason: str | None
    expires_at: Moment | None


class EarlierMessage(Model):
    """The earlier message of the same ordering key."""

    id: str
    message_id: str | None
    state: MessageState


class MessageDelivery(Model):
    """Latest entry of the history about the message in one queue."""

    queue: str
    outcome: Literal["processed", "retried", "dead_lettered", "requeued", "duplicate"]
    attempt: int | None
    error: Error | None
    recorded_at: Moment | None


class Message(MessageSummary):
    """One message with all its details, and why it waits."""

    version: int = Field(description="Changes with the routing key, body and headers. An edit must name it.")
    tracking_ids: list[str]
    trace_id: TraceId
    external: ExternalLinks
    expiration_seconds: float | None = Field(description="Lifetime of the message, counted from the first sending.")
    headers: dict[str, Any] | None
    body: str | None = Field(description="The body as text, masked unless `reveal=true`. Null if it is not text.")
    body_base64: str | None = Field(description="With `reveal=true`, a body that is not text, in base64.")
    body_access: BodyAccess | None = Field(description="Null: the body is in the message, and not encrypted.")
    masked: bool
    reason: str = Field(description="Why the message is in its state, and what happens next.")
    hint: str | None = Field(description="What to do about it. Null if nothing needs to be done.")
    blocking_pauses: list[BlockingPause] = Field(description="Pauses of all relays or of one. The latter may not block it.")
    alive_relay_count: int | None = Field(description="Number of relays whose heartbeat is on time. Null if unknown.")
    blocked_by: EarlierMessage | None
    probe_id: str | None = Field(description="Message that a relay retries for all that are held or stalled on the same route.")
    next_attempt_at: Moment | None = Field(description="Earliest time of the next attempt, of the probe if there is one.")
    deliveries: list[MessageDelivery] | None = Field(description="Outcome in each queue. Null if there is no history.")


def version_of(row: Mapping[str, Any]) -> int:
    """Returns a number that changes with the routing key, body and headers of a message."""
    digest = hashlib.sha256(json.dumps([row["routing_key"], row["content_type"], row["headers"]]).encode())
    digest.update(row["body"])
    # From 1, and within 31 bits, which clients in every language read exactly.
    return (int.from_bytes(digest.digest()[:4], "big") >> 1) or 1


async def read(
    admin: Admin, connection: Connection, row_id: int, masking: Masking
) -> tuple[Message, Mapping[str, Any]] | tuple[None, None]:
    """Returns one message, with its values masked, and its row. None: the row does not exist."""
    listing = MessageListing(admin.table)
    row = await listing.one(connection, row_id)
    if row is None:
        return None, None
    conditions = await _send_conditions(admin, connection, listing, row)
    masking = masking.of_message(row["body"], row["headers"])
    is_unsent = row["state"] not in (MessageState.SENT, MessageState.PARKED)
    handled = await listing.handled(connection, row["message_id"]) if row["message_id"] else []
    earlier, probe = conditions.earlier, conditions.probe
    trace_id = trace_id_of((headers_of(row) or {}).get(TRACEPARENT))
    message = Message(
        **summary_fields(row, masking),
        **masked_payload(admin, row, masking),
        version=version_of(row),
        tracking_ids=list(ids_of(row["tracking_ids"])),
        trace_id=trace_id,
        external=ExternalLinks(
            **admin.external(
                trace_id=trace_id,
                message_id=row["message_id"],
                root_id=row["root_id"],
                queue=row["target_queue"],
                routing_key=row["routing_key"],
            )
        ),
        expiration_seconds=row["expires_in"],
        reason=reason_of(row, conditions),
        hint=hint_of(row, conditions),
        blocking_pauses=[
            BlockingPause(scope="relay", name=pause.name, reason=pause.reason, expires_at=pause.until)
            for pause in conditions.pauses
        ]
        if is_unsent
        else [],
        alive_relay_count=conditions.alive_relays,
        blocked_by=EarlierMessage(id=str(earlier["id"]), message_id=earlier["message_id"], state=earlier["state"])
        if earlier
        else None,
        probe_id=str(probe["id"]) if probe else None,
        next_attempt_at=moment(probe["due_at"] if probe else row["due_at"]) if is_unsent else None,
        deliveries=None if handled is None else [_to_delivery(fact, masking) for fact in handled],
    )
    return message, row


async def _send_conditions(
    admin: Admin, connection: Connection, listing: MessageListing, row: Mapping[str, Any]
) -> SendConditions:
    unsent = row["state"] not in (MessageState.SENT, MessageState.PARKED)
    relay_pauses: Sequence[Pause] = ()
    if unsent:
        async with optional_tables(connection, or_forbidden=False):
            every = await pauses(connection, schema=admin.table.schema)
            relay_pauses = [pause for pause in every if pause.scope == "relay"]
    return SendConditions(
        pauses=relay_pauses,
        alive_relays=await listing.alive_relays(connection, row),
        earlier=await listing.first_of_key(connection, row) if unsent and row["lane"] is not None else None,
        probe=await listing.probe(connection, row),
        exchange_name=admin.exchange_name,
        label=stored_label(admin.broker),
    )


def headers_of(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the application's headers; None if there are none, or if they are not a JSON object."""
    # Producers in any language write to the table, so the column may contain anything.
    try:
        headers = json.loads(row["headers"] or "null")
    except (ValueError, RecursionError):
        return None
    return headers if isinstance(headers, dict) else None


def masked_payload(admin: Admin, row: Mapping[str, Any], masking: Masking) -> dict[str, Any]:
    """Returns the fields of a body and its headers, masked. The body is neither fetched nor decrypted."""
    body, content_type, headers = row["body"], row["content_type"], headers_of(row)
    access = BodyAccess.of(admin.bodies, headers)
    return {
        # Ciphertext may look like text, and what is in a store like an empty body.
        "body": readable(Body(body, content_type, len(body)), masking)[1] if access is None else None,
        "body_base64": None,
        "body_access": access,
        "headers": None if headers is None else masking.masked(headers),
        "masked": True,
    }


async def revealed_payload(admin: Admin, row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the same fields as they are. Call it outside of a transaction: it may fetch the body from a store."""
    headers = headers_of(row)
    body, error = await admin.bodies.read_or_keep(row["body"], headers, row["message_id"])
    fields = {"headers": headers, "masked": False, "body_access": BodyAccess.of(admin.bodies, headers, error)}
    try:
        return {"body": body.decode(), "body_base64": None, **fields}
    except UnicodeDecodeError:
        return {"body": None, "body_base64": b64encode(body).decode(), **fields}


def _to_delivery(fact: Mapping[str, Any], masking: Masking) -> MessageDelivery:
    type_, message = fact["error_type"], fact["error_message"]
    error = None
    if type_ is not None or message is not None:
        error = Error(type=masking.error_type(type_ or ""), message=masking.error_text(message or ""))
    return MessageDelivery(
        queue=fact["queue"],
        outcome="dead_lettered" if fact["fact"] == "died" else fact["fact"],
        attempt=fact["attempt"],
        error=error,
        recorded_at=moment(fact["at"]),
    )


messages = area("messages")

SEARCH_TIMEOUT = timedelta(seconds=2)
"""Statement timeout of a search, for filters that no index supports."""

_ID = re.compile(r"(?:outbox-)?([0-9]{1,19})", re.ASCII)


@messages.get(
    "/messages",
    operation_id="outbox_messages_list",
    responses=problem_responses(Code.INVALID_CURSOR, Code.CURSOR_MISMATCH, Code.FILTER_TOO_BROAD),
)
async def list_messages(context: Viewer, parameters: Annotated[MessageListParameters, Query()]) -> MessagePage:
    """Lists messages that are in the outbox, or kept there after sending.

    Pending, scheduled and retrying messages are sorted by due time, held ones by routing key, blocked ones and those of one
    `ordering_key` in sending order. Parked and sent messages, and lists without `state`, are sorted newest first. A filter
    whose search takes longer than two seconds gets `filter_too_broad`. `state` and `ordering_key` have an index, and
    `routing_key` has one for held messages.
    """
    admin, filter_, bound_to = context.admin, parameters.as_filter(), parameters.bound_to()
    order, listing = order_of(filter_), MessageListing(context.admin.table)
    cursor = decode_cursor(parameters.cursor, bound_to, order.kinds)
    async with searching(context, "listing messages", has_cursor=cursor is not None) as connection:
        rows = await listing.page(
            connection,
            filter_,
            limit=parameters.limit + 1,
            after=cursor.keys if cursor else None,
            back=cursor is not None and cursor.direction == "previous",
            inclusive=cursor is not None and cursor.inclusive,
        )
        total = await listing.count(connection, filter_, most=MOST_COUNTED + 1) if parameters.total else None
    page = cursor_page(rows, limit=parameters.limit, cursor=cursor, bound_to=bound_to, keys_of=order.keys)
    return MessagePage(
        items=[MessageSummary(**summary_fields(row, context.masking)) for row in page.items],
        next=page.next,
        previous=page.previous,
        total=None if total is None else to_total(total),
        **counted_states(await admin.shared(BacklogView).figures()),
    )


@messages.get(
    "/messages/{id}", operation_id="outbox_messages_show", responses=problem_responses(Code.NOT_FOUND, Code.CROSS_SITE)
)
async def show_message(
    context: Viewer,
    request: HttpRequest,
    id_: Annotated[str, Path(alias="id", max_length=100, description="Number of the row: `17` or `outbox-17`.")],
    *,
    reveal: Annotated[bool, Query(description="Show masked values. Requires the operator role, and is audited.")] = False,
) -> Message:
    """Shows one message in the outbox, why it waits, and what happens next. Values are masked unless `reveal=true`."""
    number = _ID.fullmatch(id_)
    if number is None or int(number[1]) >= 2**63:
        raise _not_found(id_)
    if reveal:
        await require_reveal(request)
    # One transaction for reading and auditing: no value is revealed without its audit entry.
    opened = context.admin.changing("revealing a message") if reveal else context.admin.reading("reading a message")
    async with opened as connection:
        found, row = await read(context.admin, connection, int(number[1]), context.masking)
        if found is None or row is None:
            raise _not_found(id_)
        if reveal:
            await record(connection, context, action="messages.reveal", target=f"outbox-{int(number[1])}")
    return found.model_copy(update=await revealed_payload(context.admin, row)) if reveal else found


@asynccontextmanager
async def searching(context: RequestContext, purpose: str, *, has_cursor: bool) -> AsyncIterator[Connection]:
    """Opens a connection whose statements time out after `SEARCH_TIMEOUT`, with the problem `filter_too_broad`.

    `has_cursor`: values that the database cannot convert come from the cursor, and raise `invalid_cursor`.
    """
    async with context.admin.reading(purpose) as connection:
        # `set local` ends with the transaction, so the connection returns to the pool unchanged.
        await connection.execute(f"set local statement_timeout = {SEARCH_TIMEOUT / timedelta(milliseconds=1):.0f}")
        try:
            yield connection
        except asyncpg.QueryCanceledError:
            raise Problem(
                Code.FILTER_TOO_BROAD,
                f"the search took longer than {SEARCH_TIMEOUT.total_seconds():g} s: filter by state or ordering key",
            ) from None
        except asyncpg.DataError:
            if not has_cursor:
                raise
            raise invalid_cursor() from None


def _not_found(id_: str) -> Problem:
    return Problem(
        Code.NOT_FOUND,
        f"the outbox has no row {id_[:100]!r}: it may have been deleted after sending. Its chain may still be known: "
        "look for it with the id of the message, or of another message of the chain",
    )
