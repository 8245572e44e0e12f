"""Decodes AMQP 0-9-1 frames of deliveries; see `amqp_encoding.py` for the other direction."""

import struct
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from pamqp.commands import Basic
from pamqp.decode import embedded_value

from outbox.transports.rabbitmq.amqp_encoding import FIRST_FLAG, PROPERTIES

METHOD_FRAME, HEADER_FRAME, BODY_FRAME = 1, 2, 3
HEAD_SIZE = 7
"""Bytes of a frame before its payload: type, channel, size. One byte follows the payload."""

_DELIVER = struct.pack(">HH", 60, 60)
_RETURN = struct.pack(">HH", 60, 50)
_CLOSE = struct.pack(">HH", 10, 50)
# Announces another word of flags, which the 14 properties of AMQP 0-9-1 do not need.
_MORE_FLAGS = 1
_MILLISECONDS_SINCE = 0xFFFF_FFFF

frame_head = struct.Struct(">BHI").unpack_from
_tag_and_redelivered = struct.Struct(">QB").unpack_from
_size_and_flags = struct.Struct(">QH").unpack_from
_uint64 = struct.Struct(">Q").unpack_from
_uint32 = struct.Struct(">I").unpack_from
_int64 = struct.Struct(">q").unpack_from
_TEXT, _LONG = b"Sl"
"""The types of fields that nearly all headers have."""


class Deliver(NamedTuple):
    """The fields of `Basic.Deliver`. Invalid UTF-8 is decoded with replacement characters."""

    consumer_tag: str
    delivery_tag: int
    redelivered: bool
    exchange: str
    routing_key: str


def is_deliver(frames: bytes, at: int) -> bool:
    """Whether the method frame whose payload begins at `at` is a `Basic.Deliver`."""
    return frames.startswith(_DELIVER, at)


def read_deliver(frames: bytes, at: int) -> Deliver:
    """Decodes the payload of a `Basic.Deliver` at `at`."""
    at += len(_DELIVER)
    end = at + 1 + frames[at]
    consumer_tag = frames[at + 1 : end]
    delivery_tag, redelivered = _tag_and_redelivered(frames, end)
    # Behind the delivery tag (8 bytes) and the octet with the bit `redelivered`.
    at = end + 9
    end = at + 1 + frames[at]
    exchange = frames[at + 1 : end]
    routing_key = frames[end + 1 : end + 1 + frames[end]]
    return Deliver(
        consumer_tag.decode(errors="replace"),
        delivery_tag,
        redelivered != 0,
        exchange.decode(errors="replace"),
        routing_key.decode(errors="replace"),
    )


def is_close(frames: bytes, at: int) -> bool:
    """Whether the method frame whose payload begins at `at` is a `Connection.Close`."""
    return frames.startswith(_CLOSE, at)


def read_close(frames: bytes, at: int) -> str:
    """Returns the reply text of a `Connection.Close` at `at`."""
    # Behind the reply code (2 bytes) and the length of the text.
    start = at + len(_CLOSE) + 3
    return frames[start : start + frames[start - 1]].decode(errors="replace")


def read_body_size(frames: bytes, at: int) -> int:
    """Returns the size of the body after the content header whose payload begins at `at`."""
    size: int = _size_and_flags(frames, at + 4)[0]
    return size


def read_properties(frames: bytes, at: int, end: int) -> Basic.Properties:
    """Decodes the properties in the content header whose payload begins at `at`.

    Raises `ValueError` or any other exception for invalid properties: the broker passes on bytes that are not text, and times
    in the year 56407924.
    """
    flags = _size_and_flags(frames, at + 4)[1]
    if flags & _MORE_FLAGS:
        raise ValueError("there are more properties than AMQP 0-9-1 has")
    properties = Basic.Properties()
    # Behind the class and the weight (2 bytes each), the body size (8 bytes) and the flags (2 bytes).
    at += 14
    for name, read in _readers(flags):
        value, at = read(frames, at)
        setattr(properties, name, value)
    if at > end:
        raise ValueError("the properties end before they are complete")
    return properties


def is_return(frames: bytes, at: int) -> bool:
    """Whether the method frame whose payload begins at `at` is a `Basic.Return`."""
    return frames.startswith(_RETURN, at)


def read_return(frames: bytes, at: int) -> tuple[str, str]:
    """Returns the exchange and the routing key of a `Basic.Return` at `at`."""
    # Behind the reply code; then behind the reply text.
    at += len(_RETURN) + 2
    at += 1 + frames[at]
    end = at + 1 + frames[at]
    return frames[at + 1 : end].decode(errors="replace"), frames[end + 1 : end + 1 + frames[end]].decode(errors="replace")


def raw_properties(payload: bytes) -> dict[str, bytes]:
    """Splits the payload of a content header into encoded properties. Raises like `read_properties`."""
    flags = _size_and_flags(payload, 4)[1]
    if flags & _MORE_FLAGS:
        raise ValueError("there are more properties than AMQP 0-9-1 has")
    raw, at = {}, 14
    for name, flag, read in _PROPERTIES:
        if flags & flag:
            end = at + _SIZES[read](payload, at)
            raw[name] = payload[at:end]
            at = end
    if at > len(payload):
        raise ValueError("the properties end before they are complete")
    return raw


def raw_fields(table: bytes) -> Iterator[tuple[str, bytes]]:
    """Yields name and encoding of each field of a table. Raises like `read_properties`."""
    at, end = 4, 4 + int.from_bytes(table[:4])
    while at < end:
        value = at + 1 + table[at]
        size = _FIELD_SIZES.get(table[value])
        if size is None:
            raise ValueError(f"a field has the unknown type {table[value : value + 1]!r}")
        following = value + 1 + (size if size >= 0 else 4 + int.from_bytes(table[value + 1 : value + 5]))
        if following > end:
            raise ValueError("a table ends before it is complete")
        yield table[at + 1 : value].decode(errors="replace"), table[at:following]
        at = following


_Read = Callable[[bytes, int], tuple[Any, int]]


@lru_cache(maxsize=256)
def _readers(flags: int) -> tuple[tuple[str, _Read], ...]:
    """Returns the present properties with their decoders. Cached: all messages of a publisher have the same flags."""
    return tuple((name, read) for name, flag, read in _PROPERTIES if flags & flag)


def _short_string(frames: bytes, at: int) -> tuple[str, int]:
    end = at + 1 + frames[at]
    return frames[at + 1 : end].decode(), end


def _table(frames: bytes, at: int) -> tuple[dict[str, Any], int]:
    end = at + 4 + _uint32(frames, at)[0]
    at += 4
    fields: dict[str, Any] = {}
    while at < end:
        type_ = at + 1 + frames[at]
        name = frames[at + 1 : type_].decode()
        # The usual types are decoded in place: pamqp's functions copy the rest of the table for each field.
        if frames[type_] == _TEXT:
            start = type_ + 5
            at = start + _uint32(frames, type_ + 1)[0]
            value = frames[start:at]
            try:
                fields[name] = value.decode()
            except UnicodeDecodeError:
                fields[name] = value
        elif frames[type_] == _LONG:
            fields[name] = _int64(frames, type_ + 1)[0]
            at = type_ + 9
        else:
            size, fields[name] = embedded_value(frames[type_:end])
            at = type_ + size
    if at > end:
        raise ValueError("a table ends before it is complete")
    return fields, end


def _octet(frames: bytes, at: int) -> tuple[int, int]:
    return frames[at], at + 1


def _timestamp(frames: bytes, at: int) -> tuple[datetime, int]:
    # The specification says seconds, but many publishers write milliseconds. Those exceed 32 bits.
    (value,) = _uint64(frames, at)
    return datetime.fromtimestamp(value / 1000 if value > _MILLISECONDS_SINCE else value, UTC), at + 8


_READERS: Mapping[str, _Read] = {
    "short string": _short_string,
    "table": _table,
    "octet": _octet,
    "timestamp": _timestamp,
}
_PROPERTIES = tuple((name, FIRST_FLAG >> place, _READERS[type_]) for place, (name, type_) in enumerate(PROPERTIES.items()))

_SIZES: Mapping[_Read, Callable[[bytes, int], int]] = {
    _short_string: lambda payload, at: 1 + payload[at],
    _table: lambda payload, at: 4 + int.from_bytes(payload[at : at + 4]),
    _octet: lambda _payload, _at: 1,
    _timestamp: lambda _payload, _at: 8,
}

_WITH_LENGTH = -1
_FIELD_SIZES: Mapping[int, int] = {
    **dict.fromkeys(b"SxFA", _WITH_LENGTH),
    **dict.fromkeys(b"V\x00", 0),
    **dict.fromkeys(b"tbB", 1),
    **dict.fromkeys(b"su", 2),
    **dict.fromkeys(b"Iif", 4),
    ord("D"): 5,
    **dict.fromkeys(b"lLdT", 8),
}
"""Bytes of a field's value, by its type."""
