"""Index keys: values in message bodies, such as order numbers, that the history can be searched for."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from outbox.core.codec import ENCRYPTION
from outbox.core.message import Message
from outbox.errors import ConfigurationError
from outbox.masking.paths import JsonPaths, check_paths, descend, is_selected, parse_paths

LARGEST_BODY = 65_536
"""Largest body, in bytes, that is searched for values, because that parses its JSON a second time."""
LONGEST_KEY = 200
"""Longest value, in characters, that is kept."""
MOST_KEYS = 10
"""Most values kept for one message."""


@dataclass(frozen=True, slots=True)
class IndexKeys:
    """JSON paths such as `$.order_id`, which select text and integer values in a message body."""

    paths: tuple[str, ...] = ()
    _paths: JsonPaths = field(init=False, repr=False, compare=False)

    @classmethod
    def of(cls, paths: Sequence[str]) -> Self:
        """Checks the paths. Raises `ConfigurationError` for an invalid one."""
        if isinstance(paths, str):
            raise ConfigurationError(f"index_keys must be a list of JSON paths, such as ('$.order_id',), not {paths!r}")
        check_paths(paths)
        return cls(tuple(paths))

    def __post_init__(self) -> None:
        object.__setattr__(self, "_paths", parse_paths(self.paths))

    def __bool__(self) -> bool:
        return bool(self.paths)

    def values(self, message: Message) -> list[str]:
        """Returns the distinct values in order of occurrence; none if the body is encrypted, is not JSON or is too large."""
        if not self.paths or ENCRYPTION in message.headers or len(message.body) > LARGEST_BODY:
            return []
        try:
            found: dict[str, None] = {}
            _collect(json.loads(message.body), self._paths, found)
        except (ValueError, RecursionError):
            return []
        return list(found)


def _collect(value: Any, here: JsonPaths, found: dict[str, None]) -> None:
    if not here or len(found) >= MOST_KEYS:
        return
    if isinstance(value, dict):
        for name, inner in value.items():
            _collect(inner, descend(here, name), found)
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            _collect(inner, descend(here, place), found)
    elif is_selected(here) and isinstance(value, str | int) and not isinstance(value, bool):
        text = str(value)
        if 0 < len(text) <= LONGEST_KEY and text.isprintable():
            found[text] = None
