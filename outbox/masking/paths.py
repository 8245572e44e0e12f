"""JSON paths: places in a document, such as `$.customer.email`, `$.items[*].name` and `$["odd key"][0]`."""

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TypeAlias

from outbox.errors import ConfigurationError

Step: TypeAlias = str | int | None
"""A name in an object, a place in an array, or None: any of either."""
Places: TypeAlias = frozenset[tuple[Step, ...]]
"""The steps that lead from one value to those that are meant; an empty path means the value itself."""


@lru_cache(maxsize=256)
def places(paths: tuple[str, ...]) -> Places:
    """What `paths` lead to, from the root of a document. Raises `ConfigurationError` for what is no path."""
    return frozenset(_steps(path) for path in paths)


def beyond(here: Places, step: str | int) -> Places:
    """What is still meant one step on."""
    if not here:
        return here
    return frozenset(path[1:] for path in here if path and (path[0] is None or path[0] == step))


def is_meant(here: Places) -> bool:
    """Whether the value itself is meant."""
    return () in here


def check_paths(paths: Iterable[str]) -> None:
    """Raises `ConfigurationError` unless each is a path."""
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
        raise _no_path(path)
    steps: list[Step] = []
    end = 1
    while end < len(path):
        match = _STEP.match(path, end)
        if match is None:
            raise _no_path(path)
        end = match.end()
        if match["any"]:
            steps.append(None)
        elif match["index"] is not None:
            steps.append(int(match["index"]))
        elif match["quoted"] is not None:
            try:
                steps.append(str(json.loads(match["quoted"])))
            except ValueError:
                raise _no_path(path) from None
        else:
            steps.append(str(match["name"] if match["name"] is not None else match["single"]))
    return tuple(steps)


def _no_path(path: object) -> ConfigurationError:
    return ConfigurationError(f"a JSON path is written as '$.customer.email' or '$.items[*].name', not {path!r}")
