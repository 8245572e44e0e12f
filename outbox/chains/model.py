"""Model of a chain: a tree of messages with their deliveries and attempts. `masked` masks its errors."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from outbox.masking import Masking


class ChainState(StrEnum):
    """Recorded state of a message, or of its delivery to one queue."""

    PENDING = "pending"
    SCHEDULED = "scheduled"
    HELD = "held"
    STALLED = "stalled"
    BLOCKED = "blocked"
    RETRYING = "retrying"
    PARKED = "parked"
    SENT = "sent"
    QUEUED = "queued"
    IN_FLIGHT = "in_flight"
    PROCESSED = "processed"
    DEAD = "dead"
    REQUEUED = "requeued"
    DISCARDED = "discarded"
    UNKNOWN = "unknown"


WORST_FIRST = (
    ChainState.DEAD,
    ChainState.PARKED,
    ChainState.HELD,
    ChainState.STALLED,
    ChainState.BLOCKED,
    ChainState.RETRYING,
    ChainState.IN_FLIGHT,
    ChainState.QUEUED,
    ChainState.REQUEUED,
    ChainState.SENT,
    ChainState.PENDING,
    ChainState.SCHEDULED,
    ChainState.DISCARDED,
    ChainState.PROCESSED,
    ChainState.UNKNOWN,
)
"""Order that decides a chain's state: first what needs attention, then what is on its way, then what has ended."""


def worst(states: Iterable[ChainState]) -> ChainState:
    """Returns the worst of `states`; `UNKNOWN` if there are none."""
    return min(states, key=WORST_FIRST.index, default=ChainState.UNKNOWN)


class AttemptOutcome(StrEnum):
    """Outcome of an attempt. `DUPLICATE`: the message had been handled before."""

    PROCESSED = "processed"
    RETRIED = "retried"
    DEAD_LETTERED = "dead_lettered"
    DUPLICATE = "duplicate"

    @classmethod
    def of_fact(cls, fact: str) -> "AttemptOutcome":
        """Returns the outcome that a fact of the history records."""
        return cls.DEAD_LETTERED if fact == "died" else cls(fact)

    @property
    def fact(self) -> str:
        """Name of the fact in the history."""
        return "died" if self is AttemptOutcome.DEAD_LETTERED else self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptError:
    """Error of a failed attempt."""

    type: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt of a handler: when it ended and how, the time spent in the handler, and the component that ran it.

    `trace_id` is the trace in which it was made, in 32 hexadecimal digits; None if it is not sampled, or not recorded.
    """

    at: datetime | None
    attempt: int
    outcome: AttemptOutcome
    handling: timedelta | None = None
    error: AttemptError | None = None
    component: str = ""
    trace_id: str | None = None


class WaitReason(StrEnum):
    """Why a delivery waits. `FAILING`: its worker has paused itself because the handler fails. `NEXT`: it is next in line."""

    PAUSED = "paused"
    NO_CONSUMER = "no_consumer"
    FAILING = "failing"
    RETRY = "retry"
    BEHIND = "behind"
    NEXT = "next"


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Why a delivery waits; `text` says it in words.

    `ahead` counts the deliveries due before it, up to 10,001; None if unknown, as with RabbitMQ. The last three fields describe
    the pause, if it is paused.
    """

    reason: WaitReason
    text: str
    ahead: int | None = None
    paused_by: str | None = None
    paused_at: datetime | None = None
    pause_reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """Delivery of a message to one queue.

    `waited` is its time in the broker before the first attempt; `due_at` is the time of the next one. `attempts` are those on
    record, oldest first, while `attempt_count` counts all. `waiting` says why it waits, if it does.
    """

    queue: str
    state: ChainState
    attempt_count: int = 0
    received_at: datetime | None = None
    waited: timedelta | None = None
    due_at: datetime | None = None
    waiting: Waiting | None = None
    attempts: tuple[Attempt, ...] = ()

    @property
    def last(self) -> Attempt | None:
        """The latest attempt on record."""
        return self.attempts[-1] if self.attempts else None

    @property
    def handling(self) -> timedelta | None:
        """Total time in handlers, of all attempts."""
        known = [each.handling for each in self.attempts if each.handling is not None]
        return sum(known, timedelta(0)) if known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One message: the time it `waited` in the outbox, when it was `sent_at`, and its delivery to each queue.

    `depth` is 0 for the first message. `last_error` is the reason it is still in the outbox, `held_at` since when it is
    unroutable or its route is stalled. `trace_id` is the trace in which it was published, as its header `traceparent` says; the
    attempts of a handler may be in other traces. A node that is known only as the parent of others has the state `unknown`: it
    may be a message without records, or the request in which the first message was published.
    """

    id: str
    parent_id: str | None
    depth: int = 0
    state: ChainState = ChainState.UNKNOWN
    routing_key: str = ""
    published_at: datetime | None = None
    sent_at: datetime | None = None
    waited: timedelta | None = None
    due_at: datetime | None = None
    held_at: datetime | None = None
    relay: str = ""
    last_error: str | None = None
    requeue_count: int = 0
    trace_id: str | None = None
    deliveries: tuple[Delivery, ...] = ()

    @property
    def last_at(self) -> datetime | None:
        """Time of the last recorded event of the message."""
        attempts = [each.at for delivery in self.deliveries for each in delivery.attempts]
        return max((at for at in (self.published_at, self.sent_at, *attempts) if at is not None), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Tree of messages as a list: each of the `nodes` comes after its parent and before its next sibling.

    `found` is False if there is no record of the requested id. `truncated`: there are more nodes. `unknown` explains in
    sentences what could not be determined, and why. `state` is the worst state of any node. `duration` is the time from the
    first to the last recorded event, and `critical_path` lists the ids from the root to the message with that last event.
    """

    root_id: str
    nodes: tuple[Node, ...]
    found: bool = True
    truncated: bool = False
    unknown: tuple[str, ...] = ()
    state: ChainState = ChainState.UNKNOWN
    duration: timedelta | None = None
    critical_path: tuple[str, ...] = ()

    def node(self, id_: str) -> Node | None:
        """Returns the message with that id, or None."""
        return next((node for node in self.nodes if node.id == id_), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainSummary:
    """Chain in a list: its first message, the times of its first send and last event, and its number of dead letters.

    Computed from the first `facts` facts of the history; `more` if there are others. `messages` counts the messages in these
    facts, and `state` is the worst of their states.
    """

    root_id: str
    routing_key: str
    sent_at: datetime | None
    last_at: datetime | None
    facts: int
    dead_letter_count: int
    messages: int = 0
    state: ChainState = ChainState.UNKNOWN
    more: bool = False

    @property
    def duration(self) -> timedelta | None:
        """Time from the first send to the last event."""
        return None if self.sent_at is None or self.last_at is None else max(self.last_at - self.sent_at, timedelta(0))


def masked(chain: Chain, masking: Masking) -> Chain:
    """Returns the chain with its errors masked."""
    nodes = []
    for node in chain.nodes:
        deliveries = []
        for delivery in node.deliveries:
            errors = [
                each.error
                and AttemptError(type=masking.error_type(each.error.type), message=masking.error_text(each.error.message))
                for each in delivery.attempts
            ]
            attempts = tuple(replace(each, error=error) for each, error in zip(delivery.attempts, errors, strict=True))
            deliveries.append(replace(delivery, attempts=attempts))
        # `last_error` is the error of a send, or a word such as `unroutable`.
        last_error = None if node.last_error is None else masking.error_type(node.last_error)
        nodes.append(replace(node, last_error=last_error, deliveries=tuple(deliveries)))
    return replace(chain, nodes=tuple(nodes))
