"""The interfaces of the engine: a Store to claim from, a Transport to send through, a Broker to consume from.

The docstrings specify what each adapter must do. The contract tests verify it.
"""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from outbox.core.events import Event, SpanIds
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
    "Guarantees",
    "Intake",
    "Marks",
    "MeasuresQueues",
    "Nap",
    "NotSent",
    "Observer",
    "Propagation",
    "QueueDepth",
    "Reader",
    "Receive",
    "ReceiveDead",
    "Received",
    "Refused",
    "SendResult",
    "Source",
    "Statement",
    "Store",
    "Subscription",
    "Tracer",
    "Transport",
    "Unconfirmed",
    "Unit",
    "UnitsOfWork",
    "Unroutable",
]


# --- the database ----------------------------------------------------------------------------------------------------


class Claim(AbstractAsyncContextManager["Claim"], Protocol):
    """Claimed messages. The claim lasts until its block ends: a normal end commits, an exception rolls back."""

    @property
    def messages(self) -> Sequence[PendingMessage]:
        """The claimed messages, earliest due first; never empty."""
        ...

    async def settle(self, outcomes: Sequence[RelayOutcome]) -> None:
        """Records one outcome for each message, in order, in few statements. Durable after the end of the block."""
        ...


@dataclass(frozen=True, slots=True)
class Backlog:
    """The number of unsent rows, and how long the oldest due row has been due (None: no row is due)."""

    unsent: int
    oldest_due: timedelta | None


class Store(Protocol):
    """The outbox table, as used by the relay. Each method raises `DatabaseUnavailableError` while it is unavailable."""

    async def claim(self, limit: int) -> Claim | None:
        """Claims up to `limit` due messages that no other relay has claimed. Returns None if there are none."""
        ...

    async def next_due(self) -> timedelta | None:
        """Returns the time until the earliest unsent row is due, zero or less if it is due; None if there is no unsent row."""
        ...

    async def release_held(self, routing_key: str, queue: str | None, limit: int) -> int:
        """Makes up to `limit` held rows of `routing_key` due at once, only those for `queue`. Returns the number of rows."""
        ...

    async def claim_stalled(self, wanted: Sequence[tuple[Way, int]]) -> Claim | None:
        """Claims up to the wanted number of messages waiting for each stalled route, those with the fewest refusals first.

        Claims only the first message of each ordering key. Returns None if there is nothing to claim.
        """
        ...

    async def release_stalled(self, way: Way, limit: int) -> int:
        """Makes up to `limit` messages waiting for the stalled route `way` due at once. Returns the number of messages."""
        ...

    async def stalled_ways(self, limit: int) -> Sequence[Way]:
        """Returns up to `limit` stalled routes that messages are waiting for."""
        ...

    async def repair(self) -> int:
        """Makes messages due that would wait forever. Returns how many.

        They are one of each held routing key of which none is due at any time, and those that wait for an earlier message of
        their ordering key that no longer exists.
        """
        ...

    async def delete_sent(self, older_than: timedelta, limit: int) -> int:
        """Deletes up to `limit` rows that were sent longer ago than `older_than`. Returns the number of rows."""
        ...

    async def backlog(self) -> Backlog:
        """Counts the unsent rows. Called often: a large number may be an estimate."""
        ...


class Nap(Protocol):
    """One sleeper's wait for new rows."""

    async def wait(self, timeout: timedelta) -> None:
        """Waits until the bell has rung since the nap began, at most for `timeout`; less where LISTEN does not deliver.

        May be called again after looking for rows: a commit in between still rings.
        """
        ...


class Doorbell(Protocol):
    """Wakes sleepers when there may be new rows. Any number may sleep at once."""

    def asleep(self) -> AbstractAsyncContextManager[Nap]:
        """Within the block, every commit of new rows rings. Look for rows once more after entering, then wait."""
        ...

    def ring(self) -> None:
        """Wakes every sleeper of this process."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """Messages of one queue that a transaction marks as processed before it does anything else.

    If another open transaction has marked one of them, marking waits for its end, up to `max_wait`.
    """

    queue: str
    message_ids: Sequence[str]
    max_wait: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A transaction that has begun: the resources that were wanted, by name, and the messages that it newly marked."""

    resources: Mapping[str, object]
    marked: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL whose parameters are written into it, so that several statements can share a string, and with it a round trip."""

    template: str
    """The SQL, with `$1`, `$2` and so on for the parameters."""
    types: str = ""
    """The types of the parameters, separated by commas."""
    literals: tuple[str, ...] = ()
    """The parameters as SQL."""
    needs_index: bool = False
    """Whether it must read an index, whatever the statistics: the server keeps its plan, and the table may be small by then."""

    @property
    def text(self) -> str:
        """The SQL with its parameters."""
        return _PARAMETER.sub(lambda match: self.literals[int(match[1]) - 1], self.template) if self.literals else self.template


_PARAMETER = re.compile(r"\$([1-9])")


class Ending(Protocol):
    """The end of a delivery whose row is in PostgreSQL, for a handler's transaction in the same database."""

    @property
    def database(self) -> str:
        """The URL of that database, in the spelling of `outbox.core.urls.postgres_url`."""
        ...

    def statement(self, *, marked: bool) -> Statement:
        """Deletes the delivery as done.

        It fails with `outbox.lease_lost` if the lease is lost, and with `outbox.no_such_transaction` if the transaction
        should have `marked` the message in the inbox, but is another one.
        """
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
        """Begins a transaction, with those of `session`, `connection` and `publisher` that are wanted.

        A normal end of the block commits, an exception rolls back. A failed commit raises, with marks always
        `CommitFailedError`. With marks, only this commit is allowed: a handler that commits by itself is refused.
        Entering raises `DatabaseUnavailableError` while the database is unavailable, and `MarkHeldError` if another transaction
        holds one of the marks for too long. The end raises `MarkHeldError`, after a rollback, if the handler rolled back and
        another transaction took the marks before they were made again. It raises `StaleStatementError` if a table has changed
        since a statement of the handler was prepared.

        An `ending` in the same database is committed with the rest, unless the handler committed by itself. If the delivery is
        lost by then, the end rolls back and raises `StaleDeliveryError`.
        """
        ...


class Gate(Protocol):
    """Closed while an operator pauses a relay, a worker or a queue: work in flight is finished, and nothing new is taken."""

    @property
    def closed(self) -> bool:
        """Whether the pause is requested."""
        ...

    async def wait_until_open(self) -> None:
        """Waits until no pause is requested."""
        ...

    async def wait_until_closed(self) -> None:
        """Waits until a pause is requested."""
        ...


class Propagation(StrEnum):
    """How the span of a handler relates to the trace of its message's publisher.

    CHILD: in the same trace. LINK: in a trace of its own, linked to it. AUTO: a link if the message was delayed, retried,
    requeued or handled in a batch, so that a trace ends soon after the request that began it.
    """

    AUTO = "auto"
    CHILD = "child"
    LINK = "link"


class AttemptSpan(Protocol):
    """The span of one attempt, or of a batch, which is current until `end`. `ids` is None if it is not sampled."""

    @property
    def ids(self) -> SpanIds | None: ...

    def end(self, result: DeliveryOutcome | Failure | BaseException | None) -> None:
        """Ends it with its outcome, the failure of a batch, whose messages have no outcomes yet, or what interrupted it."""
        ...


class Tracer(Protocol):
    """Traces the attempts of a worker."""

    def process(self, messages: Sequence[Message], *, queue: str, attempt: int, silent: bool) -> AttemptSpan:
        """Begins to trace one attempt with `messages`, which are several in a batch. The caller ends the span.

        If it is `silent`, instrumented libraries make no spans until then, except in the block of `handler`.
        """
        ...

    def handler(self) -> AbstractContextManager[object]:
        """Runs the block, the call of a handler within a silent `process`, as part of the trace."""
        ...

    def record_duplicate(self, message: Message) -> None:
        """Records within `process` that `message` had been handled before."""
        ...


class Observer(Protocol):
    """Receives every event."""

    def notify(self, event: Event) -> None:
        """Handles `event` without blocking. Its errors are logged and otherwise ignored."""
        ...


# --- brokers ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantees:
    """What not every broker guarantees. An adapter declares it as an attribute `guarantees`; without it, the defaults hold.

    A worker refuses consumers that need more, the doctor reports them, and the contract tests expect what is declared.
    """

    ordered: bool = True
    """Messages of one ordering key arrive in sending order, and an ordered subscription is possible."""
    patterns: bool = True
    """A binding key may have the wildcards `*` and `#`."""
    unroutable: bool = True
    """A message that nothing would receive has the result `Unroutable`, so that a relay holds it until something does."""
    keeps_state: bool = True
    """Attempts and delays of each message are kept at the broker. Otherwise a worker stores messages in its database first."""
    dead_letter_queues: bool = False
    """Dead letters stay in queues of the broker until an archiver moves them. Otherwise they are recorded at once."""


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The broker has stored the message in every queue that is bound for it."""


@dataclass(frozen=True, slots=True)
class Unroutable:
    """The broker returned the message: no queue is bound for it."""


@dataclass(frozen=True, slots=True)
class Refused:
    """This message cannot be sent as it is: nacked, too large or malformed. Says nothing about other messages.

    `by_queue`: a queue refused it. The queue may be full and refuse other messages of the route, too.
    """

    failure: Failure
    by_queue: bool = False


@dataclass(frozen=True, slots=True)
class NotSent:
    """The broker was unavailable, blocked or too slow. The message is not at fault; the broker may have received it."""

    failure: Failure


@dataclass(frozen=True, slots=True)
class Unconfirmed:
    """The broker is available but did not confirm this message: a queue on its route accepts none. It may have arrived."""

    failure: Failure


SendResult = Confirmed | Unroutable | Refused | NotSent | Unconfirmed

CONFIRMED = Confirmed()
UNROUTABLE = Unroutable()


class Transport(Protocol):
    """Sends messages to a broker."""

    async def open(self) -> None:
        """Makes sending possible. Returns at once if it is already.

        Raises `BrokerUnavailableError` while the broker is unavailable (call again later), and `TopologyError` if a resource is
        missing that may not be declared.
        """
        ...

    async def send(self, messages: Sequence[Message], *, timeout: timedelta) -> Sequence[SendResult]:
        """Sends all `messages` in a pipeline and returns one result for each, in order, within `timeout`.

        Reports problems of messages and of the broker as results, never as errors. A message with the result `NotSent` may have
        arrived. After a timeout or a cancellation, a late answer is never attributed to another message.
        """
        ...

    async def close(self) -> None:
        """Releases everything that `open` acquired. Leaves connections open that the caller provided. Idempotent."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """One queue, its binding key, and how its messages are to be delivered.

    `prefetch_count` limits the deliveries in flight, whether their handlers run or not. `retry_delays` are the delays that the
    consumer may ask for, so that a broker can prepare them. `ordered`: deliveries with the same ordering key arrive in sending
    order, either all at one worker, or each after the previous one is settled.
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
        """The value of a handler's `message` parameter: the transport's own object, with aio-pika's read attributes."""
        ...

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1. Raises `MalformedMessageError` if it cannot be read."""
        ...

    @property
    def crashes(self) -> int:
        """How many earlier deliveries of the message ended because their worker crashed, for whatever reason."""
        ...

    @property
    def blamed(self) -> bool:
        """Whether a worker crashed while this message ran alone (after `isolate`)."""
        ...

    @property
    def gone(self) -> bool:
        """Whether the delivery is known to be lost. Deliveries that arrived after it on the same channel are lost, too."""
        ...

    @property
    def ending(self) -> Ending | None:
        """How a handler's transaction can end the delivery. None if only `settle` can."""
        ...

    async def note_failed(self, failed: FailedAttempt) -> None:
        """Records a failed attempt that is followed by another one while the message stays in flight. Increments `attempt`.

        The failure is stored with the message when it is settled. If the worker crashes before that, the broker may lose it.
        Raises `StaleDeliveryError` if the delivery is lost.
        """
        ...

    async def isolate(self) -> bool:
        """Records durably that the message now runs alone.

        Returns True if the caller is to run it now. Returns False if a marked copy was queued in its place: this delivery is
        then settled, and the copy arrives as another delivery.
        """
        ...

    async def settle(self, outcome: DeliveryOutcome) -> None:
        """Makes `outcome` durable, and only then releases the message.

        Done: removed. Retry: redelivered to this queue only, after the delay, with `attempt + 1` and unchanged id, properties
        and headers. Dead: moved to the queue's dead letters, with the failure. Returned: redelivered unchanged, with the same
        attempt. Postponed: redelivered to this queue only, after the delay, unchanged.
        Raises `StaleDeliveryError` if the delivery is lost; then nothing was changed. Raises `BrokerUnavailableError` if the
        broker cannot record the outcome now; then the delivery is still in flight and can be settled again.
        """
        ...


class Intake(Protocol):
    """A running subscription."""

    async def stop(self) -> None:
        """Stops calling `receive`. Deliveries in flight can be settled until the end of the subscription's block."""
        ...


Receive = Callable[[Delivery], None]


class Broker(Transport, Protocol):
    """A Transport that can also be consumed from."""

    def subscribe(self, subscription: Subscription, receive: Receive) -> AbstractAsyncContextManager[Intake]:
        """Calls `receive` for each delivery within the block, with at most `prefetch_count` in flight.

        Needs no `open` before. `close` is called after the end of the last block.
        Entering creates the queue, its binding, delays and dead letter queue if they are missing, and returns when messages can
        arrive. It raises `BrokerUnavailableError` while the broker is unavailable, and `TopologyError` if something is missing
        that may not be created. Within the block, lost connections are restored. The end of the block returns unsettled
        deliveries to the queue.
        """
        ...

    async def count_dead_letters(self, queue: str) -> int:
        """Returns the number of dead letters of `queue`. Raises `BrokerUnavailableError` if it cannot be read now."""
        ...

    async def has_queue(self, queue: str) -> bool:
        """Whether a message with this `target_queue` can be routed. Raises `BrokerUnavailableError` if that is unknown now."""
        ...


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """How many messages wait in a queue, and how long the first one has been due (None: the broker does not report it)."""

    ready: int
    oldest_due: timedelta | None = None


@runtime_checkable
class MeasuresQueues(Protocol):
    """A Broker that can measure its queues. Optional for a broker."""

    async def queue_depth(self, queue: str) -> QueueDepth | None:
        """Returns the depth of `queue`, None if it does not exist. Raises `BrokerUnavailableError` if it cannot be read now."""
        ...


# --- brokers whose messages are stored before they are handled ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Received:
    """A message that a source has delivered. Only the source understands its `token`, which it needs to acknowledge it."""

    message: Message
    token: object


class Reader(Protocol):
    """A running read of one queue's messages from a source."""

    async def fetch(self, limit: int) -> Sequence[Received]:
        """Waits for messages, for about a second at most, and returns up to `limit` in their order; possibly none.

        Those that are not acknowledged are fetched again after a restart. Restores lost connections. Stays alive without calls,
        for as long as the source's user takes to make room. Raises `BrokerUnavailableError` while the broker is unavailable
        (call again later). A call that is cancelled loses nothing: what it had fetched is not acknowledged.
        """
        ...

    async def acknowledge(self, received: Sequence[Received]) -> None:
        """Records that the group needs the messages no more. Does nothing for those that another reader has by now.

        Raises `BrokerUnavailableError`: then they may be fetched again.
        """
        ...


@runtime_checkable
class Source(Protocol):
    """A broker that keeps no state for each message: they are stored in the worker's database before they are handled.

    An attribute `label`, a word for the kind of broker, is the exchange of the stored messages.
    """

    def read(self, subscription: Subscription) -> AbstractAsyncContextManager[Reader]:
        """Reads the messages whose routing keys match the binding key for `subscription.queue`, within the block.

        The queue names a group of readers that share the messages. Entering creates the group, and with it what it needs, if
        that is missing and may be created. It raises `BrokerUnavailableError` while the broker is unavailable, and
        `TopologyError` if something is missing that may not be created. A new group begins with the oldest messages that the
        broker has. The end of the block returns messages that were not acknowledged to the group.
        """
        ...

    async def close(self) -> None:
        """Releases everything that is shared by reads. Called after the end of the last block. Idempotent."""
        ...


# --- dead letters ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadMessage:
    """A dead letter at a broker, as far as it can be read.

    `queue` is the queue that it failed in. `message_id` is None if it never had one. `headers` are the application's own, as
    JSON; `header_types` are the types that JSON cannot express. `properties` are all other properties, for display only.
    `by_broker`: the broker dead-lettered it, not a worker. `failures` are its failures, oldest first; `failure` is the last.
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
    failed_at: datetime | None = None
    attempt: int = 1
    requeue_count: int = 0
    failures: Sequence[FailedAttempt] = ()


class DeadDelivery(Protocol):
    """A dead letter in flight, to be acknowledged once it is recorded elsewhere."""

    @property
    def dead(self) -> DeadMessage:
        """The dead letter. Never raises: leaves out the parts that cannot be read."""
        ...

    def ack(self) -> None:
        """Removes it from the broker. Raises `StaleDeliveryError` if the delivery is lost; then it is redelivered."""
        ...

    def leave(self) -> None:
        """Leaves it at the broker, unacknowledged. It counts no longer, and arrives again in a later block, or sooner."""
        ...


ReceiveDead = Callable[[DeadDelivery], None]


class DeadLetterQueues(Protocol):
    """The queues in which a broker keeps dead letters for an archiver."""

    def collect(
        self, queue: str, receive: ReceiveDead, *, prefetch_count: int, max_bytes: int
    ) -> AbstractAsyncContextManager[asyncio.Event]:
        """Calls `receive` for each dead letter of `queue` within the block, with at most `prefetch_count` in flight.

        Their bodies have at most about `max_bytes` together, unless a single one has more.
        Entering raises `BrokerUnavailableError` while the broker is unavailable, and `TopologyError` if `queue` has no dead
        letter queue or it may not be read. Declares nothing. The event is set when no more will arrive: leave the block and
        enter a new one. The end of the block returns unacknowledged dead letters, in order.
        """
        ...

    async def count(self, queue: str) -> int:
        """Returns the number of dead letters of `queue` at the broker. Raises `BrokerUnavailableError` if it cannot be read."""
        ...

    async def close(self) -> None:
        """Releases all connections. Idempotent."""
        ...


class Archive(Protocol):
    """The database's dead letters. Each method raises `DatabaseUnavailableError` while the database is unavailable."""

    async def record(self, dead: Sequence[DeadMessage]) -> Sequence[DeadMessage]:
        """Records them durably, or none. Skips those that were recorded before.

        Returns those that the database refuses, by a constraint or a trigger of yours. They are not recorded.
        """
        ...

    async def known_queues(self) -> Set[str]:
        """Returns the queues that have consumers, as far as the database knows."""
        ...

    async def count_open(self, queue: str) -> int:
        """Returns the number of dead letters of `queue` that are neither requeued nor discarded."""
        ...
