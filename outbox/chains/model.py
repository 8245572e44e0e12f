"""The model of a chain: a tree of messages, their deliveries and attempts, and its masked form."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from outbox.masking import Masking


class ChainState(StrEnum):
    """The state of a message, or of its delivery to one queue, as far as it is on record."""

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
"""A chain has the state of its messages that comes first here: what needs attention, what is on its way, what is over."""


def worst(states: Iterable[ChainState]) -> ChainState:
    """The worst of `states`; unknown if there are none."""
    return min(states, key=WORST_FIRST.index, default=ChainState.UNKNOWN)


class AttemptOutcome(StrEnum):
    """The outcome of an attempt; `DUPLICATE`: it had been handled before."""

    PROCESSED = "processed"
    RETRIED = "retried"
    DEAD_LETTERED = "dead_lettered"
    DUPLICATE = "duplicate"

    @classmethod
    def of_fact(cls, fact: str) -> "AttemptOutcome":
        """The outcome that a fact of the history records."""
        return cls.DEAD_LETTERED if fact == "died" else cls(fact)

    @property
    def fact(self) -> str:
        """The fact of the history that records it."""
        return "died" if self is AttemptOutcome.DEAD_LETTERED else self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class TryError:
    """What an attempt failed with."""

    type: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """One attempt of a handler, as the history tells it: how it ended and when, how long that took, and in which component."""

    at: datetime | None
    attempt: int
    outcome: AttemptOutcome
    handling: timedelta | None = None
    error: TryError | None = None
    component: str = ""


class WaitReason(StrEnum):
    """Why a delivery waits; `FAILING`: its worker pauses itself, as its handler fails; `NEXT`: a worker will take it next."""

    PAUSED = "paused"
    NO_CONSUMER = "no_consumer"
    FAILING = "failing"
    RETRY = "retry"
    BEHIND = "behind"
    NEXT = "next"


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Why a delivery waits, and `text`, the same in words.

    `ahead` is how many are due before it, up to 10,001; None where that is not known, as at RabbitMQ. Who paused it, when, and
    why, if it is paused.
    """

    reason: WaitReason
    text: str
    ahead: int | None = None
    paused_by: str | None = None
    paused_at: datetime | None = None
    pause_reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """The delivery of a message to one queue.

    `waited` is its time in the broker before the first attempt; `due_at` when it is to be tried again. `tries` are the attempts
    that are known, oldest first; `attempts` is how many there were. `waiting` says why it waits, if it does.
    """

    queue: str
    state: ChainState
    attempts: int = 0
    received_at: datetime | None = None
    waited: timedelta | None = None
    due_at: datetime | None = None
    waiting: Waiting | None = None
    tries: tuple[Try, ...] = ()

    @property
    def last(self) -> Try | None:
        """The latest attempt."""
        return self.tries[-1] if self.tries else None

    @property
    def handling(self) -> timedelta | None:
        """How long handlers ran, all attempts together."""
        known = [each.handling for each in self.tries if each.handling is not None]
        return sum(known, timedelta(0)) if known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One message: `waited` in the outbox until it was `sent_at`, then one leg for each queue.

    `depth` is 0 for the beginning of the chain. `last_error` is what keeps it in the outbox, `held_at` since when it is
    unroutable, or its route is stalled. A node that only others speak of has the state `unknown`: it may never have been a
    message, but the request that the first one was published in.
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
    legs: tuple[Leg, ...] = ()

    @property
    def last_at(self) -> datetime | None:
        """When something last happened to it, as far as that is known."""
        tries = [each.at for leg in self.legs for each in leg.tries]
        return max((at for at in (self.published_at, self.sent_at, *tries) if at is not None), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """A tree of messages: `nodes` with their `parent_id`s, each after its parent and before its next sibling.

    `found` says whether anything is known of the id that was asked for. `truncated`: there are more nodes. `unknown` says, in
    sentences, what cannot be known, and why. `state` is the worst of any node. `duration` is the time from the first thing that
    is known of it to the last, and `critical_path` the ids that lead from the beginning to the message that this last thing
    happened to.
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
        """The message of that id."""
        return next((node for node in self.nodes if node.id == id_), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """A chain in a list: its first message, when that was sent, when something last happened, and how many died in it.

    It is what the first `facts` facts of the history tell, `more` if there are others: `messages` is how many they are about,
    `state` the worst that any of those was left in.
    """

    root_id: str
    routing_key: str
    sent_at: datetime | None
    last_at: datetime | None
    facts: int
    deaths: int
    messages: int = 0
    state: ChainState = ChainState.UNKNOWN
    more: bool = False

    @property
    def duration(self) -> timedelta | None:
        """From its first message's leaving the outbox to the last that happened."""
        return None if self.sent_at is None or self.last_at is None else max(self.last_at - self.sent_at, timedelta(0))


def masked(chain: Chain, masking: Masking) -> Chain:
    """The chain with its errors masked."""
    nodes = []
    for node in chain.nodes:
        legs = []
        for leg in node.legs:
            errors = [
                each.error
                and TryError(type=masking.error_type(each.error.type), message=masking.error_text(each.error.message))
                for each in leg.tries
            ]
            tries = tuple(replace(each, error=error) for each, error in zip(leg.tries, errors, strict=True))
            legs.append(replace(leg, tries=tries))
        # What keeps a message in the outbox is the error of a send, or a word such as `unroutable`.
        last_error = None if node.last_error is None else masking.error_type(node.last_error)
        nodes.append(replace(node, last_error=last_error, legs=tuple(legs)))
    return replace(chain, nodes=tuple(nodes))
