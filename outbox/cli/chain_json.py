"""A chain as JSON: what the API answers, read into what the library has, and the same written for scripts."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from outbox.chains import Chain
from outbox.cli.dlq.decoding import read

_IN_SECONDS = {"duration": "duration_seconds", "waited": "waited_seconds", "handling": "handling_seconds"}
"""What the library has as a timedelta, and what it is called as a number."""
_AS_TIMES = {named: name for name, named in _IN_SECONDS.items()}


def chain_of(answer: Any) -> Chain:
    """The chain that the API answers. Raises `ApiError` for what it cannot be."""
    return read(Chain, _renamed(answer, _AS_TIMES, lambda value: value))


def chain_json(chain: Chain) -> Any:
    """The chain under the names of the API: moments in UTC, lengths of time in seconds."""
    return _renamed(asdict(chain), _IN_SECONDS, _plain)


def _renamed(value: Any, names: Mapping[str, str], plain: Callable[[Any], Any]) -> Any:
    match value:
        case Mapping():
            return {names.get(name, name): _renamed(each, names, plain) for name, each in value.items()}
        case list() | tuple():
            return [_renamed(each, names, plain) for each in value]
    return plain(value)


def _plain(value: Any) -> Any:
    match value:
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case timedelta():
            return value.total_seconds()
    return value
