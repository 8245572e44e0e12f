"""Outcomes of an attempt: done, retried after a delay, or dead.

The relay and the worker settle each message with one of these values. `RetryPolicy` chooses between `Retry` and `Dead`.
"""

import re
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple

MESSAGE_LIMIT = 2_000
"""Longest exception message that is kept, in characters."""
TRACEBACK_LIMIT = 8_000
"""Longest traceback that is kept, in characters. The front is cut."""
NOT_REDACTED = "(left out, because redacting it failed)"
"""Replaces a text that could not be redacted."""

Redact = Callable[[str], str]
"""Removes secrets from a text before it is stored or shown."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason for a failure, as text of limited length that can be stored.

    `worker` is the process in which a handler failed, and `version` the release of its service. They are empty for other
    failures.
    """

    type: str
    message: str
    traceback: str = ""
    worker: str = ""
    version: str = ""

    @classmethod
    def of(cls, error: BaseException, *, worker: str = "", version: str = "", redact: Redact | None = None) -> "Failure":
        """Creates the failure for `error`, with its traceback cut at the front.

        If `redact` raises or does not return text, a placeholder replaces the text.
        """
        try:
            message = str(error)
        except KeyboardInterrupt:
            raise
        except BaseException as failure:  # noqa: BLE001  a faulty __str__ of an exception must not hide it
            message = f"its message cannot be read: {type(failure).__name__}"
        lines = "".join(traceback.format_exception(error))
        # Redact before cutting, which might leave half of a secret that `redact` would not recognize.
        if redact is not None:
            message, lines = _redact(message, redact), _redact(lines, redact)
        return cls(
            type=qualified_name(type(error)),
            message=message[:MESSAGE_LIMIT],
            traceback=lines[-TRACEBACK_LIMIT:],
            worker=worker,
            version=version,
        )

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type


class Cause(StrEnum):
    """Why a message became a dead letter."""

    REJECTED = "rejected"
    EXHAUSTED = "exhausted"
    EXPIRED = "expired"
    UNDECODABLE = "undecodable"
    CRASHED = "crashed"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Done:
    """The message was sent, or handled. `dropped`: no queue is bound for it."""

    dropped: bool = False


@dataclass(frozen=True, slots=True)
class Retry:
    """The attempt failed. The message is due again after `delay`, with one attempt used."""

    delay: timedelta
    failure: Failure


@dataclass(frozen=True, slots=True)
class Dead:
    """The message failed for good, and becomes a dead letter with the failure."""

    cause: Cause
    failure: Failure


@dataclass(frozen=True, slots=True)
class Held:
    """No queue is bound for the message's routing key yet. It waits without using an attempt.

    `probe_after` is set on the one message of that key that is sent again as a probe. The others wait for it to succeed.
    """

    probe_after: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Stalled:
    """The message's route accepts no messages now, although the broker is available. It waits without using an attempt.

    It is sent again as a probe if it is the first of its route, or after another message was confirmed.
    """


@dataclass(frozen=True, slots=True)
class Returned:
    """The message is returned unchanged, to be taken again at once. It uses no attempt."""


@dataclass(frozen=True, slots=True)
class Postponed:
    """The message cannot be handled now, through no fault of its own. It is redelivered after `delay` and uses no attempt."""

    delay: timedelta


Outcome = Done | Retry | Dead
RelayOutcome = Done | Retry | Dead | Held | Stalled | Returned
DeliveryOutcome = Done | Retry | Dead | Returned | Postponed

DONE = Done()
DROPPED = Done(dropped=True)
RETURNED = Returned()
STALLED = Stalled()


def _redact(text: str, redact: Redact) -> str:
    try:
        redacted = redact(text)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001  a faulty `redact` must neither leak the text nor hide the error
        return NOT_REDACTED
    return redacted if isinstance(redacted, str) else NOT_REDACTED


def qualified_name(type_: type) -> str:
    """Returns `module.QualName`, without the module for builtins."""
    return type_.__qualname__ if type_.__module__ == "builtins" else f"{type_.__module__}.{type_.__qualname__}"


# --- the place of a failure in the code ----------------------------------------------------------------------------------


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
