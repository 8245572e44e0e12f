"""Model of dead letters: list item, details, group, filter, position."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, get_args

from outbox.core.failures import FailedAttempt
from outbox.core.outcome import Failure

PARKED_PREFIX = "outbox-"
"""Prefix of the ids of parked messages: `outbox-17` is row 17 of the outbox table, `17` is row 17 of the dead letters."""

Sort = Literal["newest", "oldest"]
GroupBy = Literal["fingerprint", "queue", "routing_key"]
FacetField = Literal["source", "status", "queue", "exception_type", "routing_key"]
FACET_FIELDS: tuple[FacetField, ...] = get_args(FacetField)
Facets = Mapping[FacetField, Sequence[tuple[str, int]]]
"""Values of each field with their counts, the most frequent first."""


class Source(StrEnum):
    """Component that dead-lettered a message: a relay that could not send it, a worker whose handler failed, or the broker."""

    RELAY = "relay"
    WORKER = "worker"
    BROKER = "broker"


class DeadLetterStatus(StrEnum):
    """The status of a dead letter; `OPEN`: neither requeued nor discarded."""

    OPEN = "open"
    REQUEUED = "requeued"
    DISCARDED = "discarded"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterFilter:
    """Filter for dead letters. A dead letter has to match every field that is set; an empty filter matches all.

    `ids` are as operators know them; an empty tuple matches nothing. `group_id` is a fingerprint. `q` searches the masked text
    with the syntax of search engines: words, "phrases", or, -not. `failed_after` is inclusive, `failed_before` exclusive.
    `min_failures` counts failed attempts; for a parked message, the relay's attempts to send it. `destination` is the one whose
    relay could not send it. A tuple of queues, routing keys, exception types, groups or statuses matches any of its values.
    """

    ids: tuple[str, ...] | None = None
    source: Source | None = None
    queue: str | tuple[str, ...] | None = None
    routing_key: str | tuple[str, ...] | None = None
    exception_type: str | tuple[str, ...] | None = None
    group_id: str | tuple[str, ...] | None = None
    without_groups: tuple[str, ...] = ()
    status: DeadLetterStatus | tuple[DeadLetterStatus, ...] | None = None
    tracking_id: str | None = None
    message_id: str | None = None
    failed_after: datetime | None = None
    failed_before: datetime | None = None
    min_failures: int | None = None
    destination: str | None = None
    q: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """List item: everything but the payload. `exception_message` and `preview` are masked.

    `service_version` is the release of the service whose handler failed last. `dead_letter_count` counts how often the message
    was dead-lettered, `requeue_count` how often it was requeued, `failures` all failed attempts. `queue` is empty for a parked
    message that was not addressed to a particular queue. `destination` is the one whose relay could not send the message; None
    if a worker or the broker dead-lettered it.
    """

    id: str
    source: Source
    status: DeadLetterStatus
    exchange: str
    queue: str
    routing_key: str
    message_id: str | None
    tracking_ids: tuple[str, ...]
    ordering_key: str | None
    cause: str
    exception_type: str
    exception_message: str
    fingerprint: str
    worker: str
    service_version: str | None
    attempt: int
    requeue_count: int
    dead_letter_count: int
    failures: int
    created_at: datetime
    first_failed_at: datetime
    failed_at: datetime
    version: int
    resolved_at: datetime | None
    resolved_by: str | None
    resolution: str | None
    content_type: str | None
    size: int
    preview: str
    destination: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Edition:
    """A dead letter's payload before an edit. `size` is the size of the whole body in bytes."""

    version: int
    body: bytes
    size: int
    content_type: str | None
    headers: Mapping[str, Any] | None
    replaced_at: datetime
    replaced_by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterDetail:
    """One dead letter with all its details; only `letter` is masked.

    `headers` and `properties` are plain JSON; `header_types` adds the AMQP types that JSON lacks (`restore_types`).
    `failed_attempts` are in order, oldest first, and `failure` is the last one.
    """

    letter: DeadLetter
    body: bytes
    headers: Mapping[str, Any]
    properties: Mapping[str, Any]
    header_types: Mapping[str, Any]
    hlc: int | None
    failure: Failure
    failed_attempts: Sequence[FailedAttempt]
    editions: Sequence[Edition]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Dead letters with a common fingerprint, queue or routing key, and their count.

    `id` is the common value, as a filter takes it. `last_requeued_at` is the time of the latest requeue of any of them, and
    `since_requeue` counts those dead-lettered after it, or all if none was ever requeued. `hourly_counts` counts dead letters
    in each of the last 24 hours, the current hour last. `queue` is set for groups by fingerprint only.
    """

    by: GroupBy
    id: str
    title: str
    count: int
    open: int
    first_seen: datetime
    last_seen: datetime
    last_requeued_at: datetime | None
    since_requeue: int
    sample_id: str
    hourly_counts: tuple[int, ...] = ()
    queue: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Position of a list item: its time of failure and id. With `inclusive`, the next page starts with that item."""

    failed_at: datetime
    id: str
    inclusive: bool = False

    @classmethod
    def of(cls, letter: DeadLetter) -> "Position":
        """The position right after `letter`."""
        return cls(failed_at=letter.failed_at, id=letter.id)
