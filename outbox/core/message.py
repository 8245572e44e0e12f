"""Messages: as a caller publishes them, and as relays, brokers and workers process them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypedDict, TypeVar, dataclass_transform

from outbox.core.outcome import Failure

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True)
def light_value(*, kw_only: bool = False) -> Callable[[type[_T]], type[_T]]:
    """Decorator for a slotted dataclass that type checkers treat as frozen."""
    # A frozen dataclass sets each field by a call. Ten fields cost a microsecond, of the twenty that a relay has per message.
    return dataclass(slots=True, unsafe_hash=True, kw_only=kw_only)


NO_HEADERS: Mapping[str, Any] = MappingProxyType({})


class PublishOptions(TypedDict, total=False):
    """The optional arguments of `Publisher.publish`; see `OutboxMessage` for their meanings and defaults."""

    expiration: float | timedelta | None
    eta: datetime | timedelta | float | None
    headers: Mapping[str, Any] | None
    ordering_key: str | None
    dedup_key: str | None
    on_conflict: Literal["ignore", "replace"]
    priority: int
    content_type: str | None
    destination: str | Sequence[str] | None


@dataclass(frozen=True, slots=True)
class OutboxMessage:
    """One event to publish with `Publisher.bulk_publish`. The fields are the arguments of `Publisher.publish`.

    `expiration` is in seconds or a timedelta. `eta` is a datetime (naive means local time), a timedelta from now, or
    milliseconds from now. `headers` are JSON values, sent with the message. Messages with the same `ordering_key` are sent one
    after another. `dedup_key`, at most 1,000 bytes, identifies one logical event or timer: while a message with the same key is
    pending, another one is ignored, or with `on_conflict="replace"` replaces it. `priority` is 0 to 9, higher first, and not
    for messages with an ordering key. `content_type` is the media type of the body, by default that of JSON, or for bytes
    "application/octet-stream". `destination` is one name or several, in place of the Publisher's rules.
    """

    routing_key: str
    body: object
    expiration: float | timedelta | None = None
    eta: datetime | timedelta | float | None = None
    headers: Mapping[str, Any] | None = field(default=None, kw_only=True)
    ordering_key: str | None = field(default=None, kw_only=True)
    dedup_key: str | None = field(default=None, kw_only=True)
    on_conflict: Literal["ignore", "replace"] = field(default="ignore", kw_only=True)
    priority: int = field(default=0, kw_only=True)
    content_type: str | None = field(default=None, kw_only=True)
    destination: str | Sequence[str] | None = field(default=None, kw_only=True)


@light_value(kw_only=True)
class Message:
    """An encoded message, independent of any transport.

    `tracking_ids` is the causation chain, from its root to `id`. `headers` are the application's own, without `x-outbox-…`.
    `expiration` is the time left at the first sending; `expires_at` is the resulting deadline, which limits all retries.
    `target_queue` addresses one queue directly instead of the exchange. `hlc` is the timestamp of its publisher's hybrid
    logical clock, in microseconds since 1970. `requeue_count` is how often it was requeued. `anonymous`: it was sent without an
    id, and gets a new one for each delivery.
    """

    id: str
    routing_key: str
    body: bytes
    created_at: datetime
    tracking_ids: tuple[str, ...]
    content_type: str | None = None
    headers: Mapping[str, Any] = field(default_factory=lambda: NO_HEADERS)
    expiration: timedelta | None = None
    expires_at: datetime | None = None
    ordering_key: str | None = None
    target_queue: str | None = None
    hlc: int | None = None
    requeue_count: int = 0
    anonymous: bool = False


class Way(NamedTuple):
    """The route of messages: a routing key, or if `queue` is given, that queue alone, independent of bindings."""

    routing_key: str
    queue: str | None = None


class OrderingPolicy(StrEnum):
    """How later messages of an ordering key are treated while an earlier one cannot be sent.

    BLOCK: they wait for it. PARK: they wait while it is retried, and are parked with it. SKIP: they are sent.
    """

    BLOCK = "block"
    PARK = "park"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class Lane:
    """The sequence of the messages of one ordering key."""

    number: int
    policy: OrderingPolicy


@light_value(kw_only=True)
class PendingMessage:
    """A claimed row of the outbox table: its message, the row id to settle it with, and how often sending was refused.

    `held`: it was unroutable when it was last sent. `malformed`: why the row cannot be sent. `lane` is that of its ordering
    key, if it has one. `deduplicated`: it has a dedup key. `too_large`: it was not fetched, and retrying does not help.
    `scheduled`: how long after its creation it was due.
    """

    row_id: int
    attempts: int
    held: bool
    message: Message
    malformed: Failure | None = None
    lane: Lane | None = None
    deduplicated: bool = False
    too_large: bool = False
    scheduled: timedelta = timedelta(0)
