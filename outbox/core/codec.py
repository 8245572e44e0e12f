"""Bodies and headers to bytes and back, the same for every transport."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel

from outbox.errors import EncodingError, MalformedMessageError

JSON = "application/json"
OCTETS = "application/octet-stream"

TRACKING_IDS = "x-outbox-tracking-ids"
ATTEMPT = "x-outbox-attempt"
ROUTING_KEY = "x-outbox-routing-key"
ORDERING_KEY = "x-outbox-ordering-key"
EXPIRES_AT = "x-outbox-expires-at"
HLC = "x-outbox-hlc"
EXCEPTION_TYPE = "x-outbox-exception-type"
EXCEPTION_MESSAGE = "x-outbox-exception-message"
EXCEPTION_TRACEBACK = "x-outbox-exception-traceback"
REQUEUE_COUNT = "x-outbox-requeue-count"
FAILURES = "x-outbox-failures"
AMQP = "x-outbox-amqp"
"""Of a requeued row only: the types of its headers and the properties that the message had in RabbitMQ."""
RESERVED_PREFIX = "x-outbox-"

_ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_ONE_PLAIN_ID = re.compile(r'\["([A-Za-z0-9_.:-]+)"\]')
_quoted = json.JSONEncoder().encode


def encode_body(body: object, *, routing_key: str) -> tuple[bytes, str]:
    """The bytes of a body and their content type.

    A pydantic model becomes its JSON, bytes stay as they are, anything else goes through `json.dumps`. Raises
    `EncodingError`, naming the routing key, for what is none of these.
    """
    try:
        if isinstance(body, BaseModel):
            return body.model_dump_json().encode(), JSON
        if isinstance(body, bytes | bytearray | memoryview):
            return bytes(body), OCTETS
        return json.dumps(body).encode(), JSON
    except (TypeError, ValueError, RecursionError) as error:
        raise EncodingError(f"the body of {routing_key!r} cannot be serialised: {error}") from error


def encode_headers(headers: Mapping[str, Any] | None, *, routing_key: str) -> str | None:
    """Application headers as the JSON that the table keeps; None for none.

    Raises `EncodingError` for keys that are not strings, keys that belong to us (`x-outbox-…`), and values that JSON or
    PostgreSQL's jsonb cannot hold.
    """
    if not headers:
        return None
    if not isinstance(headers, Mapping):
        raise EncodingError(f"the headers of {routing_key!r} are a mapping of names to values, not {type(headers).__name__}")
    for key in headers:
        if not isinstance(key, str):
            raise EncodingError(f"a header of {routing_key!r} has the name {key!r}: header names are strings")
        if key.lower().startswith(RESERVED_PREFIX):
            raise EncodingError(f"the header {key!r} of {routing_key!r} is reserved: {RESERVED_PREFIX}… belongs to Outbox")
    return encode_jsonb(dict(headers), what=f"the headers of {routing_key!r}")


def encode_jsonb(value: object, *, what: str) -> str:
    """JSON that a jsonb column accepts: without NUL, without half surrogate pairs. Raises `EncodingError`, naming `what`.

    Found out here, because a refusal by the server would end the caller's transaction.
    """
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        text.encode()  # raises for half a surrogate pair
    except (TypeError, ValueError, RecursionError) as error:
        raise EncodingError(f"{what} cannot be serialised: {error}") from error
    if _ESCAPED_NUL.search(text):
        raise EncodingError(f"{what} cannot be stored: PostgreSQL knows no text with the character NUL in it")
    return text


def encode_tracking_ids(tracking_ids: tuple[str, ...]) -> str:
    """A JSON array as text: the form of the header and of the column."""
    return f"[{', '.join(map(_quoted, tracking_ids))}]"  # as `json.dumps` would, in a quarter of its time


def decode_tracking_ids(text: object, *, source: str) -> tuple[str, ...]:
    """The ids in a JSON array of strings. Raises `MalformedMessageError`, naming `source`, for anything else."""
    if isinstance(text, str) and (only := _ONE_PLAIN_ID.fullmatch(text)) is not None:
        return (only[1],)  # as most are, in a third of the time
    try:
        ids = json.loads(text) if isinstance(text, str | bytes) else text
    except (ValueError, RecursionError) as error:
        raise MalformedMessageError(f"{source} is not JSON: {error}") from error
    if not isinstance(ids, list) or not all(isinstance(id_, str) for id_ in ids):
        raise MalformedMessageError(f"{source} is not a list of strings")
    return tuple(ids)


def encode_instant(instant: datetime) -> str:
    """RFC 3339 in UTC, the form of `x-outbox-expires-at`."""
    return instant.astimezone(UTC).isoformat()


def decode_instant(text: object, *, source: str) -> datetime:
    """The instant that `encode_instant` wrote. Raises `MalformedMessageError`, naming `source`."""
    if not isinstance(text, str):
        raise MalformedMessageError(f"{source} is not text")
    try:
        instant = datetime.fromisoformat(text)
        return instant.astimezone(UTC) if instant.tzinfo else instant.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise MalformedMessageError(f"{source} is not a time: {text[:64]!r}") from error
