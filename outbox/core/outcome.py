"""Outcomes of an attempt: done, retried after a delay, or dead.

The relay and the worker settle each message with one of these values. `RetryPolicy` chooses between `Retry` and `Dead`.
"""

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

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

        If `redact` raises or does not return text, a placeholder replaces the text. So it does for a message or a traceback
        that cannot be read.
        """
        message = _readable("message", lambda: str(error))
        lines = _readable("traceback", lambda: "".join(traceback.format_exception(error)))
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


def _readable(name: str, read: Callable[[], str]) -> str:
    try:
        return read()
    except KeyboardInterrupt:
        raise
    except BaseException as failure:  # noqa: BLE001  faulty methods of an exception must not hide it, or end the worker
        return f"its {name} cannot be read: {type(failure).__name__}"


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
