"""Groups similar failures: those of one queue with the same exception type, location in the handler's code, and message.

Ignores numbers, ids, addresses and quoted values in the message, and line numbers and installation folders in the location. So
a failure has the same fingerprint on every host, and after every release that did not change its code. See
docs/decisions/0157-what-makes-a-group.md.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import NamedTuple

from outbox.core.outcome import Failure, Redact

LONGEST_TITLE = 300
"""Longest title, in characters. Longer ones are cut."""


def fingerprint_of(error: BaseException, *, queue: str, redact: Redact | None = None) -> str:
    """Returns the id of the group in which the dashboard shows `error`, raised by the handler of `queue`.

    The id has sixteen hexadecimal digits. It is equal for similar errors in every process, and after every release that did not
    change the handler. `redact` is that of the worker: it changes what is stored, and so the id.
    """
    return fingerprint(Failure.of(error, redact=redact), queue=queue)


def fingerprint(failure: Failure, *, queue: str) -> str:
    """Returns sixteen hexadecimal digits that are equal for similar failures."""
    # Two handlers may fail alike and still need different fixes: the queue stands for the handler.
    frame = find_frame(failure)
    parts = (queue, failure.type, _summary(failure), "" if frame is None else _format_frame(frame))
    return sha256("\0".join(parts).encode(errors="replace")).hexdigest()[:16]


def group_title(failure: Failure) -> str:
    """Returns a readable title for a group of similar failures.

    `ValueError: no stock of # in orders/payment.py:charge`; of pydantic `ValidationError: Order, items.#.size (int_parsing)`.
    """
    summary = _summary(failure)
    title = f"{failure.type}: {summary}" if summary else failure.type
    frame = find_frame(failure)
    if frame is None:
        return title[:LONGEST_TITLE]
    place = f" in {_format_frame(frame)}"
    return title[: max(0, LONGEST_TITLE - len(place))] + place[:LONGEST_TITLE]


def without_values(text: str) -> str:
    """Replaces each number, id, address and quoted value in `text` by `#`."""
    text = _ADDRESS.sub("#", text[:_LONGEST_MESSAGE])
    text = _QUOTED.sub("#", text)
    text = _VALUE.sub("#", text)
    return " ".join(text.split())


def _summary(failure: Failure) -> str:
    """Returns the first line of the message without values; for pydantic, the model, its invalid fields and error types."""
    validation = _VALIDATION.match(failure.message)
    if validation is None:
        lines = failure.message.strip().splitlines()
        return without_values(lines[0]) if lines else ""
    refused = {f"{_INDEX.sub('#', each['field'])} ({each['kind']})" for each in _REFUSED.finditer(failure.message)}
    return ", ".join([validation["model"], *sorted(refused)])


_LONGEST_MESSAGE = 2_000
_VALIDATION = re.compile(r"\d+ validation errors? for (?P<model>.+)")
_REFUSED = re.compile(r"^(?P<field>\S.*)\n  .*?\[type=(?P<kind>\w+)", re.MULTILINE)
_INDEX = re.compile(r"(?<![^.])\d+(?![^.])")
# Email addresses and URLs.
_ADDRESS = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|\b[a-z][a-z0-9+.-]*://[^\s'\"<>]+")
# An apostrophe within a word does not begin a quotation.
_QUOTED = re.compile(r"""(?<!\w)'[^']*'(?!\w)|"[^"]*"|`[^`]*`""")
_VALUE = re.compile(
    r"""
    \b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b    # a UUID
    | \b0x[0-9a-f]+\b                                                   # an address in memory
    | \b(?=[a-f]*[0-9])[0-9a-f]{8,}\b                                   # a digest
    | \b(?=[\w-]*[0-9])(?=[\w-]*[A-Za-z])\w[\w-]{7,}\b                 # an id of letters and digits
    | [+-]?\d+(?:[.,:]\d+)*                                             # a number, a time, an address of a host
    """,
    re.VERBOSE | re.IGNORECASE,
)


class Frame(NamedTuple):
    """A line of a traceback: the file, the function, and the number of the line."""

    path: str
    function: str
    line: str


# The traceback of an exception group is indented with bars.
_FRAME = re.compile(r'^[ |]*File "(?P<path>[^"\n]*)", line (?P<line>\d+)(?:, in (?P<function>.*))?$', re.MULTILINE)
_BEGINNING = re.compile(r"^[ |+]*(?:Exception Group )?Traceback \(most recent call last\):$", re.MULTILINE)
_GROUP = re.compile(r"^[ |+]*Exception Group Traceback \(most recent call last\):$", re.MULTILINE)
_FIRST_OF_GROUP = re.compile(r"^[ |]*\+-\+-+ 1 -+$", re.MULTILINE)

_FROZEN = re.compile(r"^<frozen")
_STANDARD_LIBRARY = re.compile(r"/lib/python\d+(?:\.\d+)?t?/|/python\d*/lib/", re.IGNORECASE)
_INSTALLED = re.compile(r"/(?:site|dist)-packages/(?P<package>[^/]+)", re.IGNORECASE)
_OUTBOX = re.compile(
    r"(?:^|/)outbox/(?:(?:engine|transports|postgres|observers|fastapi|cli|admin|embedded|testing)/|(?:worker|relay|archiver)\.py$)"
)
_CALLED_LIBRARIES = frozenset({"pydantic", "pydantic_core", "sqlalchemy", "asyncpg"})
"""Libraries that Outbox calls before and after a handler: their failures have no frame of the application."""
_ANY_RELEASE = re.compile(r"[v\d][\d._-]*|[0-9a-f]{7,}", re.IGNORECASE)


def find_frame(failure: Failure) -> Frame | None:
    """Returns the deepest frame of the application, in the exception itself, or else in the exceptions that caused it."""
    tracebacks = list(_tracebacks(failure.traceback))
    for frames in tracebacks:
        own = [
            frame
            for frame in frames
            if not any(pattern.search(frame.path) for pattern in (_FROZEN, _OUTBOX, _STANDARD_LIBRARY, _INSTALLED))
        ]
        if own and not failure.type.endswith("RecursionError"):
            return own[-1]
        if own:
            # A recursion ends at an arbitrary function, so choose one of the repeated frames by name.
            counts = Counter(frame[:2] for frame in own)
            return min(frame for frame in own if counts[frame[:2]] > 1 or len(counts) == len(own))
    # The handlers may be installed as a package: take the deepest frame of the package that Outbox called.
    for frames in tracebacks:
        after_outbox = next((index for index in range(len(frames), 0, -1) if _OUTBOX.search(frames[index - 1].path)), 0)
        called = frames[after_outbox:]
        if called and (package := _package(called[0].path)) and package not in _CALLED_LIBRARIES:
            return next(frame for frame in reversed(called) if _package(frame.path) == package)
    return None


def _tracebacks(text: str) -> Iterator[Sequence[Frame]]:
    """Yields the frames of each exception in `text`, outermost first. The most informative exceptions come first.

    That is: the last of a chain first, and the members of an exception group before the group.
    """
    groups = list(_GROUP.finditer(text))
    if groups and (members := _FIRST_OF_GROUP.search(text, groups[-1].end())):
        yield from _split(text[members.end() :])
        text = text[: members.start()]
    yield from reversed(list(_split(text)))


def _split(text: str) -> Iterator[Sequence[Frame]]:
    for part in _BEGINNING.split(text):
        if frames := [
            Frame(match["path"].replace("\\", "/"), match["function"] or "", match["line"]) for match in _FRAME.finditer(part)
        ]:
            yield frames


def _package(path: str) -> str | None:
    match = _INSTALLED.search(path)
    return match["package"] if match else None


def _format_frame(frame: Frame) -> str:
    """Formats a frame as folder, file and function."""
    # A folder named after a release would change the fingerprint with each deployment.
    *folders, file = frame.path.split("/")[-2:]
    path = "/".join(["#" if _ANY_RELEASE.fullmatch(folder) else folder for folder in folders] + [file])
    return f"{path}:{frame.function}"
