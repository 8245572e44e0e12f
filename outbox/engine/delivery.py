"""Handles one delivery: reads it, runs its handler, settles the outcome and reports it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from typing import Any, assert_never

from outbox.core.events import (
    CircuitClosed,
    CircuitOpened,
    IsolationStep,
    PoisonIsolated,
    Processed,
    ProcessingStatus,
    Received,
    SettleFailed,
)
from outbox.core.message import Message
from outbox.core.outcome import RETURNED, Cause, Dead, DeliveryOutcome, Done, Failure, Postponed, Retry, Returned
from outbox.core.threads import Threads
from outbox.engine.attempt import EXPIRED, AttemptRunner, Run, WorkerContext, time_limit
from outbox.engine.batch import BatchCollector
from outbox.engine.circuit import Circuit, probe_result
from outbox.engine.consumer import Consumer
from outbox.engine.lifecycle import OPEN, Pauses, Stopping
from outbox.engine.quarantine import ALONE_LIMIT
from outbox.engine.tasks import TaskSet
from outbox.errors import BrokerUnavailableError, HandlerTimeoutError, StaleDeliveryError
from outbox.ports import Delivery, Gate, Receive
from outbox.retry import RetryPolicy

CRASHED = Dead(Cause.CRASHED, Failure("crashed", "workers crashed while handling it, the last one while nothing else ran"))
UNEXPECTED_PAUSE = timedelta(seconds=5)
"""Pause between a settlement that failed unexpectedly and returning the message, to prevent a busy loop."""
MOST_RETURNS = 12
"""Attempts to return a message that could not be settled. After that the worker resubscribes, which returns it."""


class Settled(Enum):
    """Result of a settlement."""

    RECORDED = auto()
    LOST = auto()
    """The delivery no longer belonged to this worker."""
    UNRECORDED = auto()
    """The broker was unavailable until the subscription ended."""
    BROKEN = auto()
    """It failed with an unexpected error."""


class DeliveryHandler:
    """Handles each delivery of one consumer, from arrival to settlement. Never raises for a handler's or a message's fault."""

    def __init__(
        self, consumer: Consumer, policy: RetryPolicy, context: WorkerContext, threads: Threads, gate: Gate = OPEN
    ) -> None:
        self._queue = consumer.queue
        self._max_deliveries = consumer.max_deliveries
        self._runner = AttemptRunner(consumer, policy, context, threads)
        self._attempt = BatchCollector(consumer, self._runner, context).attempt if consumer.batch else self._runner.attempt
        self._exchange_name = context.exchange_name
        self._now = context.now
        self._observer = context.observer
        self._quarantine = context.quarantine
        self._stopping = context.stopping
        self._gate = gate
        self._describe = context.describe
        self._leaving = Stopping()
        self._circuit: Circuit | None = None
        if consumer.options.pausing is not None:
            notify, names = self._observer.notify, {"queue": self._queue, "exchange_name": self._exchange_name}
            self._circuit = Circuit(
                consumer.options.pausing,
                paused=lambda pause: notify(CircuitOpened(**names, pause=pause)),
                resumed=lambda: notify(CircuitClosed(**names)),
            )

    def receiving(self, task_set: TaskSet, leaving: Stopping) -> Receive:
        """Returns the callback for the deliveries of one subscription. `leaving` is requested when the subscription ends."""
        self._leaving = leaving
        return lambda delivery: task_set.spawn(self.handle(delivery, leaving))

    async def handle(self, delivery: Delivery, leaving: Stopping) -> None:
        """Handles one delivery until it is settled, or no longer belongs to this worker. Cancelled, it leaves it unsettled."""
        run = self._read_delivery(delivery)
        if run.verdict is not None:
            await self._settle(run, leaving, run.verdict)
        elif self._circuit is None:
            if delivery.crashes > self._max_deliveries:
                await self._handle_poison(run, leaving)
            else:
                await self._settle(run, leaving, await self._run_concurrently(run))
        else:
            async with self._circuit.permit(leaving) as run.permit:
                if run.permit is None:
                    await self._settle(run, leaving, RETURNED if leaving.requested else Postponed(self._circuit.pause))
                # Checked again, because the permit may have taken minutes.
                elif self._runner.has_expired(run):
                    await self._settle(run, leaving, EXPIRED)
                elif delivery.crashes > self._max_deliveries:
                    await self._handle_poison(run, leaving)
                else:
                    await self._settle(run, leaving, await self._run_concurrently(run))

    # --- read ----------------------------------------------------------------------------------------------------------

    def _read_delivery(self, delivery: Delivery) -> Run:
        try:
            run = Run(delivery, delivery.message, delivery.attempt)
        except Exception as error:  # noqa: BLE001  the headers may hold anything that any program wrote
            # Observers get the parts that can be read.
            incoming: Any = delivery.incoming
            message = Message(
                id=str(getattr(incoming, "message_id", None) or ""),
                routing_key=str(getattr(incoming, "routing_key", None) or ""),
                body=getattr(incoming, "body", b""),
                created_at=datetime.now(UTC),
                tracking_ids=(),
            )
            run = Run(delivery, message, 1, Dead(Cause.UNDECODABLE, self._describe(error)))
        self._observer.notify(
            Received(queue=self._queue, exchange_name=self._exchange_name, message=run.message, attempt=run.attempt)
        )
        if run.message.expires_at is not None and run.verdict is None and self._runner.has_expired(run):
            run.verdict = EXPIRED
        return run

    # --- run -----------------------------------------------------------------------------------------------------------

    async def _run_concurrently(self, run: Run) -> DeliveryOutcome:
        if self._quarantine.closed:
            await self._quarantine.wait_until_open()
        # The wait may have outlasted the worker. Nothing is awaited from here to `enter`, so the quarantine cannot close again.
        if self._stopping.requested or self._gate.closed:
            return RETURNED
        self._quarantine.enter()
        try:
            attempt, outcome = self._attempt, None
            while outcome is None:
                try:
                    outcome = await attempt(run)
                except asyncio.CancelledError as error:
                    # Cancelled by the handler itself: left unsettled, its delivery would stay in flight for ever.
                    while (task := asyncio.current_task()) is not None and task.cancelling():
                        task.uncancel()
                    await asyncio.sleep(0)  # a turn for the worker, which may have been cancelled together with its handlers
                    if self._stopping.requested or self._leaving.requested:
                        raise
                    if attempt == self._runner.attempt:
                        outcome = self._runner.failure_outcome(run, error)
                    attempt = self._runner.attempt  # after a batch by itself: the fault may be another message's
            if run.permit is not None:
                run.permit.report(run.result or probe_result(outcome))
            return outcome
        finally:
            self._quarantine.leave()

    async def _handle_poison(self, run: Run, leaving: Stopping) -> None:
        # It ran alone when the worker crashed, so nothing else can have been the cause.
        if run.delivery.blamed:
            await self._settle(run, leaving, CRASHED)
            return
        async with self._alone(run) as pause:
            if self._stopping.requested or self._gate.closed:
                await self._settle(run, leaving, RETURNED)
                return
            if pause is not None:
                await self._settle(run, leaving, Postponed(pause))
                return
            is_isolated = False
            try:
                is_isolated = await run.delivery.isolate()
            except StaleDeliveryError as error:
                self._settle_failed(run, error)
            except BrokerUnavailableError as error:
                self._settle_failed(run, error)
                await self._settle(run, leaving, RETURNED)
            except Exception as error:  # noqa: BLE001  as in `_record`: the message is returned, and the worker goes on
                self._settle_failed(run, error)
                await leaving.wait(UNEXPECTED_PAUSE)
                await self._settle(run, leaving, RETURNED)
            if is_isolated:
                await self._settle(run, leaving, await self._attempt_alone(run))
            else:
                # A marked copy takes its place. It must start before other handlers do: one that killed the worker would
                # make the copy a dead letter.
                await self._quarantine.wait_for_copy()

    @asynccontextmanager
    async def _alone(self, run: Run) -> AsyncIterator[timedelta | None]:
        """Runs the block while no other handler runs. Yields a pause instead if the other handlers do not end in time."""
        if self._quarantine.running:
            self._notify_isolation(run, IsolationStep.WAITING, self._quarantine.wait)
        async with self._quarantine.alone() as pause:
            if pause is not None:
                self._notify_isolation(run, IsolationStep.POSTPONED, pause)
                yield pause
                return
            try:
                yield None
            finally:
                self._notify_isolation(run, IsolationStep.ENDED)

    async def _attempt_alone(self, run: Run) -> DeliveryOutcome:
        self._notify_isolation(run, IsolationStep.RUNNING, ALONE_LIMIT)
        try:
            with time_limit(ALONE_LIMIT):
                outcome = await self._runner.attempt(run)
        except HandlerTimeoutError as error:
            outcome = self._runner.failure_outcome(run, error)
        if run.permit is not None:
            run.permit.report(run.result or probe_result(outcome))
        return outcome

    def _notify_isolation(self, run: Run, step: IsolationStep, limit: timedelta | None = None) -> None:
        self._observer.notify(
            PoisonIsolated(queue=self._queue, exchange_name=self._exchange_name, message=run.message, step=step, limit=limit)
        )

    # --- settle --------------------------------------------------------------------------------------------------------

    async def _settle(self, run: Run, leaving: Stopping, outcome: DeliveryOutcome) -> Settled:
        """Retries until the outcome is recorded or the delivery is lost. Stops on `leaving`: the broker then redelivers it."""
        settled = await self._record(run, leaving, outcome)
        is_broken = settled is Settled.BROKEN and self._can_return_alone(run)
        attempts = 0
        while is_broken:
            # Once more after `leaving`, and no further: the end of the subscription returns it in any case.
            is_last = await leaving.wait(UNEXPECTED_PAUSE)
            is_broken = await self._record(run, leaving, RETURNED) is Settled.BROKEN and not is_last
            attempts += 1
            if attempts == MOST_RETURNS:
                leaving.request()
        return settled

    async def _record(self, run: Run, leaving: Stopping, outcome: DeliveryOutcome) -> Settled:
        pauses: Pauses | None = None
        while True:
            try:
                await run.delivery.settle(outcome)
            except BrokerUnavailableError as error:
                if pauses is None:  # report the outage once
                    pauses = Pauses()
                    self._settle_failed(run, error)
                if await leaving.wait(pauses.next()):
                    return Settled.UNRECORDED
            except StaleDeliveryError as error:
                self._settle_failed(run, error)
                return Settled.LOST
            except Exception as error:  # noqa: BLE001  one message that cannot be settled must not end the worker
                self._settle_failed(run, error)
                return Settled.BROKEN
            else:
                self._processed(run, outcome)
                return Settled.RECORDED

    def _can_return_alone(self, run: Run) -> bool:  # noqa: ARG002  ordered consumers ask for its key
        """Whether a message whose settlement broke may be returned without the others of its subscription."""
        return True

    def _processed(self, run: Run, outcome: DeliveryOutcome) -> None:
        match outcome:
            case Done():
                status = ProcessingStatus.SUCCESS
            case Dead(Cause.REJECTED):
                status = ProcessingStatus.REJECTED
            case Dead(Cause.UNDECODABLE):
                status = ProcessingStatus.UNDECODABLE
            case Retry() | Dead():
                status = ProcessingStatus.FAILED
            case Returned() | Postponed():  # not processed
                return
            case _:
                assert_never(outcome)
        self._observer.notify(
            Processed(
                queue=self._queue,
                exchange_name=self._exchange_name,
                message=run.message,
                attempt=run.attempt,
                status=status,
                outcome=outcome,
                duration=timedelta(seconds=run.seconds),
                span=run.span,
            )
        )

    def _settle_failed(self, run: Run, error: Exception) -> None:
        self._observer.notify(
            SettleFailed(
                queue=self._queue,
                exchange_name=self._exchange_name,
                message_id=run.message.id,
                reason=str(error) or type(error).__name__,
            )
        )
