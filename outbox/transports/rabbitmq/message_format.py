"""Maps messages to AMQP properties and headers, and back."""

import struct
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict

from pamqp.commands import Basic

from outbox.core.codec import (
    AMQP,
    ATTEMPT,
    EXPIRES_AT,
    HLC,
    ORDERING_KEY,
    REQUEUE_COUNT,
    RESERVED_PREFIX,
    ROUTING_KEY,
    TRACKING_IDS,
    decode_instant,
    decode_tracking_ids,
    encode_instant,
    encode_tracking_ids,
)
from outbox.core.message import NO_HEADERS, Message
from outbox.core.tracking import new_id
from outbox.errors import MalformedMessageError
from outbox.transports.rabbitmq.amqp_decoding import raw_fields, raw_properties
from outbox.transports.rabbitmq.amqp_encoding import (
    LONGEST_SHORT_STRING,
    PERSISTENT,
    Publication,
    UnsendableError,
    encode_named,
    encode_raw,
    encode_table,
    encode_usual,
    short_string,
)
from outbox.transports.rabbitmq.header_json import restore_types

DEFAULT_EXCHANGE = ""

ISOLATED = "x-outbox-isolated"
"""Marks a message that runs alone. Each marking has a new value."""
CRASHES = "x-outbox-crashes"
"""Number of workers that crashed with the message before this copy was published."""
CAUSE = "x-outbox-cause"
"""Cause of a dead letter: a value of `outbox.core.outcome.Cause`."""
DELIVERY_COUNT = "x-delivery-count"
"""Set by quorum queues: how often the message was returned without being acknowledged."""
PREDECESSOR_ROUTING_KEY = "x-original-routing-key"
"""Holds the original routing key of retries that the predecessor of this library has published."""

# `expiration` would shorten a delay or empty a dead letter queue. `user_id` is accepted only from that user.
_NOT_COPIED = ("expiration", "user_id")
_NO_FIELDS = bytes(4)
_LONGEST_EXPIRATION = timedelta(milliseconds=2**32 - 1)
_SET_BY_BROKER = (DELIVERY_COUNT, "x-acquired-count", "x-death", "x-first-death-", "x-last-death-")
ROUTING_COMMANDS = ("CC", "BCC")
"""Headers that make the broker route to more queues. A copy with them would reach those queues again."""


def publication_of(message: Message, *, exchange: str, queue_exchange: str = DEFAULT_EXCHANGE) -> Publication:
    """Encodes the first publish of `message`: to `exchange`, or through `queue_exchange` to its target queue.

    The property `correlation_id` is the root of its chain, unless a requeued dead letter had another one.
    Raises `UnsendableError` for values that AMQP cannot carry.
    """
    kept, more = _restore_original(message.headers)
    headers: dict[str, Any] = {**kept, TRACKING_IDS: encode_tracking_ids(message.tracking_ids)}
    if message.ordering_key is not None:
        headers[ORDERING_KEY] = message.ordering_key
    if message.expires_at is not None:
        headers[EXPIRES_AT] = encode_instant(message.expires_at)
    if message.hlc is not None:
        headers[HLC] = message.hlc
    if message.requeue_count:
        headers[REQUEUE_COUNT] = message.requeue_count
    routing_key = message.routing_key
    if message.target_queue is not None:
        headers[ROUTING_KEY] = routing_key
        exchange, routing_key = queue_exchange, message.target_queue
    expiration = None
    # RabbitMQ accepts at most 49 days. Beyond that only `x-outbox-expires-at` applies, which workers check.
    if message.expiration is not None and message.expiration <= _LONGEST_EXPIRATION:
        expiration = str(max(0, message.expiration // timedelta(milliseconds=1)))
    # Left out if the property cannot hold it, since the message must be sent. Four bytes are the most that a character takes.
    root = message.tracking_ids[0] if message.tracking_ids else message.id
    is_short = 4 * len(root) <= LONGEST_SHORT_STRING or len(root.encode()) <= LONGEST_SHORT_STRING
    common: _CommonProperties = {
        "content_type": message.content_type,
        "correlation_id": root if is_short else None,
        "expiration": expiration,
        "message_id": message.id,
        "timestamp": message.created_at,
    }
    if more:
        properties = encode_named({**common, "headers": headers, "delivery_mode": PERSISTENT, **more})
    else:
        properties = encode_usual(headers, **common)
    return Publication(exchange, routing_key, message.id, properties, message.body)


def copy_of(
    message_id: str, header: bytes, headers: Mapping[str, Any], body: bytes, *, exchange: str, routing_key: str
) -> Publication:
    """Copies a received message for another exchange. `headers` are added or replace its own; None removes a header.

    Copies the payload of the content header byte for byte, so that values that Python cannot represent stay as they were sent.
    Leaves out `expiration`, `user_id`, and headers that concern only this delivery. Raises `UnsendableError`.
    """
    # Not copied are headers that are replaced or removed, those that the broker reads for routing, those that are only about
    # this delivery, and those that the broker sets.
    left_out = {*headers, *ROUTING_COMMANDS, ISOLATED, PREDECESSOR_ROUTING_KEY}
    try:
        raw = raw_properties(header)
        fields = raw_fields(raw.get("headers", _NO_FIELDS))
        kept = [field for name, field in fields if name not in left_out and not name.startswith(_SET_BY_BROKER)]
    except (ValueError, IndexError, struct.error) as error:
        raise UnsendableError(f"its properties cannot be copied: {error}") from None
    for name in _NOT_COPIED:
        raw.pop(name, None)
    own_headers = {name: value for name, value in headers.items() if value is not None}
    # Persistent, even if the original is not: a retry or a dead letter must survive a restart of the broker.
    raw |= {"delivery_mode": bytes((PERSISTENT,)), "headers": encode_table(own_headers, encoded_fields=b"".join(kept))}
    if len(raw.get("message_id", b"")) <= 1 and message_id:
        raw["message_id"] = short_string(message_id, "message_id")
    id_ = raw.get("message_id", b"\0")[1:].decode(errors="replace")
    return Publication(exchange, routing_key, id_, encode_raw(raw), body)


def read_message(properties: Basic.Properties, routing_key: str, body: bytes) -> Message:
    """Decodes the message that was sent, also from a copy. Raises `MalformedMessageError`."""
    headers: Mapping[str, Any] = properties.headers or NO_HEADERS
    tracking_ids = read_tracking_ids(headers)
    id_ = properties.message_id or (tracking_ids[-1] if tracking_ids else new_id())
    created_at = properties.timestamp or datetime.now(UTC)
    text = properties.expiration
    expiration = timedelta(milliseconds=int(text)) if text and text.isdecimal() else None
    expires_at = None
    if EXPIRES_AT in headers:
        expires_at = decode_instant(headers[EXPIRES_AT], source=EXPIRES_AT)
    elif properties.timestamp is not None and expiration is not None:
        # Other publishers do not set the header. Their timestamp and expiration mean the same.
        with suppress(OverflowError):
            expires_at = properties.timestamp + expiration
    return Message(
        id=id_,
        routing_key=read_routing_key(headers, routing_key),
        body=body,
        created_at=created_at,
        tracking_ids=tracking_ids or (id_,),
        content_type=properties.content_type,
        headers={name: value for name, value in headers.items() if not is_internal_header(name)} if headers else NO_HEADERS,
        expiration=expiration,
        expires_at=expires_at,
        ordering_key=read_text(headers, ORDERING_KEY),
        hlc=read_hlc(headers),
        requeue_count=read_requeue_count(headers),
        anonymous=not properties.message_id and not tracking_ids,
    )


def read_routing_key(headers: Mapping[str, Any], arrived_with: str) -> str:
    """Returns the original routing key; copies are published with their queue's name. Raises `MalformedMessageError`."""
    for name in (ROUTING_KEY, PREDECESSOR_ROUTING_KEY):
        if (original := read_text(headers, name)) is not None:
            return original
    return arrived_with


def read_tracking_ids(headers: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the ids of its causes and its own id; empty if it has none. Raises `MalformedMessageError`."""
    text = headers.get(TRACKING_IDS)
    return () if text is None else decode_tracking_ids(text, source=TRACKING_IDS)


def read_attempt(headers: Mapping[str, Any]) -> int:
    """Returns the number of this attempt, from 1. Raises `MalformedMessageError`."""
    return _read_number(headers, ATTEMPT, default=1, least=1)


def read_requeue_count(headers: Mapping[str, Any]) -> int:
    """Returns how often an operator requeued it. Raises `MalformedMessageError`."""
    return _read_number(headers, REQUEUE_COUNT, default=0, least=0)


def read_hlc(headers: Mapping[str, Any]) -> int | None:
    """Returns the publisher's hybrid logical clock. Raises `MalformedMessageError`."""
    return None if headers.get(HLC) is None else _read_number(headers, HLC, default=0, least=0, most=2**63 - 1)


def read_text(headers: Mapping[str, Any], name: str) -> str | None:
    """Returns the text of a header of this library. Raises `MalformedMessageError`."""
    value = headers.get(name)
    if value is not None and not isinstance(value, str):
        raise MalformedMessageError(f"{name} is not text: {value!r:.64}")
    return value


def is_internal_header(name: str) -> bool:
    """Whether a header was set by this library, its predecessor or the broker, not by the application."""
    return name.startswith(RESERVED_PREFIX) or name == PREDECESSOR_ROUTING_KEY or name.startswith(_SET_BY_BROKER)


def read_count(headers: Mapping[str, Any], name: str) -> int:
    """Returns the count in a header; 0 without one, as from queues that do not count."""
    count = headers.get(name, 0)
    return count if isinstance(count, int) else 0


def _restore_original(headers: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Restores the headers and further properties that a requeued dead letter had when it failed."""
    known = headers.get(AMQP)
    if known is None:
        return headers, NO_HEADERS
    others = {name: value for name, value in headers.items() if name != AMQP}
    if not isinstance(known, Mapping):
        return others, NO_HEADERS
    properties = known.get("properties")
    more = {
        argument: properties[name]
        for name, (argument, type_) in _RESTORED.items()
        if isinstance(properties, Mapping) and isinstance(properties.get(name), type_)
    }
    return restore_types(others, known.get("types")), more


class _CommonProperties(TypedDict):
    """Properties of every first publish, by their AMQP names, without headers and delivery mode."""

    content_type: str | None
    correlation_id: str | None
    expiration: str | None
    message_id: str
    timestamp: datetime


_RESTORED: Mapping[str, tuple[str, type]] = {
    "content_encoding": ("content_encoding", str),
    "priority": ("priority", int),
    "correlation_id": ("correlation_id", str),
    "reply_to": ("reply_to", str),
    "type": ("message_type", str),
    "app_id": ("app_id", str),
}


def _read_number(headers: Mapping[str, Any], name: str, *, default: int, least: int, most: int = 2**31 - 1) -> int:
    number = headers.get(name, default)
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
        raise MalformedMessageError(f"{name} is not a number from {least} to {most}: {number!r:.64}")
    return number
