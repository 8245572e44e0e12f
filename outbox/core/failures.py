"""The trail of a message's failures: what it carries from attempt to attempt, and what its dead letter keeps."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from outbox.core.codec import decode_instant, encode_instant
from outbox.core.outcome import Failure
from outbox.errors import MalformedMessageError

MOST_FAILURES = 20
"""Failures that are kept of one message: the first, and the latest."""
MESSAGE_KEPT = 500
"""Characters of each failure's message in the trail."""
TRACEBACK_KEPT = 1_000
"""Characters of the latest failure's traceback in the trail, its end; earlier ones go without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedAttempt:
    """One attempt that failed: when, which, why, and where."""

    at: datetime
    attempt: int
    failure: Failure


def extended_failures(trail: Sequence[FailedAttempt], latest: FailedAttempt) -> list[FailedAttempt]:
    """`trail` and `latest`, without what is too much: the first one stays, the oldest of the others go."""
    extended = [*trail, latest]
    return extended if len(extended) <= MOST_FAILURES else [extended[0], *extended[len(extended) - MOST_FAILURES + 1 :]]


def encode_failures(trail: Sequence[FailedAttempt]) -> str:
    """A JSON array as text: the form of the header and of the column. Its size is bounded."""
    entries: list[dict[str, Any]] = []
    for failed in trail:
        failure = failed.failure
        entry: dict[str, Any] = {
            "at": encode_instant(failed.at),
            "attempt": failed.attempt,
            "type": failure.type[:250],
            "message": failure.message[:MESSAGE_KEPT],
        }
        if failure.worker:
            entry["worker"] = failure.worker[:250]
        if failure.version:
            entry["version"] = failure.version[:100]
        if failure.traceback and failed is trail[-1]:
            entry["traceback"] = failure.traceback[-TRACEBACK_KEPT:]
        entries.append(entry)
    return json.dumps(entries, ensure_ascii=False)


def decode_failures(text: object) -> list[FailedAttempt]:
    """What `encode_failures` wrote. A trail that cannot be read is empty: it must not stand in the way of its message."""
    try:
        entries = json.loads(text) if isinstance(text, str | bytes) else text
        return [
            FailedAttempt(
                at=decode_instant(entry["at"], source="a failure's time").astimezone(UTC),
                attempt=int(entry["attempt"]),
                failure=Failure(
                    type=str(entry["type"]),
                    message=str(entry["message"]),
                    traceback=str(entry.get("traceback", "")),
                    worker=str(entry.get("worker", "")),
                    version=str(entry.get("version", "")),
                ),
            )
            for entry in (entries if isinstance(entries, list) else ())
        ]
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError, MalformedMessageError):
        return []
