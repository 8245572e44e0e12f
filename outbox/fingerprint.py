"""Which failures are alike: an exception's type and the place in the handler's own code that it came from.

Line numbers, ids and the folder that a program is installed in do not count, so that a failure looks the same from every host
and after every release.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import NamedTuple

from outbox.outcome import Failure

LONGEST_TITLE = 300
"""Most characters of a title; what goes beyond it makes no difference."""


def fingerprint(failure: Failure) -> str:
    """Sixteen hexadecimal digits that failures of one kind share."""
    return sha256(group_title(failure).encode(errors="replace")).hexdigest()[:16]


def group_title(failure: Failure) -> str:
    """What the failures of one kind have in common, for a person to read.

    `ValueError in orders/payment.py:charge`; without a traceback the type and what the message says besides values.
    """
    frame = _telling_frame(failure)
    if frame is not None:
        return f"{failure.type} in {_short(frame.path)}:{frame.function}"[:LONGEST_TITLE]
    message = without_values(failure.message)
    return (f"{failure.type}: {message}" if message else failure.type)[:LONGEST_TITLE]


def without_values(text: str) -> str:
    """`text` with `#` for each number, id and quoted value in it."""
    text = _QUOTED.sub("#", text[:_LONGEST_MESSAGE])
    text = _VALUE.sub("#", text)
    return " ".join(text.split())


_LONGEST_MESSAGE = 2_000
# An apostrophe within a word begins no quotation.
_QUOTED = re.compile(r"""(?<!\w)'[^']*'(?!\w)|"[^"]*"|`[^`]*`""")
_VALUE = re.compile(
    r"""
    \b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b    # a UUID
    | \b0x[0-9a-f]+\b                                                   # an address
    | \b(?=[a-f]*[0-9])[0-9a-f]{8,}\b                                   # a digest
    | [+-]?\d+(?:[.,:]\d+)*                                             # a number, a time, an address of a host
    """,
    re.VERBOSE | re.IGNORECASE,
)


class _Frame(NamedTuple):
    path: str
    function: str


# A group's traceback has a margin of bars.
_FRAME = re.compile(r'^[ |]*File "(?P<path>[^"\n]*)", line \d+(?:, in (?P<function>.*))?$', re.MULTILINE)
_BEGINNING = re.compile(r"^[ |+]*(?:Exception Group )?Traceback \(most recent call last\):$", re.MULTILINE)
_GROUP = re.compile(r"^[ |+]*Exception Group Traceback \(most recent call last\):$", re.MULTILINE)
_FIRST_OF_GROUP = re.compile(r"^[ |]*\+-\+-+ 1 -+$", re.MULTILINE)

_STANDARD_LIBRARY = re.compile(r"/lib/python\d+(?:\.\d+)?t?/|/python\d*/lib/", re.IGNORECASE)
_INSTALLED = re.compile(r"/(?:site|dist)-packages/(?P<package>[^/]+)", re.IGNORECASE)
_OURS = re.compile(
    r"(?:^|/)outbox/(?:(?:engine|transports|postgres|observers|fastapi|cli|admin|embedded|testing)/|(?:worker|relay|archiver)\.py$)"
)
_ANY_RELEASE = re.compile(r"[v\d][\d._-]*|[0-9a-f]{7,}", re.IGNORECASE)


def _telling_frame(failure: Failure) -> _Frame | None:
    """The deepest frame of the handler's own code, in the exception itself or else in those that led to it."""
    tracebacks = list(_tracebacks(failure.traceback))
    for frames in tracebacks:
        own = [frame for frame in frames if _is_own(frame.path)]
        if own:
            return _recurring(own) if failure.type.endswith("RecursionError") else own[-1]
    return _installed_handler(tracebacks)


def _tracebacks(text: str) -> Iterator[Sequence[_Frame]]:
    """The frames of each exception in `text`, outermost first; the exceptions in the order in which they tell the most.

    That is from the last of a chain to the first; and of a group its members, from the first, before the group.
    """
    if (group := _last(_GROUP, text)) and (members := _FIRST_OF_GROUP.search(text, group.end())):
        yield from _split(text[members.end() :])
        text = text[: members.start()]
    yield from reversed(list(_split(text)))


def _split(text: str) -> Iterator[Sequence[_Frame]]:
    for part in _BEGINNING.split(text):
        if frames := [_Frame(match["path"].replace("\\", "/"), match["function"] or "") for match in _FRAME.finditer(part)]:
            yield frames


def _last(pattern: "re.Pattern[str]", text: str) -> "re.Match[str] | None":
    last = None
    for last in pattern.finditer(text):  # noqa: B007
        pass
    return last


def _is_own(path: str) -> bool:
    if path.startswith("<frozen") or _OURS.search(path):
        return False
    return not _STANDARD_LIBRARY.search(path) and not _INSTALLED.search(path)


def _recurring(frames: Sequence[_Frame]) -> _Frame:
    """Where a recursion happens to end is chance, and so is which of its functions is called once more than the others."""
    counts = Counter(frames)
    return min(frame for frame in frames if counts[frame] > 1 or len(counts) == len(frames))


def _installed_handler(tracebacks: Sequence[Sequence[_Frame]]) -> _Frame | None:
    """The deepest frame of the package that we called, where the handlers themselves are installed as a package."""
    for frames in tracebacks:
        after_ours = next((index for index in range(len(frames), 0, -1) if _OURS.search(frames[index - 1].path)), 0)
        called = frames[after_ours:]
        if called and (package := _package(called[0].path)):
            return next(frame for frame in reversed(called) if _package(frame.path) == package)
    visible = [frame for frames in tracebacks for frame in reversed(frames) if not frame.path.startswith("<frozen")]
    return visible[0] if visible else None


def _package(path: str) -> str | None:
    match = _INSTALLED.search(path)
    return match["package"] if match else None


def _short(path: str) -> str:
    """The file and its folder; a folder that is named for a release is any."""
    *folders, file = path.split("/")[-2:]
    return "/".join(["#" if _ANY_RELEASE.fullmatch(folder) else folder for folder in folders] + [file])
