"""Actions on dead letters and their results: destinations, edits, outcomes, operations, dry runs."""

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

SLOWEST_RATE, FASTEST_RATE = 0.001, 1_000_000
"""Messages a second; a slower one would pause for longer than a time can be."""
LONGEST_WAIT = timedelta(days=7)
LATEST_START = timedelta(days=30)
"""How far ahead an operation can be put off."""
CANARY_WAIT = timedelta(minutes=10)
"""How long a canary's results are waited for at most, unless it says otherwise."""
STOP_RATIO = 0.1
"""Past which share of failed messages a requeue stops itself, unless it says otherwise."""
T = TypeVar("T")
Also = Callable[[Connection, T], Awaitable[None]]
"""What is done in the transaction of an action, before its commit; it is given the action's answer."""


class Action(StrEnum):
    """What is done to a dead letter."""

    REQUEUE = "requeue"
    DISCARD = "discard"
    RESTORE = "restore"
    PURGE = "purge"


@dataclass(frozen=True, slots=True)
class ToQueue:
    """Requeue to this queue, which must exist, instead of the one that the message died in."""

    queue: str

    def __post_init__(self) -> None:
        if not isinstance(self.queue, str) or not self.queue or "\0" in self.queue:
            raise ConfigurationError(f"ToQueue takes the name of a queue, not {self.queue!r}")


@dataclass(frozen=True, slots=True)
class OriginalRouting:
    """Requeue by the routing key: to every queue that is bound for it now, also those that had processed the message."""


ORIGINAL_ROUTING = OriginalRouting()

Destination = ToQueue | OriginalRouting
"""Where to; None: to the queue that the message died in, and a parked one to where it was going."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Another body, other headers, or both, for one dead letter that was read at `version`.

    `body` is encoded as `Publisher.publish` encodes it, and None leaves it as it is. `headers` replace all that there are; None
    leaves them, an empty mapping removes them.
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
    """The first `count` go ahead; the others follow when all of those were handled. Longer than `wait` nothing is waited for.

    A message that fails an attempt, or whose result is not known after `wait`, stops the operation.
    """

    count: int
    wait: timedelta = CANARY_WAIT

    def __post_init__(self) -> None:
        at_least_one("the count of a canary", self.count)
        if not isinstance(self.wait, timedelta) or not timedelta(0) < self.wait <= LONGEST_WAIT:
            raise ConfigurationError(
                f"a canary waits for a timedelta longer than zero, and at most {LONGEST_WAIT.days} days, not {self.wait!r}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How an action is done; all but `force` and `max_items`, the oldest so many, concern requeueing only.

    `rate` is in messages a second. Past `stop_ratio` of messages that failed an attempt and were not handled since, an
    operation stops itself; 1: it never does, None: `STOP_RATIO`, and a canary stops at the first. `retention` is how long
    inboxes remember a message: what is older is refused without `force`. Nothing is done before `starts_at`.
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
        if self.rate is not None and (isinstance(self.rate, bool) or not SLOWEST_RATE <= self.rate <= FASTEST_RATE):
            raise ConfigurationError(
                f"rate is a number of messages a second from {SLOWEST_RATE} to {FASTEST_RATE:,}, not {self.rate!r}"
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
    def is_an_operation(self) -> bool:
        """Whether it takes an operation even for few letters: it goes on after the request."""
        return self.rate is not None or self.canary is not None or self.starts_at is not None


class ItemOutcome(StrEnum):
    """What came of one dead letter.

    `SKIPPED`: there was nothing to do, or another change is at it. `REFUSED`: it could not be done; the reason says why.
    `DIED_AGAIN`: it was requeued, and has come back.
    """

    PENDING = "pending"
    DONE = "done"
    SKIPPED = "skipped"
    REFUSED = "refused"
    NOT_FOUND = "not found"
    DIED_AGAIN = "died again"


@dataclass(frozen=True, slots=True)
class Item:
    """One dead letter's part: its id as operators know it, what came of it, and why."""

    id: str
    outcome: ItemOutcome
    reason: str = ""


class Result(StrEnum):
    """What became of a message that was sent again.

    `WAITING`: nothing is known of an attempt. `RETRYING`: an attempt failed, and another one follows. `FAILED_AGAIN`: it is a
    dead letter once more, or parked. `UNKNOWN`: nothing was heard of it for so long that nothing more is looked for.
    """

    WAITING = "waiting"
    RETRYING = "retrying"
    HANDLED = "handled"
    FAILED_AGAIN = "failed again"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Results:
    """How many messages of an operation were sent again, and what became of them: every one is counted once after `sent`.

    `failed` are those of which any attempt failed, also if they were handled since.
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
        """How many have no final result yet."""
        return self.waiting + self.retrying


@dataclass(frozen=True, slots=True)
class Repaired:
    """What came of an action that was done at once, for each id in the order in which they were given."""

    action: Action
    items: Sequence[Item]

    @property
    def done(self) -> int:
        """How many it was done to."""
        return sum(item.outcome is ItemOutcome.DONE for item in self.items)


class OperationState(StrEnum):
    """Running and paused ones go on; the others have ended: `STOPPED` by themselves, `CANCELLED` by a person."""

    RUNNING = "running"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    STOPPED = "stopped"
    FINISHED = "finished"


ENDED = frozenset({OperationState.CANCELLED, OperationState.STOPPED, OperationState.FINISHED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An action on many dead letters, made in batches: what was asked for, and how far it is.

    `selector` is what was meant, for people to read; the ids were fixed when it was created. `counts` has how many of its
    `total` letters came to each outcome; `results` what became of the messages that it sent again. From `canary_since` until
    `canary_until` it waits for the results of the first ones.
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
        """Whether nothing more will be done."""
        return self.state in ENDED

    @property
    def pending(self) -> int:
        """How many letters are still to be done."""
        return self.counts.get(ItemOutcome.PENDING, 0)

    @property
    def settled(self) -> int:
        """How many letters it got to, without those that were left out because it was ended before them."""
        ended_early = self.state in (OperationState.CANCELLED, OperationState.STOPPED)
        return self.total - self.pending - (self.counts.get(ItemOutcome.SKIPPED, 0) if ended_early else 0)


@dataclass(frozen=True, slots=True)
class Expected:
    """What a plan has shown: how many dead letters, and a digest of which ones in which state."""

    count: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What an action would do now: to how many, of which queues and exceptions, and what to think of before.

    `sample` are the first of them in the order in which they would be done. `digest` stands for which ones they are, and in
    which state.
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
        """What to give a change as `expected`, so that it is done to these letters, as they are now, or to none."""
        return Expected(self.count, self.digest)


_ORIGINAL_ROUTING = "original routing"
_MOST_IDS = 20


def encode_options(options: Options) -> str:
    """What `decode_options` reads; what is not given is left out."""
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
    """The options that `encode_options` wrote."""
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
    """What was meant, for people to read: the letters themselves are fixed. Of many ids the first are named."""
    if isinstance(selector, DeadLetterFilter):
        return json.dumps({"filter": encode_filter(selector)})
    return json.dumps({"ids": list(selector[:_MOST_IDS]), "count": len(selector)})


def encode_filter(wanted: DeadLetterFilter) -> Mapping[str, Any]:
    """What a filter asks for, as JSON knows it; what it does not ask for is left out."""
    values = {field.name: getattr(wanted, field.name) for field in fields(wanted)}
    return {
        name: encode_instant(value) if isinstance(value, datetime) else value
        for name, value in values.items()
        if value is not None and value != ()
    }
