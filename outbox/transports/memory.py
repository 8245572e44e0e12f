"""A broker in memory, for tests and single-process programs. Behaves like RabbitMQ."""

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, assert_never

from outbox.core import codec
from outbox.core.failures import FailedAttempt, extended_failures
from outbox.core.message import Message
from outbox.core.outcome import Cause, Dead, DeliveryOutcome, Done, Failure, Postponed, Retry, Returned
from outbox.core.topics import matches
from outbox.errors import MalformedMessageError, StaleDeliveryError
from outbox.ports import CONFIRMED, UNROUTABLE, Guarantees, Intake, QueueDepth, Receive, SendResult, Subscription

_EXPIRED = Failure("Expired", "its time ran out before it was handled")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A message that failed for good. `failures` has all its failures, oldest first; the last one is `failure`."""

    queue: str
    message: Message
    attempt: int
    cause: Cause
    failure: Failure
    failures: tuple[FailedAttempt, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingMessage:
    """The `message` parameter of a handler, with the read attributes of aio-pika's incoming message."""

    body: bytes
    message_id: str
    routing_key: str
    headers: Mapping[str, Any]
    content_type: str | None
    timestamp: datetime
    exchange: str
    redelivered: bool


class MemoryBroker:
    """Keeps messages in the memory of one process, for any number of relays and workers on one event loop.

    Delays use the clock of the event loop. Queues and their messages exist as long as the object; `close` does not delete them.
    """

    guarantees = Guarantees()

    def __init__(self, *, exchange_name: str = "outbox") -> None:
        self._exchange_name = exchange_name
        self._queues: dict[str, Queue] = {}

    async def open(self) -> None:
        """Does nothing."""

    async def close(self) -> None:
        """Does nothing. Queued messages stay queued."""

    async def send(self, messages: Sequence[Message], *, timeout: timedelta) -> Sequence[SendResult]:  # noqa: ARG002
        """Puts each message into every queue that is bound for it. Never times out."""
        results: list[SendResult] = []
        for message in messages:
            if message.target_queue is None:
                targets = [queue for queue in self._queues.values() if queue.wants(self._exchange_name, message.routing_key)]
            else:
                targets = [self._queues[message.target_queue]] if message.target_queue in self._queues else []
            expires_at = message.expires_at
            if expires_at is None and message.expiration is not None:
                expires_at = datetime.now(UTC) + message.expiration
            for queue in targets:
                queue.put(Entry(message=replace(message, expires_at=expires_at)))
            results.append(CONFIRMED if targets else UNROUTABLE)
        return results

    @asynccontextmanager
    async def subscribe(self, subscription: Subscription, receive: Receive) -> AsyncIterator[Intake]:
        """Calls `receive` with deliveries of the queue within the block, round-robin with its other subscribers."""
        queue = self._queue(subscription.queue)
        queue.bindings.add((subscription.exchange_name, subscription.binding_key))
        queue.ordered = queue.ordered or subscription.ordered
        member = Member(queue, receive, subscription.prefetch_count)
        queue.members.append(member)
        queue.holders.append(member)
        queue.pump()
        try:
            yield member
        finally:
            await member.stop()
            queue.holders.remove(member)
            member.give_back()

    async def count_dead_letters(self, queue: str) -> int:
        """Returns the number of dead letters of `queue`."""
        return len(self.dead_letters(queue))

    async def queue_depth(self, queue: str) -> QueueDepth | None:
        """Returns the number of waiting messages of `queue`, without their age; None if the queue does not exist."""
        known = self._queues.get(queue)  # not `_queue`, which would create it
        return None if known is None else QueueDepth(len(known.ready))

    async def has_queue(self, queue: str) -> bool:
        """Whether `queue` exists."""
        return queue in self._queues

    def dead_letters(self, queue: str) -> Sequence[DeadLetter]:
        """The dead letters of `queue`, oldest first."""
        return tuple(self._queue(queue).dead)

    def depth(self, queue: str) -> int:
        """Returns the number of messages that wait in `queue`, including delayed ones, without those in flight."""
        waiting = self._queue(queue)
        return len(waiting.ready) + len(waiting.delayed)

    def is_idle(self, queue: str) -> bool:
        """Whether `queue` has no messages, waiting or in flight."""
        return self.depth(queue) == 0 and not any(member.in_flight for member in self._queue(queue).members)

    def has_consumer(self, queue: str) -> bool:
        """Whether `queue` has a consumer."""
        return bool(self._queue(queue).members)

    def put_malformed(self, queue: str, message: Message, *, reason: str) -> None:
        """Puts a message with unreadable headers into `queue`, as another program might."""
        self._queue(queue).put(Entry(message=message, malformed=reason))

    def crash(self, queue: str) -> None:
        """Returns messages in flight to `queue`, as if their worker had crashed."""
        for member in self._queue(queue).members:
            member.give_back(crashed=True)

    def _queue(self, name: str) -> "Queue":
        if name not in self._queues:
            self._queues[name] = Queue(name, self._exchange_name)
        return self._queues[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A message in one queue, with the state for its next delivery."""

    message: Message
    attempt: int = 1
    failures: tuple[FailedAttempt, ...] = ()
    crashes: int = 0
    isolated: bool = False
    blamed: bool = False
    malformed: str = ""
    redelivered: bool = False

    def for_redelivery(self, *, crashed: bool = False) -> "Entry":
        """Returns the entry for its next delivery."""
        if not crashed:
            return replace(self, redelivered=True)
        return replace(self, redelivered=True, crashes=self.crashes + 1, blamed=self.isolated)

    def for_next_attempt(self, failed: FailedAttempt) -> "Entry":
        """Returns the entry for its next attempt."""
        return replace(self, attempt=self.attempt + 1, failures=tuple(extended_failures(self.failures, failed)))

    @property
    def expired(self) -> bool:
        """Whether its deadline has passed."""
        expires_at = self.message.expires_at
        return expires_at is not None and expires_at <= datetime.now(UTC)


class Queue:
    """One queue: its ready and delayed messages, its dead letters, and its subscriptions.

    An `ordered` queue delivers only the first message of each ordering key, and the next one when that is settled for good. A
    delayed message keeps its position.
    """

    def __init__(self, name: str, exchange_name: str) -> None:
        self.name = name
        self.exchange_name = exchange_name
        self.bindings: set[tuple[str, str]] = set()
        self.ordered = False
        self.ready: deque[Entry] = deque()
        self.delayed: dict[asyncio.TimerHandle, Entry] = {}
        self.dead: list[DeadLetter] = []
        self.members: deque[Member] = deque()
        self.holders: list[Member] = []
        """The members, and those that have stopped but have messages in flight."""
        self._pumping = False

    def wants(self, exchange_name: str, routing_key: str) -> bool:
        """Whether a binding of the queue matches."""
        return any(exchange == exchange_name and matches(key, routing_key) for exchange, key in self.bindings)

    def put(self, entry: Entry) -> None:
        """Adds an entry at the end."""
        self.ready.append(entry)
        self.pump()

    def put_in_front(self, entries: Sequence[Entry]) -> None:
        """Adds entries at the front, in this order."""
        self.ready.extendleft(reversed(entries))
        self.pump()

    def put_after(self, delay: timedelta, entry: Entry) -> None:
        """Adds an entry after `delay`."""
        # Through the event loop even without a delay, so that an immediate retry lets other messages go first.
        loop = asyncio.get_running_loop()

        def due() -> None:
            del self.delayed[handle]
            if self._key(entry) is None:
                self.put(entry)
            else:
                self.put_in_front([entry])

        handle = loop.call_later(delay.total_seconds(), due)
        self.delayed[handle] = entry

    def dead_letter(self, entry: Entry, cause: Cause, failure: Failure) -> None:
        """Adds the entry to the dead letters."""
        failed = FailedAttempt(at=datetime.now(UTC), attempt=entry.attempt, failure=failure)
        self.dead.append(
            DeadLetter(
                queue=self.name,
                message=entry.message,
                attempt=entry.attempt,
                cause=cause,
                failure=failure,
                failures=tuple(extended_failures(entry.failures, failed)),
            )
        )

    def pump(self) -> None:
        """Delivers ready entries, each to the next member with room."""
        # `receive` may settle a delivery, which calls this again.
        if self._pumping:
            return
        self._pumping = True
        try:
            while (entry := self._next_entry()) is not None and (member := self._next_with_room()) is not None:
                # By identity, because a queue may have equal entries.
                del self.ready[next(index for index, other in enumerate(self.ready) if other is entry)]
                if entry.expired:
                    self.dead_letter(entry, Cause.EXPIRED, _EXPIRED)
                else:
                    member.hand_over(entry)
        finally:
            self._pumping = False

    def _next_entry(self) -> Entry | None:
        if not self.ready or not self.ordered:
            return self.ready[0] if self.ready else None
        # A later message of a key must overtake neither one in flight nor one that waits for its retry.
        in_flight = (delivery.entry for member in self.holders for delivery in member.in_flight.values())
        busy = {self._key(entry) for entry in itertools.chain(in_flight, self.delayed.values())} - {None}
        return next((entry for entry in self.ready if self._key(entry) not in busy), None)

    def _key(self, entry: Entry) -> str | None:
        return entry.message.ordering_key if self.ordered else None

    def _next_with_room(self) -> "Member | None":
        for _ in range(len(self.members)):
            self.members.rotate(-1)
            if self.members[-1].has_room:
                return self.members[-1]
        return None


class Member:
    """One subscription, with its deliveries in flight."""

    def __init__(self, queue: Queue, receive: Receive, prefetch_count: int) -> None:
        self._queue = queue
        self._receive = receive
        self._prefetch_count = prefetch_count
        self.in_flight: dict[int, Delivery] = {}
        self._numbers = itertools.count()

    @property
    def has_room(self) -> bool:
        """Whether the prefetch count allows another delivery."""
        return len(self.in_flight) < self._prefetch_count

    async def stop(self) -> None:
        """Stops deliveries. Those in flight can still be settled."""
        if self in self._queue.members:
            self._queue.members.remove(self)

    def hand_over(self, entry: Entry) -> None:
        """Delivers an entry."""
        # By a number that is never used again: after a crash, the same entry gets another one, and this delivery is stale.
        number = next(self._numbers)
        delivery = Delivery(
            entry,
            self._queue,
            is_held=lambda: number in self.in_flight,
            release=lambda: self.in_flight.pop(number, None) is not None,
        )
        self.in_flight[number] = delivery
        self._receive(delivery)

    def give_back(self, *, crashed: bool = False) -> None:
        """Returns its deliveries in flight to the queue, in order; if `crashed`, as if the worker had crashed."""
        unsettled = [delivery.entry.for_redelivery(crashed=crashed) for delivery in self.in_flight.values()]
        self.in_flight.clear()
        self._queue.put_in_front(unsettled)


@dataclass(slots=True)
class Delivery:
    """One entry in flight. `is_held` returns whether it still is; `release` ends that, and returns whether it was."""

    entry: Entry
    queue: Queue
    is_held: Callable[[], bool]
    release: Callable[[], bool]
    incoming: IncomingMessage = field(init=False)

    def __post_init__(self) -> None:
        message = self.entry.message
        self.incoming = IncomingMessage(
            body=message.body,
            message_id=message.id,
            routing_key=message.routing_key,
            headers=MappingProxyType(
                {
                    **message.headers,
                    codec.TRACKING_IDS: codec.encode_tracking_ids(message.tracking_ids),
                    codec.ATTEMPT: self.entry.attempt,
                }
            ),
            content_type=message.content_type,
            timestamp=message.created_at,
            exchange=self.queue.exchange_name,
            redelivered=self.entry.redelivered,
        )

    @property
    def message(self) -> Message:
        if self.entry.malformed:
            raise MalformedMessageError(self.entry.malformed)
        return self.entry.message

    @property
    def attempt(self) -> int:
        return self.entry.attempt

    @property
    def crashes(self) -> int:
        return self.entry.crashes

    @property
    def blamed(self) -> bool:
        return self.entry.blamed

    @property
    def gone(self) -> bool:
        return not self.is_held()

    @property
    def ending(self) -> None:
        return None

    async def note_failed(self, failed: FailedAttempt) -> None:
        self.entry = self.entry.for_next_attempt(failed)

    async def isolate(self) -> bool:
        self.entry = replace(self.entry, isolated=True)
        return True

    async def settle(self, outcome: DeliveryOutcome) -> None:
        if not self.release():
            raise StaleDeliveryError(f"{self.entry.message.id} was already returned to {self.queue.name}")
        match outcome:
            case Done():
                pass
            case Retry(delay, failure):
                failed = FailedAttempt(at=datetime.now(UTC), attempt=self.entry.attempt, failure=failure)
                self.queue.put_after(delay, replace(self.entry.for_next_attempt(failed), redelivered=False))
            case Postponed(delay):
                self.queue.put_after(delay, replace(self.entry, redelivered=False))
            case Dead(cause, failure):
                self.queue.dead_letter(self.entry, cause, failure)
            case Returned():
                self.queue.put_in_front([self.entry.for_redelivery()])
            case _:
                assert_never(outcome)
        self.queue.pump()
