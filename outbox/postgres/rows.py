"""Decodes rows of the outbox table. Never fails: an invalid row becomes a message that is refused."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import asyncpg

from outbox.core.codec import decode_headers, decode_tracking_ids
from outbox.core.message import NO_HEADERS, Lane, Message, PendingMessage
from outbox.core.outcome import Failure
from outbox.errors import MalformedMessageError
from outbox.postgres.queries import TableName

UNROUTABLE = "unroutable"
"""`last_error` of a held row."""
UNREADABLE = (asyncpg.DataError, asyncpg.ProgramLimitExceededError)
"""Errors about a row that the server cannot return: text that is not UTF-8, which a database with the encoding SQL_ASCII
accepts, or JSON that is too long as text."""
_NO_TIME = timedelta(0)
_LONGEST_TIME = timedelta(days=365_000).total_seconds()
_LATEST = datetime(9999, 12, 31, tzinfo=UTC).timestamp()


@dataclass(frozen=True, slots=True)
class Rows:
    """Decodes rows of `table`. Rows above `max_body_bytes` come without their bodies."""

    table: TableName
    max_body_bytes: int

    def pending(self, row: asyncpg.Record, lane: Lane | None = None) -> PendingMessage:
        """Decodes a row that a claim returned."""
        too_large_bytes = row["too_large_bytes"]
        headers, malformed = (
            _headers(row["headers"])
            if too_large_bytes is None
            else (NO_HEADERS, too_large(too_large_bytes, self.max_body_bytes))
        )
        # A producer in another language may write anything into this column. Ids can be replaced, so the message is still sent.
        try:
            tracking_ids = decode_tracking_ids(row["tracking_ids"], source="the column tracking_ids")
        except MalformedMessageError:
            tracking_ids = ()
        tracking_ids = tracking_ids or (self._id_of_row(row["id"]),)
        # After a failure the row is due at the time of its next attempt, which says nothing about when it was due first.
        later = row["due"] - row["created_at"] if row["last_error"] is None else 0.0
        message = Message(
            id=tracking_ids[-1],
            routing_key=row["routing_key"],
            body=row["body"] or b"",
            created_at=_instant(row["created_at"]),
            tracking_ids=tracking_ids,
            content_type=row["content_type"],
            headers=headers,
            expiration=time_of(row["expiration"]),
            ordering_key=row["ordering_key"],
            target_queue=row["target_queue"],
            hlc=row["hlc"],
            requeue_count=row["requeue_count"],
        )
        return PendingMessage(
            row_id=row["id"],
            attempts=row["attempts"],
            held=row["last_error"] == UNROUTABLE,
            message=message,
            malformed=malformed,
            lane=lane,
            deduplicated=row["deduplicated"],
            too_large=too_large_bytes is not None,
            scheduled=timedelta(seconds=min(later, _LONGEST_TIME)) if later > 0 else _NO_TIME,
        )

    def unread(self, row: asyncpg.Record, error: Exception, lane: Lane | None = None) -> PendingMessage:
        """Makes a message for a row that cannot be read, with its id only."""
        row_id: int = row["id"]
        id_ = self._id_of_row(row_id)
        message = Message(id=id_, routing_key="", body=b"", created_at=_instant(0), tracking_ids=(id_,))
        malformed = _malformed(f"the row cannot be read: {error}")
        return PendingMessage(
            row_id=row_id, attempts=row["attempts"], held=False, message=message, malformed=malformed, lane=lane
        )

    def _id_of_row(self, row_id: int) -> str:
        """Derives an id for a row without a readable one. It is the same each time the row is sent."""
        return str(uuid5(NAMESPACE_OID, f"{self.table}:{row_id}"))


def too_large(size: int, limit: int) -> Failure:
    """Returns the failure of a message with more bytes than `limit`."""
    return Failure("too large", f"the message has {size} bytes, and max_body_bytes is {limit}")


def array_text(values: Sequence[str]) -> str | None:
    """Encodes texts as an array literal of PostgreSQL; None for no texts."""
    quoted = (value.replace("\\", "\\\\").replace('"', '\\"') for value in values)
    return '{"' + '","'.join(quoted) + '"}' if values else None


def _headers(text: str | None) -> tuple[Mapping[str, Any], Failure | None]:
    try:
        return decode_headers(text, source="the column headers") or NO_HEADERS, None
    except MalformedMessageError as error:
        return NO_HEADERS, _malformed(str(error))


def _malformed(reason: str) -> Failure:
    return Failure("outbox.errors.MalformedMessageError", reason)


def time_of(seconds: float | None) -> timedelta | None:
    """Converts seconds, limited to what `timedelta` can hold: PostgreSQL has longer intervals, and infinity."""
    return None if seconds is None else timedelta(seconds=min(max(seconds, -_LONGEST_TIME), _LONGEST_TIME))


def _instant(seconds: float) -> datetime:
    """Converts seconds since 1970, limited to times that every protocol can carry."""
    return datetime.fromtimestamp(seconds if 0 <= seconds <= _LATEST else min(max(seconds, 0), _LATEST), UTC)
