"""Encodes and decodes bodies and headers, the same for every transport."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, NamedTuple

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
"""Only on requeued rows: the types of the headers and the properties that the message had in RabbitMQ."""
RESERVED_PREFIX = "x-outbox-"
ENCRYPTION = "x-encryption"
"""An application header, so that it stays with its body: how `outbox.encryption` encrypted the body."""
BODY_STORE = "x-body-store"
"""An application header, for the same reason: where `outbox.large_bodies` stored the body. The message's own is empty then."""
VERSION_HEADER = "event-version"
"""An application header: the version of a typed event's body, a number from 1. Publishers in other languages set it, too."""
TRACEPARENT = "traceparent"
"""An application header: the trace that the message belongs to, as https://www.w3.org/TR/trace-context/ defines it."""

_SET_BY = {ENCRYPTION: "encryption", BODY_STORE: "large_bodies"}
"""The argument of the Publisher that sets a header."""
_KEY_ID = re.compile(r"v=1;alg=[^;]*;kid=([^;]*)")
_STORED = re.compile(r"v=1;key=(?P<key>[0-9a-f]{32});size=(?P<size>[0-9]{1,15});sha256=(?P<sha256>[0-9a-f]{64})")
_ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_ONE_PLAIN_ID = re.compile(r'\["([A-Za-z0-9_.:-]+)"\]')
_SAMPLED = re.compile(r"[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f][13579bdf](?:-.*)?", re.DOTALL)
_quoted = json.JSONEncoder().encode
_decoded = json.JSONDecoder().raw_decode


def encode_body(body: object, *, routing_key: str) -> tuple[bytes, str]:
    """Returns a body as bytes, and its content type.

    A pydantic model becomes its JSON, bytes stay unchanged, anything else goes through `json.dumps`. Raises `EncodingError`,
    naming the routing key, if that fails.
    """
    try:
        if isinstance(body, BaseModel):
            return body.model_dump_json().encode(), JSON
        if isinstance(body, bytes | bytearray | memoryview):
            return bytes(body), OCTETS
        return json.dumps(body).encode(), JSON
    except (TypeError, ValueError, RecursionError) as error:
        hint = "" if isinstance(body, BaseModel) else ". Publish a pydantic model, or values of JSON"
        raise EncodingError(f"the body of {routing_key!r} cannot be serialised: {error}{hint}") from error


def is_json(content_type: str | None) -> bool:
    """Whether a media type is JSON or a format based on it, such as `application/cloudevents+json; charset=utf-8`."""
    return (content_type or "").partition(";")[0].strip().lower().endswith(("/json", "+json"))


def body_headers(headers: Mapping[str, Any] | str | None) -> dict[str, Any]:
    """Returns those application headers, given as a mapping or as JSON, that say how the body is encrypted and where it is."""
    if isinstance(headers, str):
        # Most messages have neither, and need not be parsed.
        found = json.loads(headers) if any(f'"{name}":' in headers for name in _SET_BY) else None
        headers = found if isinstance(found, dict) else None
    return {} if headers is None else {name: headers[name] for name in _SET_BY if name in headers}


def key_id_of(header: object) -> str:
    """Returns the id of the key in a value of the header `x-encryption`; empty if this release does not know its form."""
    found = _KEY_ID.match(header) if isinstance(header, str) else None
    return "" if found is None else found[1]


def encode_stored(key: str, body: bytes) -> str:
    """Returns the value of the header `x-body-store` for a body that is stored under `key`."""
    return f"v=1;key={key};size={len(body)};sha256={sha256(body).hexdigest()}"


class Stored(NamedTuple):
    """Where a body is stored, its size in bytes, and its SHA-256 in hexadecimal digits."""

    key: str
    size: int
    sha256: str


def decode_stored(header: object) -> Stored | None:
    """Parses a value of the header `x-body-store`. Returns None if it is not of a form that this release knows."""
    found = _STORED.fullmatch(header) if isinstance(header, str) else None
    return None if found is None else Stored(found["key"], int(found["size"]), found["sha256"])


def event_version(headers: Mapping[str, Any], *, default: int = 1) -> int:
    """Returns the version of a typed event's body; `default` without the header. Raises `MalformedMessageError`."""
    value = headers.get(VERSION_HEADER)
    if value is None:
        return default
    # Other languages may send it as text.
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise MalformedMessageError(f"the header {VERSION_HEADER!r} must be a number from 1, not {value!r}")
    return value


def edited_content_type(before: str | None, kind: str) -> str:
    """Returns the content type of an edited body: the old one if it still fits, else `kind`, which `encode_body` returned."""
    return before if before is not None and (kind == OCTETS or is_json(before)) else kind


def encode_headers(headers: Mapping[str, Any] | None, *, routing_key: str) -> str | None:
    """Returns application headers as JSON for the table; None if there are none.

    Raises `EncodingError` for keys that are not strings, reserved keys (`x-outbox-…`, `x-encryption` and `x-body-store`), and
    values that JSON or PostgreSQL's jsonb cannot represent.
    """
    if not headers:
        return None
    if not isinstance(headers, Mapping):
        raise EncodingError(f"the headers of {routing_key!r} must be a mapping, not {type(headers).__name__}")
    for key in headers:
        if not isinstance(key, str):
            raise EncodingError(f"a header of {routing_key!r} has the name {key!r}: header names must be strings")
        if key.lower().startswith(RESERVED_PREFIX):
            raise EncodingError(f"the header {key!r} of {routing_key!r} is reserved: {RESERVED_PREFIX}… is for Outbox only")
        if (argument := _SET_BY.get(key.lower())) is not None:
            raise EncodingError(f"the header {key!r} of {routing_key!r} is set by Publisher({argument}=…): remove it")
    return encode_jsonb(dict(headers), what=f"the headers of {routing_key!r}")


def edited_headers(
    current: str | None, given: Mapping[str, Any] | None, own: Mapping[str, Any] | None, *, routing_key: str
) -> str | None:
    """Returns the JSON of headers after an edit: `given` in place of `current`, unless it is None.

    `own` are the `body_headers` of a new body. If it is None, those of `current` stay, whether they are given or not. Raises
    `EncodingError` as `encode_headers` does, also for another value of one of those.
    """
    if given is None and own is None:
        return current
    before = body_headers(current)
    if given is None:
        found = json.loads(current or "{}")
        others = {name: value for name, value in found.items() if name not in before} if isinstance(found, dict) else {}
    else:
        wanted = {name: value for name, value in given.items() if name not in before or value != before[name]}
        others = json.loads(encode_headers(wanted, routing_key=routing_key) or "{}")
    headers = {**others, **(before if own is None else own)}
    return json.dumps(headers, ensure_ascii=False) if headers else None


def encode_jsonb(value: object, *, what: str) -> str:
    """Returns JSON that a jsonb column accepts, without NUL or half surrogate pairs. Raises `EncodingError`, naming `what`."""
    # Checked here because an error from the server would abort the caller's transaction.
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        text.encode()  # raises for half a surrogate pair
    except (TypeError, ValueError, RecursionError) as error:
        raise EncodingError(f"{what} cannot be serialised: {error}") from error
    if _ESCAPED_NUL.search(text):
        raise EncodingError(f"{what} cannot be stored: PostgreSQL does not allow the character NUL in text")
    return text


def encode_tracking_ids(tracking_ids: tuple[str, ...]) -> str:
    """Returns the ids as a JSON array in text, the form of the header and the column."""
    return f"[{', '.join(map(_quoted, tracking_ids))}]"  # the same as `json.dumps`, in a quarter of the time


def decode_tracking_ids(text: object, *, source: str) -> tuple[str, ...]:
    """Parses a JSON array of strings. Raises `MalformedMessageError`, naming `source`, for anything else."""
    if isinstance(text, str) and (only := _ONE_PLAIN_ID.fullmatch(text)) is not None:
        return (only[1],)  # the usual case, in a third of the time of `json.loads`
    try:
        ids = json.loads(text) if isinstance(text, str | bytes) else text
    except (ValueError, RecursionError) as error:
        raise MalformedMessageError(f"{source} is not JSON: {error}") from error
    if not isinstance(ids, list) or not all(isinstance(id_, str) for id_ in ids):
        raise MalformedMessageError(f"{source} is not a list of strings")
    return tuple(ids)


def decode_jsonb(text: str) -> Any:
    """Parses the text of a `jsonb` value, in a third of the time of `json.loads`, which looks for spaces around it."""
    return _decoded(text)[0]


def decode_headers(text: str | None, *, source: str) -> dict[str, Any]:
    """Parses headers in the text of a `jsonb` column. Raises `MalformedMessageError`, which names `source`."""
    try:
        # Some programs write the JSON value null for no value.
        headers = None if text is None else decode_jsonb(text)
    except (ValueError, RecursionError) as error:  # a number with thousands of digits, deeply nested arrays
        raise MalformedMessageError(f"{source} cannot be read: {error}") from None
    if headers is None:
        return {}
    if not isinstance(headers, dict):
        raise MalformedMessageError(f"{source} is not a JSON object")
    return headers


def parse_traceparent(value: object) -> tuple[str, str] | None:
    """Returns the trace id and the span id in a value of the header `traceparent`, in 32 and 16 hexadecimal digits.

    None if there are none, or if the trace is not sampled: nothing of it is exported, so its ids lead nowhere.
    """
    found = _SAMPLED.fullmatch(value) if isinstance(value, str) else None
    return None if found is None else (found[1], found[2])


def trace_id_of(traceparent: object) -> str | None:
    """Returns the trace id that `parse_traceparent` finds; None if it finds none."""
    ids = parse_traceparent(traceparent)
    return None if ids is None else ids[0]


def encode_instant(instant: datetime) -> str:
    """Formats a time as RFC 3339 in UTC, the form of `x-outbox-expires-at`."""
    return instant.astimezone(UTC).isoformat()


def decode_instant(text: object, *, source: str) -> datetime:
    """Parses the result of `encode_instant`. Raises `MalformedMessageError`, naming `source`."""
    if not isinstance(text, str):
        raise MalformedMessageError(f"{source} is not text")
    try:
        instant = datetime.fromisoformat(text)
        return instant.astimezone(UTC) if instant.tzinfo else instant.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise MalformedMessageError(f"{source} is not a time: {text[:64]!r}") from error
