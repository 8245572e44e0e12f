"""The broker itself: its queues by name, and what goes into them."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from outbox.core.message import Message
from outbox.ports import CONFIRMED, UNROUTABLE, Intake, Receive, SendResult, Subscription
from outbox.transports.memory.queues import DeadLetter, Entry, Member, Queue


class MemoryBroker:
    """Keeps everything in the memory of one process, for any number of relays and workers on one event loop.

    Delays run on the event loop's clock. Queues live as long as the broker; closing it forgets nothing.
    """

    def __init__(self, *, exchange_name: str = "outbox") -> None:
        self._exchange_name = exchange_name
        self._queues: dict[str, Queue] = {}

    async def open(self) -> None:
        """Nothing needs opening."""

    async def close(self) -> None:
        """Nothing needs closing; what is queued stays queued."""

    async def send(self, messages: Sequence[Message], *, timeout: timedelta) -> Sequence[SendResult]:  # noqa: ARG002
        """Puts each message into every queue that is bound for it; nothing can be slow here."""
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
        """Within the block, deliveries of the queue go to `receive`, in turn with the queue's other subscribers."""
        queue = self._queue(subscription.queue)
        queue.bindings.add((subscription.exchange_name, subscription.binding_key))
        queue.ordered = queue.ordered or subscription.ordered
        member = Member(queue, receive, subscription.prefetch_count)
        queue.members.append(member)
        queue.takers.append(member)
        queue.pump()
        try:
            yield member
        finally:
            await member.stop()
            queue.takers.remove(member)
            member.give_back()

    async def count_dead_letters(self, queue: str) -> int:
        """How many dead letters `queue` has."""
        return len(self.dead_letters(queue))

    async def has_queue(self, queue: str) -> bool:
        """Whether `queue` is there."""
        return queue in self._queues

    def dead_letters(self, queue: str) -> Sequence[DeadLetter]:
        """The dead letters of `queue`, oldest first."""
        return tuple(self._queue(queue).dead)

    def depth(self, queue: str) -> int:
        """How many messages wait in `queue`, delayed ones included, those in hand not."""
        waiting = self._queue(queue)
        return len(waiting.ready) + len(waiting.delayed)

    def is_idle(self, queue: str) -> bool:
        """Whether nothing waits in `queue` and nothing of it is in hand."""
        return self.depth(queue) == 0 and not any(member.in_hand for member in self._queue(queue).members)

    def has_consumer(self, queue: str) -> bool:
        """Whether somebody takes from `queue`."""
        return bool(self._queue(queue).members)

    def put_malformed(self, queue: str, message: Message, *, reason: str) -> None:
        """Puts a message into `queue` that another program wrote, whose headers cannot be read."""
        self._queue(queue).put(Entry(message=message, malformed=reason))

    def crash(self, queue: str) -> None:
        """Takes back what is in hand of `queue`, as if the worker had died with it."""
        for member in self._queue(queue).members:
            member.give_back(crashed=True)

    def _queue(self, name: str) -> "Queue":
        if name not in self._queues:
            self._queues[name] = Queue(name)
        return self._queues[name]
