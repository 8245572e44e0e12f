"""A message's failures as headers, the longest account first: what does not fit into a frame is left out, the oldest first."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from outbox.core.codec import EXCEPTION_MESSAGE, EXCEPTION_TRACEBACK, EXCEPTION_TYPE, FAILURES
from outbox.core.failures import FailedAttempt, decode_trail, encode_trail, extended_trail
from outbox.core.outcome import Cause
from outbox.transports.rabbitmq.wire import CAUSE

_FEW = 5
_LONGEST_TYPE = 250
_SHORTEST_TYPE = 60
_BAREST_MESSAGE = 100


def failures_after(headers: Mapping[str, Any], latest: FailedAttempt) -> list[FailedAttempt]:
    """What failed of a message so far, by the headers that it came with, and now."""
    return extended_trail(decode_trail(headers.get(FAILURES)), latest)


def trails(failures: Sequence[FailedAttempt]) -> Iterator[dict[str, str | None]]:
    """The headers of a message that will be tried again. None: it goes without the header that it came with."""
    brief = [replace(failed, failure=replace(failed.failure, traceback="")) for failed in failures]
    latest = brief[-1].failure
    barest = replace(brief[-1], failure=replace(latest, message=latest.message[:_BAREST_MESSAGE]))
    for kept in (failures, brief, brief[-_FEW:], [barest]):
        yield {FAILURES: _encodable(encode_trail(kept))}
    yield {FAILURES: None}


def accounts(cause: Cause, failures: Sequence[FailedAttempt]) -> Iterator[dict[str, str | None]]:
    """The headers of a dead letter, whose last failure is the last of `failures`.

    The failure that it is a dead letter for is worth more than those before it: its traceback is cut only when no other
    failure is left, its message only when the traceback is gone, and its type at the very end.
    """
    failure = failures[-1].failure
    histories = list(trails(failures))
    for history, traceback, message in _SHORTER:
        yield histories[history] | {
            CAUSE: cause.value,
            EXCEPTION_TYPE: _encodable(failure.type[:_LONGEST_TYPE]),
            EXCEPTION_MESSAGE: _encodable(failure.message[:message]) if message else None,
            EXCEPTION_TRACEBACK: _encodable(failure.traceback[-traceback:]) if traceback else None,
        }
    yield {FAILURES: None, CAUSE: cause.value, EXCEPTION_TYPE: _encodable(failure.type[-_SHORTEST_TYPE:])}


_WHOLE, _MOST, _SOME, _LATEST, _NONE = range(5)
_SHORTER = (
    (_WHOLE, 8_000, 2_000),
    (_MOST, 8_000, 2_000),
    (_SOME, 8_000, 2_000),
    (_LATEST, 8_000, 2_000),
    (_LATEST, 2_000, 2_000),
    (_LATEST, 500, 2_000),
    (_LATEST, 0, 2_000),
    (_LATEST, 0, 500),
    (_LATEST, 0, 100),
    (_NONE, 0, 100),
    (_NONE, 0, 0),
)
"""How much stays of the failures, and how many characters of the last one's traceback and message."""


def _encodable(text: str) -> str:
    return text.encode(errors="replace").decode()
