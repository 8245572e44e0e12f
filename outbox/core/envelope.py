"""The properties of a message as text, for brokers that have no fields for them: Kafka, NATS, Redis and AWS."""

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from outbox.core.codec import (
    EXPIRES_AT,
    HLC,
    ORDERING_KEY,
    REQUEUE_COUNT,
    ROUTING_KEY,
    TRACKING_IDS,
    decode_instant,
    decode_tracking_ids,
    encode_instant,
    encode_tracking_ids,
)
from outbox.core.message import Message
from outbox.core.urls import ROUTING_KEY_IN_TOPIC
from outbox.errors import MalformedMessageError

MESSAGE_ID = "x-outbox-message-id"
CREATED_AT = "x-outbox-created-at"
CONTENT_TYPE = "content-type"
JSON_HEADERS = "x-outbox-json-headers"
"""The names of the headers whose values are JSON, because the broker cannot transmit them as they are."""

_DECIMAL = re.compile(r"[0-9]{1,18}")


def encode_envelope(message: Message) -> dict[str, str]:
    """Returns the fields of `message` that have a value, by name. Its content type is not among them."""
    fields = {
        MESSAGE_ID: message.id,
        ROUTING_KEY: message.routing_key,
        TRACKING_IDS: encode_tracking_ids(message.tracking_ids),
        CREATED_AT: encode_instant(message.created_at),
    }
    if message.expires_at is not None:
        fields[EXPIRES_AT] = encode_instant(message.expires_at)
    if message.hlc is not None:
        fields[HLC] = str(message.hlc)
    if message.requeue_count:
        fields[REQUEUE_COUNT] = str(message.requeue_count)
    if message.ordering_key is not None:
        fields[ORDERING_KEY] = message.ordering_key
    return fields


def decode_envelope(fields: Mapping[str, Any], *, id_: str, routing_key: str, created_at: datetime) -> dict[str, Any]:
    """Returns arguments for a `Message` from what `encode_envelope` has made, or from the fields of any other program.

    Never raises: `id_`, `routing_key` and `created_at` replace what is missing or cannot be read.
    """

    def text(name: str) -> str | None:
        value = fields.get(name)
        return value if isinstance(value, str) and value else None

    def number(name: str) -> int | None:
        value = text(name)
        return int(value) if value is not None and _DECIMAL.fullmatch(value) else None

    def instant(name: str) -> datetime | None:
        with suppress(MalformedMessageError):
            return decode_instant(text(name), source=name)
        return None

    id_ = text(MESSAGE_ID) or id_
    tracking_ids: tuple[str, ...] = ()
    with suppress(MalformedMessageError):
        tracking_ids = decode_tracking_ids(text(TRACKING_IDS), source=TRACKING_IDS)
    return {
        "id": id_,
        "routing_key": text(ROUTING_KEY) or routing_key,
        "created_at": instant(CREATED_AT) or created_at,
        # A chain ends with the message itself. Another program may have copied the headers of the message that it handled.
        "tracking_ids": tracking_ids if tracking_ids[-1:] == (id_,) else (id_,),
        "expires_at": instant(EXPIRES_AT),
        "ordering_key": text(ORDERING_KEY),
        "hlc": number(HLC),
        "requeue_count": min(number(REQUEUE_COUNT) or 0, 2**31 - 1),
    }


def routing_key_of(name: str, template: object) -> str:
    """Returns what `{routing_key}` stands for in the name of a topic or subject; `name` itself if that is unknown."""
    if isinstance(template, str) and template.count(ROUTING_KEY_IN_TOPIC) == 1:
        before, _, after = template.partition(ROUTING_KEY_IN_TOPIC)
        if name.startswith(before) and name.endswith(after) and len(name) > len(before) + len(after):
            return name[len(before) : len(name) - len(after)]
    return name
