"""JSON paths, such as `$.customer.email`, `$.items[*].name` and `$["odd key"][0]`."""

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TypeAlias

from outbox.errors import ConfigurationError

Step: TypeAlias = str | int | None
"""A member's name, an array index, or None for any member or element."""
JsonPaths: TypeAlias = frozenset[tuple[Step, ...]]
"""Paths relative to a value; an empty path selects the value itself."""


@lru_cache(maxsize=256)
def parse_paths(paths: tuple[str, ...]) -> JsonPaths:
    """Parses paths relative to the root of a document. Raises `ConfigurationError` for an invalid path."""
    return frozenset(_steps(path) for path in paths)


def descend(paths: JsonPaths, step: str | int) -> JsonPaths:
    """Returns the paths that continue in a member or element, relative to it."""
    if not paths:
        return paths
    return frozenset(path[1:] for path in paths if path and (path[0] is None or path[0] == step))


def is_selected(paths: JsonPaths) -> bool:
    """Whether the value itself is selected."""
    return () in paths


def check_paths(paths: Iterable[str]) -> None:
    """Raises `ConfigurationError` for an invalid path."""
    for path in paths:
        _steps(path)


_STEP = re.compile(
    r"""
      \. (?P<name> [^.\[\]*"'\s]+ )
    | (?P<any> \.\* | \[\*\] )
    | \[ (?P<index> \d{1,9} ) \]
    | \[ (?P<quoted> "(?:[^"\\]|\\.)*" ) \]
    | \[ ' (?P<single> [^'\\]* ) ' \]
    """,
    re.VERBOSE,
)


def _steps(path: str) -> tuple[Step, ...]:
    if not isinstance(path, str) or not path.startswith("$"):
        raise _invalid_path(path)
    steps: list[Step] = []
    end = 1
    while end < len(path):
        match = _STEP.match(path, end)
        if match is None:
            raise _invalid_path(path)
        end = match.end()
        if match["any"]:
            steps.append(None)
        elif match["index"] is not None:
            steps.append(int(match["index"]))
        elif match["quoted"] is not None:
            try:
                steps.append(str(json.loads(match["quoted"])))
            except ValueError:
                raise _invalid_path(path) from None
        else:
            steps.append(str(match["name"] if match["name"] is not None else match["single"]))
    return tuple(steps)


def _invalid_path(path: object) -> ConfigurationError:
    return ConfigurationError(f"a JSON path is written as '$.customer.email' or '$.items[*].name', not {path!r}")
