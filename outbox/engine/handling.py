"""What happens to one delivery: read, run, judged, settled, told."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from inspect import isawaitable
from time import perf_counter
from typing import assert_never

from outbox.engine.backoff import Pauses
from outbox.engine.calling import Inputs
from outbox.engine.consuming import Consumer
from outbox.engine.lifecycle import Stopping
from outbox.engine.outages import Outage
from outbox.engine.quarantine import Quarantine
from outbox.engine.threads import Threads
from outbox.errors import (
    BrokerUnavailableError,
    ConfigurationError,
    DatabaseUnavailableError,
    MalformedMessageError,
    Reject,
    RetryAfter,
    StaleDeliveryError,
)
from outbox.events import Processed, ProcessingStatus, Received, SettleFailed
from outbox.message import Message
from outbox.outcome import DONE, RETURNED, Cause, Dead, DeliveryOutcome, Done, Failure, Retry, Returned
from outbox.ports import Delivery, Observer, UnitsOfWork
from outbox.retry import RetryPolicy
from outbox.tracking import follow

_NO_RESOURCES: dict[str, object] = {}
_EXPIRED = Failure("expired", "its time ran out before it was handled")
_CRASHED = Failure("crashed", "workers died while they handled it, the last one while nothing else ran")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What all consumers of a worker share."""

    exchange_name: str
    observer: Observer
    stopping: Stopping
    quarantine: Quarantine
    threads: Threads
    units: UnitsOfWork | None
    database: Outage
    now: Callable[[], datetime]


@dataclass(slots=True)
class Run:
    """One delivery on its way through the steps. Without an outcome it is still to be run."""

    delivery: Delivery
    message: Message
    attempt: int
    outcome: DeliveryOutcome | None = None
    seconds: float = 0.0


class Handling:
    """Takes the deliveries of one consumer from arrival to settlement. Raises for nothing that a handler or a message did."""

    def __init__(self, consumer: Consumer, policy: RetryPolicy, surroundings: Surroundings) -> None:
        self._plan = consumer.plan
        self._queue = consumer.queue
        self._max_deliveries = consumer.max_deliveries
        self._policy = policy
        self._around = surroundings
        self._observer = surroundings.observer
        self._quarantine = surroundings.quarantine
        self._stopping = surroundings.stopping
        self._called = self._way_of_calling(surroundings.units)

    async def handle(self, delivery: Delivery) -> None:
        """The whole of it; afterwards the delivery is settled, or no longer ours. Cancelled, it leaves it unsettled."""
        run = self._received(delivery)
        if run.outcome is not None:
            await self._settle(run, run.outcome)
        elif delivery.crashes > self._max_deliveries:
            await self._handle_suspect(run)
        else:
            if self._quarantine.closed:
                await self._quarantine.opened()
            await self._settle(run, await self._run_among_others(run))

    # --- read ----------------------------------------------------------------------------------------------------------

    def _received(self, delivery: Delivery) -> Run:
        try:
            run = Run(delivery, delivery.message, delivery.attempt)
        except MalformedMessageError as error:
            run = Run(delivery, _stand_in(delivery), 1, Dead(Cause.UNDECODABLE, Failure.of(error)))
        self._observer.notify(
            Received(queue=self._queue, exchange_name=self._around.exchange_name, message=run.message, attempt=run.attempt)
        )
        expires_at = run.message.expires_at
        if expires_at is not None and expires_at <= self._around.now():
            run.outcome = Dead(Cause.EXPIRED, _EXPIRED)
        return run

    # --- run -----------------------------------------------------------------------------------------------------------

    async def _run_among_others(self, run: Run) -> DeliveryOutcome:
        if self._stopping.requested:
            return RETURNED
        self._quarantine.enter()
        try:
            return await self._run(run)
        finally:
            self._quarantine.leave()

    async def _handle_suspect(self, run: Run) -> None:
        if run.delivery.blamed:
            await self._settle(run, Dead(Cause.CRASHED, _CRASHED))
            return
        async with self._quarantine.alone():
            if self._stopping.requested:
                await self._settle(run, RETURNED)
            elif await self._isolated(run):
                await self._settle(run, await self._run(run))

    async def _isolated(self, run: Run) -> bool:
        """Whether the delivery is still in hand, marked as running alone."""
        try:
            return await run.delivery.isolate()
        except StaleDeliveryError as error:
            self._settle_failed(run, error)
        except BrokerUnavailableError as error:
            self._settle_failed(run, error)
            await self._settle(run, RETURNED)
        return False

    async def _run(self, run: Run) -> DeliveryOutcome:
        began = perf_counter()
        try:
            return await self._outcome(run)
        finally:
            run.seconds = perf_counter() - began

    # --- judge ---------------------------------------------------------------------------------------------------------

    async def _outcome(self, run: Run) -> DeliveryOutcome:
        try:
            body = self._plan.decode(run.message.body)
        except ValueError as error:
            return Dead(Cause.UNDECODABLE, Failure.of(error))
        try:
            follow(run.message.tracking_ids)
            await self._called(run, body)
        except Reject as error:
            return Dead(Cause.REJECTED, Failure.of(error))
        except RetryAfter as error:
            return self._after_failure(run, error, delay=error.delay)
        except DatabaseUnavailableError as error:
            return await self._back_after_a_pause(error)
        except BaseException as error:
            # A handler's own sys.exit(), or the cancellation of something that it awaited, is a failure of that message.
            # What is meant for the process or for this task passes through.
            if isinstance(error, KeyboardInterrupt | GeneratorExit) or _is_our_cancellation(error):
                raise
            return self._after_failure(run, error)
        return DONE

    def _way_of_calling(self, units: UnitsOfWork | None) -> Callable[[Run, object], Awaitable[None]]:
        if not self._plan.resources:
            return self._call if self._plan.is_async else self._call_in_thread
        if units is None:
            raise ConfigurationError(f"the consumer of {self._queue} needs a database, and there is none")
        return partial(self._call_in_transaction, units)

    async def _call(self, run: Run, body: object) -> None:
        await self._plan.call(Inputs(run.delivery, run.message, body, _NO_RESOURCES))

    async def _call_in_thread(self, run: Run, body: object) -> None:
        call = partial(self._plan.call, Inputs(run.delivery, run.message, body, _NO_RESOURCES))
        answer = await self._around.threads.call(call)
        if isawaitable(answer):  # a plain function around an async one
            await answer

    async def _call_in_transaction(self, units: UnitsOfWork, run: Run, body: object) -> None:
        async with units.begin(self._plan.resources) as resources:
            self._around.database.answers()
            await self._plan.call(Inputs(run.delivery, run.message, body, resources))

    def _after_failure(self, run: Run, error: BaseException, *, delay: timedelta | None = None) -> Retry | Dead:
        return self._policy.decide(
            Failure.of(error),
            attempt=run.attempt,
            now=self._around.now(),
            expires_at=run.message.expires_at,
            delay=delay,
        )

    async def _back_after_a_pause(self, error: DatabaseUnavailableError) -> Returned:
        """The message is not to blame, and spends nothing. It stays in hand for the pause, so that it does not spin."""
        await self._stopping.wait(self._around.database.lost(str(error)))
        return RETURNED

    # --- settle and tell -----------------------------------------------------------------------------------------------

    async def _settle(self, run: Run, outcome: DeliveryOutcome) -> None:
        try:
            await run.delivery.settle(outcome)
        except StaleDeliveryError as error:
            self._settle_failed(run, error)
        except BrokerUnavailableError as error:
            self._settle_failed(run, error)
            await self._settle_later(run, outcome)
        else:
            self._processed(run, outcome)

    async def _settle_later(self, run: Run, outcome: DeliveryOutcome) -> None:
        """Tries until it is recorded, or no longer ours. Not while stopping: what is unsettled then goes back by itself."""
        pauses = Pauses()
        while not await self._stopping.wait(pauses.next()):
            try:
                await run.delivery.settle(outcome)
            except BrokerUnavailableError:
                continue
            except StaleDeliveryError as error:
                self._settle_failed(run, error)
            else:
                self._processed(run, outcome)
            return

    def _processed(self, run: Run, outcome: DeliveryOutcome) -> None:
        status = _status(outcome)
        if status is not None:
            self._observer.notify(
                Processed(
                    queue=self._queue,
                    exchange_name=self._around.exchange_name,
                    message=run.message,
                    attempt=run.attempt,
                    status=status,
                    outcome=outcome,
                    duration=timedelta(seconds=run.seconds),
                )
            )

    def _settle_failed(self, run: Run, error: Exception) -> None:
        self._observer.notify(
            SettleFailed(
                queue=self._queue,
                exchange_name=self._around.exchange_name,
                message_id=run.message.id,
                reason=str(error),
            )
        )


def _is_our_cancellation(error: BaseException) -> bool:
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _status(outcome: DeliveryOutcome) -> ProcessingStatus | None:
    """None for what was given back: it was not processed."""
    match outcome:
        case Done():
            return ProcessingStatus.SUCCESS
        case Dead(Cause.REJECTED):
            return ProcessingStatus.REJECTED
        case Dead(Cause.UNDECODABLE):
            return ProcessingStatus.UNDECODABLE
        case Retry() | Dead():
            return ProcessingStatus.FAILED
        case Returned():
            return None
        case _:
            assert_never(outcome)


def _stand_in(delivery: Delivery) -> Message:
    """What observers are told about a message whose headers cannot be read."""
    incoming = delivery.incoming
    return Message(
        id=str(getattr(incoming, "message_id", None) or ""),
        routing_key=str(getattr(incoming, "routing_key", None) or ""),
        body=getattr(incoming, "body", b""),
        created_at=datetime.now(UTC),
        tracking_ids=(),
    )
