"""Dead letters, operations and plans as JSON for scripts: ids and enumerations as text, times in RFC 3339."""

import base64
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from typing import Any

import click

from outbox.codec import encode_instant
from outbox.dead_letters import DeadLetterDetail, Operation
from outbox.postgres.repair.encoding import encode_options


def echo_json(value: object) -> None:
    """Prints `value`, and everything in it, as JSON."""
    click.echo(json.dumps(as_json(value), indent=2, ensure_ascii=False))


def as_json(value: object) -> Any:
    """`value` in what JSON knows."""
    match value:
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


def operation_json(operation: Operation) -> Any:
    """An operation, its options as they are stored."""
    values = {field.name: getattr(operation, field.name) for field in fields(operation)}
    return as_json(values | {"id": str(operation.id), "options": json.loads(encode_options(operation.options))})


def detail_json(detail: DeadLetterDetail) -> Any:
    """The whole of a dead letter, in one object."""
    values = as_json(detail)
    return values.pop("letter") | values


def _body(body: bytes) -> Any:
    try:
        return {"text": body.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(body).decode()}
