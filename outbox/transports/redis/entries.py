"""The form of a message in a stream: the fields of its entry."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from outbox.core.codec import (
    AMQP,
    EXPIRES_AT,
    HLC,
    JSON,
    ORDERING_KEY,
    REQUEUE_COUNT,
    ROUTING_KEY,
    TRACKING_IDS,
    decode_instant,
    decode_tracking_ids,
    encode_instant,
    encode_tracking_ids,
)
from outbox.core.message import NO_HEADERS, Message

BODY = "body"
DATA = "data"
MESSAGE_ID = "x-outbox-message-id"
CREATED_AT = "x-outbox-created-at"
CONTENT_TYPE = "content-type"
HEADERS = "headers"

LARGEST_VALUE = 512 * 1024**2
"""Largest body in bytes. For a larger one a server closes the connection, and with it the answers for other messages."""

_T = TypeVar("_T")


def entry_of(message: Message) -> list[bytes]:
    """Encodes `message` as the fields of an entry and their values. Raises `ValueError` if the body is too large."""
    if len(message.body) > LARGEST_VALUE:
        raise ValueError(f"the body has {len(message.body):,} bytes: Redis takes {LARGEST_VALUE:,}")
    fields = {
        BODY: message.body,
        MESSAGE_ID: message.id.encode(),
        ROUTING_KEY: message.routing_key.encode(),
        TRACKING_IDS: encode_tracking_ids(message.tracking_ids).encode(),
        CREATED_AT: encode_instant(message.created_at).encode(),
    }
    if message.content_type is not None:
        fields[CONTENT_TYPE] = message.content_type.encode()
    if message.ordering_key is not None:
        fields[ORDERING_KEY] = message.ordering_key.encode()
    if message.expires_at is not None:
        fields[EXPIRES_AT] = encode_instant(message.expires_at).encode()
    if message.hlc is not None:
        fields[HLC] = b"%d" % message.hlc
    if message.requeue_count:
        fields[REQUEUE_COUNT] = b"%d" % message.requeue_count
    # Without the types and properties that only AMQP has.
    if headers := {name: value for name, value in message.headers.items() if name != AMQP}:
        fields[HEADERS] = json.dumps(headers, ensure_ascii=False).encode()
    return [part for name, value in fields.items() for part in (name.encode(), value)]


def message_of(id_: bytes, parts: Sequence[bytes], *, stream: bytes, routing_key: str) -> Message:
    """Decodes the entry `id_` of a stream. Never raises: a field that cannot be read counts as missing.

    An entry without a message id comes from another program. Its id is made of the stream and the entry's id, its routing key
    is `routing_key`, and its time that of the entry. A single field `body` or `data` is its body; otherwise the body is a JSON
    object of all fields.
    """
    fields = dict(zip(map(_text, parts[::2]), parts[1::2], strict=False))
    texts = {name: _text(value) for name, value in fields.items() if name != BODY}
    name, entry = _text(stream), _text(id_)
    id_text = texts.get(MESSAGE_ID)
    body = fields.get(BODY, b"")
    content_type = texts.get(CONTENT_TYPE)
    if id_text is None and len(fields) == 1 and DATA in fields:
        body = fields[DATA]
    elif id_text is None and list(fields) != [BODY]:
        body, content_type = json.dumps({name: _text(value) for name, value in fields.items()}).encode(), JSON
    message_id = id_text or f"redis:{name}:{entry}"
    headers = _read(json.loads, texts.get(HEADERS)) if id_text is not None else None
    return Message(
        id=message_id,
        routing_key=texts.get(ROUTING_KEY, routing_key),
        body=body,
        created_at=_read(_instant, texts.get(CREATED_AT)) or _read(_time_of, entry) or datetime.now(UTC),
        tracking_ids=_read(_tracking_ids, texts.get(TRACKING_IDS)) or (message_id,),
        content_type=content_type,
        headers=headers if isinstance(headers, dict) else NO_HEADERS,
        expires_at=_read(_instant, texts.get(EXPIRES_AT)),
        ordering_key=texts.get(ORDERING_KEY),
        hlc=_read(int, texts.get(HLC)),
        requeue_count=_read(int, texts.get(REQUEUE_COUNT)) or 0,
    )


def _text(value: bytes) -> str:
    """Decodes UTF-8, and other bytes as Latin-1, which has a character for each."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _read(decode: Callable[[str], _T], text: str | None) -> _T | None:
    try:
        return None if text is None else decode(text)
    except (ValueError, RecursionError, OverflowError, OSError):
        return None


def _instant(text: str) -> datetime:
    return decode_instant(text, source=CREATED_AT)


def _tracking_ids(text: str) -> tuple[str, ...]:
    return decode_tracking_ids(text, source=TRACKING_IDS)


def _time_of(entry: str) -> datetime:
    return datetime.fromtimestamp(int(entry.partition("-")[0]) / 1_000, UTC)
