"""What travels: the message that a caller publishes, and the message that relays, brokers and workers carry."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypedDict, TypeVar, dataclass_transform

from outbox.core.outcome import Failure

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True)
def light_value(*, kw_only: bool = False) -> Callable[[type[_T]], type[_T]]:
    """A slotted dataclass that type checkers take for a frozen one.

    A frozen one sets each field by a call: ten fields cost a microsecond, of the twenty that a relay has for a message.
    """
    return dataclass(slots=True, unsafe_hash=True, kw_only=kw_only)


NO_HEADERS: Mapping[str, Any] = MappingProxyType({})


class PublishOptions(TypedDict, total=False):
    """What `Publisher.publish` takes besides routing key and body; meanings and defaults are those of `OutboxMessage`."""

    expiration: float | timedelta | None
    eta: datetime | timedelta | float | None
    headers: Mapping[str, Any] | None
    ordering_key: str | None
    dedup_key: str | None
    on_conflict: Literal["ignore", "replace"]
    priority: int


@dataclass(frozen=True, slots=True)
class OutboxMessage:
    """One event to publish with `Publisher.bulk_publish`; the same fields as `Publisher.publish` takes.

    `expiration` is in seconds or a timedelta; `eta` a datetime (naive means local time), a timedelta from now, or
    milliseconds from now. `headers` are JSON values, which travel with it. Messages of one `ordering_key` leave one after
    another. `dedup_key`, of at most 1,000 bytes, names one logical event or timer: while a message with it is pending, another
    one is ignored, or, with `on_conflict="replace"`, takes its place. `priority` is 0 to 9, higher first, and not for messages
    with an ordering key.
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


@light_value(kw_only=True)
class Message:
    """A message on its way: encoded, identified, independent of any transport.

    `id` is the last of `tracking_ids`, the root of the causation chain the first. `headers` are the application's own,
    without the `x-outbox-…` ones. `expiration` is the time left at the first sending; `expires_at` is the deadline that
    follows from it and limits all retries. `target_queue` addresses one queue directly instead of the exchange. `hlc` is the
    stamp of its publisher's hybrid logical clock, in microseconds since 1970. `requeue_count` is how often it was requeued.
    `anonymous`: its sender gave it no id, so that it has another one each time it is delivered.
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
    """Where messages go together: by routing key, or, if `queue` is given, to that queue alone, whatever is bound."""

    routing_key: str
    queue: str | None = None


class OrderingPolicy(StrEnum):
    """What becomes of the later messages of an ordering key while an earlier one cannot be sent.

    BLOCK: they wait for it. PARK: they wait while it may still succeed, and are parked with it. SKIP: they go ahead.
    """

    BLOCK = "block"
    PARK = "park"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class Lane:
    """What the messages of one ordering key are in, one behind the other."""

    number: int
    policy: OrderingPolicy


@light_value(kw_only=True)
class PendingMessage:
    """A claimed row of the outbox table: the message, the row it is settled by, and how often sending it was refused.

    `held` says that it was unroutable when it was last sent; `malformed` that the row cannot be sent as it is, and why. `lane`
    is that of its ordering key, if it has one. `deduplicated`: it has a dedup key. What is `too_large` was not fetched, and no
    further attempt helps it. `scheduled` is how long after its creation it was due.
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
