"""Prepares dead letters for storage: failures, fingerprint, masked preview and search text."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from outbox.core.failures import FailedAttempt, encode_failures, extended_failures
from outbox.core.fingerprint import fingerprint
from outbox.core.outcome import Failure
from outbox.masking import Masking, preview, searchable
from outbox.ports import DeadMessage
from outbox.postgres.queries import TableName, query
from outbox.postgres.schema.objects import SATELLITES

_ANY_TEXT = ("UTF8", "SQL_ASCII")
"""Encodings that can store every text."""
_LARGEST_INTEGER = 2**31 - 1
_LARGEST_BIGINT = 2**63 - 1
_DEEPEST = 100
_LONGEST_NAME = 1_000


def recording_steps(schema: str | None) -> str:
    """Returns the common table expressions that record each row of `dead_message`, see `sql/dead_letter_writer.sql`."""
    tables = ("dead_letter", "edition", "operation", "operation_item")
    names = {table: TableName(SATELLITES[table], schema).sql for table in tables}
    return query("dead_letter_writer.sql", "recorded", **names)


@dataclass(frozen=True, slots=True)
class Storable:
    """Makes texts and JSON storable in a database with `encoding`: without NUL and lone surrogates."""

    encoding: str = "UTF8"

    def text(self, text: str) -> str:
        """Returns `text` with characters replaced that cannot be stored."""
        if self.encoding in _ANY_TEXT:
            return text.replace("\0", "\N{SYMBOL FOR NULL}").encode(errors="replace").decode()
        return text.replace("\0", "\\0").encode("ascii", "backslashreplace").decode("ascii")

    def json(self, value: object) -> str:
        """Returns `value` as JSON for a jsonb column."""
        # No escape sequences: jsonb refuses those for characters that its encoding lacks.
        return json.dumps(self._plain(value, 0), ensure_ascii=False, allow_nan=False)

    def _plain(self, value: object, depth: int) -> object:
        if depth > _DEEPEST:
            return self.text(repr(type(value)))
        match value:
            case None | bool():
                return value
            case str():
                return self.text(value)
            case int():
                return value if abs(value) < 10**100 else str(value)[:100]
            case float():
                # False for infinity and NaN, which JSON cannot represent.
                return value if value - value == 0 else str(value)
            case Mapping():
                return {self.text(str(key)): self._plain(element, depth + 1) for key, element in value.items()}
            case list() | tuple():
                return [self._plain(element, depth + 1) for element in value]
            case _:
                return self.text(str(value))


@dataclass(frozen=True, slots=True)
class DeadLetterWriter:
    """Makes the columns of dead letters: cause, failures, fingerprint, and masked texts to show and to search."""

    masking: Masking
    storable: Storable

    def of_delivery(
        self,
        *,
        queue: str,
        failure: Failure,
        failed: FailedAttempt,
        cause: str,
        source: str,
        words: Sequence[str],
        payload: "Payload",
    ) -> tuple[str, ...]:
        """Returns the arguments of `dead_letter` in `sql/delivery.sql` for one delivery, after id and token."""
        text = self.storable.text
        masking = self.masking.of_message(payload.body, payload.headers)
        return (
            source,
            cause,
            text(failure.type),
            text(failure.message),
            text(failure.traceback),
            self.failures_json([failed]),
            fingerprint(failure, queue=queue),
            text(failure.worker),
            text(preview(payload.body, payload.content_type, masking, headers=payload.headers)),
            text(_search(words, failure, payload, masking)),
            text(masking.error_text(failure.message)),
        )

    def failures_json(self, failures: Sequence[FailedAttempt]) -> str:
        """Returns failures as JSON, as they are stored."""
        return self.storable.json(json.loads(encode_failures(failures)))

    def of_dead_message(self, dead: DeadMessage) -> tuple[Any, ...]:
        """Returns the arguments of `archive` in `sql/archive.sql` for one dead message."""
        text, json_of = self.storable.text, self.storable.json
        failures = list(dead.failures)
        failure = dead.failure
        if not failures and dead.failed_at is not None:
            failures = extended_failures((), FailedAttempt(at=dead.failed_at, attempt=dead.attempt, failure=failure))
        payload = Payload(dead.body, dead.content_type, dead.headers)
        masking = self.masking.of_message(dead.body, dead.headers, dead.properties)
        message_id = None if dead.message_id is None else text(dead.message_id)
        tracking_ids = dead.tracking_ids or (() if message_id is None else (message_id,))
        words = (dead.queue, dead.routing_key, *tracking_ids, *([] if message_id is None else [message_id]))
        return (
            "broker" if dead.by_broker else "worker",
            text(dead.exchange),
            text(dead.queue),
            message_id,
            text(dead.routing_key),
            dead.body,
            None if dead.content_type is None else text(dead.content_type),
            json_of(dead.headers) if dead.headers else None,
            json_of(dead.properties) if dead.properties else None,
            json_of(dead.header_types) if dead.header_types else None,
            json_of(tracking_ids),
            None if dead.ordering_key is None else text(dead.ordering_key),
            # Any program can send to the queue. A number that is too large for its column could never be stored.
            None if dead.hlc is None else max(-_LARGEST_BIGINT, min(dead.hlc, _LARGEST_BIGINT)),
            dead.created_at,
            failures[0].at if failures else dead.failed_at,
            dead.failed_at,
            max(1, min(dead.attempt, _LARGEST_INTEGER)),
            max(0, min(dead.requeue_count, _LARGEST_INTEGER)),
            text(dead.cause),
            text(failure.type),
            text(failure.message),
            text(failure.traceback),
            self.failures_json(failures),
            fingerprint(failure, queue=dead.queue),
            text(failure.worker),
            text(preview(dead.body, dead.content_type, masking, headers=dead.headers)),
            text(_search(words, failure, payload, masking)),
            text(masking.error_text(failure.message)),
        )


def _search(words: Sequence[str], failure: Failure, payload: "Payload", masking: Masking) -> str:
    named = tuple(word[:_LONGEST_NAME] for word in words)
    return searchable(payload.body, payload.content_type, masking, error=f"{failure.type} {failure.message}", words=named)


@dataclass(frozen=True, slots=True)
class Payload:
    """A body, its content type, and the application's headers as a mapping or JSON."""

    body: bytes
    content_type: str | None
    headers: Mapping[str, Any] | str | None = None
