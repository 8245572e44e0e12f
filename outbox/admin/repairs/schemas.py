"""Whether a body fits a JSON schema: without the network, and in bounded time whatever the schema says."""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from jsonschema.validators import Draft202012Validator, extend
from referencing import Registry

MOST_MISFITS = 20
"""So many places are told."""
TIME = timedelta(seconds=1)
"""How long one body is checked; what takes longer is not judged."""
_LONGEST_MESSAGE = 300


@dataclass(frozen=True, slots=True)
class Misfit:
    """What does not fit, and where: `at` is the path of it."""

    at: str
    message: str


async def misfits(schema: Mapping[str, Any], body: object) -> list[Misfit] | None:
    """Where `body` does not fit; empty: nowhere; None: the schema makes no sense, or takes too long.

    References are followed within the schema only. Regular expressions are not tried, because one can take for ever, nor what
    must not fit or depends on something, which may be one. Items need not be unique, because pydantic makes sets of lists, and
    of `oneOf` several may fit, because its discriminators can be functions that no schema tells of.
    """
    return await asyncio.to_thread(_judged, schema, body)


class _OutOfTimeError(Exception):
    """The schema takes too long."""


def _judged(schema: Mapping[str, Any], body: object) -> list[Misfit] | None:
    validator = _bounded_validator(time.monotonic() + TIME.total_seconds())(schema, registry=Registry())
    found: list[Misfit] = []
    try:
        for error in validator.iter_errors(body):
            found.append(Misfit(_path(error.absolute_path), _shortened(error.message)))
            if len(found) == MOST_MISFITS:
                break
    except Exception:  # noqa: BLE001  whatever a schema does to its reader, it says nothing of the body
        return None
    return found


def _bounded_validator(deadline: float) -> Any:
    """A class of validators whose every step looks at the clock."""
    steps = {name: _bounded(check, deadline) for name, check in Draft202012Validator.VALIDATORS.items()}
    steps["oneOf"] = steps["anyOf"]
    return extend(Draft202012Validator, {**steps, **dict.fromkeys(_LEFT_OUT, _anything)})


def _bounded(check: Callable[..., Any], deadline: float) -> Callable[..., Iterator[Any]]:
    def bounded(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if time.monotonic() > deadline:
            raise _OutOfTimeError
        if isinstance(schema, Mapping) and "patternProperties" in schema and value is schema.get("additionalProperties"):
            return  # which properties are additional, only its expressions could say
        yield from check(validator, value, instance, schema) or ()

    return bounded


_LEFT_OUT = ("if", "not", "pattern", "patternProperties", "unevaluatedItems", "unevaluatedProperties", "uniqueItems", "format")


def _anything(_validator: Any, _value: Any, _instance: Any, _schema: Any) -> Iterator[Any]:
    return iter(())


def _path(parts: Any) -> str:
    return ".".join(str(part) for part in parts)[:_LONGEST_MESSAGE] or "body"


def _shortened(message: str) -> str:
    return message if len(message) <= _LONGEST_MESSAGE else f"{message[: _LONGEST_MESSAGE - 1]}…"
