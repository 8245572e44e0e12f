"""Index keys: values in the bodies of messages, such as the number of an order, by which the history finds them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from outbox.core.message import Message
from outbox.errors import ConfigurationError
from outbox.masking.paths import JsonPaths, check_paths, descend, is_selected, parse_paths

LARGEST_BODY = 65_536
"""Bytes of a body that is looked into: it is read as JSON once more for that."""
LONGEST_KEY = 200
"""Characters of a value that is kept; a longer one is no key."""
MOST_KEYS = 10
"""Values that are kept of one message."""


@dataclass(frozen=True, slots=True)
class IndexKeys:
    """JSON paths such as `$.order_id`, and the texts and whole numbers that they lead to in a message."""

    paths: tuple[str, ...] = ()
    _paths: JsonPaths = field(init=False, repr=False, compare=False)

    @classmethod
    def of(cls, paths: Sequence[str]) -> Self:
        """Raises `ConfigurationError` for what is no path."""
        if isinstance(paths, str):
            raise ConfigurationError(f"index_keys is a list of JSON paths, such as ('$.order_id',), not {paths!r}")
        check_paths(paths)
        return cls(tuple(paths))

    def __post_init__(self) -> None:
        object.__setattr__(self, "_paths", parse_paths(self.paths))

    def __bool__(self) -> bool:
        return bool(self.paths)

    def values(self, message: Message) -> list[str]:
        """The values, each once, in the order in which they occur; none where the body is not JSON, or is large."""
        if not self.paths or len(message.body) > LARGEST_BODY:
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
