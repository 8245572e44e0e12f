"""A message's failures as headers, the longest account first: what does not fit into a frame is left out, the oldest first."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from outbox.codec import EXCEPTION_MESSAGE, EXCEPTION_TRACEBACK, EXCEPTION_TYPE, FAILURES
from outbox.failures import FailedAttempt, decode_trail, encode_trail, extended_trail
from outbox.outcome import Cause
from outbox.transports.rabbitmq.wire import CAUSE

_FEW = 5
_LONGEST_TYPE = 250


def failures_after(headers: Mapping[str, Any], latest: FailedAttempt) -> list[FailedAttempt]:
    """What failed of a message so far, by the headers that it came with, and now."""
    return extended_trail(decode_trail(headers.get(FAILURES)), latest)


def trails(failures: Sequence[FailedAttempt]) -> Iterator[dict[str, str]]:
    """The headers of a message that will be tried again."""
    brief = [replace(failed, failure=replace(failed.failure, traceback="")) for failed in failures]
    for kept in (failures, brief, brief[-_FEW:], brief[-1:]):
        yield {FAILURES: _encodable(encode_trail(kept))}
    yield {FAILURES: "[]"}


def accounts(cause: Cause, failures: Sequence[FailedAttempt]) -> Iterator[dict[str, str]]:
    """The headers of a dead letter, whose death is the last of `failures`."""
    failure = failures[-1].failure
    for trail, (traceback, message) in zip(trails(failures), _SHORTER, strict=True):
        yield trail | {
            CAUSE: cause.value,
            EXCEPTION_TYPE: _encodable(failure.type[:_LONGEST_TYPE]),
            EXCEPTION_MESSAGE: _encodable(failure.message[:message]),
            EXCEPTION_TRACEBACK: _encodable(failure.traceback[len(failure.traceback) - traceback :]) if traceback else "",
        }


_SHORTER = ((8_000, 2_000), (8_000, 2_000), (2_000, 1_000), (0, 250), (0, 0))
"""Characters of the last failure's traceback and message beside each trail."""


def _encodable(text: str) -> str:
    return text.encode(errors="replace").decode()
