"""`GET /messages` and `GET /messages/{id}`: what is in the outbox, and why each message waits."""

import hashlib
import json
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
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
from outbox.admin.models import (
    MOST_COUNTED,
    Error,
    ExternalLinks,
    Instant,
    Model,
    Moment,
    Page,
    Paged,
    Request,
    Text,
    counted,
    cursor_page,
    decode_cursor,
    invalid_cursor,
)
from outbox.admin.problems import Code, Problem, documented
from outbox.admin.store import MessageFilter, MessageListing, MessageState, order_of
from outbox.chains.traces import ids_of, moment
from outbox.masking import Body, Masking, preview, readable, sized
from outbox.postgres.pool import Connection
from outbox.reporting.pauses import Pause, pauses


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a message may wait for. `living_relays` None: not known. `probe` finds out for all that go its way."""

    pauses: Sequence[Pause]
    living_relays: int | None
    earlier: Mapping[str, Any] | None
    probe: Mapping[str, Any] | None
    exchange_name: str

    @property
    def pause(self) -> Pause | None:
        """The pause of all relays, if there is one."""
        return next((pause for pause in self.pauses if not pause.name), None)


def reason_of(row: Mapping[str, Any], around: Surroundings) -> str:
    """Why it is where it is, and what happens next, in a sentence or two."""
    state = MessageState(row["state"])
    match state:
        case MessageState.PENDING:
            return _pending(around)
        case MessageState.SCHEDULED:
            return _with_hindrance(f"It is due {_at(row['due_at'])}.", around)
        case MessageState.RETRYING:
            times = "once" if row["attempts"] == 1 else f"{row['attempts']:,} times"
            return _with_hindrance(f"It was refused {times}, and is sent again {_at(row['due_at'])}.", around)
        case MessageState.HELD:
            return _with_hindrance(_held(row, around), around)
        case MessageState.STALLED:
            return _with_hindrance(_stalled(row, around), around)
        case MessageState.BLOCKED:
            waits = "It waited for an earlier message of its ordering key, and is due as soon as a relay looks."
            if around.earlier is not None:
                waits = f"It waits for {_named(around.earlier)} of its ordering key."
            return _with_hindrance(waits, around)
        case MessageState.PARKED:
            return (
                f"It was parked {_at(row['failed_at'])}, with the error that is shown; nothing happens until an operator "
                f"requeues or discards the dead letter outbox-{row['id']}."
            )
        case MessageState.SENT:
            return f"It was sent {_at(row['sent_at'])}, and is kept until clean-up."
        case _:
            assert_never(state)


def hint_of(row: Mapping[str, Any], around: Surroundings) -> str | None:
    """What a person can do about it; None: nothing needs to be done."""
    match MessageState(row["state"]):
        case MessageState.HELD if row["target_queue"] is not None:
            return f"start a consumer of the queue {row['target_queue']!r}, which declares it; its success releases the message"
        case MessageState.HELD:
            return (
                f"bind a queue to the exchange {around.exchange_name!r} with a key that matches {row['routing_key']!r}, or "
                "start its consumer; all held messages of the routing key follow the first that finds it"
            )
        case MessageState.STALLED:
            queues = (
                f"the queue {row['target_queue']!r}" if row["target_queue"] else f"the queues bound for {row['routing_key']!r}"
            )
            return (
                f"look at {queues} for one that is full, or that has lost most of its members; once it takes messages again, "
                "all that wait follow by themselves"
            )
        case MessageState.PARKED:
            return f"POST /requeue or /discard with the id outbox-{row['id']}"
        case MessageState.SENT:
            return None
    if around.living_relays == 0:
        return "start a relay"
    return "POST /resume with the scope relay" if around.pause else None


def _pending(around: Surroundings) -> str:
    if around.earlier is not None:
        return _with_hindrance(f"It is due, and follows {_named(around.earlier)} of its ordering key.", around)
    hindrance = _hindrance(around)
    return f"It is due, but {hindrance}." if hindrance else "It is due, and goes out with one of the next batches."


def _held(row: Mapping[str, Any], around: Surroundings) -> str:
    way = f"The queue {row['target_queue']!r} is not there" if row["target_queue"] else "No queue is bound for its routing key"
    if around.probe is None:
        return f"{way}. A relay will soon try one message of the routing key again."
    if around.probe["id"] == row["id"]:
        return f"{way}. It is the one that is tried again, {_at(around.probe['due_at'])}."
    return f"{way}. It waits for message {around.probe['id']}, which is tried again {_at(around.probe['due_at'])}."


def _stalled(row: Mapping[str, Any], around: Surroundings) -> str:
    way = f"The queue {row['target_queue']!r}" if row["target_queue"] else "A queue that is bound for its routing key"
    text = f"{way} takes no messages: the broker answers, and did not confirm or refused what was sent there last."
    if around.probe is None:
        return text
    if around.probe["id"] == row["id"]:
        return f"{text} It is the one that is sent again within a minute, to find out."
    return f"{text} It waits for message {around.probe['id']}, which is sent again within a minute, to find out."


def _named(row: Mapping[str, Any]) -> str:
    return f"message {row['id']}, which is {row['state']},"


def _with_hindrance(sentence: str, around: Surroundings) -> str:
    hindrance = _hindrance(around)
    return f"{sentence} But {hindrance}." if hindrance else sentence


def _hindrance(around: Surroundings) -> str | None:
    """What keeps everything from being sent."""
    if (pause := around.pause) is not None:
        end = "" if pause.until is None else f" until {in_words(pause.until)}"
        why = f" ({pause.reason})" if pause.reason else ""
        return f"all relays are paused{end}{why}"
    return "no relay is running" if around.living_relays == 0 else None


def _at(seconds: float | None) -> str:
    at = moment(seconds)
    return "never" if at is None else f"at {in_words(at)}"


def in_words(at: datetime) -> str:
    """A time as sentences name it."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


_UNBOUND = {"limit", "cursor", "total"}


class MessageFilters(Request):
    """What a message must fit, all of it."""

    routing_key: Annotated[Text | None, Field(description="Its routing key; with `*` at the end, how it begins.")] = None
    ordering_key: Annotated[Text | None, Field(description="Its ordering key; those of one are listed in their order.")] = None
    message_id: Annotated[Text | None, Field(description="Its own id.")] = None
    tracking_id: Annotated[Text | None, Field(description="Its id, or that of one of its causes.")] = None
    target_queue: Annotated[Text | None, Field(description="The one queue that it is for.")] = None
    created_after: Annotated[Instant | None, Field(description="Written then or later.")] = None
    created_before: Annotated[Instant | None, Field(description="Written before.")] = None

    def as_filter(self) -> MessageFilter:
        """The filter as the database layer takes it."""
        return MessageFilter(**{name: getattr(self, name) for name in type(self).model_fields if name not in _UNBOUND})


class MessageListFilters(MessageFilters):
    """Without `state` all rows of the table are meant, the newest first."""

    state: Annotated[MessageState | None, Field(description="Where it is.")] = None


class MessageListParameters(MessageListFilters, Paged):
    """What `GET /messages` takes."""

    def bound_to(self) -> Mapping[str, Any]:
        """What cursors of this list belong to."""
        return {"of": "messages", **self.model_dump(mode="json", exclude=_UNBOUND)}


class MessageSummary(Model):
    """A message of the outbox, without its body."""

    id: str = Field(description="The number of its row, in the order of writing.")
    message_id: str | None = Field(description="The id that it keeps everywhere; null: made when it is sent.")
    root_id: str | None = Field(description="The id of the message that its chain began with.")
    state: MessageState
    routing_key: str
    target_queue: str | None = Field(description="The one queue that it is for, regardless of bindings.")
    ordering_key: str | None
    dedup_key: str | None
    priority: int
    attempt_count: int = Field(description="Attempts to send it that were refused.")
    requeue_count: int
    last_error: Error | None = Field(description="What the broker said last, or what the message waits for.")
    created_at: Moment | None = Field(description="Null for a time that no calendar holds.")
    due_at: Moment | None = Field(description="Null: not before something else happens.")
    held_at: Moment | None = Field(
        description="Since when it is unroutable or stalled; null: it is neither, or a release without such a time held it."
    )
    sent_at: Moment | None
    failed_at: Moment | None
    content_type: str | None
    size: int = Field(description="Bytes of the body.")
    preview: str = Field(description="The beginning of the body, masked; what else it is, and how large.")


class MessagePage(Page[MessageSummary]):
    """Part of the list, with how many there are in each state."""

    states: StateCounts | None = Field(description="As in the backlog; null: not counted yet.")
    sent_kept: Counted | None
    as_of: Moment | None = Field(description="When they were counted.")


def line_of(row: Mapping[str, Any], masking: Masking) -> dict[str, Any]:
    """The fields of a line."""
    shown, size = row["shown"], row["size"]
    if shown is not None and row["last_error"] is not None:
        masking = masking.of_message(shown)
    return {
        **{name: row[name] for name in _AS_THEY_ARE},
        **{name: moment(row[name]) for name in ("created_at", "due_at", "held_at", "sent_at", "failed_at")},
        "id": str(row["id"]),
        "attempt_count": row["attempts"],
        "last_error": None if row["last_error"] is None else Error(type="", message=masking.error_type(row["last_error"])),
        "size": size,
        "preview": sized(row["content_type"], size) if shown is None else preview(shown, row["content_type"], masking),
    }


_AS_THEY_ARE = (
    "message_id",
    "root_id",
    "state",
    "routing_key",
    "target_queue",
    "ordering_key",
    "dedup_key",
    "priority",
    "requeue_count",
    "content_type",
)


class BlockingPause(Model):
    """A pause that keeps relays from sending."""

    scope: Literal["relay"]
    name: str = Field(description="The relay; empty: all of them.")
    reason: str | None
    expires_at: Moment | None


class EarlierMessage(Model):
    """The earlier message of the same ordering key."""

    id: str
    message_id: str | None
    state: MessageState


class MessageDelivery(Model):
    """Its last fact of the history in one queue."""

    queue: str
    outcome: Literal["processed", "retried", "dead_lettered", "requeued", "duplicate"]
    attempt: int | None
    error: Error | None
    recorded_at: Moment | None


class Message(MessageSummary):
    """One message with all its details, and the reason why it waits."""

    version: int = Field(description="Changes with the routing key, the body and the headers; an edit names it.")
    tracking_ids: list[str]
    external: ExternalLinks
    expiration_seconds: float | None = Field(description="How long it may take, from the first sending on.")
    headers: dict[str, Any] | None
    body: str | None = Field(
        description="The body as text, masked unless it was asked to be revealed; null for what is no text."
    )
    body_base64: str | None = Field(description="Revealed, of a body that is no text.")
    masked: bool
    reason: str = Field(description="Why it is where it is, and what happens next.")
    hint: str | None = Field(description="What to do about it.")
    blocking_pauses: list[BlockingPause] = Field(description="Pauses of relays; one without a name holds it for certain.")
    alive_relay_count: int | None = Field(description="Relays whose heartbeat is not late; null: not known.")
    blocked_by: EarlierMessage | None
    probe_id: str | None = Field(
        description="Of a held or stalled message: the id of the row that is tried for all that go its way."
    )
    next_attempt_at: Moment | None = Field(
        description="When it is tried again, at the earliest; of a held one, when its probe is."
    )
    deliveries: list[MessageDelivery] | None = Field(description="Its outcome in each queue; null: there is no history.")


def version_of(row: Mapping[str, Any]) -> int:
    """A number that changes with the routing key, the body and the headers of a message."""
    digest = hashlib.sha256(json.dumps([row["routing_key"], row["content_type"], row["headers"]]).encode())
    digest.update(row["body"])
    return (int.from_bytes(digest.digest()[:4], "big") >> 1) or 1


async def read(admin: Admin, connection: Connection, row_id: int, masking: Masking, *, reveal: bool) -> Message | None:
    """The message with that row; None if there is none, or none any more."""
    listing = MessageListing(admin.table)
    row = await listing.one(connection, row_id)
    if row is None:
        return None
    around = await _surroundings(admin, connection, listing, row)
    masking = masking.of_message(row["body"], row["headers"])
    waits = row["state"] not in (MessageState.SENT, MessageState.PARKED)
    handled = await listing.handled(connection, row["message_id"]) if row["message_id"] else []
    earlier, probe = around.earlier, around.probe
    return Message(
        **line_of(row, masking),
        **payload_of(row, masking, reveal=reveal),
        version=version_of(row),
        tracking_ids=list(ids_of(row["tracking_ids"])),
        external=ExternalLinks(
            **admin.external(
                headers_of(row),
                message_id=row["message_id"],
                root_id=row["root_id"],
                queue=row["target_queue"],
                routing_key=row["routing_key"],
            )
        ),
        expiration_seconds=row["expires_in"],
        reason=reason_of(row, around),
        hint=hint_of(row, around),
        blocking_pauses=[
            BlockingPause(scope="relay", name=pause.name, reason=pause.reason, expires_at=pause.until)
            for pause in around.pauses
        ]
        if waits
        else [],
        alive_relay_count=around.living_relays,
        blocked_by=EarlierMessage(id=str(earlier["id"]), message_id=earlier["message_id"], state=earlier["state"])
        if earlier
        else None,
        probe_id=str(probe["id"]) if probe else None,
        next_attempt_at=moment(probe["due_at"] if probe else row["due_at"]) if waits else None,
        deliveries=None if handled is None else [_handled(fact, masking) for fact in handled],
    )


async def _surroundings(admin: Admin, connection: Connection, listing: MessageListing, row: Mapping[str, Any]) -> Surroundings:
    state, lane = row["state"], row["lane"]
    unsent = state not in (MessageState.SENT, MessageState.PARKED)
    relay_pauses: Sequence[Pause] = ()
    if unsent:
        with suppress(asyncpg.UndefinedTableError):
            async with connection.transaction():
                every = await pauses(connection, schema=admin.table.schema)
            relay_pauses = [pause for pause in every if pause.scope == "relay"]
    probe: Mapping[str, Any] | None = None
    if state == MessageState.HELD:
        probe = await listing.probe(connection, row["routing_key"], row["target_queue"])
    elif state == MessageState.STALLED:
        probe = await listing.stalled_probe(connection, row["routing_key"], row["target_queue"])
    return Surroundings(
        pauses=relay_pauses,
        living_relays=await listing.living_relays(connection),
        earlier=await listing.first_of_key(connection, lane, row["id"]) if unsent and lane is not None else None,
        probe=probe,
        exchange_name=admin.exchange_name,
    )


def headers_of(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """The application's headers; None without any, or what is no JSON object: a producer in any language wrote them."""
    try:
        headers = json.loads(row["headers"] or "null")
    except (ValueError, RecursionError):
        return None
    return headers if isinstance(headers, dict) else None


def payload_of(row: Mapping[str, Any], masking: Masking, *, reveal: bool) -> dict[str, Any]:
    """The fields of a body and its headers: masked, or as they are."""
    body: bytes = row["body"]
    content_type = row["content_type"]
    headers = headers_of(row)
    if reveal:
        try:
            return {"body": body.decode(), "body_base64": None, "headers": headers, "masked": False}
        except UnicodeDecodeError:
            return {"body": None, "body_base64": b64encode(body).decode(), "headers": headers, "masked": False}
    return {
        "body": readable(Body(body, content_type, len(body)), masking)[1],
        "body_base64": None,
        "headers": None if headers is None else masking.masked(headers),
        "masked": True,
    }


def _handled(fact: Mapping[str, Any], masking: Masking) -> MessageDelivery:
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
"""How long a filter may search that no index answers."""

_ID = re.compile(r"(?:outbox-)?([0-9]{1,19})", re.ASCII)


@messages.get(
    "/messages",
    operation_id="outbox_messages_list",
    responses=documented(Code.INVALID_CURSOR, Code.CURSOR_MISMATCH, Code.FILTER_TOO_BROAD),
)
async def list_messages(context: Viewer, parameters: Annotated[MessageListParameters, Query()]) -> MessagePage:
    """Lists messages that are in the outbox, or kept there after sending.

    Pending, scheduled and retrying ones are in the order of their due time; held ones by routing key; blocked ones, and those
    of one `ordering_key`, in sending order; parked and sent ones, and all together, newest first. A filter that would search
    for longer than two seconds is refused: `state`, `ordering_key`, and for held ones `routing_key`, have an index.
    """
    admin, filter_, bound_to = context.admin, parameters.as_filter(), parameters.bound_to()
    order, listing = order_of(filter_), MessageListing(context.admin.table)
    cursor = decode_cursor(parameters.cursor, bound_to, order.kinds)
    async with searching(context, "listing messages", has_cursor=cursor is not None) as connection:
        rows = await listing.page(
            connection,
            filter_,
            limit=parameters.limit + 1,
            place=cursor.place if cursor else None,
            back=cursor is not None and cursor.direction == "previous",
            inclusive=cursor is not None and cursor.inclusive,
        )
        total = await listing.count(connection, filter_, most=MOST_COUNTED + 1) if parameters.total else None
    page = cursor_page(rows, limit=parameters.limit, cursor=cursor, bound_to=bound_to, place=order.place)
    return MessagePage(
        items=[MessageSummary(**line_of(row, context.masking)) for row in page.items],
        next=page.next,
        previous=page.previous,
        total=None if total is None else counted(total),
        **counted_states(await admin.shared(BacklogView).figures()),
    )


@messages.get("/messages/{id}", operation_id="outbox_messages_show", responses=documented(Code.NOT_FOUND, Code.CROSS_SITE))
async def show_message(
    context: Viewer,
    request: HttpRequest,
    id_: Annotated[str, Path(alias="id", max_length=100, description="The number of its row; `outbox-17` means 17.")],
    *,
    reveal: Annotated[bool, Query(description="Show what is masked. For operators, and written to the audit.")] = False,
) -> Message:
    """Shows one message in the outbox, why it waits, and what happens next."""
    number = _ID.fullmatch(id_)
    if number is None or int(number[1]) >= 2**63:
        raise _gone(id_)
    if reveal:
        await require_reveal(request)
    # What is revealed and that it was are one transaction.
    opened = context.admin.changing("revealing a message") if reveal else context.admin.reading("reading a message")
    async with opened as connection:
        found = await read(context.admin, connection, int(number[1]), context.masking, reveal=reveal)
        if found is None:
            raise _gone(id_)
        if reveal:
            await record(connection, context, action="messages.reveal", target=f"outbox-{int(number[1])}")
    return found


@asynccontextmanager
async def searching(context: RequestContext, doing: str, *, has_cursor: bool) -> AsyncIterator[Connection]:
    """A connection whose statements end before they have read for long. What a cursor says may be anything."""
    async with context.admin.reading(doing) as connection:
        # `set local` ends with the transaction: the connection goes back to the pool as it was.
        await connection.execute(f"set local statement_timeout = {SEARCH_TIMEOUT / timedelta(milliseconds=1):.0f}")
        try:
            yield connection
        except asyncpg.QueryCanceledError:
            raise Problem(
                Code.FILTER_TOO_BROAD,
                f"nothing was found within {SEARCH_TIMEOUT.total_seconds():g} s: name a state, the ordering key, or less time",
            ) from None
        except asyncpg.DataError:
            if not has_cursor:
                raise
            raise invalid_cursor() from None


def _gone(id_: str) -> Problem:
    return Problem(
        Code.NOT_FOUND,
        f"there is no row {id_[:100]!r} in the outbox, or not any more: what was sent is deleted. The chain may know it: "
        "GET /chains/{tracking_id}, with the id of the message or of any other of its chain",
    )
