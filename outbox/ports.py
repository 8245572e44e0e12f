"""What the engine asks of the world: a Store to claim from, a Transport to send through, a Broker to consume from.

Each comment is a promise that the contract tests hold every adapter to.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol, runtime_checkable

from outbox.core.events import Event
from outbox.core.failures import FailedAttempt
from outbox.core.message import NO_HEADERS, Message, PendingMessage, Way
from outbox.core.outcome import DeliveryOutcome, Failure, RelayOutcome

__all__ = [
    "CONFIRMED",
    "UNROUTABLE",
    "Archive",
    "Backlog",
    "Broker",
    "Claim",
    "Confirmed",
    "DeadDelivery",
    "DeadLetterQueues",
    "DeadMessage",
    "Delivery",
    "Doorbell",
    "Gate",
    "Intake",
    "Marks",
    "MeasuresQueues",
    "Nap",
    "NotSent",
    "Observer",
    "QueueDepth",
    "Receive",
    "ReceiveDead",
    "Refused",
    "SendResult",
    "Store",
    "Subscription",
    "Transport",
    "Unconfirmed",
    "Unit",
    "UnitsOfWork",
    "Unroutable",
]


# --- the database ----------------------------------------------------------------------------------------------------


class Claim(AbstractAsyncContextManager["Claim"], Protocol):
    """Messages that are ours until the block ends: left normally it commits, left by an exception it rolls back."""

    @property
    def messages(self) -> Sequence[PendingMessage]:
        """What was claimed, in the order in which it is due; never empty."""
        ...

    async def settle(self, outcomes: Sequence[RelayOutcome]) -> None:
        """Records one outcome for each message, in order, in few statements. Durable once the block is left."""
        ...


@dataclass(frozen=True, slots=True)
class Backlog:
    """How many rows are unsent, and how long the oldest due one has been due (None: none is due)."""

    unsent: int
    oldest_due: timedelta | None


class Store(Protocol):
    """The outbox table, as the relay sees it. Every method raises `DatabaseUnavailableError` while it is away."""

    async def claim(self, limit: int) -> Claim | None:
        """Up to `limit` due messages that no other relay has claimed; None if there are none."""
        ...

    async def next_due(self) -> timedelta | None:
        """The time until the earliest unsent row is due, zero or less if it already is; None without any."""
        ...

    async def release_held(self, routing_key: str, queue: str | None, limit: int) -> int:
        """Makes up to `limit` held rows of `routing_key` due at once, those for `queue` alone; how many there were."""
        ...

    async def claim_stalled(self, wanted: Sequence[tuple[Way, int]]) -> Claim | None:
        """Of each route up to so many messages that wait because it is stalled, those first that were refused least often.

        Each claimed message is one that nothing of its ordering key goes before. None if there are none to be had.
        """
        ...

    async def release_stalled(self, way: Way, limit: int) -> int:
        """Makes up to `limit` messages that wait for the stalled route `way` due at once; how many there were."""
        ...

    async def stalled_ways(self, limit: int) -> Sequence[Way]:
        """Up to `limit` routes that messages wait for because they are stalled."""
        ...

    async def ensure_probes(self) -> int:
        """Sees to it that for each held routing key one row is due in finite time; how many were missing."""
        ...

    async def repair_lanes(self) -> int:
        """Makes messages due that wait for an earlier one of their ordering key which is not there any more; how many."""
        ...

    async def delete_sent(self, older_than: timedelta, limit: int) -> int:
        """Deletes up to `limit` rows sent longer ago than `older_than`; how many there were."""
        ...

    async def backlog(self) -> Backlog:
        """Counts what is unsent; an estimate will do for a large number, for this is asked often."""
        ...


class Nap(Protocol):
    """One sleeper's rest."""

    async def wait(self, timeout: timedelta) -> None:
        """Returns when it rang since the nap began, after `timeout` at the latest; where LISTEN does not deliver, sooner.

        May be called again after another look for rows: it still rings for every commit in between.
        """
        ...


class Doorbell(Protocol):
    """Tells sleepers that rows may have come. Any number may sleep at once."""

    def asleep(self) -> AbstractAsyncContextManager[Nap]:
        """Inside the block every commit of new rows rings. Look for rows once more after entering, then wait."""
        ...

    def ring(self) -> None:
        """Wakes every sleeper of this process."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """Messages of one queue that a transaction marks as processed before anything else is done in it.

    Another transaction that marked one of them, and has not ended, is waited for, up to `patience`.
    """

    queue: str
    message_ids: Sequence[str]
    patience: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A transaction that has begun: what of it was wanted, by name, and which messages it marked that had no mark before."""

    resources: Mapping[str, object]
    marked: frozenset[str] = frozenset()


class Ending(Protocol):
    """The end of a delivery whose row is in PostgreSQL, for a handler's transaction in the same database."""

    @property
    def database(self) -> str:
        """The URL of that database, in the spelling of `outbox.core.urls.postgres_url`."""
        ...

    @property
    def statement(self) -> str:
        """SQL without parameters that deletes the delivery as done, and fails with `outbox.lease_lost` if the lease is lost."""
        ...

    def committed(self) -> None:
        """The transaction with `statement` was committed: settling the delivery as done has nothing left to write."""
        ...

    def unknown(self) -> None:
        """The answer to the commit was lost: settling the delivery as done looks first whether that is left to write."""
        ...


class UnitsOfWork(Protocol):
    """Transactions for handlers that write to the database."""

    def begin(
        self, wanted: frozenset[str], marks: Marks | None = None, ending: Ending | None = None
    ) -> AbstractAsyncContextManager[Unit]:
        """A transaction, and those of `session`, `connection` and `publisher` that are wanted, all of them in it.

        Left normally it commits, left by an exception it rolls back; a commit that fails raises, with marks always
        `CommitFailedError`. With marks it commits only together with them: a handler that committed by itself is refused.
        Entering raises `DatabaseUnavailableError` while the database is away, and `MarkHeldError` when another transaction
        holds one of the marks for too long. An `ending` in the same database is committed with the rest if the commit is ours:
        not if the handler has committed by itself. If the delivery is no longer ours, everything is rolled back, and
        `StaleDeliveryError` raised. `MarkHeldError` is also raised at the end, and everything rolled back, if the handler
        had rolled back and another transaction took the marks before they were made again. `StaleStatementError` is raised at
        the end, too: a table changed since a statement of the handler's was prepared.
        """
        ...


class Gate(Protocol):
    """Whether an operator asked a part of the system to pause. What is in flight is finished; nothing new is taken."""

    @property
    def closed(self) -> bool:
        """Whether a pause is wanted now."""
        ...

    async def opened(self) -> None:
        """Returns once no pause is wanted."""
        ...

    async def closing(self) -> None:
        """Returns once a pause is wanted."""
        ...


class Observer(Protocol):
    """Is notified of every event."""

    def notify(self, event: Event) -> None:
        """Takes note of `event`, at once and without waiting. What it raises is logged and stops nothing."""
        ...


# --- brokers ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The broker has the message safely in every queue that wants it."""


@dataclass(frozen=True, slots=True)
class Unroutable:
    """The broker knows no queue for the message, and says so."""


@dataclass(frozen=True, slots=True)
class Refused:
    """This message cannot be sent as it is: nacked, too large, malformed. Its neighbours are not concerned.

    `by_queue`: it was a queue that refused it, which may be full, so that others on the same route may be refused, too.
    """

    failure: Failure
    by_queue: bool = False


@dataclass(frozen=True, slots=True)
class NotSent:
    """The broker was away, blocked or too slow; whether it has the message is unknown. The message is not to blame."""

    failure: Failure


@dataclass(frozen=True, slots=True)
class Unconfirmed:
    """The broker answers, and has not confirmed this message: a queue on its route takes none. It may have arrived."""

    failure: Failure


SendResult = Confirmed | Unroutable | Refused | NotSent | Unconfirmed

CONFIRMED = Confirmed()
UNROUTABLE = Unroutable()


class Transport(Protocol):
    """Takes messages to where consumers find them."""

    async def open(self) -> None:
        """Afterwards messages can be sent; returns at once if that is so already.

        Raises `BrokerUnavailableError` while the broker is away (call again later), and `TopologyError` when a resource is
        missing that may not be declared.
        """
        ...

    async def send(self, messages: Sequence[Message], *, timeout: timedelta) -> Sequence[SendResult]:
        """Sends all `messages` in a pipeline and returns one result for each, in order, within `timeout`.

        Never raises for what a message or the broker did; that is in the results. A message whose result is `NotSent` may
        have arrived. After a timeout or a cancellation no late answer can be taken for another message's.
        """
        ...

    async def close(self) -> None:
        """Gives back everything that `open` took; what was handed in from outside stays open. Idempotent."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """One queue, the binding key that fills it, and how its messages are to be delivered.

    `prefetch_count` bounds the deliveries in flight, handlers running and not. `retry_delays` are the delays that the consumer
    may ask for, so that a broker can prepare them. `ordered`: deliveries with one ordering key arrive in the order in which
    they were sent, all at one worker or each only after the one before it is settled; the worker handles them so.
    """

    queue: str
    binding_key: str
    exchange_name: str
    prefetch_count: int
    retry_delays: tuple[timedelta, ...]
    ordered: bool = False


class Delivery(Protocol):
    """One message in flight, to be settled exactly once."""

    @property
    def message(self) -> Message:
        """The message, with its original routing key. Raises `MalformedMessageError` if its headers cannot be read."""
        ...

    @property
    def incoming(self) -> object:
        """What a handler's `message` parameter receives: the transport's own object, with aio-pika's read attributes."""
        ...

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1. Raises `MalformedMessageError` if that cannot be read."""
        ...

    @property
    def crashes(self) -> int:
        """How many earlier deliveries of it ended with the death of the worker that held it, guilty or not."""
        ...

    @property
    def blamed(self) -> bool:
        """Whether a worker died while this message ran alone (after `isolate`)."""
        ...

    @property
    def gone(self) -> bool:
        """Whether it is known to be no longer ours. What had arrived after it by the same road is gone with it, then."""
        ...

    @property
    def ending(self) -> Ending | None:
        """How a handler's transaction can end it; None if only `settle` can."""
        ...

    async def note_failed(self, failed: FailedAttempt) -> None:
        """An attempt failed, and the next one follows with the message in flight: `attempt` is one more from now on.

        The failure goes with the message when it is settled. Whether it outlives this worker is the broker's business. Raises
        `StaleDeliveryError` if the delivery is no longer ours.
        """
        ...

    async def isolate(self) -> bool:
        """Records durably that the message now runs alone.

        True: run it. False: a marked copy was queued in its place and this delivery is settled; the copy comes by itself.
        """
        ...

    async def settle(self, outcome: DeliveryOutcome) -> None:
        """Makes `outcome` durable, and only then lets go of the message.

        Done: gone. Retry: comes back to this queue only, after the delay, with `attempt + 1`, id, properties and headers
        kept. Dead: in the queue's dead letters, with the failure. Returned: delivered again as it was, nothing spent.
        Postponed: comes back to this queue only, after the delay, as it was. Raises
        `StaleDeliveryError` if the delivery is no longer ours; then nothing was changed. Raises `BrokerUnavailableError` if the
        broker cannot record it now; then the delivery is still in flight, to be settled again.
        """
        ...


class Intake(Protocol):
    """A subscription that is running."""

    async def stop(self) -> None:
        """No `receive` call follows. What is in flight can still be settled until the subscription's block is left."""
        ...


Receive = Callable[[Delivery], None]


class Broker(Transport, Protocol):
    """A Transport that can also be consumed from."""

    def subscribe(self, subscription: Subscription, receive: Receive) -> AbstractAsyncContextManager[Intake]:
        """Within the block, `receive` is called for each delivery, never with more in flight than `prefetch_count`.

        Needs no `open` before; `close` is called after the last block was left.
        Entering creates what is missing (queue, binding, delays, dead letters) and returns when messages can arrive; it raises
        `BrokerUnavailableError` while the broker is away and `TopologyError` when something is missing that may not be created.
        Inside, lost connections are repaired without anyone's help. Leaving it gives unsettled deliveries back.
        """
        ...

    async def count_dead_letters(self, queue: str) -> int:
        """How many dead letters `queue` has. Raises `BrokerUnavailableError` if that cannot be found out now."""
        ...

    async def has_queue(self, queue: str) -> bool:
        """Whether a message with that `target_queue` has somewhere to go. Raises `BrokerUnavailableError` likewise."""
        ...


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """How many messages wait in a queue for a worker, and how long the first has been due; None: the broker does not say."""

    ready: int
    oldest_due: timedelta | None = None


@runtime_checkable
class MeasuresQueues(Protocol):
    """A Broker that knows how full its queues are. Not all do."""

    async def queue_depth(self, queue: str) -> QueueDepth | None:
        """How full `queue` is; None: it is not there. Raises `BrokerUnavailableError` if that cannot be found out now."""
        ...


# --- dead letters ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadMessage:
    """A message that died at a broker, as far as what the broker keeps of it can be read.

    `queue` is where it died, and `message_id` None if it never had one. `headers` are the application's own, as JSON, and
    `header_types` what JSON cannot say of them; `properties` is everything else that came with it, for readers who want to
    know. `by_broker`: no worker of ours gave it up. `trail` are its failures, oldest first, of which `failure` is the last.
    """

    queue: str
    exchange: str
    message_id: str | None
    routing_key: str
    body: bytes
    cause: str
    failure: Failure
    by_broker: bool
    content_type: str | None = None
    headers: Mapping[str, Any] = field(default_factory=lambda: NO_HEADERS)
    header_types: Mapping[str, Any] = field(default_factory=lambda: NO_HEADERS)
    properties: Mapping[str, Any] = field(default_factory=lambda: NO_HEADERS)
    tracking_ids: tuple[str, ...] = ()
    ordering_key: str | None = None
    hlc: int | None = None
    created_at: datetime | None = None
    died_at: datetime | None = None
    attempt: int = 1
    requeue_count: int = 0
    trail: Sequence[FailedAttempt] = ()


class DeadDelivery(Protocol):
    """A dead message in flight, to be let go of once it is recorded elsewhere."""

    @property
    def dead(self) -> DeadMessage:
        """What can be read of it. Never raises: what cannot be read is left out."""
        ...

    def ack(self) -> None:
        """The broker may forget it. Raises `StaleDeliveryError` if it is no longer ours; then it comes again."""
        ...


ReceiveDead = Callable[[DeadDelivery], None]


class DeadLetterQueues(Protocol):
    """Where a broker keeps dead messages until an archiver takes them away."""

    def collect(
        self, queue: str, receive: ReceiveDead, *, prefetch_count: int, max_bytes: int
    ) -> AbstractAsyncContextManager[asyncio.Event]:
        """Within the block `receive` is called for each dead message of `queue`, at most `prefetch_count` in flight.

        Their bodies have at most about `max_bytes` together, unless a single one has more.

        Entering raises `BrokerUnavailableError` while the broker is away, and `TopologyError` if `queue` has no queue of dead
        letters or it may not be read; nothing is declared. The event is set when nothing more will come: leave the block, and
        enter another. Leaving it gives back, in order, what was not acknowledged.
        """
        ...

    async def count(self, queue: str) -> int:
        """How many dead letters of `queue` the broker has. Raises `BrokerUnavailableError` if that cannot be found out now."""
        ...

    async def close(self) -> None:
        """Gives back everything that was taken. Idempotent."""
        ...


class Archive(Protocol):
    """Where dead letters are kept. Every method raises `DatabaseUnavailableError` while it is away."""

    async def record(self, dead: Sequence[DeadMessage]) -> None:
        """Records all of them, durably, or none. What was recorded before is not recorded again."""
        ...

    async def known_queues(self) -> Set[str]:
        """The queues that have consumers, as far as the database knows."""
        ...

    async def count_open(self, queue: str) -> int:
        """How many dead letters of `queue` are neither requeued nor discarded."""
        ...
