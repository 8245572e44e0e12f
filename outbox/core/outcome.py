"""How a message ends, here and for now: done, again after a delay, or dead.

The relay and the worker settle everything they take with one of these values. `RetryPolicy` chooses between the last two.
"""

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

MESSAGE_LIMIT = 2_000
"""Longest exception message that is kept, in characters."""
TRACEBACK_LIMIT = 8_000
"""Longest traceback that is kept, in characters; its end is the part that matters."""
NOT_REDACTED = "(left out, because redacting it failed)"
"""What stands in the place of a text that could not be redacted."""

Redact = Callable[[str], str]
"""Takes out of a text what must not be stored or shown."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why something did not work, as text that can be stored: bounded, and independent of the exception object.

    `worker` names the process in which a handler failed, and `version` the release of its service; they are empty for what
    failed elsewhere.
    """

    type: str
    message: str
    traceback: str = ""
    worker: str = ""
    version: str = ""

    @classmethod
    def of(cls, error: BaseException, *, worker: str = "", version: str = "", redact: Redact | None = None) -> "Failure":
        """The failure that `error` stands for, with its traceback cut at the front.

        Its texts pass through `redact` before they are cut, so that no half of a secret is left over. What `redact` cannot
        do, because it raises or returns no text, leaves a placeholder instead of the text.
        """
        message, lines = _message_of(error), "".join(traceback.format_exception(error))
        if redact is not None:
            message, lines = _redacted(message, redact), _redacted(lines, redact)
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
    """Why a message died."""

    REJECTED = "rejected"
    EXHAUSTED = "exhausted"
    EXPIRED = "expired"
    UNDECODABLE = "undecodable"
    CRASHED = "crashed"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Done:
    """The message was delivered, or handled. It can be forgotten. `dropped`: no queue wants it."""

    dropped: bool = False


@dataclass(frozen=True, slots=True)
class Retry:
    """It did not work; it is due again after `delay`, and has spent one attempt."""

    delay: timedelta
    failure: Failure


@dataclass(frozen=True, slots=True)
class Dead:
    """It will not work; it ends where operators see it, with the failure."""

    cause: Cause
    failure: Failure


@dataclass(frozen=True, slots=True)
class Held:
    """No queue is bound for its routing key yet. It waits, without having spent an attempt.

    `probe_after` is set on the one message of that key that is sent again to find out; the others wait for its success.
    """

    probe_after: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Stalled:
    """Its route takes no messages now, though the broker answers. It waits, without having spent an attempt.

    It is sent again when it is the first of its route, to find out, or when another one was confirmed.
    """


@dataclass(frozen=True, slots=True)
class Returned:
    """It was taken, and is given back as it was: nothing is spent, and it is taken again."""


@dataclass(frozen=True, slots=True)
class Postponed:
    """It cannot be handled now, for a reason that is not its own: it comes back after `delay`, and has spent nothing."""

    delay: timedelta


Outcome = Done | Retry | Dead
RelayOutcome = Done | Retry | Dead | Held | Stalled | Returned
DeliveryOutcome = Done | Retry | Dead | Returned | Postponed

DONE = Done()
DROPPED = Done(dropped=True)
RETURNED = Returned()
STALLED = Stalled()


def _message_of(error: BaseException) -> str:
    """What `error` says. Handlers raise what they like, and some exceptions cannot say anything."""
    try:
        return str(error)
    except KeyboardInterrupt:
        raise
    except BaseException as failure:  # noqa: BLE001  whatever it is, it must not hide the error that it is about
        return f"its message cannot be read: {type(failure).__name__}"


def _redacted(text: str, redact: Redact) -> str:
    try:
        redacted = redact(text)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001  whatever it is, it must not let the text through, nor hide the error
        return NOT_REDACTED
    return redacted if isinstance(redacted, str) else NOT_REDACTED


def qualified_name(type_: type) -> str:
    """`module.QualName`, without the module for builtins."""
    return type_.__qualname__ if type_.__module__ == "builtins" else f"{type_.__module__}.{type_.__qualname__}"
