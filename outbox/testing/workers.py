"""Runs consumers in a test until their queues are empty, and kills the process at a named point."""

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
    """Point at which a relay or a worker can crash.

    RELAY_CLAIMED: rows are claimed, nothing was sent. RELAY_SENT: the broker has confirmed, but the outbox does not know yet.
    WORKER_RECEIVED: a message arrived, its handler has not run. WORKER_HANDLED: the handler's transaction, if it has one, is
    committed, but the broker does not know yet. WORKER_SETTLED: the broker knows.
    """

    RELAY_CLAIMED = "relay-claimed"
    RELAY_SENT = "relay-sent"
    WORKER_RECEIVED = "worker-received"
    WORKER_HANDLED = "worker-handled"
    WORKER_SETTLED = "worker-settled"


def kill_this_process() -> None:
    """Ends the process like `kill -9`, without any cleanup."""
    os.kill(os.getpid(), signal.SIGKILL)


class CrashingBroker:
    """Wraps a broker for `MessageRelay(broker=…)` or `Worker(broker=…)`, and crashes at a point of its use.

    Calls `die` when `point` is reached, after surviving it `survives` times. If `die` returns, everything continues, so a test
    in the same process can record, cancel or raise there instead.
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
        """See `outbox.ports.Transport.send`; crashes before or after it."""
        self.reach(CrashPoint.RELAY_CLAIMED)
        results = await self._broker.send(messages, timeout=timeout)
        self.reach(CrashPoint.RELAY_SENT)
        return results

    async def close(self) -> None:
        """See `outbox.ports.Transport.close`."""
        await self._broker.close()

    @asynccontextmanager
    async def subscribe(self, subscription: Subscription, receive: Receive) -> AsyncIterator[Intake]:
        """See `outbox.ports.Broker.subscribe`; crashes when a delivery arrives, or before or after it is settled."""

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
        """Calls `die` if this is the crash point and all survivals are used up."""
        if point is not self._point:
            return
        if self._left:
            self._left -= 1
        else:
            self._die()


class _CrashingDelivery:
    """Wraps a delivery, and may crash before or after it is settled."""

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
    """Runs a `Worker` with these `consumers` on `broker` until their queues are empty, including retries.

    `through` is the broker that the worker uses, such as a `CrashingBroker` around `broker`. `options` go to the worker:
    `retry_delays`, `db_engine_url` and so on. `broker.dead_letters(queue)` has the dead letters. Raises `AssertionError` if
    messages still wait after `patience`, when handlers that still run are cancelled (after the `grace_period` among the
    options, or at once), and the worker's own errors.
    """
    wanted = tuple(consumers)
    worker = Worker(broker=through or broker, consumers=wanted, enable_metrics=False, **options)
    running = asyncio.create_task(worker.run(handle_signals=False))
    failure: AssertionError | None = None
    try:
        async with asyncio.timeout(patience.total_seconds()):
            while not running.done():
                await asyncio.sleep(0.001)
                if all(broker.has_consumer(consumer.queue) and broker.is_idle(consumer.queue) for consumer in wanted):
                    break
    except TimeoutError:
        waiting = ", ".join(consumer.queue for consumer in wanted if not broker.is_idle(consumer.queue))
        what = f"messages are still waiting in {waiting}" if waiting else "the worker does not consume; its log says why"
        failure = AssertionError(f"after {patience} {what}")
    finally:
        worker.stop()
        if failure is not None:
            # The second cancellation ends the grace period, which is for a worker with a database: it has to write its reports.
            for _ in range(2):
                running.cancel()
                await asyncio.wait([running], timeout=options.get("grace_period", 0.1))
        [ended] = await asyncio.gather(running, return_exceptions=True)
    if failure is not None:
        raise failure from (ended.__cause__ if isinstance(ended, asyncio.CancelledError) else ended)
    await running
