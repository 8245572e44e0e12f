"""Running consumers in a test until there is nothing left to do, and dying at a named point, between two steps of a broker."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from enum import StrEnum
from typing import Any

from outbox.core.failures import FailedAttempt
from outbox.core.message import Message
from outbox.core.outcome import DeliveryOutcome
from outbox.engine.consumer import Consumer
from outbox.ports import Broker, Delivery, Ending, Intake, MeasuresQueues, QueueDepth, Receive, SendResult, Subscription
from outbox.transports.memory import MemoryBroker
from outbox.worker import Worker


class CrashPoint(StrEnum):
    """Where a relay or a worker can die.

    RELAY_CLAIMED: rows are claimed, nothing was sent. RELAY_SENT: the broker has confirmed, the outbox does not know.
    WORKER_RECEIVED: a message arrived, its handler has not run. WORKER_HANDLED: its transaction, if it has one, is committed,
    and the broker does not know. WORKER_SETTLED: the broker knows.
    """

    RELAY_CLAIMED = "relay-claimed"
    RELAY_SENT = "relay-sent"
    WORKER_RECEIVED = "worker-received"
    WORKER_HANDLED = "worker-handled"
    WORKER_SETTLED = "worker-settled"


def kill_this_process() -> None:
    """What `kill -9` does: nothing is cleaned up, no connection is closed politely."""
    os.kill(os.getpid(), signal.SIGKILL)


class CrashingBroker:
    """A broker for `MessageRelay(broker=…)` and `Worker(broker=…)` during whose use the process dies.

    The first `survives` times that `point` is reached all is well; then `die` is called. A `die` that returns lets
    everything go on, so a test within one process can note, cancel or raise there instead.
    """

    def __init__(
        self, broker: Broker, point: CrashPoint, *, survives: int = 0, die: Callable[[], None] = kill_this_process
    ) -> None:
        self._broker = broker
        self._point = point
        self._left = survives
        self._die = die

    async def open(self) -> None:
        """See `outbox.ports.Transport.open`."""
        await self._broker.open()

    async def send(self, messages: Sequence[Message], *, timeout: timedelta) -> Sequence[SendResult]:
        """See `outbox.ports.Transport.send`; dies before or after it."""
        self.reach(CrashPoint.RELAY_CLAIMED)
        results = await self._broker.send(messages, timeout=timeout)
        self.reach(CrashPoint.RELAY_SENT)
        return results

    async def close(self) -> None:
        """See `outbox.ports.Transport.close`."""
        await self._broker.close()

    @asynccontextmanager
    async def subscribe(self, subscription: Subscription, receive: Receive) -> AsyncIterator[Intake]:
        """See `outbox.ports.Broker.subscribe`; dies when a delivery arrives, or before or after it is settled."""

        def receive_or_die(delivery: Delivery) -> None:
            self.reach(CrashPoint.WORKER_RECEIVED)
            receive(_CrashingDelivery(delivery, self))

        async with self._broker.subscribe(subscription, receive_or_die) as intake:
            yield intake

    async def count_dead_letters(self, queue: str) -> int:
        """See `outbox.ports.Broker.count_dead_letters`."""
        return await self._broker.count_dead_letters(queue)

    async def has_queue(self, queue: str) -> bool:
        """See `outbox.ports.Broker.has_queue`."""
        return await self._broker.has_queue(queue)

    async def queue_depth(self, queue: str) -> QueueDepth | None:
        """See `outbox.ports.MeasuresQueues.queue_depth`."""
        return await self._broker.queue_depth(queue) if isinstance(self._broker, MeasuresQueues) else None

    def reach(self, point: CrashPoint) -> None:
        """Dies if this is the point, and its time has come."""
        if point is not self._point:
            return
        if self._left:
            self._left -= 1
        else:
            self._die()


class _CrashingDelivery:
    """A delivery around whose settling the process may die."""

    def __init__(self, delivery: Delivery, broker: CrashingBroker) -> None:
        self._delivery = delivery
        self._broker = broker

    @property
    def message(self) -> Message:
        return self._delivery.message

    @property
    def incoming(self) -> object:
        return self._delivery.incoming

    @property
    def attempt(self) -> int:
        return self._delivery.attempt

    @property
    def gone(self) -> bool:
        return self._delivery.gone

    @property
    def ending(self) -> Ending | None:
        return self._delivery.ending

    async def note_failed(self, failed: FailedAttempt) -> None:
        await self._delivery.note_failed(failed)

    @property
    def crashes(self) -> int:
        return self._delivery.crashes

    @property
    def blamed(self) -> bool:
        return self._delivery.blamed

    async def isolate(self) -> bool:
        return await self._delivery.isolate()

    async def settle(self, outcome: DeliveryOutcome) -> None:
        self._broker.reach(CrashPoint.WORKER_HANDLED)
        await self._delivery.settle(outcome)
        self._broker.reach(CrashPoint.WORKER_SETTLED)


PATIENCE = timedelta(seconds=10)


async def work_off(
    broker: MemoryBroker,
    consumers: Iterable[Consumer],
    *,
    through: Broker | None = None,
    patience: timedelta = PATIENCE,
    **options: Any,
) -> None:
    """Runs a `Worker` of these `consumers` on `broker` until their queues hold nothing that waits, retries included.

    `through` is what the worker sees of the broker, a `CrashingBroker` around it for instance. `options` are the worker's own:
    `retry_delays`, `db_engine_url` and so on. What died is in `broker.dead_letters(queue)`. Raises `AssertionError` if
    something still waits after `patience`, and what the worker raises.
    """
    wanted = tuple(consumers)
    worker = Worker(broker=through or broker, consumers=wanted, enable_metrics=False, **options)
    running = asyncio.create_task(worker.run(handle_signals=False))
    try:
        async with asyncio.timeout(patience.total_seconds()):
            while not running.done():
                await asyncio.sleep(0.001)
                if all(broker.has_consumer(consumer.queue) and broker.is_idle(consumer.queue) for consumer in wanted):
                    break
    except TimeoutError:
        waiting = ", ".join(consumer.queue for consumer in wanted if not broker.is_idle(consumer.queue))
        raise AssertionError(f"after {patience} there is still something to do in {waiting}") from None
    finally:
        worker.stop()
        await running
