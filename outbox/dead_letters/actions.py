"""Actions on dead letters, and their results: destinations, edits, options, outcomes, operations, dry runs."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, TypeVar

from outbox.core.arguments import at_least_one
from outbox.core.codec import encode_instant
from outbox.dead_letters.model import DeadLetter, DeadLetterFilter
from outbox.errors import ConfigurationError
from outbox.postgres.pool import Connection

MIN_RATE, MAX_RATE = 0.001, 1_000_000
"""Messages per second. At far slower rates the pause between batches would overflow a timedelta."""
MAX_CANARY_WAIT = timedelta(days=7)
LATEST_START = timedelta(days=30)
"""How far in the future an operation may start."""
CANARY_WAIT = timedelta(minutes=10)
"""Default limit on the wait for a canary's results."""
STOP_RATIO = 0.1
"""Default share of failed messages above which a requeue operation stops."""
T = TypeVar("T")
BeforeCommit = Callable[[Connection, T], Awaitable[None]]
"""Callback that runs in the transaction of an action, right before the commit, with the connection and the action's result."""


class Action(StrEnum):
    """Action that changes a dead letter."""

    REQUEUE = "requeue"
    DISCARD = "discard"
    RESTORE = "restore"
    PURGE = "purge"


@dataclass(frozen=True, slots=True)
class ToQueue:
    """Requeue to this queue, which must exist, instead of the queue where the message failed."""

    queue: str

    def __post_init__(self) -> None:
        if not isinstance(self.queue, str) or not self.queue or "\0" in self.queue:
            raise ConfigurationError(f"ToQueue takes the name of a queue, not {self.queue!r}")


@dataclass(frozen=True, slots=True)
class OriginalRouting:
    """Requeue by routing key, to every queue bound to it now, including those that have already processed the message."""


ORIGINAL_ROUTING = OriginalRouting()

Destination = ToQueue | OriginalRouting
"""Where a requeue sends a message. None: to the queue where it failed, or for a parked message to where it was going."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """New body, new headers, or both, for one dead letter that was read at `version`.

    `body` is encoded as `Publisher.publish` encodes it; None keeps the current body. `headers` replaces all headers: None keeps
    them, an empty mapping removes them.
    """

    version: int
    body: object | None = None
    headers: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        at_least_one("version", self.version)
        if self.body is None and self.headers is None:
            raise ConfigurationError("an edit changes the body, the headers, or both: give at least one of them")


@dataclass(frozen=True, slots=True)
class Canary:
    """Requeues the first `count` messages, and the others once all of these are handled.

    A message that fails an attempt, or has no known result after `wait`, stops the operation.
    """

    count: int
    wait: timedelta = CANARY_WAIT

    def __post_init__(self) -> None:
        at_least_one("the count of a canary", self.count)
        if not isinstance(self.wait, timedelta) or not timedelta(0) < self.wait <= MAX_CANARY_WAIT:
            raise ConfigurationError(
                f"a canary's wait is a timedelta longer than zero, and at most {MAX_CANARY_WAIT.days} days, not {self.wait!r}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of an action. All except `force` and `max_items` (only the oldest so many) apply to requeues only.

    `rate` is in messages per second. An operation stops when more than `stop_ratio` of its messages failed an attempt and have
    not been handled since. 1: never; None: `STOP_RATIO`, and a canary stops at its first failure. `retention` is the inboxes'
    deduplication window: older messages are refused without `force`. Nothing is done before `starts_at`.
    """

    destination: Destination | None = None
    rate: float | None = None
    canary: Canary | None = None
    stop_ratio: float | None = None
    force: bool = False
    max_items: int | None = None
    retention: timedelta = timedelta(days=30)
    starts_at: datetime | None = None

    def __post_init__(self) -> None:
        if self.rate is not None and (isinstance(self.rate, bool) or not MIN_RATE <= self.rate <= MAX_RATE):
            raise ConfigurationError(
                f"rate is a number of messages per second from {MIN_RATE} to {MAX_RATE:,}, not {self.rate!r}"
            )
        if self.stop_ratio is not None and not 0 <= self.stop_ratio <= 1:
            raise ConfigurationError(f"stop_ratio is a share from 0 to 1, not {self.stop_ratio!r}")
        if self.max_items is not None:
            at_least_one("max_items", self.max_items)
        if self.starts_at is not None and (self.starts_at.tzinfo is None or self.starts_at > datetime.now(UTC) + LATEST_START):
            raise ConfigurationError(
                f"starts_at is a time with an offset from UTC, at most {LATEST_START.days} days ahead, not {self.starts_at}"
            )

    @property
    def needs_operation(self) -> bool:
        """Whether even a few dead letters need an operation, because the action continues after the request."""
        return self.rate is not None or self.canary is not None or self.starts_at is not None


class ItemOutcome(StrEnum):
    """Outcome of an action on one dead letter.

    `SKIPPED`: there was nothing to do, or another operation has the dead letter. `REFUSED`: it could not be done; the reason
    says why. `FAILED_AGAIN`: it was requeued, and dead-lettered again.
    """

    PENDING = "pending"
    DONE = "done"
    SKIPPED = "skipped"
    REFUSED = "refused"
    NOT_FOUND = "not found"
    FAILED_AGAIN = "died again"


_DONE_ALREADY = {
    Action.REQUEUE: frozenset({"already requeued", "already sent"}),
    Action.DISCARD: frozenset({"already discarded"}),
    Action.RESTORE: frozenset({"open already"}),
}
"""Why `sql/repair.sql` skips a dead letter that is as the action would leave it."""


@dataclass(frozen=True, slots=True)
class Item:
    """One dead letter in an action: its id as operators know it, its outcome, and the reason."""

    id: str
    outcome: ItemOutcome
    reason: str = ""

    def is_done_already(self, action: Action) -> bool:
        """Whether it was skipped because it is as `action` would leave it; otherwise it could not be changed now."""
        return self.outcome is ItemOutcome.SKIPPED and self.reason in _DONE_ALREADY.get(action, ())


class Result(StrEnum):
    """Result of a requeued message.

    `WAITING`: no attempt is known yet. `RETRYING`: an attempt failed, and another one follows. `FAILED_AGAIN`: it was
    dead-lettered or parked again. `UNKNOWN`: no result was found within a week, and the search has ended.
    """

    WAITING = "waiting"
    RETRYING = "retrying"
    HANDLED = "handled"
    FAILED_AGAIN = "failed again"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Results:
    """Counts of an operation's requeued messages by result. Each of the `sent` messages is in one of the next five counts.

    `failed` counts those with at least one failed attempt, even if they were handled later.
    """

    sent: int = 0
    waiting: int = 0
    retrying: int = 0
    handled: int = 0
    failed_again: int = 0
    unknown: int = 0
    failed: int = 0

    @property
    def open(self) -> int:
        """Number of messages without a final result."""
        return self.waiting + self.retrying


@dataclass(frozen=True, slots=True)
class Repaired:
    """Result of an action without an operation: the outcome of each id, in the order they were given."""

    action: Action
    items: Sequence[Item]

    @property
    def done(self) -> int:
        """Number of dead letters that were changed."""
        return sum(item.outcome is ItemOutcome.DONE for item in self.items)


class OperationState(StrEnum):
    """State of an operation. `RUNNING` and `PAUSED` are active. `STOPPED`: ended by itself; `CANCELLED`: by an operator."""

    RUNNING = "running"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    STOPPED = "stopped"
    FINISHED = "finished"


ENDED = frozenset({OperationState.CANCELLED, OperationState.STOPPED, OperationState.FINISHED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An action on many dead letters, done in batches: the request and its progress.

    `selector` describes the request for readers; the dead letters were fixed when the operation was created. `counts` maps each
    outcome to its share of the `total` dead letters, `results` counts the results of the requeued messages. From `canary_since`
    until `canary_until` the operation waits for the results of its canary.
    """

    id: int
    action: Action
    state: OperationState
    selector: Mapping[str, Any]
    options: Options
    reason: str | None
    requested_by: str | None
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None
    continue_at: datetime
    canary_until: datetime | None
    total: int
    counts: Mapping[ItemOutcome, int]
    stopped_because: str | None
    canary_since: datetime | None = None
    results: Results = Results()

    @property
    def ended(self) -> bool:
        """Whether the operation will do nothing more."""
        return self.state in ENDED

    @property
    def pending(self) -> int:
        """Number of dead letters that are not yet processed."""
        return self.counts.get(ItemOutcome.PENDING, 0)

    @property
    def settled(self) -> int:
        """Number of dead letters that were processed, without those skipped because the operation ended early."""
        ended_early = self.state in (OperationState.CANCELLED, OperationState.STOPPED)
        return self.total - self.pending - (self.counts.get(ItemOutcome.SKIPPED, 0) if ended_early else 0)


@dataclass(frozen=True, slots=True)
class Expected:
    """Result of a dry run to compare with: the number of dead letters, and a digest of their ids and states."""

    count: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Dry run of an action: how many dead letters it would change now, of which queues and exceptions, with warnings.

    `sample` holds the first dead letters, in the order of processing. `digest` identifies the dead letters and their states.
    """

    action: Action
    count: int
    by_queue: Mapping[str, int] = field(default_factory=dict)
    by_exception: Mapping[str, int] = field(default_factory=dict)
    sample: Sequence[DeadLetter] = ()
    warnings: Sequence[str] = ()
    digest: str = ""

    @property
    def expected(self) -> Expected:
        """Value for the parameter `expected` of a change: it changes these dead letters in their current state, or none."""
        return Expected(self.count, self.digest)


_ORIGINAL_ROUTING = "original routing"
_MAX_LISTED_IDS = 20


def encode_options(options: Options) -> str:
    """Options as JSON, for `decode_options`. Leaves out those that are not set."""
    canary, destination = options.canary, options.destination
    entries = {
        "destination": {"queue": destination.queue} if isinstance(destination, ToQueue) else destination and _ORIGINAL_ROUTING,
        "rate": options.rate,
        "canary": None if canary is None else {"count": canary.count, "seconds": canary.wait.total_seconds()},
        "stop_ratio": options.stop_ratio,
        "force": options.force or None,
        "max_items": options.max_items,
        "retention_seconds": options.retention.total_seconds(),
        "starts_at": None if options.starts_at is None else encode_instant(options.starts_at),
    }
    return json.dumps({name: value for name, value in entries.items() if value is not None})


def decode_options(text: str) -> Options:
    """Reads options that `encode_options` wrote."""
    entries = json.loads(text)
    starts_at = entries.get("starts_at")
    canary, destination = entries.get("canary"), entries.get("destination")
    if destination is not None:
        destination = ORIGINAL_ROUTING if destination == _ORIGINAL_ROUTING else ToQueue(destination["queue"])
    options = Options(
        destination=destination,
        rate=entries.get("rate"),
        canary=None if canary is None else Canary(canary["count"], timedelta(seconds=canary["seconds"])),
        stop_ratio=entries.get("stop_ratio"),
        force=entries.get("force", False),
        max_items=entries.get("max_items"),
        retention=timedelta(seconds=entries["retention_seconds"]),
    )
    return options if starts_at is None else replace(options, starts_at=datetime.fromisoformat(starts_at))


def encode_selector(selector: Sequence[str] | DeadLetterFilter) -> str:
    """Selector as JSON, for readers only: the dead letters of an operation are fixed in its items. Lists the first 20 ids."""
    if isinstance(selector, DeadLetterFilter):
        return json.dumps({"filter": encode_filter(selector)})
    return json.dumps({"ids": list(selector[:_MAX_LISTED_IDS]), "count": len(selector)})


def encode_filter(wanted: DeadLetterFilter) -> Mapping[str, Any]:
    """Filter as JSON values. Leaves out fields that are not set."""
    values = {field.name: getattr(wanted, field.name) for field in fields(wanted)}
    return {
        name: encode_instant(value) if isinstance(value, datetime) else value
        for name, value in values.items()
        if value is not None and (value != () or name == "ids")
    }
