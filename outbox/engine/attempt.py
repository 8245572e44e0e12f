"""One attempt: calls the handler, in a thread or a transaction if it needs one, and turns the result into an outcome."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from inspect import isawaitable
from time import perf_counter

from outbox.core.events import Duplicate
from outbox.core.message import Message
from outbox.core.outcome import DONE, RETURNED, Cause, Dead, DeliveryOutcome, Failure, Retry
from outbox.core.tracking import follow
from outbox.engine.circuit import PermitHandle, ProbeResult
from outbox.engine.consumer import Consumer
from outbox.engine.lifecycle import Outage, Stopping
from outbox.engine.quarantine import Quarantine
from outbox.engine.signature import BatchInputs, Inputs
from outbox.engine.transactions import NotBegunError, Threads, Transactions
from outbox.errors import CommitFailedError, ConfigurationError, HandlerTimeoutError, MalformedMessageError, Reject, RetryAfter
from outbox.ports import Delivery, Observer, UnitsOfWork
from outbox.retry import RetryPolicy

ErrorTypes = tuple[type[BaseException], ...]


class Judging:
    """Turns what the handler of one consumer raised into an outcome. `describe` puts an error into storable words."""

    def __init__(
        self,
        consumer: "Consumer",
        policy: "RetryPolicy",
        *,
        describe: Callable[[BaseException], Failure],
        now: Callable[[], datetime],
    ) -> None:
        self._dead_on = consumer.terms.dead_on
        self._pause_on = consumer.terms.pause_on
        self._policy = policy
        self._describe = describe
        self._now = now

    def outcome_of(self, error: BaseException, *, message: Message, attempt: int) -> Retry | Dead:
        """What becomes of `message`, whose attempt number `attempt` ended with `error`."""
        failure = self._describe(error)
        if isinstance(error, Reject) or (not isinstance(error, RetryAfter) and is_any_of(error, self._dead_on)):
            return Dead(Cause.REJECTED, failure)
        return self._policy.decide(
            failure,
            attempt=attempt,
            now=self._now(),
            expires_at=message.expires_at,
            delay=error.delay if isinstance(error, RetryAfter) else None,
            error=error,
        )

    def is_trouble(self, error: BaseException) -> bool:
        """Whether `error` is of a kind that its consumer pauses on."""
        return is_any_of(error, self._pause_on)


def is_any_of(error: BaseException, types: Sequence[type[BaseException]]) -> bool:
    """Whether `error` is of one of `types`, or is a group that holds one that is, at whatever depth."""
    return bool(types) and any(isinstance(part, tuple(types)) for part in _parts(error))


def _parts(error: BaseException) -> Iterator[BaseException]:
    yield error
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _parts(part)


AGAIN = timedelta(seconds=5)
"""How long a cancelled handler may take to clean up before it is cancelled once more."""


@contextmanager
def time_limit(limit: timedelta) -> Iterator[None]:
    """What is awaited in the block is cancelled when `limit` is over, and then every `AGAIN` until the block ends.

    However it ends after that, normally or with whatever error, `HandlerTimeoutError` is raised; only a cancellation that
    somebody else asked for passes through. Before that nothing is changed: a `TimeoutError` from within stays what it is.
    """
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("only a task can be cancelled")
    limiter = _Limiter(task, limit)
    try:
        yield
    except BaseException as error:
        if limiter.ended() and not (isinstance(error, asyncio.CancelledError) and task.cancelling()):
            raise HandlerTimeoutError(_says(limit)) from error
        raise
    else:
        if limiter.ended():
            raise HandlerTimeoutError(_says(limit))


class _Limiter:
    """Cancels `task` when its time is over."""

    def __init__(self, task: "asyncio.Task[object]", limit: timedelta) -> None:
        self._task = task
        self._loop = asyncio.get_running_loop()
        self._cancellations = 0
        self._next = self._loop.call_later(limit.total_seconds(), self._cancel)

    def ended(self) -> bool:
        """Cancels no more, and takes back the requests; whether the time was over."""
        self._next.cancel()
        for _ in range(self._cancellations):
            self._task.uncancel()
        return self._cancellations > 0

    def _cancel(self) -> None:
        self._cancellations += 1
        self._task.cancel()
        self._next = self._loop.call_later(AGAIN.total_seconds(), self._cancel)


def _says(limit: timedelta) -> str:
    return f"the handler ran for longer than its timeout of {limit.total_seconds():g} s, and was cancelled"


_NO_RESOURCES: Mapping[str, object] = {}
EXPIRED = Dead(Cause.EXPIRED, Failure("expired", "its time ran out before it was handled"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What all consumers of a worker share. `describe` puts what was raised into words that can be stored and shown."""

    exchange_name: str
    observer: Observer
    stopping: Stopping
    quarantine: Quarantine
    units: UnitsOfWork | None
    database: Outage
    inbox_wait: timedelta
    now: Callable[[], datetime]
    describe: Callable[[BaseException], Failure]


@dataclass(slots=True)
class Run:
    """One delivery on its way through the steps.

    `verdict` is what reading it already decided; `seconds` its handler took. `passage` is its leave to run, where its consumer
    may pause; `sign` what its attempt told about that which the consumer pauses for, if its outcome does not.
    """

    delivery: Delivery
    message: Message
    attempt: int
    verdict: Dead | None = None
    seconds: float = 0.0
    passage: PermitHandle | None = None
    sign: ProbeResult | None = None


class Attempting:
    """Calls the callback of one consumer with a message. Raises for nothing that the callback did."""

    def __init__(self, consumer: Consumer, policy: RetryPolicy, surroundings: Surroundings, threads: Threads) -> None:
        self._plan = consumer.plan
        self._timeout = consumer.terms.timeout
        self._judging = Judging(consumer, policy, describe=surroundings.describe, now=surroundings.now)
        self._around = surroundings
        self._threads = threads
        self._queue = consumer.queue
        self._with_inbox = consumer.inbox
        self.transactions = _transactions_of(consumer, surroundings)
        """None for a consumer that takes part in none."""

    async def attempt(self, run: Run) -> DeliveryOutcome:
        """What became of it. The time that it took is noted in `run`."""
        began = perf_counter()
        try:
            return await self._outcome(run)
        finally:
            run.seconds = perf_counter() - began

    async def _outcome(self, run: Run) -> DeliveryOutcome:
        task = asyncio.current_task()
        try:
            body = self.read(run)
            if isinstance(body, Dead):
                return body
            follow(run.message.tracking_ids)
            await self._call(run, body)
        except _DuplicateError:
            return self.duplicate(run)
        except CommitFailedError as error:
            return await self._after_failed_commit(run, error)
        except NotBegunError as error:
            return error.outcome
        except BaseException as error:
            # A handler's own sys.exit() or GeneratorExit, or the cancellation of something that it awaited, is a failure of
            # that message. What is meant for the process or for this task passes through.
            if is_for_us(error, task):
                raise
            return self._after_failure(run, error)
        return DONE

    # --- the parts that a batch is made of, too ------------------------------------------------------------------------

    def read(self, run: Run) -> object:
        """The body as the callback wants it; or `Dead`, if the message can not be handled any more."""
        if self.has_expired(run):
            run.sign = ProbeResult.NOTHING
            return EXPIRED
        if self._with_inbox and (run.message.anonymous or not run.message.id):
            return Dead(Cause.UNDECODABLE, self._around.describe(MalformedMessageError(_ANONYMOUS)))
        try:
            return self._plan.decode(run.message.body)
        except ValueError as error:
            return Dead(Cause.UNDECODABLE, self._around.describe(error))

    async def invoke(self, inputs: Inputs | BatchInputs) -> None:
        """Calls the callback, in a thread if it is not async; raises what it raises."""
        if self._plan.is_async:
            if self._timeout is None:
                await self._plan.call(inputs)
            else:
                with time_limit(self._timeout):
                    await self._plan.call(inputs)
            return
        answer = await self._threads.call(partial(self._plan.call, inputs))
        if isawaitable(answer):  # a plain function around an async one
            await answer

    def has_expired(self, run: Run) -> bool:
        """Whether the time of the message is over."""
        expires_at = run.message.expires_at
        return expires_at is not None and expires_at <= self._around.now()

    def duplicate(self, run: Run) -> DeliveryOutcome:
        """What becomes of a message that was handled before."""
        run.sign = ProbeResult.NOTHING
        self._around.observer.notify(
            Duplicate(queue=self._queue, exchange_name=self._around.exchange_name, message=run.message)
        )
        return DONE

    # --- one by itself -------------------------------------------------------------------------------------------------

    async def _call(self, run: Run, body: object) -> None:
        if self.transactions is None:
            self._require_in_time(run)
            await self.invoke(self._inputs(run, body, _NO_RESOURCES))
            return
        async with self.transactions.begin((run.message.id,)) as unit:
            if self._with_inbox and not unit.marked:
                raise _DuplicateError
            self._require_in_time(run)
            await self.invoke(self._inputs(run, body, unit.resources))

    def _require_in_time(self, run: Run) -> None:
        """Raises `NotBegunError` for what was lost, or expired, while it waited to be called: it must not begin any more."""
        if run.delivery.gone:
            raise NotBegunError(RETURNED)
        if self.has_expired(run):
            run.sign = ProbeResult.NOTHING
            raise NotBegunError(EXPIRED)

    def _inputs(self, run: Run, body: object, resources: Mapping[str, object]) -> Inputs | BatchInputs:
        inputs = Inputs(run.delivery, run.message, body, resources)
        return BatchInputs((inputs,), resources) if self._plan.batch else inputs

    async def _after_failed_commit(self, run: Run, error: CommitFailedError) -> DeliveryOutcome:
        """Whether it was committed after all, only the mark knows: the answer may have been lost with the connection."""
        try:
            if self.transactions is not None and await self.transactions.is_marked(run.message.id):
                return DONE
        except NotBegunError as unknown:
            return unknown.outcome
        return self._after_failure(run, error.__cause__ or error)

    def failed(self, run: Run, error: BaseException) -> DeliveryOutcome:
        """What becomes of a message whose attempt was ended from outside."""
        return self._after_failure(run, error)

    def _after_failure(self, run: Run, error: BaseException) -> Retry | Dead:
        if self._judging.is_trouble(error):
            run.sign = ProbeResult.TROUBLE
        return self._judging.outcome_of(error, message=run.message, attempt=run.attempt)


_ANONYMOUS = "the message has no id, so the inbox could not tell it from others: publish it with one (AMQP: message_id)"


def _transactions_of(consumer: Consumer, around: Surroundings) -> Transactions | None:
    if not consumer.plan.resources and not consumer.inbox:
        return None
    if around.units is None:
        raise ConfigurationError(f"the consumer of {consumer.queue} needs a database, and there is none")
    return Transactions(
        around.units,
        consumer.plan.resources,
        database=around.database,
        stopping=around.stopping,
        inbox=consumer.queue if consumer.inbox else None,
        inbox_wait=around.inbox_wait,
    )


class _DuplicateError(Exception):
    """The message was handled before."""


def is_for_us(error: BaseException, task: "asyncio.Task[object] | None") -> bool:
    """Whether `error` is meant for the process or for `task`, which called what raised it, and is not a failure of that."""
    if isinstance(error, asyncio.CancelledError):
        return task is not None and task.cancelling() > 0
    if isinstance(error, GeneratorExit):
        # Raised by the handler, it is a failure. Raised by closing a coroutine that nothing waits for any more, as the garbage
        # collector does, it comes from outside the task, and nothing may be awaited after it.
        return _running_task() is not task
    return isinstance(error, KeyboardInterrupt)


def _running_task() -> "asyncio.Task[object] | None":
    try:
        return asyncio.current_task()
    except RuntimeError:  # no event loop runs
        return None
