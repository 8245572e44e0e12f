"""The worker: subscribes each consumer to its queue and handles each delivery in a task, until it is asked to stop."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from outbox.core.events import (
    ConsumerStarted,
    ConsumerStopped,
    DeadLettersMeasured,
    Dependency,
    HandlersAbandoned,
    Paused,
    QueueMeasured,
    Resumed,
)
from outbox.core.outcome import Failure
from outbox.core.threads import Threads
from outbox.engine.attempt import WorkerContext
from outbox.engine.consumer import Consumer, queue_of
from outbox.engine.delivery import DeliveryHandler
from outbox.engine.lifecycle import Outage, Stopping, entered, never_closed, until_closed, until_open
from outbox.engine.ordered import OrderedDeliveryHandler
from outbox.engine.quarantine import Quarantine
from outbox.engine.tasks import TaskSet
from outbox.errors import BrokerUnavailableError, HandlersAbandonedError, OutboxError
from outbox.ports import Broker, Gate, MeasuresQueues, Observer, Subscription, Tracer, UnitsOfWork
from outbox.retry import RetryPolicy

if TYPE_CHECKING:
    from outbox.encryption import Encryption
    from outbox.large_bodies import LargeBodies

MEASURE_EVERY = timedelta(seconds=30)
INBOX_WAIT = timedelta(seconds=5)
THREAD_LIMIT = 64
"""Most threads for one consumer whose callback is not async.

Each consumer has its own threads, so that callbacks that hang block no other consumer. `prefetch_count` alone is not enough as
a limit: a process with very many threads spends its time switching between them.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkSettings:
    """Settings of a worker. `retry_delays` are for consumers without their own; `prefetch_count` is for each consumer.

    `inbox_wait` limits how long a message waits for another transaction that is handling it.
    """

    exchange_name: str
    retry_delays: Sequence[timedelta]
    prefetch_count: int
    inbox_wait: timedelta = INBOX_WAIT


class WorkerRunner:
    """Receives deliveries from a broker and handles each with its consumer."""

    def __init__(
        self,
        broker: Broker,
        consumers: Sequence[Consumer],
        units: UnitsOfWork | None,
        observer: Observer,
        settings: WorkSettings,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        gate_of: Callable[[str], Gate] = never_closed,
        describe: Callable[[BaseException], Failure] = Failure.of,
        tracer: Tracer | None = None,
        encryption: "Encryption | None" = None,
        large_bodies: "LargeBodies | None" = None,
    ) -> None:
        self._broker = broker
        self._consumers = consumers
        self._units = units
        self._observer = observer
        self._settings = settings
        self._now = now
        self._gate_of = gate_of
        self._describe = describe
        self._tracer = tracer
        self._encryption = encryption
        self._large_bodies = large_bodies
        self._task_sets: set[TaskSet] = set()
        self._outage = Outage(Dependency.BROKER, observer)
        self._failure: OutboxError | None = None
        self._abandoned: dict[str, int] = {}

    @property
    def in_flight(self) -> int:
        """How many deliveries are being handled."""
        return sum(task_set.size for task_set in self._task_sets)

    async def run(self, stopping: Stopping) -> None:
        """Works until `stopping` is requested; then waits for running handlers and returns the other deliveries.

        Waits for a broker that is unavailable. Raises `TopologyError`, and other errors that need a fix, after all consumers
        have drained. Cancelled, it cancels the handlers and abandons those that run in threads or do not end within a few
        seconds; if there are any, it raises `HandlersAbandonedError`. A consumer unsubscribes while its gate is closed.
        """
        context = WorkerContext(
            exchange_name=self._settings.exchange_name,
            observer=self._observer,
            stopping=stopping,
            quarantine=Quarantine(),
            units=self._units,
            database=Outage(Dependency.DATABASE, self._observer),
            inbox_wait=self._settings.inbox_wait,
            now=self._now,
            describe=self._describe,
            tracer=self._tracer,
            encryption=self._encryption,
            large_bodies=self._large_bodies,
            body_store=Outage(Dependency.BODY_STORE, self._observer),
        )
        try:
            async with asyncio.TaskGroup() as companions:
                measuring = companions.create_task(self._measure_queues())
                async with asyncio.TaskGroup() as consumers:
                    for consumer in self._consumers:
                        consumers.create_task(self._consume(consumer, context))
                    await stopping.wait()
                measuring.cancel()
        except asyncio.CancelledError:
            if self._abandoned:
                raise HandlersAbandonedError(count=sum(self._abandoned.values()), handlers=list(self._abandoned)) from None
            raise
        if self._failure is not None:
            raise self._failure

    async def _consume(self, consumer: Consumer, context: WorkerContext) -> None:
        """Consumes from the consumer's queue, except while its gate is closed, until the worker stops."""
        stopping, gate = context.stopping, self._gate_of(consumer.queue)
        strategy, pausing = consumer.strategy(self._settings.retry_delays), consumer.options.pausing
        threads = Threads(min(self._settings.prefetch_count, THREAD_LIMIT), f"handler-{consumer.queue}")
        handler_of = OrderedDeliveryHandler if consumer.ordered else DeliveryHandler
        handler = handler_of(consumer, RetryPolicy(strategy, describe=self._describe), context, threads, gate)
        # The broker may need a queue for each delay: announce all that are known in advance.
        delays = strategy.announced if pausing is None else (*strategy.announced, pausing.pause)
        subscription = Subscription(
            queue=consumer.queue,
            binding_key=consumer.binding_key,
            exchange_name=self._settings.exchange_name,
            prefetch_count=self._settings.prefetch_count,
            retry_delays=delays,
            ordered=consumer.ordered,
        )
        try:
            while not stopping.requested:
                try:
                    if gate.closed:
                        queue, exchange_name = consumer.queue, subscription.exchange_name
                        self._observer.notify(Paused(queue=queue, exchange_name=exchange_name))
                        await until_open(gate, stopping)
                        self._observer.notify(Resumed(queue=queue, exchange_name=exchange_name, stopping=gate.closed))
                    else:
                        await self._take(subscription, consumer, handler, gate, stopping)
                except BrokerUnavailableError as error:
                    await stopping.wait(self._outage.lost(error))
                except OutboxError as error:
                    # Not raised here: the task group would cancel the other consumers instead of letting them drain.
                    self._failure = self._failure or error
                    stopping.request()
        finally:
            threads.close()
            self._record_abandoned(consumer, threads.running)

    async def _take(
        self, subscription: Subscription, consumer: Consumer, handler: DeliveryHandler, gate: Gate, stopping: Stopping
    ) -> None:
        """Handles deliveries until the worker stops or pauses, then waits until those in flight are settled."""
        queue, exchange_name = subscription.queue, subscription.exchange_name
        leaving, task_set = Stopping(), TaskSet(on_error=stopping.request)
        try:
            with stopping.listen(leaving.request):
                subscribing = self._broker.subscribe(subscription, handler.receiving(task_set, leaving))
                async with entered(subscribing, stopping) as intake:
                    if intake is None:
                        async with task_set:  # some deliveries may have arrived
                            return
                    self._outage.answers()
                    self._observer.notify(
                        ConsumerStarted(
                            queue=queue,
                            exchange_name=exchange_name,
                            binding_key=subscription.binding_key,
                            handler=queue_of(consumer.callback),
                        )
                    )
                    try:
                        self._task_sets.add(task_set)
                        # Within the subscription, so that its handlers can settle; after `intake.stop` the set does not grow.
                        async with task_set:
                            try:
                                await until_closed(gate, leaving)
                            finally:
                                leaving.request()  # also before the set cancels handlers, which then know why
                            await intake.stop()
                    finally:
                        self._task_sets.discard(task_set)
                        self._observer.notify(ConsumerStopped(queue=queue, exchange_name=exchange_name))
        finally:
            self._record_abandoned(consumer, task_set.abandoned)

    def _record_abandoned(self, consumer: Consumer, count: int) -> None:
        if not count:
            return
        handler = queue_of(consumer.callback)
        name = f"{handler} of queue {consumer.queue}"
        self._abandoned[name] = self._abandoned.get(name, 0) + count
        self._observer.notify(
            HandlersAbandoned(queue=consumer.queue, exchange_name=self._settings.exchange_name, handler=handler, count=count)
        )

    async def _measure_queues(self) -> None:
        """Reports the depth of each queue and its dead letters, every `MEASURE_EVERY`. Skips a queue that cannot be read."""
        while True:
            for consumer in self._consumers:
                queue, broker, depth = consumer.queue, self._broker, None
                try:
                    count = await broker.count_dead_letters(queue)
                    # Optional: a broker that the application provides may not support it.
                    if isinstance(broker, MeasuresQueues):
                        depth = await broker.queue_depth(queue)
                except OutboxError:
                    continue
                self._observer.notify(DeadLettersMeasured(queue=queue, count=count))
                if depth is not None:
                    self._observer.notify(QueueMeasured(queue=queue, depth=depth.ready, oldest_due=depth.oldest_due))
            await asyncio.sleep(MEASURE_EVERY.total_seconds())
