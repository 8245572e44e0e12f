"""Converts AMQP headers and properties to JSON and back, for dead letters in the database."""

import base64
import math
import struct
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from outbox.transports.rabbitmq.amqp_encoding import FIRST_FLAG, PROPERTIES, RawField

MOST_NESTED = 64
"""Deepest nesting of tables and arrays that is read."""

_FIRST_FLAGS = 12
_MORE_FLAGS = 1
_MILLISECONDS_SINCE = 0xFFFF_FFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Properties and headers of a message as JSON, and the AMQP types of the headers.

    Times are RFC 3339, decimals are text, bytes are Base64; invalid UTF-8 has replacement characters. `types` maps the JSON
    pointer of each header to its AMQP type (`/when`: `timestamp`), if its JSON value alone would be sent as another type.
    `garbled` names properties with invalid contents.
    """

    properties: Mapping[str, Any]
    headers: Mapping[str, Any]
    types: Mapping[str, str]
    garbled: frozenset[str]


def read_content(payload: bytes) -> Content:
    """Decodes the payload of a content header, up to the first part that cannot be read."""
    reader = _Reader(payload)
    properties: dict[str, Any] = {}
    try:
        (flags,) = struct.unpack_from(">H", payload, _FIRST_FLAGS)
        reader.at = _FIRST_FLAGS + 2
        if not flags & _MORE_FLAGS:
            for name, flag, read in _PROPERTIES:
                if flags & flag:
                    reader.path = (name,)
                    properties[name] = read(reader)
    except (ValueError, IndexError, struct.error):
        pass
    headers = properties.pop("headers", reader.unfinished)
    return Content(properties=properties, headers=headers, types=reader.types, garbled=frozenset(reader.garbled))


@dataclass(slots=True)
class _Reader:
    """Reads a payload from a position on. Raises `ValueError` and other errors where it cannot be read."""

    payload: bytes
    at: int = 0
    path: tuple[str, ...] = ()
    types: dict[str, str] = field(default_factory=dict)
    garbled: set[str] = field(default_factory=set)
    unfinished: dict[str, Any] = field(default_factory=dict)

    def take(self, count: int) -> bytes:
        part = self.payload[self.at : self.at + count]
        if len(part) < count:
            raise ValueError("the payload ends before it is complete")
        self.at += count
        return part

    def number(self, form: str) -> Any:
        return struct.unpack(f">{form}", self.take(struct.calcsize(f">{form}")))[0]

    def text(self, size: int) -> str:
        octets = self.take(size)
        try:
            return octets.decode()
        except UnicodeDecodeError:
            self.garbled.add(self.path[0])
            return octets.decode(errors="replace")

    def table(self, into: dict[str, Any]) -> dict[str, Any]:
        path, end = self._nested()
        while self.at < end:
            name = self.text(self.number("B"))
            self.path = (*path, name)
            into[name] = self.value()
        self.path = path
        return into

    def array(self) -> list[Any]:
        path, end = self._nested()
        items: list[Any] = []
        while self.at < end:
            self.path = (*path, str(len(items)))
            items.append(self.value())
        self.path = path
        return items

    def value(self) -> Any:
        tag = self.take(1)
        read = _FIELDS.get(tag)
        if read is None:
            raise ValueError(f"no field is of the type {tag!r}")
        type_, value = read(self)
        if type_:
            self.types["".join(f"/{part.replace('~', '~0').replace('/', '~1')}" for part in self.path[1:])] = type_
        return value

    def _nested(self) -> tuple[tuple[str, ...], int]:
        if len(self.path) > MOST_NESTED:
            raise ValueError("too many tables within each other")
        size = self.number("I")
        return self.path, self.at + size


_Field = tuple[str, Any]
"""The AMQP type, "" if the JSON value implies it, and the value."""


def _timestamp(reader: _Reader) -> str | int:
    """Reads a time in seconds, or in milliseconds, as many publishers write it. Returns the number if it is out of range."""
    value: int = reader.number("Q")
    try:
        return datetime.fromtimestamp(value / 1000 if value > _MILLISECONDS_SINCE else value, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        reader.garbled.add(reader.path[0])
        return value


def _text_field(reader: _Reader) -> _Field:
    octets = reader.take(reader.number("I"))
    try:
        return "", octets.decode()
    except UnicodeDecodeError:
        return "octets", base64.b64encode(octets).decode()


def _integer(form: str, type_: str) -> Callable[[_Reader], _Field]:
    return lambda reader: (type_, reader.number(form))


def _long(reader: _Reader) -> _Field:
    value = reader.number("q")
    return "int64" if -0x8000_0000 <= value <= 0x7FFF_FFFF else "", value


def _float(form: str, type_: str) -> Callable[[_Reader], _Field]:
    def read(reader: _Reader) -> _Field:
        value = reader.number(form)
        return (type_, value) if math.isfinite(value) else (type_ or "float64", str(value))

    return read


def _decimal(reader: _Reader) -> _Field:
    scale, digits = reader.number("B"), reader.number("i")
    return "decimal", f"{digits}E-{scale}" if scale else str(digits)


# "" as the type: the JSON value alone would be sent with this AMQP type.
_FIELDS: Mapping[bytes, Callable[[_Reader], _Field]] = {
    b"S": _text_field,
    b"x": lambda reader: ("bytes", base64.b64encode(reader.take(reader.number("I"))).decode()),
    b"t": lambda reader: ("", reader.number("B") != 0),
    b"b": _integer("b", "int8"),
    b"B": _integer("B", "uint8"),
    b"s": _integer("h", "int16"),
    b"u": _integer("H", "uint16"),
    b"I": _integer("i", ""),
    b"i": _integer("I", "uint32"),
    b"l": _long,
    b"L": _long,
    b"f": _float("f", "float32"),
    b"d": _float("d", ""),
    b"D": _decimal,
    b"T": lambda reader: ("timestamp", _timestamp(reader)),
    b"F": lambda reader: ("", reader.table({})),
    b"A": lambda reader: ("", reader.array()),
    b"V": lambda _: ("", None),
    b"\x00": lambda _: ("", None),
}

_READERS: Mapping[str, Callable[[_Reader], Any]] = {
    "short string": lambda reader: reader.text(reader.number("B")),
    "table": lambda reader: reader.table(reader.unfinished),
    "octet": lambda reader: reader.number("B"),
    "timestamp": _timestamp,
}
# In JSON the property is named as in the specification.
_PROPERTIES = tuple(
    ("type" if name == "message_type" else name, FIRST_FLAG >> place, _READERS[type_])
    for place, (name, type_) in enumerate(PROPERTIES.items())
)


_MOST_DIGITS = 10
"""Most digits of an index in a list: Python refuses to convert thousands of digits."""


def restore_types(headers: Mapping[str, Any], types: object) -> dict[str, Any]:
    """Returns `headers` with the values at the JSON pointers in `types` converted to these AMQP types.

    A value that does not fit its type, because it was edited, stays as it is in JSON.
    """
    whole = deepcopy(dict(headers))
    for pointer, type_ in types.items() if isinstance(types, Mapping) else ():
        convert = _RESTORERS.get(type_) if isinstance(type_, str) else None
        found = _find(whole, pointer)
        if convert is None or found is None:
            continue
        container, key = found
        try:
            container[key] = convert(container[key])
        except (ValueError, TypeError, ArithmeticError, struct.error):
            continue
    return whole


def _find(whole: dict[str, Any], pointer: str) -> tuple[Any, Any] | None:
    """Returns the container of the value that a JSON pointer names, and its key; None if there is no such value."""
    *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]] or [""]
    container: Any = whole
    for part in parents:
        key = _key(container, part)
        if key is None:
            return None
        container = container[key]
    key = _key(container, last)
    return None if key is None else (container, key)


def _key(container: object, part: str) -> str | int | None:
    if isinstance(container, dict):
        return part if part in container else None
    if isinstance(container, list) and part.isdecimal() and len(part) < _MOST_DIGITS and int(part) < len(container):
        return int(part)
    return None


def _number(tag: bytes, form: str) -> Callable[[Any], RawField]:
    return lambda value: RawField(tag + struct.pack(f">{form}", value))


def _restore_float(tag: bytes, form: str) -> Callable[[Any], RawField]:
    # Infinity and NaN are text in JSON.
    return lambda value: RawField(tag + struct.pack(f">{form}", float(value)))


_RESTORERS: Mapping[object, Callable[[Any], Any]] = {
    "octets": lambda value: base64.b64decode(value, validate=True),
    "bytes": lambda value: bytearray(base64.b64decode(value, validate=True)),
    "int8": _number(b"b", "b"),
    "uint8": _number(b"B", "B"),
    "int16": _number(b"s", "h"),
    "uint16": _number(b"u", "H"),
    "uint32": _number(b"i", "I"),
    "int64": _number(b"l", "q"),
    "float32": _restore_float(b"f", "f"),
    "float64": _restore_float(b"d", "d"),
    "decimal": Decimal,
    # A time out of range is a number in JSON.
    "timestamp": lambda value: (
        RawField(b"T" + struct.pack(">Q", value)) if isinstance(value, int) else datetime.fromisoformat(value)
    ),
}
