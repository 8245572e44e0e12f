"""The form of a message in a stream: the fields of its entry."""

import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime

from outbox.core.codec import (
    AMQP,
    JSON,
)
from outbox.core.envelope import CONTENT_TYPE, MESSAGE_ID, decode_envelope, encode_envelope
from outbox.core.message import NO_HEADERS, Message

BODY = "body"
DATA = "data"
HEADERS = "headers"

LARGEST_VALUE = 512 * 1024**2
"""Largest body in bytes. For a larger one a server closes the connection, and with it the answers for other messages."""


def entry_of(message: Message) -> list[bytes]:
    """Encodes `message` as the fields of an entry and their values. Raises `ValueError` if the body is too large."""
    if len(message.body) > LARGEST_VALUE:
        raise ValueError(f"the body has {len(message.body):,} bytes: Redis takes {LARGEST_VALUE:,}")
    fields = {BODY: message.body} | {name: text.encode() for name, text in encode_envelope(message).items()}
    if message.content_type is not None:
        fields[CONTENT_TYPE] = message.content_type.encode()
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
    headers: object = None
    if id_text is not None:
        with suppress(ValueError, RecursionError):
            headers = json.loads(texts.get(HEADERS, "null"))
    stored = datetime.now(UTC)
    with suppress(ValueError, OverflowError, OSError):
        stored = datetime.fromtimestamp(int(entry.partition("-")[0]) / 1_000, UTC)
    return Message(
        body=body,
        content_type=content_type,
        headers=headers if isinstance(headers, dict) else NO_HEADERS,
        **decode_envelope(texts, id_=f"redis:{name}:{entry}", routing_key=routing_key, created_at=stored),
    )


def _text(value: bytes) -> str:
    """Decodes UTF-8, and other bytes as Latin-1, which has a character for each."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
