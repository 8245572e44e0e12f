"""One attempt: the callback is called, in a thread or a transaction if need be, and what it did becomes an outcome."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from inspect import isawaitable
from time import perf_counter

from outbox.engine.calling import Inputs
from outbox.engine.consuming import Consumer
from outbox.engine.lifecycle import Stopping
from outbox.engine.outages import Outage
from outbox.engine.quarantine import Quarantine
from outbox.engine.threads import Threads
from outbox.errors import ConfigurationError, DatabaseUnavailableError, Reject, RetryAfter
from outbox.message import Message
from outbox.outcome import DONE, RETURNED, Cause, Dead, DeliveryOutcome, Failure, Retry
from outbox.ports import Delivery, Observer, UnitsOfWork
from outbox.retry import RetryPolicy
from outbox.tracking import follow

DATABASE_PATIENCE = timedelta(minutes=5)
"""How long a message waits in hand for its transaction before it goes back. Some brokers count how often one does."""

_NO_RESOURCES: Mapping[str, object] = {}


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
    """One delivery on its way through the steps. `verdict` is what reading it already decided; `seconds` its handler took."""

    delivery: Delivery
    message: Message
    attempt: int
    verdict: Dead | None = None
    seconds: float = 0.0


class Attempting:
    """Calls the callback of one consumer with a message. Raises for nothing that the callback did."""

    def __init__(self, consumer: Consumer, policy: RetryPolicy, surroundings: Surroundings) -> None:
        self._plan = consumer.plan
        self._policy = policy
        self._around = surroundings
        self._called = self._way_of_calling(consumer, surroundings.units)

    async def attempt(self, run: Run) -> DeliveryOutcome:
        """What became of it. The time that it took is noted in `run`."""
        began = perf_counter()
        try:
            return await self._outcome(run)
        finally:
            run.seconds = perf_counter() - began

    async def _outcome(self, run: Run) -> DeliveryOutcome:
        try:
            try:
                body = self._plan.decode(run.message.body)
            except ValueError as error:
                return Dead(Cause.UNDECODABLE, Failure.of(error))
            follow(run.message.tracking_ids)
            await self._called(run, body)
        except Reject as error:
            return Dead(Cause.REJECTED, Failure.of(error))
        except RetryAfter as error:
            return self._after_failure(run, error, delay=error.delay)
        except _NotBegunError:
            return RETURNED
        except BaseException as error:
            # A handler's own sys.exit(), or the cancellation of something that it awaited, is a failure of that message.
            # What is meant for the process or for this task passes through.
            if isinstance(error, KeyboardInterrupt | GeneratorExit) or _is_our_cancellation(error):
                raise
            return self._after_failure(run, error)
        return DONE

    def _after_failure(self, run: Run, error: BaseException, *, delay: timedelta | None = None) -> Retry | Dead:
        return self._policy.decide(
            Failure.of(error),
            attempt=run.attempt,
            now=self._around.now(),
            expires_at=run.message.expires_at,
            delay=delay,
        )

    # --- ways of calling -----------------------------------------------------------------------------------------------

    def _way_of_calling(self, consumer: Consumer, units: UnitsOfWork | None) -> Callable[[Run, object], Awaitable[None]]:
        if not self._plan.resources:
            return self._call if self._plan.is_async else self._call_in_thread
        if units is None:
            raise ConfigurationError(f"the consumer of {consumer.queue} needs a database, and there is none")
        return partial(self._call_in_transaction, units)

    async def _call(self, run: Run, body: object) -> None:
        await self._plan.call(Inputs(run.delivery, run.message, body, _NO_RESOURCES))

    async def _call_in_thread(self, run: Run, body: object) -> None:
        call = partial(self._plan.call, Inputs(run.delivery, run.message, body, _NO_RESOURCES))
        answer = await self._around.threads.call(call)
        if isawaitable(answer):  # a plain function around an async one
            await answer

    async def _call_in_transaction(self, units: UnitsOfWork, run: Run, body: object) -> None:
        async with AsyncExitStack() as stack:
            resources = await self._begun(units, stack)
            await self._plan.call(Inputs(run.delivery, run.message, body, resources))

    async def _begun(self, units: UnitsOfWork, stack: AsyncExitStack) -> Mapping[str, object]:
        """The transaction, once the database answers; the message stays in hand meanwhile, so that it does not go in circles.

        Raises `_NotBegunError` when that takes too long, or when the worker stops.
        """
        patience_ends = perf_counter() + DATABASE_PATIENCE.total_seconds()
        while True:
            try:
                resources = await stack.enter_async_context(units.begin(self._plan.resources))
            except DatabaseUnavailableError as error:
                pause = self._around.database.lost(str(error))
                if await self._around.stopping.wait(pause) or perf_counter() > patience_ends:
                    raise _NotBegunError from error
            else:
                self._around.database.answers()
                return resources


class _NotBegunError(Exception):
    """The handler was not called, because its transaction could not begin."""


def _is_our_cancellation(error: BaseException) -> bool:
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0
