"""CloudEvents 1.0, to publish and to read: in binary and structured mode, for AMQP, Kafka and HTTP.

Sources: the CloudEvents specification 1.0.2, its JSON event format, and its bindings for AMQP, Kafka and HTTP.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, Protocol, Unpack
from urllib.parse import quote, unquote

from pydantic import BaseModel

from outbox.core.codec import JSON, OCTETS, ROUTING_KEY, body_headers, encode_body, is_json
from outbox.core.message import NO_HEADERS, OutboxMessage, PublishOptions
from outbox.core.tracking import new_id
from outbox.errors import ConfigurationError, EncodingError, MalformedMessageError

Prefix = Literal["cloudEvents_", "cloudEvents:", "ce_", "ce-"]
"""What the names of headers begin with in binary mode: on AMQP either of the first two, then on Kafka and in HTTP."""
STRUCTURED = "application/cloudevents+json"
"""The content type of an event in structured mode."""

_PREFIXES = ("cloudevents_", "cloudevents:", "ce_", "ce-")
_ANY_FORMAT = "application/cloudevents"
_SPEC_VERSION = "1.0"
_EXTENSION = re.compile(r"[a-z0-9]+")
_INTEGERS = range(-(2**31), 2**31)
# RFC 3339 allows more digits of a second than Python reads, and Python more forms of a time than RFC 3339.
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(\.\d{1,6})?\d*([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_CHARSET = re.compile(r';\s*charset="?([^\s";]+)', re.IGNORECASE)
# HTTP's binding encodes everything but visible ASCII, and of that the quotation mark and the percent sign.
_NOT_QUOTED = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudEvent:
    """One event. The fields are the attributes of the specification.

    `source` and `id` together identify the event; `id` is by default a new UUID, `time` is now. A naive `time` is in the
    process's local time zone. `data` is a JSON value or a pydantic model, text, bytes, or None for an event without data.
    `datacontenttype` is by default "application/json", or for bytes "application/octet-stream". `extensions` are further
    attributes, with lower-case names and text, bool or 32-bit whole numbers as values.

    Raises `ConfigurationError` for values that the specification does not allow.
    """

    source: str
    type: str
    id: str = field(default_factory=new_id)
    data: Any = None
    datacontenttype: str | None = None
    dataschema: str | None = None
    subject: str | None = None
    time: datetime | None = field(default_factory=lambda: datetime.now(UTC))
    extensions: Mapping[str, str | int | bool] = field(default_factory=lambda: NO_HEADERS)

    def __post_init__(self) -> None:
        if self.data is not None and self.datacontenttype is None:
            kind = OCTETS if isinstance(self.data, bytes | bytearray | memoryview) else JSON
            object.__setattr__(self, "datacontenttype", kind)
        for name in ("source", "type", "id", "datacontenttype", "dataschema", "subject"):
            value = getattr(self, name)
            optional = name in ("datacontenttype", "dataschema", "subject")
            if not (value is None and optional) and not (isinstance(value, str) and value):
                raise ConfigurationError(f"{name} of a CloudEvent must be non-empty text, not {value!r}")
        if self.time is not None and not isinstance(self.time, datetime):
            raise ConfigurationError(f"time of a CloudEvent must be a datetime, not {self.time!r}")
        for name, extension in self.extensions.items():
            if (
                not isinstance(name, str)
                or _EXTENSION.fullmatch(name) is None
                or name in _ATTRIBUTES
                or name in _NOT_EXTENSIONS
            ):
                raise ConfigurationError(
                    f"a CloudEvent cannot have the extension {name!r}: use lower-case letters and digits, and none of the "
                    f"specification's own names"
                )
            if not isinstance(extension, str | int) or (isinstance(extension, int) and extension not in _INTEGERS):
                raise ConfigurationError(
                    f"the extension {name!r} of a CloudEvent must be text, a bool or a 32-bit whole number, not {extension!r}"
                )


class Encoded(NamedTuple):
    """An event as a client sends it. `content_type` is also in `headers` for Kafka and HTTP, by the name "content-type"."""

    headers: dict[str, Any]
    body: bytes
    content_type: str | None


class Incoming(Protocol):
    """What a handler gets as `message`."""

    @property
    def body(self) -> bytes: ...
    @property
    def headers(self) -> Any: ...
    @property
    def content_type(self) -> str | None: ...
    @property
    def message_id(self) -> str | None: ...
    @property
    def routing_key(self) -> str | None: ...
    @property
    def timestamp(self) -> datetime | None: ...


def message(
    event: CloudEvent,
    routing_key: str | None = None,
    *,
    structured: bool = False,
    prefix: Prefix = "cloudEvents_",
    **options: Unpack[PublishOptions],
) -> OutboxMessage:
    """Returns a message that publishes `event`, with its type as the routing key by default.

    In binary mode, the default, the body is the event's data, and its attributes are headers; handlers and other consumers read
    the data as usual. With `structured`, the body is a JSON object of attributes and data. `prefix` begins the headers' names.
    `options` are those of `Publisher.publish`; their headers are sent, too, and the event decides the content type. Raises
    `EncodingError`, as `encode` does.
    """
    encoded = encode(event, structured=structured, prefix=prefix)
    options["headers"] = {**(options.get("headers") or {}), **encoded.headers}
    options["content_type"] = encoded.content_type
    return OutboxMessage(event.type if routing_key is None else routing_key, encoded.body, **options)


def read(message: Incoming) -> CloudEvent:
    """Returns the event in a handler's `message`, in whichever mode and with whichever prefix it was sent.

    Raises `MalformedMessageError` if the message is not an event, as `decode` does, and `ConfigurationError` if its body is
    encrypted or stored elsewhere: only the handler has the plain body then.
    """
    body = _plain_body(message, instead="decode(message.headers, body, message.content_type)")
    return decode(message.headers or {}, body, message.content_type)


def from_message(
    message: Incoming,
    *,
    source: str,
    type: str | None = None,  # noqa: A002  the specification's name
    subject: str | None = None,
) -> CloudEvent:
    """Returns an event that stands for a handler's `message`, which is not one itself: to pass it on in this form.

    `id` is the message's id, so that receivers recognise a repetition. `type` is by default the routing key with which it was
    published, `time` is when that was, and data and `datacontenttype` are those of its body. Raises `ConfigurationError` for
    a message without an id and as `read` does, and `MalformedMessageError` for a body that does not fit its content type.
    """
    headers = message.headers or {}
    body = _plain_body(message, instead="CloudEvent(…, data=…)")
    return CloudEvent(
        source=source,
        # A message that is retried or requeued arrives with the name of its queue.
        type=type or str(headers.get(ROUTING_KEY) or message.routing_key or ""),
        id=message.message_id or "",
        data=_decoded_data(body, message.content_type),
        datacontenttype=message.content_type,
        subject=subject,
        time=message.timestamp,
    )


def _plain_body(message: Incoming, *, instead: str) -> bytes:
    """Returns the body of a handler's `message`. Raises `ConfigurationError` if it is encrypted or stored elsewhere."""
    if found := body_headers(message.headers):
        raise ConfigurationError(
            f"the message has the header {next(iter(found))}: only its handler gets the plain body; write {instead} with that"
        )
    return message.body


def encode(event: CloudEvent, *, structured: bool = False, prefix: Prefix = "cloudEvents_") -> Encoded:
    """Returns headers, body and content type of `event`, for a client of AMQP, Kafka or HTTP.

    Values of headers are text, on AMQP also numbers and bools. Raises `ConfigurationError` for an unknown prefix, and
    `EncodingError` for data that its content type does not allow.
    """
    if prefix.lower() not in _PREFIXES:
        raise ConfigurationError(f"prefix must be 'cloudEvents_', 'cloudEvents:', 'ce_' or 'ce-', not {prefix!r}")
    content_type = STRUCTURED if structured else event.datacontenttype
    headers: dict[str, Any] = {}
    for name, value in () if structured else _attributes(event).items():
        if name == "datacontenttype":
            continue
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if prefix == "ce-":
            text = quote(text, safe=_NOT_QUOTED)
        headers[f"{prefix}{name}"] = text if prefix in ("ce_", "ce-") else value
    if prefix in ("ce_", "ce-") and content_type is not None:
        headers["content-type"] = content_type
    return Encoded(headers, _structured_body(event) if structured else _encoded_data(event), content_type)


def decode(
    headers: Mapping[str, object] | Iterable[tuple[str, object]], body: bytes, content_type: str | None = None
) -> CloudEvent:
    """Returns the event that was received with `headers`: a mapping, or pairs of name and value, with text or bytes as values.

    Recognises the mode by the content type, which is taken from the header "content-type" if it is not given, and binary
    headers by any of the prefixes. Names are not case-sensitive. JSON data is parsed, `text/…` is decoded, as UTF-8 or in the
    `charset` of the content type, and other data stays bytes. Raises `MalformedMessageError`, which names what is missing or
    invalid, for anything but an event of version 1.0; a batch of events is none.
    """
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    found = {name.lower(): value.decode(errors="replace") if isinstance(value, bytes) else value for name, value in pairs}
    content_type = content_type or str(found.get("content-type") or "") or None
    if (content_type or "").lower().startswith(_ANY_FORMAT):
        if (content_type or "").partition(";")[0].strip().lower() != STRUCTURED:
            raise MalformedMessageError(f"only {STRUCTURED} can be read, not {content_type}")
        return _from_structured(body, content_type)
    attributes: dict[str, Any] = {}
    for name, value in found.items():
        prefix = next((prefix for prefix in _PREFIXES if name.startswith(prefix)), None)
        if prefix is not None:
            if prefix == "ce-" and isinstance(value, str):
                # Senders of HTTP may use quotation marks around what they percent-encode.
                quoted = _IN_QUOTES.fullmatch(value.strip())
                value = unquote(value if quoted is None else re.sub(r"\\(.)", r"\1", quoted[1], flags=re.DOTALL))  # noqa: PLW2901
            attributes[name.removeprefix(prefix)] = value
    if content_type is not None:
        attributes["datacontenttype"] = content_type
    return _checked(attributes, _decoded_data(body, content_type))


_IN_QUOTES = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)


_ATTRIBUTES = ("id", "source", "type", "datacontenttype", "dataschema", "subject", "time")
_NOT_EXTENSIONS = ("specversion", "data", "data_base64")


def _attributes(event: CloudEvent) -> dict[str, Any]:
    """Returns the attributes that the event has, with the time as text."""
    named = {name: getattr(event, name) for name in _ATTRIBUTES}
    if event.time is not None:
        named["time"] = event.time.astimezone(UTC).isoformat().replace("+00:00", "Z")
    own = {name: value for name, value in named.items() if value is not None}
    return {"specversion": _SPEC_VERSION, **own, **event.extensions}


def _encoded_data(event: CloudEvent) -> bytes:
    data = event.data
    if data is None:
        return b""
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    if is_json(event.datacontenttype):
        data = encode_body(data, routing_key=event.type)[0].decode()
    if not isinstance(data, str):
        raise EncodingError(f"data of {event.datacontenttype} must be text or bytes, not {type(data).__name__}")
    try:
        return data.encode(_charset(event.datacontenttype))
    except (ValueError, LookupError) as error:
        raise EncodingError(f"data of {event.datacontenttype} is not valid text: {error}") from error


def _structured_body(event: CloudEvent) -> bytes:
    whole = _attributes(event)
    data = event.data
    if data is not None and is_json(event.datacontenttype):
        encoded = isinstance(data, bytes | bytearray | memoryview)
        try:
            whole["data"] = (
                _json(_encoded_data(event), event.datacontenttype) if encoded or isinstance(data, BaseModel) else data
            )
        except (ValueError, LookupError) as error:
            raise EncodingError(f"data of {event.type!r} is not the JSON that its content type says: {error}") from error
    elif isinstance(data, str):
        whole["data"] = data
    elif data is not None:
        whole["data_base64"] = base64.b64encode(_encoded_data(event)).decode()
    return encode_body(whole, routing_key=event.type)[0]


def _from_structured(body: bytes, content_type: str | None) -> CloudEvent:
    try:
        whole = _json(body, content_type)
    except (ValueError, LookupError, RecursionError) as error:
        raise MalformedMessageError(f"the CloudEvent is not JSON: {error}") from error
    if not isinstance(whole, dict):
        raise MalformedMessageError("the CloudEvent is not a JSON object")
    data, encoded = whole.pop("data", None), whole.pop("data_base64", None)
    if encoded is not None:
        try:
            data = _decoded_data(base64.b64decode(encoded, validate=True), whole.get("datacontenttype"))
        except (TypeError, binascii.Error) as error:
            raise MalformedMessageError(f"data_base64 of the CloudEvent is not Base64: {error}") from error
    return _checked({name: value for name, value in whole.items() if value is not None}, data)


def _decoded_data(body: bytes, content_type: object) -> Any:
    if not isinstance(content_type, str):
        return body or None
    if not body:
        return None
    try:
        if is_json(content_type):
            return _json(body, content_type)
        return body.decode(_charset(content_type)) if content_type.lower().startswith("text/") else body
    except (ValueError, LookupError, RecursionError) as error:
        raise MalformedMessageError(f"the data is not {content_type}: {error}") from error


def _json(body: bytes, content_type: str | None) -> Any:
    # Without a charset, `json` recognises UTF-8, UTF-16 and UTF-32.
    return json.loads(body.decode(_charset(content_type)) if _CHARSET.search(content_type or "") else body)


def _charset(content_type: str | None) -> str:
    found = _CHARSET.search(content_type or "")
    return "utf-8" if found is None else found[1]


def _checked(attributes: dict[str, Any], data: Any) -> CloudEvent:
    version = attributes.pop("specversion", None)
    if version != _SPEC_VERSION:
        problem = "it has no specversion" if version is None else f"its specversion is {version!r}"
        raise MalformedMessageError(f"this is not a CloudEvent of version {_SPEC_VERSION}: {problem}")
    missing = [name for name in ("id", "source", "type") if not attributes.get(name)]
    if missing:
        raise MalformedMessageError(f"the CloudEvent has no {', '.join(missing)}")
    time = _read_time(attributes.pop("time", None))
    own = {name: attributes.pop(name) for name in _ATTRIBUTES if name in attributes}
    try:
        return CloudEvent(**own, time=time, data=data, extensions=attributes)
    except ConfigurationError as error:
        raise MalformedMessageError(str(error)) from error


def _read_time(value: object) -> datetime | None:
    if value is None or isinstance(value, datetime):
        return value
    # AMQP 1.0 has a type for times: milliseconds since 1970.
    if isinstance(value, int) and not isinstance(value, bool):
        try:
            return datetime.fromtimestamp(value / 1000, UTC)
        except (ValueError, OverflowError, OSError):
            pass
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    if found is not None:
        day, clock, fraction, zone = found.groups()
        try:
            return datetime.fromisoformat(f"{day}T{clock}{fraction or ''}{'+00:00' if zone in 'Zz' else zone}")
        except ValueError:
            pass
    raise MalformedMessageError(f"time of the CloudEvent is not a time of RFC 3339: {value!r:.64}")
