"""Ordered consumers: handles the deliveries of one ordering key one after another, including retries, and keys in parallel."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic
from typing import Any, assert_never

from outbox.core.failures import FailedAttempt
from outbox.core.message import Message
from outbox.core.outcome import RETURNED, Dead, DeliveryOutcome, Done, Postponed, Retry, Returned
from outbox.core.threads import Threads
from outbox.engine.attempt import EXPIRED, Run, WorkerContext
from outbox.engine.consumer import Consumer
from outbox.engine.delivery import CRASHED, UNEXPECTED_PAUSE, DeliveryHandler, Settled
from outbox.engine.lifecycle import OPEN, Stopping, until_set
from outbox.engine.tasks import TaskSet
from outbox.errors import StaleDeliveryError
from outbox.ports import Delivery, Gate, Receive
from outbox.retry import RetryPolicy

MOST_REMEMBERED = 10_000
"""Messages whose failed attempts are remembered, in case their deliveries are lost and redelivered."""
RETURNED_PAUSE = timedelta(seconds=1)
"""Pause before another attempt with a message whose handler could not be called, and which has used no attempt."""


@dataclass(slots=True)
class KeyQueue:
    """The deliveries of one key in flight, in order; the first one is being handled, or waits for its next attempt."""

    deliveries: deque[Delivery] = field(default_factory=deque)
    first_lost: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, delivery: Delivery) -> None:
        """Appends a delivery. If the first one is lost, ends its pause."""
        self.deliveries.append(delivery)
        if self.deliveries[0].gone:
            self.first_lost.set()

    async def pause(self, seconds: float, leaving: Stopping) -> None:
        """Waits for that long, until the first delivery is known to be lost, or until `leaving` is requested."""
        await until_set(self.first_lost, leaving, seconds=seconds)
        self.first_lost.clear()


class KeyQueues:
    """The queues of one subscription, one for each key. A delivery without a key is handled by itself.

    Once `leaving` is requested, waiting deliveries stay unsettled: the end of the subscription returns them all, in order.
    """

    def __init__(
        self, handler: "OrderedDeliveryHandler", spawn: Callable[[Coroutine[Any, Any, None]], None], leaving: Stopping
    ) -> None:
        self._handler = handler
        self._spawn = spawn
        self._leaving = leaving
        self._key_queues: dict[str, KeyQueue] = {}

    def receive(self, delivery: Delivery) -> None:
        """See `outbox.ports.Receive`."""
        try:
            key = delivery.message.ordering_key
        except Exception:  # noqa: BLE001  the headers may hold anything; `handle` reports what is wrong with them
            key = None
        if key is None:
            self._spawn(self._handler.handle(delivery, self._leaving))
        elif (key_queue := self._key_queues.get(key)) is not None:
            key_queue.add(delivery)
        elif not self._leaving.requested:
            key_queue = self._key_queues[key] = KeyQueue(deque((delivery,)))
            self._spawn(self._serve(key, key_queue))

    async def _serve(self, key: str, key_queue: KeyQueue) -> None:
        continues = False
        try:
            if not self._leaving.requested:
                delivery = key_queue.deliveries[0]
                # A lost delivery is redelivered, and so are those behind it, which must not be handled before it.
                if not delivery.gone:
                    await self._handler.handle_in_turn(delivery, key_queue, self._leaving)
                key_queue.deliveries.popleft()
                continues = bool(key_queue.deliveries) and not self._leaving.requested
        finally:
            if not continues:
                del self._key_queues[key]
        if continues:
            # Another task, because the next handler must not see the context variables that this one has set.
            self._spawn(self._serve(key, key_queue))


class OrderedDeliveryHandler(DeliveryHandler):
    """Handles the deliveries of an ordered consumer.

    A message stays in flight between its attempts, so that no later one overtakes it. Its failed attempts are remembered while
    this worker runs, even if the delivery is lost and redelivered. Poison messages run alone but keep their position: no copy
    is queued. Instead, the first poison message that a worker gets becomes a dead letter if it has more than twice the allowed
    crashes.
    """

    def __init__(
        self, consumer: Consumer, policy: RetryPolicy, context: WorkerContext, threads: Threads, gate: Gate = OPEN
    ) -> None:
        super().__init__(consumer, policy, context, threads, gate)
        self._memory = _FailureMemory()
        self._has_seen_poison = False

    def receiving(self, task_set: TaskSet, leaving: Stopping) -> Receive:
        self._leaving = leaving
        return KeyQueues(self, task_set.spawn, leaving).receive

    async def handle_in_turn(self, delivery: Delivery, key_queue: KeyQueue, leaving: Stopping) -> None:
        """Runs attempts until the delivery is settled or lost, or the worker stops."""
        run = self._read_delivery(delivery)
        if run.verdict is None and (remembered := self._memory.get(run.message)) is not None:
            # Losing the delivery must neither reset the count of attempts nor shorten the pause before the next one.
            for failed in remembered.failed:
                # Failures that the broker has stored with the message have lower numbers, and are not recorded twice.
                if failed.attempt == run.attempt and not await self._record_failure(run, failed):
                    break
            else:
                await key_queue.pause(max(0, remembered.due - monotonic()), leaving)
        while not leaving.requested and not delivery.gone:
            if run.verdict is None and self._runner.has_expired(run):
                run.verdict = EXPIRED
            outcome = run.verdict or await self._outcome(run, leaving)
            match outcome:
                case Done() | Dead():
                    await self._settle_in_turn(run, outcome, key_queue, leaving)
                    return
                case Retry(delay, failure):
                    self._processed(run, outcome)
                    failed = FailedAttempt(at=self._now(), attempt=run.attempt, failure=failure)
                    self._memory.add(run.message, failed, due=monotonic() + delay.total_seconds())
                    await self._record_failure(run, failed)
                    # They belong to the attempt that has ended.
                    run.result = run.span = None
                case Postponed(delay):
                    pass
                case Returned():
                    delay = RETURNED_PAUSE
                case _:
                    assert_never(outcome)
            await key_queue.pause(delay.total_seconds(), leaving)

    # --- one attempt ---------------------------------------------------------------------------------------------------

    async def _outcome(self, run: Run, leaving: Stopping) -> DeliveryOutcome:
        if self._circuit is None:
            return await self._run_attempt(run)
        async with self._circuit.permit(leaving, unlimited=True) as run.permit:
            if run.permit is None:
                return RETURNED
            return EXPIRED if self._runner.has_expired(run) else await self._run_attempt(run)

    async def _run_attempt(self, run: Run) -> DeliveryOutcome:
        if run.delivery.crashes <= self._max_deliveries:
            return await self._run_concurrently(run)
        is_first, self._has_seen_poison = not self._has_seen_poison, True
        if is_first and run.delivery.crashes > 2 * self._max_deliveries:
            return CRASHED
        async with self._alone(run) as pause:
            if self._stopping.requested or self._gate.closed:
                return RETURNED
            return await self._attempt_alone(run) if pause is None else Postponed(pause)

    # --- failed attempts -----------------------------------------------------------------------------------------------

    async def _record_failure(self, run: Run, failed: FailedAttempt) -> bool:
        """Counts a failed attempt. Returns False if the delivery was lost meanwhile."""
        run.attempt += 1
        try:
            await run.delivery.note_failed(failed)
        except StaleDeliveryError as error:
            self._settle_failed(run, error)
            return False
        return True

    # --- settle --------------------------------------------------------------------------------------------------------

    async def _settle_in_turn(self, run: Run, outcome: Done | Dead, key_queue: KeyQueue, leaving: Stopping) -> None:
        settled = await self._settle(run, leaving, outcome)
        match settled:
            case Settled.RECORDED:
                self._memory.forget(run.message)
            case Settled.LOST:
                # It would be redelivered behind those that are still in flight. Resubscribing returns them all, in order.
                others = [delivery for delivery in key_queue.deliveries if delivery is not run.delivery and not delivery.gone]
                # With the same id it is its own redelivery, which has arrived already.
                if others and others[0].message.id != run.message.id:
                    leaving.request()
            case Settled.BROKEN:
                # It cannot be returned alone, see below: the end of the subscription returns it with those behind it.
                await leaving.wait(UNEXPECTED_PAUSE)
                leaving.request()
            case Settled.UNRECORDED:
                pass
            case _:
                assert_never(settled)

    def _can_return_alone(self, run: Run) -> bool:
        # Returned by itself, it would come back behind later messages of its key.
        return run.message.ordering_key is None


@dataclass(slots=True)
class _FailedAttempts:
    """The failed attempts of an unsettled message, and when its next attempt is due."""

    failed: list[FailedAttempt]
    due: float


class _FailureMemory:
    """Remembers the failed attempts of messages in flight. A requeued message starts without any."""

    def __init__(self) -> None:
        self._remembered: OrderedDict[tuple[str, int], _FailedAttempts] = OrderedDict()

    def add(self, message: Message, failed: FailedAttempt, *, due: float) -> None:
        key = message.id, message.requeue_count
        remembered = self._remembered.setdefault(key, _FailedAttempts([], due))
        remembered.failed.append(failed)
        remembered.due = due
        self._remembered.move_to_end(key)
        if len(self._remembered) > MOST_REMEMBERED:
            self._remembered.popitem(last=False)

    def get(self, message: Message) -> _FailedAttempts | None:
        return self._remembered.get((message.id, message.requeue_count))

    def forget(self, message: Message) -> None:
        self._remembered.pop((message.id, message.requeue_count), None)
