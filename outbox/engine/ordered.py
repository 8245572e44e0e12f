"""Order within each key: deliveries of one ordering key are handled one after another, retries included, keys in parallel."""

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
from outbox.engine.attempt import EXPIRED, Run, WorkerContext
from outbox.engine.consumer import Consumer
from outbox.engine.delivery import CRASHED, UNEXPECTED_PAUSE, DeliveryHandler, Settled
from outbox.engine.lifecycle import OPEN, Stopping, until_set
from outbox.engine.tasks import TaskSet
from outbox.engine.transactions import Threads
from outbox.errors import StaleDeliveryError
from outbox.ports import Delivery, Gate, Receive
from outbox.retry import RetryPolicy

MOST_REMEMBERED = 10_000
"""Messages whose failed attempts are remembered, in case their deliveries are lost and come again."""
RETURNED_PAUSE = timedelta(seconds=1)
"""Before a message that could not be handled, and has spent nothing, is tried again in its place."""


@dataclass(slots=True)
class KeyQueue:
    """The deliveries of one key in flight, in order; the first one is being handled, or waits for its next attempt."""

    deliveries: deque[Delivery] = field(default_factory=deque)
    nudge: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, delivery: Delivery) -> None:
        """One more, behind the others. If they are gone, it waits for them no longer."""
        self.deliveries.append(delivery)
        if self.deliveries[0].gone:
            self.nudge.set()

    async def pause(self, seconds: float, leaving: Stopping) -> None:
        """Returns after that time, when the first delivery is known to be gone, or when it is time to leave."""
        await until_set(self.nudge, leaving, seconds=seconds)
        self.nudge.clear()


class KeyQueues:
    """One queue for each key of one subscription. A delivery without a key goes by itself.

    When it is time to leave, what waits is left unsettled: leaving the subscription gives it back, all together and in order.
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
        except Exception:  # noqa: BLE001  whatever it is, it lies in what some program wrote; handling it will say so
            key = None
        if key is None:
            self._spawn(self._handler.handle(delivery, self._leaving))
        elif (key_queue := self._key_queues.get(key)) is not None:
            key_queue.add(delivery)
        elif not self._leaving.requested:
            key_queue = self._key_queues[key] = KeyQueue(deque((delivery,)))
            self._spawn(self._serve(key, key_queue))

    async def _serve(self, key: str, key_queue: KeyQueue) -> None:
        try:
            while key_queue.deliveries and not self._leaving.requested:
                delivery = key_queue.deliveries[0]
                # One that is gone comes again, and what came after it is gone, too: it must not be handled before.
                if not delivery.gone:
                    await self._handler.handle_in_turn(delivery, key_queue, self._leaving)
                key_queue.deliveries.popleft()
        finally:
            del self._key_queues[key]


class OrderedDeliveryHandler(DeliveryHandler):
    """The handler of an ordered consumer.

    An attempt that failed is followed by the next one with the message in flight, so that nothing overtakes it. How often it
    failed is remembered while this worker lives, also if the delivery is lost and comes again. Poison messages run alone, but
    keep their place: no copy is queued for them. Instead, the first poison message of a worker is dead if its crashes are more
    than twice those that are allowed.
    """

    def __init__(
        self, consumer: Consumer, policy: RetryPolicy, context: WorkerContext, threads: Threads, gate: Gate = OPEN
    ) -> None:
        super().__init__(consumer, policy, context, threads, gate)
        self._memory = _Memory()
        self._has_seen_poison = False

    def receiving(self, task_set: TaskSet, leaving: Stopping) -> Receive:
        return KeyQueues(self, task_set.spawn, leaving).receive

    async def handle_in_turn(self, delivery: Delivery, key_queue: KeyQueue, leaving: Stopping) -> None:
        """Runs attempt after attempt; afterwards the delivery is settled, or lost, or the worker stops."""
        run = self._received(delivery)
        if run.verdict is None and (remembered := self._memory.of(run.message)) is not None:
            # What failed before the delivery was lost has failed: for that it is tried neither sooner nor more often.
            for failed in remembered.failed:
                if failed.attempt == run.attempt and not await self._note(run, failed):
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
                    await self._note(run, failed)
                    run.result = None
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
            return await self._outcome_now(run)
        async with self._circuit.passing(leaving, in_place=True) as run.permit:
            if run.permit is None:
                return RETURNED
            return EXPIRED if self._runner.has_expired(run) else await self._outcome_now(run)

    async def _outcome_now(self, run: Run) -> DeliveryOutcome:
        if run.delivery.crashes <= self._max_deliveries:
            return await self._run_among_others(run)
        is_first, self._has_seen_poison = not self._has_seen_poison, True
        if is_first and run.delivery.crashes > 2 * self._max_deliveries:
            return CRASHED
        async with self._alone(run) as pause:
            if self._stopping.requested or self._gate.closed:
                return RETURNED
            return await self._attempt_alone(run) if pause is None else Postponed(pause)

    # --- attempts that failed ------------------------------------------------------------------------------------------

    async def _note(self, run: Run, failed: FailedAttempt) -> bool:
        """Counts an attempt that failed; False if the delivery was lost meanwhile."""
        run.attempt += 1
        try:
            await run.delivery.note_failed(failed)
        except StaleDeliveryError as error:
            self._settle_failed(run, error)
            return False
        return True

    # --- the end -------------------------------------------------------------------------------------------------------

    async def _settle_in_turn(self, run: Run, outcome: Done | Dead, key_queue: KeyQueue, leaving: Stopping) -> None:
        settled = await self._settle(run, leaving, outcome)
        match settled:
            case Settled.RECORDED:
                self._memory.forget(run.message)
            case Settled.LOST:
                # If it comes again behind others that are still in flight, all of them are given back, and taken again.
                others = [delivery for delivery in key_queue.deliveries if delivery is not run.delivery and not delivery.gone]
                if others and others[0].message.id != run.message.id:
                    leaving.request()
            case Settled.BROKEN:
                await leaving.wait(UNEXPECTED_PAUSE)
                leaving.request()
            case Settled.UNRECORDED:
                pass
            case _:
                assert_never(settled)

    def _goes_back_alone(self, run: Run) -> bool:
        # With a key it stays in flight: given back by itself, it would come again behind its successors.
        return run.message.ordering_key is None


@dataclass(slots=True)
class _Remembered:
    """What failed of a message that is not settled, and when its next attempt is due."""

    failed: list[FailedAttempt]
    due: float


class _Memory:
    """The failed attempts of messages in flight. A message that is requeued begins again."""

    def __init__(self) -> None:
        self._remembered: OrderedDict[tuple[str, int], _Remembered] = OrderedDict()

    def add(self, message: Message, failed: FailedAttempt, *, due: float) -> None:
        """Another attempt failed."""
        key = message.id, message.requeue_count
        remembered = self._remembered.setdefault(key, _Remembered([], due))
        remembered.failed.append(failed)
        remembered.due = due
        self._remembered.move_to_end(key)
        if len(self._remembered) > MOST_REMEMBERED:
            self._remembered.popitem(last=False)

    def of(self, message: Message) -> _Remembered | None:
        """What failed of it, if it is remembered."""
        return self._remembered.get((message.id, message.requeue_count))

    def forget(self, message: Message) -> None:
        """It is settled."""
        self._remembered.pop((message.id, message.requeue_count), None)
