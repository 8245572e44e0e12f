"""The model of dead letters: an item of the list, the details of one, a group, a filter."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, get_args

from outbox.core.failures import FailedAttempt
from outbox.core.outcome import Failure

PARKED_PREFIX = "outbox-"
"""Begins the id of a row that the relay parked: `outbox-17` is row 17 of the outbox table, `17` row 17 of the dead letters."""

Sort = Literal["newest", "oldest"]
GroupBy = Literal["fingerprint", "queue", "routing_key"]
FacetField = Literal["source", "status", "queue", "exception_type", "routing_key"]
FACET_FIELDS: tuple[FacetField, ...] = get_args(FacetField)
Facets = Mapping[FacetField, Sequence[tuple[str, int]]]
"""Of each field, values and how many have them, the most frequent first."""


class Source(StrEnum):
    """What dead-lettered a message: a relay that could not send it, a worker whose handler failed, or the broker."""

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
    """Which dead letters are meant: those that fit everything that is given; without anything, all.

    `ids` are as operators know them. `group_id` is a fingerprint. `q` is searched for in the masked text, with the syntax of
    search engines: words, "phrases", or, -not. `failed_after` is included, `failed_before` is not. `min_failures` counts the
    attempts that failed; a relay's are its attempts to send. Of several queues, routing keys, exception types, groups or
    statuses, in a tuple, one has to fit.
    """

    ids: tuple[str, ...] = ()
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
    q: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """One line of the list: everything but the payload. `exception_message` and `preview` are masked.

    `service_version` is the release of the service whose handler failed last. `deaths` is how often it died, `requeue_count`
    how often it was sent again, `failures` how many attempts failed in all. `queue` is empty for a parked message that no queue
    in particular was meant for.
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
    deaths: int
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Edition:
    """A dead letter's payload as it was before an edit. `size` is that of the whole body."""

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

    `headers` and `properties` hold what JSON can; `header_types` says where AMQP knows more.
    `trail` is what failed, oldest first, and `failure` the end of it.
    """

    letter: DeadLetter
    body: bytes
    headers: Mapping[str, Any]
    properties: Mapping[str, Any]
    header_types: Mapping[str, Any]
    hlc: int | None
    failure: Failure
    trail: Sequence[FailedAttempt]
    editions: Sequence[Edition]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Dead letters that have something in common, and how many of them there are.

    `id` is what a filter takes: a fingerprint, a queue or a routing key. `last_requeued_at` is when one of them was requeued
    last, and `since_requeue` how many died after that; all of them if none ever was. `deaths_by_hour` is how many died in each
    of the last 24 hours, the present one last. `queue` is where those with a common fingerprint failed; otherwise it is empty.
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
    deaths_by_hour: tuple[int, ...] = ()
    queue: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where a page of the list ended: the last line's time of failure and id; `inclusive`: that line comes again."""

    failed_at: datetime
    id: str
    inclusive: bool = False

    @classmethod
    def of(cls, letter: DeadLetter) -> "Position":
        """The position right after `letter`."""
        return cls(failed_at=letter.failed_at, id=letter.id)
