"""Encodes AMQP 0-9-1 frames of publications.

pamqp can encode any frame, but is several times too slow for a relay, cuts header names at 128 bytes, and encodes every float
in 32 bits. Sources: AMQP 0-9-1 specification, section 4.2; RabbitMQ's errata for field types.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from pamqp.commands import Basic

PROPERTIES: Mapping[str, str] = {
    "content_type": "short string",
    "content_encoding": "short string",
    "headers": "table",
    "delivery_mode": "octet",
    "priority": "octet",
    "correlation_id": "short string",
    "reply_to": "short string",
    "expiration": "short string",
    "message_id": "short string",
    "timestamp": "timestamp",
    "message_type": "short string",
    "user_id": "short string",
    "app_id": "short string",
    "cluster_id": "short string",
}
"""The properties of a message and their types, in the order of the wire, which is that of their flags."""
FIRST_FLAG = 0x8000
"""The flag of the first property; each further one has the next lower bit."""
LONGEST_SHORT_STRING = 255
"""Most bytes of a routing key, a message id or a header name."""
PERSISTENT = 2
"""Delivery mode of messages that survive a restart of the broker."""
FRAME_OVERHEAD = 8
"""Bytes of a frame besides its payload: type, channel, size and end."""

_DEFAULT_FRAME_MAX = 131_072
_METHOD, _HEADER, _BODY = 1, 2, 3
_END = b"\xce"
_BASIC, _PUBLISH = 60, 40
_MANDATORY = 1

_frame_head = struct.Struct(">BHI").pack
_content_head = struct.Struct(">BHIHHQ").pack
_publish_head = struct.Struct(">HHH").pack
_flags = struct.Struct(">H").pack
_int32 = struct.Struct(">i").pack
_int64 = struct.Struct(">q").pack
_uint32 = struct.Struct(">I").pack
_uint64 = struct.Struct(">Q").pack
_float64 = struct.Struct(">d").pack
_decimal = struct.Struct(">Bi").pack


class UnsendableError(ValueError):
    """A message that AMQP cannot carry: a name too long, a header of an unknown type, a frame above the negotiated size."""


@dataclass(frozen=True, slots=True)
class RawField:
    """The encoded value of a header, with its type before it."""

    octets: bytes


@dataclass(slots=True)
class Publication:
    """One message to publish. `properties` are encoded, flags included."""

    exchange: str
    routing_key: str
    message_id: str
    properties: bytes
    body: bytes

    @property
    def identity(self) -> tuple[str, str, str]:
        """Message id, exchange and routing key, by which the broker names a returned message."""
        return self.message_id, self.exchange, self.routing_key

    @property
    def header_size(self) -> int:
        """Bytes of the payload of its content header, which must fit into one frame."""
        return 12 + len(self.properties)


class FrameWriter:
    """Encodes publications as frames of one channel."""

    def __init__(self, channel_number: int, frame_max: int) -> None:
        self._channel = channel_number
        self._largest = largest_payload(frame_max)
        self._methods: dict[tuple[str, str], bytes] = {}

    def frames(self, publication: Publication) -> bytes:
        """Returns method, header and body frames. Raises `UnsendableError` for values that do not fit into them."""
        target = (publication.exchange, publication.routing_key)
        method = self._methods.get(target)
        if method is None:
            # The method frame depends on exchange and routing key only, so it is cached.
            if len(self._methods) >= 1_000:
                self._methods.clear()
            payload = (
                _publish_head(_BASIC, _PUBLISH, 0)
                + short_string(publication.exchange, "the exchange's name")
                + short_string(publication.routing_key, "the routing key")
                # Otherwise the broker would confirm, and drop, what no queue is bound for.
                + bytes((_MANDATORY,))
            )
            method = self._methods[target] = _frame_head(_METHOD, self._channel, len(payload)) + payload + _END
        properties, body = publication.properties, publication.body
        size = publication.header_size
        if size > self._largest:
            raise UnsendableError(f"the headers take {size} bytes, and the broker's frame_max leaves {self._largest} for them")
        header = _content_head(_HEADER, self._channel, size, _BASIC, 0, len(body)) + properties + _END
        if len(body) <= self._largest:
            return method + header + (_frame_head(_BODY, self._channel, len(body)) + body + _END if body else b"")
        pieces = (body[start : start + self._largest] for start in range(0, len(body), self._largest))
        frames = (_frame_head(_BODY, self._channel, len(piece)) + piece + _END for piece in pieces)
        return method + header + b"".join(frames)


def largest_payload(frame_max: int) -> int:
    """Returns the most bytes of payload in one frame. A `frame_max` of 0 means that the broker sets no limit."""
    return (frame_max or _DEFAULT_FRAME_MAX) - FRAME_OVERHEAD


def encode_properties(properties: Basic.Properties) -> bytes:
    """Encodes flags and values of a content header. Raises `UnsendableError`."""
    return encode_named({name: getattr(properties, name) for name in _PROPERTIES})


def encode_named(properties: Mapping[str, Any]) -> bytes:
    """Encodes the given properties, by name and in any order. Raises `UnsendableError`."""
    flags, parts = 0, [b""] * len(PROPERTIES)
    for name, value in properties.items():
        if value is not None and value != "":
            place, encode = _PROPERTIES[name]
            flags |= FIRST_FLAG >> place
            parts[place] = encode(value, name)
    return _flags(flags) + b"".join(parts)


def encode_usual(
    headers: Mapping[str, Any],
    *,
    content_type: str | None,
    correlation_id: str | None,
    expiration: str | None,
    message_id: str,
    timestamp: datetime,
) -> bytes:
    """Encodes the properties of a first, persistent publish in half the time of `encode_named`. Raises `UnsendableError`."""
    flags = _HEADERS | _DELIVERY_MODE | _TIMESTAMP
    type_ = correlation = expires = id_ = b""
    if content_type:
        flags |= _CONTENT_TYPE
        type_ = _often_seen(content_type, "content_type")
    if expiration:
        flags |= _EXPIRATION
        expires = short_string(expiration, "expiration")
    if message_id:
        flags |= _MESSAGE_ID
        id_ = short_string(message_id, "message_id")
    if correlation_id:
        flags |= _CORRELATION_ID
        # Most messages are the root of their chain.
        correlation = id_ if correlation_id == message_id else short_string(correlation_id, "correlation_id")
    return b"".join(
        (
            _flags(flags),
            type_,
            encode_table(headers),
            _PERSISTENT,
            correlation,
            expires,
            id_,
            _timestamp(timestamp, "timestamp"),
        )
    )


def encode_raw(properties: Mapping[str, bytes]) -> bytes:
    """Joins encoded properties, by name and in any order, with their flags."""
    flags, parts = 0, [b""] * len(PROPERTIES)
    for name, octets in properties.items():
        place, _ = _PROPERTIES[name]
        flags |= FIRST_FLAG >> place
        parts[place] = octets
    return _flags(flags) + b"".join(parts)


def encode_table(table: Mapping[str, Any], *, encoded_fields: bytes = b"") -> bytes:
    """Encodes a field table with its length: `encoded_fields`, then the fields of `table`.

    Floats keep 64 bits. Raises `UnsendableError` for values that no field type can hold.
    """
    parts = []
    for name, value in table.items():
        if not isinstance(name, str):
            raise UnsendableError(f"a header has the name {name!r}: names must be strings")
        parts.append(_often_seen(name, "a header's name"))
        parts.append(_field(value, name))
    encoded = encoded_fields + b"".join(parts)
    return _uint32(len(encoded)) + encoded


def short_string(value: str, what: str) -> bytes:
    """Encodes up to 255 bytes of UTF-8 with their length. Raises `UnsendableError` that names `what` if there are more."""
    encoded = _utf8(value, what)
    if len(encoded) > LONGEST_SHORT_STRING:
        raise UnsendableError(f"{what} is {len(encoded)} bytes long, and AMQP allows {LONGEST_SHORT_STRING}")
    return bytes((len(encoded),)) + encoded


_often_seen = lru_cache(1_000)(short_string)


def _field(value: object, name: str) -> bytes:
    encode = _FIELDS.get(type(value))
    if encode is not None:
        return encode(value, name)
    # Subclasses, such as the members of a text enum. `bool` stands before `int`, whose subclass it is.
    for type_, encode in _FIELDS.items():
        if isinstance(value, type_):
            return encode(value, name)
    raise UnsendableError(f"the header {name!r} has a value of type {type(value).__name__}, which AMQP has no field for")


def _integer(value: int, name: str) -> bytes:
    if -0x8000_0000 <= value <= 0x7FFF_FFFF:
        return b"I" + _int32(value)
    if -0x8000_0000_0000_0000 <= value <= 0x7FFF_FFFF_FFFF_FFFF:
        return b"l" + _int64(value)
    raise UnsendableError(f"the header {name!r} has a number of more than 64 bits")


def _scaled(value: Decimal, name: str) -> bytes:
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and -255 <= exponent <= 0 and abs(mantissa := int(value.scaleb(-exponent))) < 2**31:
        return b"D" + _decimal(-exponent, mantissa)
    raise UnsendableError(f"the header {name!r} has a decimal that AMQP cannot hold: {value}")


def _array(value: list[Any] | tuple[Any, ...], name: str) -> bytes:
    encoded = b"".join(_field(item, name) for item in value)
    return b"A" + _uint32(len(encoded)) + encoded


def _timestamp(value: datetime, _: str) -> bytes:
    aware = value if value.tzinfo else value.replace(tzinfo=UTC)
    return _uint64(max(0, int(aware.timestamp())))


def _octet(value: int, what: str) -> bytes:
    if not 0 <= value <= 0xFF:
        raise UnsendableError(f"{what} is {value}, and AMQP allows 0 to 255")
    return bytes((value,))


def _utf8(value: str, what: str) -> bytes:
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise UnsendableError(f"{what} is not valid text: {error}") from error


_Encoder = Callable[[Any, str], bytes]

_FIELDS: dict[type, _Encoder] = {
    str: lambda value, name: b"S" + _uint32(len(encoded := _utf8(value, name))) + encoded,
    bool: lambda value, _: b"t\x01" if value else b"t\x00",
    int: _integer,
    float: lambda value, _: b"d" + _float64(value),
    type(None): lambda _value, _: b"V",
    dict: lambda value, _: b"F" + encode_table(value),
    list: _array,
    tuple: _array,
    # pamqp decodes a string that is not UTF-8 as bytes. Encoded as a string, it keeps its type.
    bytes: lambda value, _: b"S" + _uint32(len(value)) + value,
    bytearray: lambda value, _: b"x" + _uint32(len(value)) + value,
    datetime: lambda value, name: b"T" + _timestamp(value, name),
    Decimal: _scaled,
    RawField: lambda value, _: value.octets,
}

_CONTENT_TYPE, _HEADERS, _DELIVERY_MODE, _CORRELATION_ID = 0x8000, 0x2000, 0x1000, 0x0400
_EXPIRATION, _MESSAGE_ID, _TIMESTAMP = 0x0100, 0x0080, 0x0040
_PERSISTENT = bytes((PERSISTENT,))
_ENCODERS: Mapping[str, _Encoder] = {
    "short string": short_string,
    "table": lambda value, _: encode_table(value),
    "octet": _octet,
    "timestamp": _timestamp,
}
_PROPERTIES = {name: (place, _ENCODERS[type_]) for place, (name, type_) in enumerate(PROPERTIES.items())}
