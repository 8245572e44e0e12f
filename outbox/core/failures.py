"""The failed attempts of a message, which it carries from attempt to attempt and into its dead letter."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from outbox.core.codec import decode_instant, encode_instant
from outbox.core.outcome import Failure
from outbox.errors import MalformedMessageError

MOST_FAILURES = 20
"""Most failures kept for one message: the first one, and the latest."""
MESSAGE_KEPT = 500
"""Characters kept of each failure's message."""
TRACEBACK_KEPT = 1_000
"""Characters kept of the end of the latest traceback. Earlier failures have none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedAttempt:
    """A failed attempt: its time, number and failure."""

    at: datetime
    attempt: int
    failure: Failure


def extended_failures(failures: Sequence[FailedAttempt], latest: FailedAttempt) -> list[FailedAttempt]:
    """Appends `latest` to `failures`. Above the limit, keeps the first one and drops the oldest of the others."""
    extended = [*failures, latest]
    return extended if len(extended) <= MOST_FAILURES else [extended[0], *extended[len(extended) - MOST_FAILURES + 1 :]]


def encode_failures(failures: Sequence[FailedAttempt]) -> str:
    """Returns the failures as a JSON array in text, the form of the header and the column. Its size is limited."""
    entries: list[dict[str, Any]] = []
    for failed in failures:
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
        if failure.traceback and failed is failures[-1]:
            entry["traceback"] = failure.traceback[-TRACEBACK_KEPT:]
        entries.append(entry)
    return json.dumps(entries, ensure_ascii=False)


def decode_failures(text: object) -> list[FailedAttempt]:
    """Parses the result of `encode_failures`. Returns an empty list if it cannot be read."""
    # An unreadable header must not make its message undeliverable.
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
