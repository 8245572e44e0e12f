"""Dead letters, operations and plans as JSON for scripts: ids and enumerations as text, times in RFC 3339."""

import base64
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from typing import Any

from outbox.cli import printing
from outbox.core.codec import encode_instant
from outbox.dead_letters import (
    Canary,
    DeadLetter,
    DeadLetterDetail,
    DeadLetterFilter,
    Destination,
    Edit,
    Operation,
    Selector,
    ToQueue,
)
from outbox.dead_letters.actions import OriginalRouting, encode_filter, encode_options


def echo_json(value: object) -> None:
    """Prints `value`, and everything in it, as JSON."""
    printing.echo_json(as_json(value))


def as_json(value: object) -> Any:
    """`value` in what JSON knows."""
    match value:
        case DeadLetter():
            return letter_json(value)
        case Operation():
            return operation_json(value)
        case datetime():
            return encode_instant(value)
        case timedelta():
            return value.total_seconds()
        case bytes():
            return _body(value)
        case Mapping():
            return {str(key): as_json(element) for key, element in value.items()}
        case list() | tuple():
            return [as_json(element) for element in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: as_json(getattr(value, field.name)) for field in fields(value)}
    return value


def letter_json(letter: DeadLetter) -> Any:
    """A line of the list, its error as the API tells it."""
    values = {field.name: getattr(letter, field.name) for field in fields(letter)}
    error = {"type": values.pop("exception_type"), "message": values.pop("exception_message")}
    return as_json(values | {"error": error})


def operation_json(operation: Operation) -> Any:
    """An operation, its options as they are stored."""
    values = {field.name: getattr(operation, field.name) for field in fields(operation)}
    return as_json(values | {"id": str(operation.id), "options": json.loads(encode_options(operation.options))})


def detail_json(detail: DeadLetterDetail) -> Any:
    """The whole of a dead letter, in one object."""
    values = as_json(detail)
    return values.pop("letter") | {"error": values.pop("failure")} | values


def encoded_selector(selector: Selector) -> Any:
    """What is meant, as the API and the audit have it."""
    if isinstance(selector, DeadLetterFilter):
        return {"filter": encode_filter(selector)}
    return {"ids": [selector] if isinstance(selector, str) else list(selector)}


def encode_destination(destination: Destination | None) -> Any:
    """Where to, as the API takes it."""
    match destination:
        case ToQueue(queue):
            return {"queue": queue}
        case OriginalRouting():
            return "original-routing"
    return None


def encode_canary(canary: Canary | None) -> Any:
    """How many go ahead, as the API takes it."""
    return None if canary is None else {"count": canary.count, "wait_seconds": canary.wait.total_seconds()}


def encode_edit(edit: Edit | None) -> Any:
    """What is changed, as the API takes it; a body byte by byte."""
    if edit is None:
        return None
    values: dict[str, Any] = {"version": edit.version}
    if isinstance(edit.body, bytes):
        values |= {"body": base64.b64encode(edit.body).decode(), "encoding": "base64"}
    return values if edit.headers is None else values | {"headers": dict(edit.headers)}


def _body(body: bytes) -> Any:
    try:
        return {"text": body.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(body).decode()}
