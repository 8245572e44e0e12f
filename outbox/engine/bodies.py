"""From the bytes of a body to what a handler's annotation asks for; the way is chosen once, when the consumer is built."""

import json
import types
from collections.abc import Callable
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, PydanticUserError, TypeAdapter

Decode = Callable[[bytes], object]
"""Raises ValueError (pydantic's ValidationError is one) for a body that is not what was asked for."""

_UNIONS: tuple[Any, ...] = (Union, types.UnionType)


def decoder_for(annotation: Any) -> Decode:
    """How to decode a body for a parameter annotated with `annotation`.

    `bytes` are taken as they are. `Any`, and no annotation, is JSON, or the bytes if they are none. Everything else is
    validated from JSON by pydantic: models, `dict[str, int]`, `list[Order]`, `int | None`, dataclasses, `datetime`; a union
    with `bytes` takes the bytes where the rest does not fit. Raises `TypeError` for a type that pydantic cannot validate.
    """
    if annotation is bytes:
        return _as_it_is
    if get_origin(annotation) is Annotated and get_args(annotation)[0] is bytes:
        return TypeAdapter(annotation).validate_python
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation.model_validate_json
    if annotation is Any or annotation is object:
        return _json_or_bytes
    takes_bytes, rest = _without_bytes(annotation)
    try:
        validated = TypeAdapter(rest).validate_json
    except PydanticUserError as error:
        raise TypeError(f"pydantic cannot validate it: {error.message.partition('.')[0]}") from error
    return _or_bytes(validated) if takes_bytes else validated


def _as_it_is(body: bytes) -> object:
    return body


def _json_or_bytes(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body


def _or_bytes(decode: Decode) -> Decode:
    def decode_or_take(body: bytes) -> object:
        try:
            return decode(body)
        except ValueError:
            return body

    return decode_or_take


def _is_one_of(types_: tuple[Any, ...], annotation: object) -> bool:
    """By identity: annotations need not be hashable, and may have an equality of their own."""
    return any(annotation is each for each in types_)


def _without_bytes(annotation: Any) -> tuple[bool, Any]:
    if not _is_one_of(_UNIONS, get_origin(annotation)):
        return False, annotation
    others = [part for part in get_args(annotation) if part is not bytes]
    takes_bytes = len(others) < len(get_args(annotation))
    return takes_bytes, Union[tuple(others)] if others else bytes  # noqa: UP007  built from a list
