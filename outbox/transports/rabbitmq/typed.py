"""Headers that were kept as JSON, turned back into the AMQP fields that they were: the counterpart of `fields.py`."""

import base64
import struct
from collections.abc import Callable, Mapping
from copy import deepcopy
from datetime import datetime
from decimal import Decimal
from typing import Any

from outbox.transports.rabbitmq.frames import RawField

_MOST_DIGITS = 10
"""Of a place in a list; Python refuses to read thousands of them."""


def restored(headers: Mapping[str, Any], types: object) -> dict[str, Any]:
    """`headers` with the values that `types` names by their JSON pointers as what they are said to be.

    What does not fit any more, because somebody edited it, stays what it is in JSON.
    """
    whole = deepcopy(dict(headers))
    for pointer, type_ in types.items() if isinstance(types, Mapping) else ():
        restore = _RESTORING.get(type_) if isinstance(type_, str) else None
        place = _place(whole, pointer)
        if restore is None or place is None:
            continue
        container, key = place
        try:
            container[key] = restore(container[key])
        except (ValueError, TypeError, ArithmeticError, struct.error):
            continue
    return whole


def _place(whole: dict[str, Any], pointer: str) -> tuple[Any, Any] | None:
    """The container that a pointer leads into, and the key in it; None where it leads nowhere."""
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


def _float(tag: bytes, form: str) -> Callable[[Any], RawField]:
    """Those that are not finite are text in JSON."""
    return lambda value: RawField(tag + struct.pack(f">{form}", float(value)))


def _timestamp(value: Any) -> datetime | RawField:
    return RawField(b"T" + struct.pack(">Q", value)) if isinstance(value, int) else datetime.fromisoformat(value)


_RESTORING: Mapping[object, Callable[[Any], Any]] = {
    "octets": lambda value: base64.b64decode(value, validate=True),
    "bytes": lambda value: bytearray(base64.b64decode(value, validate=True)),
    "int8": _number(b"b", "b"),
    "uint8": _number(b"B", "B"),
    "int16": _number(b"s", "h"),
    "uint16": _number(b"u", "H"),
    "uint32": _number(b"i", "I"),
    "int64": _number(b"l", "q"),
    "float32": _float(b"f", "f"),
    "float64": _float(b"d", "d"),
    "decimal": Decimal,
    "timestamp": _timestamp,
}
