"""Responses about messages in the outbox."""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal

import asyncpg
from pydantic import Field

from outbox.admin.admin import Admin
from outbox.admin.backlog.models import Counted, StateCounts
from outbox.admin.messages.reasons import Surroundings, hint_of, reason_of
from outbox.admin.models import Error, Instant, Model, Moment, Page, Paged, Text
from outbox.admin.store.backlog import MessageState
from outbox.admin.store.messages import MessageFilter, MessageListing
from outbox.chains.traces import ids_of, moment
from outbox.masking import Body, Masking, preview, readable, sized
from outbox.postgres.pool import Connection
from outbox.reporting.pauses import Pause, pauses

_UNBOUND = {"limit", "cursor", "total"}


class MessageListParameters(Paged):
    """What a message must fit, all of it. Without `state` all rows of the table are meant, the newest first."""

    state: Annotated[MessageState | None, Field(description="Where it is.")] = None
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

    tracking_ids: list[str]
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
        **_payload(row, masking, reveal=reveal),
        tracking_ids=list(ids_of(row["tracking_ids"])),
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


def _payload(row: Mapping[str, Any], masking: Masking, *, reveal: bool) -> dict[str, Any]:
    body: bytes = row["body"]
    content_type = row["content_type"]
    try:  # as a producer in any language may have written them
        headers = json.loads(row["headers"] or "null")
    except (ValueError, RecursionError):
        headers = None
    headers = headers if isinstance(headers, dict) else None
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
