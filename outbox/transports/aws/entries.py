"""The form of a message in SQS and SNS: a text and attributes, of which SQS takes ten."""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from outbox.core.codec import AMQP, HLC, ORDERING_KEY, REQUEUE_COUNT, RESERVED_PREFIX, ROUTING_KEY
from outbox.core.envelope import CONTENT_TYPE, MESSAGE_ID, decode_envelope, encode_envelope
from outbox.core.message import Message

ROUTING_KEY_ATTRIBUTE = "routing_key"
"""What the filters of subscriptions compare."""
HEADERS = "headers"
"""A JSON object: the application's headers, and what has no attribute of its own."""
ENCODING = "x-outbox-encoding"
BASE64 = "base64"

_IN_HEADERS = (HLC, REQUEUE_COUNT)
_OUR_ATTRIBUTES = frozenset({ROUTING_KEY_ATTRIBUTE, HEADERS, CONTENT_TYPE})
_NOT_IN_TEXT = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that SQS refuses."""
_ID = re.compile(r"[!-~]{1,128}")
"""What FIFO queues accept as a group and as a deduplication id."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A message as it is sent. `size` is what counts for the limits. `group` and `deduplication_id` are for FIFO only."""

    text: str
    attributes: Mapping[str, str]
    size: int
    group: str
    deduplication_id: str


def entry_of(message: Message) -> Entry:
    """Encodes `message`. A body that is not text, or is empty, is sent as Base64."""
    attributes = encode_envelope(message)
    attributes[ROUTING_KEY_ATTRIBUTE] = attributes.pop(ROUTING_KEY)
    if message.content_type is not None:
        attributes[CONTENT_TYPE] = message.content_type
    # Without the types and properties that only AMQP has.
    headers = {name: value for name, value in message.headers.items() if name != AMQP}
    for name, value in tuple(attributes.items()):
        if name in _IN_HEADERS or not value or _NOT_IN_TEXT.search(value):
            headers[name] = attributes.pop(name)
    if headers:
        attributes[HEADERS] = json.dumps(headers)  # in ASCII, which has none of the characters that SQS refuses
    try:
        text = message.body.decode()
    except UnicodeDecodeError:
        text = ""
    if not text or _NOT_IN_TEXT.search(text):
        # SQS takes no empty text, and Base64 ignores a space.
        text, attributes[ENCODING] = b64encode(message.body).decode() or " ", BASE64
    of_attributes = sum(len(name) + len("String") + len(value.encode()) for name, value in attributes.items())
    requeued = f":{message.requeue_count}" if message.requeue_count else ""
    return Entry(
        text=text,
        attributes=attributes,
        size=len(text.encode()) + of_attributes,
        # Without an ordering key each message is a group, so that none waits for another.
        group=_id_of(message.id if message.ordering_key is None else message.ordering_key),
        # A requeued message is a new one, however soon it comes.
        deduplication_id=_id_of(message.id + requeued),
    )


def message_of(received: Mapping[str, Any], *, queue: str, routing_key: str) -> Message:
    """Decodes a message of SQS, raw or in the envelope of SNS. Never raises: what cannot be read counts as missing.

    A message without a message id comes from another program. Its id is made of the queue and the id of SQS or SNS, its time is
    that of the queue, its ordering key its group, and its headers are its attributes. `routing_key` is for one without its own.
    """
    text, id_ = str(received.get("Body", "")), str(received.get("MessageId", ""))
    named = _strings(received.get("MessageAttributes"), "StringValue")
    system = received.get("Attributes") or {}
    if not named and (notification := _notification(text)) is not None:
        text, id_ = notification["Message"], str(notification.get("MessageId", id_))
        named = _strings(notification.get("MessageAttributes"), "Value")
    headers: dict[str, Any] = {name: value for name, value in named.items() if name not in _OUR_ATTRIBUTES}
    with suppress(ValueError, RecursionError):
        more = json.loads(named.get(HEADERS, "{}"))
        headers |= more if isinstance(more, dict) else {}
    fields: dict[str, Any] = {**headers, **named}
    fields[ROUTING_KEY] = fields.get(ROUTING_KEY_ATTRIBUTE)
    if MESSAGE_ID not in fields:
        fields.setdefault(ORDERING_KEY, system.get("MessageGroupId"))
    body = text.encode(errors="replace")  # the JSON of another program's envelope may have half a surrogate pair
    if named.get(ENCODING) == BASE64:
        with suppress(ValueError):
            body = b64decode(text.strip(), validate=True)
    sent = datetime.now(UTC)
    with suppress(ValueError, OverflowError, OSError):
        sent = datetime.fromtimestamp(int(system.get("SentTimestamp", "")) / 1_000, UTC)
    return Message(
        body=body,
        content_type=named.get(CONTENT_TYPE),
        headers={name: value for name, value in headers.items() if not name.startswith(RESERVED_PREFIX)},
        **decode_envelope(fields, id_=f"sqs:{queue}:{id_}", routing_key=routing_key, created_at=sent),
    )


def _notification(text: str) -> dict[str, Any] | None:
    """Returns the envelope of SNS, if `text` is one."""
    with suppress(ValueError, RecursionError):
        envelope = json.loads(text) if '"TopicArn"' in text else None
        if isinstance(envelope, dict) and envelope.get("Type") == "Notification":
            return envelope if isinstance(envelope.get("Message"), str) else None
    return None


def _strings(attributes: object, field: str) -> dict[str, str]:
    named = attributes if isinstance(attributes, dict) else {}
    return {name: each[field] for name, each in named.items() if isinstance(each, dict) and isinstance(each.get(field), str)}


def _id_of(text: str) -> str:
    return text if _ID.fullmatch(text) else sha256(text.encode()).hexdigest()
