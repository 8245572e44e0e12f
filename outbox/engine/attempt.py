"""Runs one attempt: calls the handler, in a thread or a transaction if it needs one, and returns the outcome."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from time import perf_counter
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import TYPE_CHECKING

from pydantic import ValidationError

from outbox.core.codec import BODY_STORE, ENCRYPTION
from outbox.core.events import Duplicate, SpanIds
from outbox.core.message import Message
from outbox.core.outcome import DONE, RETURNED, Cause, Dead, DeliveryOutcome, Failure, Postponed, Retry
from outbox.core.threads import Threads
from outbox.core.tracking import follow
from outbox.engine.circuit import PermitHandle, ProbeResult
from outbox.engine.consumer import Consumer
from outbox.engine.lifecycle import Outage, Stopping
from outbox.engine.quarantine import Quarantine
from outbox.engine.signature import BatchInputs, Inputs
from outbox.engine.transactions import DATABASE_PATIENCE, DATABASE_PAUSE, NotBegunError, Transactions
from outbox.errors import (
    BodyStoreUnavailableError,
    CommitFailedError,
    ConfigurationError,
    HandlerTimeoutError,
    MalformedMessageError,
    Reject,
    RetryAfter,
    SignatureError,
    UnknownKeyError,
)
from outbox.ports import AttemptSpan, Delivery, Observer, Tracer, Unit, UnitsOfWork
from outbox.retry import RetryPolicy

if TYPE_CHECKING:
    from outbox.encryption import Encryption
    from outbox.large_bodies import LargeBodies

CANCEL_INTERVAL = timedelta(seconds=5)
"""How long a cancelled handler may take to clean up before it is cancelled once more."""


@contextmanager
def time_limit(limit: timedelta) -> Iterator[None]:
    """Cancels the block when `limit` is over, and again every `CANCEL_INTERVAL` until the block ends.

    Once the limit is over, `HandlerTimeoutError` is raised however the block ends. The exception is a cancellation that another
    task requested, which passes through. Within the limit every result and error passes through, a `TimeoutError` too.
    """
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("only a task can be cancelled")
    limiter = _Limiter(task, limit)
    try:
        yield
    except BaseException as error:
        # `stop` has withdrawn its own cancellations: what is left in the count is another task's, and goes before the limit.
        if limiter.stop() and not (isinstance(error, asyncio.CancelledError) and task.cancelling()):
            raise _timeout_error(limit) from error
        raise
    else:
        if limiter.stop():
            raise _timeout_error(limit)


class _Limiter:
    """Cancels `task` when its time is over."""

    def __init__(self, task: "asyncio.Task[object]", limit: timedelta) -> None:
        self._task = task
        self._loop = asyncio.get_running_loop()
        self._cancellations = 0
        self._next = self._loop.call_later(limit.total_seconds(), self._cancel)

    def stop(self) -> bool:
        """Stops cancelling, withdraws the cancellations made so far, and returns whether the limit was over."""
        self._next.cancel()
        # Each cancel() needs its uncancel(): asyncio.timeout and TaskGroup around this block look at the task's count.
        for _ in range(self._cancellations):
            self._task.uncancel()
        return self._cancellations > 0

    def _cancel(self) -> None:
        self._cancellations += 1
        self._task.cancel()
        self._next = self._loop.call_later(CANCEL_INTERVAL.total_seconds(), self._cancel)


def _timeout_error(limit: timedelta) -> HandlerTimeoutError:
    return HandlerTimeoutError(f"the handler ran for longer than its timeout of {limit.total_seconds():g} s, and was cancelled")


EXPIRED = Dead(Cause.EXPIRED, Failure("expired", "the message expired before it was handled"))
_NO_UNIT = Unit(resources={})
_NO_MESSAGE_ID = "the message has no id, which the inbox needs to recognize duplicates: publish it with one (AMQP: message_id)"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerContext:
    """The dependencies that all consumers of a worker share.

    `describe` turns an exception into a failure to store and show. `tracer` is None in a process that is not traced.
    `encryption` decrypts bodies, and `large_bodies` fetches those that are stored elsewhere; without them, such messages fail.
    `body_store` reports whether the store is available.
    """

    exchange_name: str
    observer: Observer
    stopping: Stopping
    quarantine: Quarantine
    units: UnitsOfWork | None
    database: Outage
    inbox_wait: timedelta
    now: Callable[[], datetime]
    describe: Callable[[BaseException], Failure]
    tracer: Tracer | None = None
    encryption: "Encryption | None" = None
    large_bodies: "LargeBodies | None" = None
    body_store: Outage | None = None


@dataclass(slots=True)
class Run:
    """The state of one delivery while it is handled.

    `verdict` is set if the message failed before its handler was called. `seconds` is the duration of the attempt. `permit` is
    the circuit's permission, None without a circuit. `result` is the report to the circuit; None: it follows from the outcome.
    `span` is that of the last attempt, or of its batch; None if it is not traced. `fetched` is the body from the store of large
    bodies, or why it could not be fetched; None if it is in the message.
    """

    delivery: Delivery
    message: Message
    attempt: int
    verdict: Dead | None = None
    seconds: float = 0.0
    permit: PermitHandle | None = None
    result: ProbeResult | None = None
    span: SpanIds | None = None
    fetched: bytes | Exception | None = None


class AttemptRunner:
    """Calls the callback of one consumer with a message. Never raises for the callback's fault."""

    def __init__(self, consumer: Consumer, policy: RetryPolicy, context: WorkerContext, threads: Threads) -> None:
        self._plan = consumer.plan
        self._event = consumer.event
        self._options = consumer.options
        self._policy = policy
        self._context = context
        self._tracer = context.tracer
        self._threads = threads
        self._queue = consumer.queue
        self._with_inbox = consumer.inbox
        self.transactions: Transactions | None = None
        """None for a consumer that uses no transaction."""
        if consumer.plan.resources or consumer.inbox:
            if context.units is None:
                raise ConfigurationError(f"the consumer of {consumer.queue} needs a database, but none is configured")
            self.transactions = Transactions(
                context.units,
                consumer.plan.resources,
                database=context.database,
                stopping=context.stopping,
                inbox=consumer.queue if consumer.inbox else None,
                inbox_wait=context.inbox_wait,
            )
        # What begins and commits the handler's transaction is not the handler's. Without one, the handler alone does anything.
        self._silent = self.transactions is not None

    async def attempt(self, run: Run) -> DeliveryOutcome:
        """Calls the handler and returns the outcome. Sets `run.seconds`, and `run.span` if the process is traced."""
        began = perf_counter()
        task = asyncio.current_task()
        # Here, and not around this method: another coroutine would be resumed at each step of this one.
        span = None
        if self._tracer is not None:
            span = self._tracer.process((run.message,), queue=self._queue, attempt=run.attempt, silent=self._silent)
            run.span = span.ids
        outcome: DeliveryOutcome | None = None
        try:
            if BODY_STORE in run.message.headers:
                await self.fetch(run)
            body = self.read(run)
            follow(run.message.tracking_ids, (run.message.id, self._queue))
            if self.transactions is None:
                refuse_unstarted(await self.invoke(self._inputs(run, body, _NO_UNIT)))
            else:
                async with self.transactions.begin((run.message.id,), run.delivery.ending) as unit:
                    refuse_unstarted(await self.invoke(self._inputs(run, body, unit)))
            outcome = DONE
        except NotBegunError as error:
            outcome = error.outcome
        except CommitFailedError as error:
            # The commit may have succeeded and its answer been lost with the connection: only the inbox mark shows it.
            try:
                is_done = self.transactions is not None and await self.transactions.is_marked(run.message.id)
                outcome = DONE if is_done else self.failure_outcome(run, error.__cause__ or error)
            except NotBegunError as unknown:
                outcome = unknown.outcome
        except BaseException as error:
            # A handler's sys.exit() or GeneratorExit, or the cancellation of something that it awaited, fails this message
            # only. An error meant for the process or for this task passes through.
            if is_for_us(error, task):
                raise
            outcome = self.failure_outcome(run, error)
        finally:
            run.seconds = perf_counter() - began
            if span is not None:
                # The outcome is reported later, when it is settled.
                span.end(sys.exception() if outcome is None else outcome)
        return outcome

    def begin_batch_span(self, runs: Sequence[Run]) -> AttemptSpan | None:
        """Begins the span of one call with several messages, and sets `span` of their runs; None if the process is untraced."""
        if self._tracer is None:
            return None
        span = self._tracer.process([run.message for run in runs], queue=self._queue, attempt=1, silent=self._silent)
        for run in runs:
            run.span = span.ids
        return span

    def _inputs(self, run: Run, body: object, unit: Unit) -> Inputs | BatchInputs:
        """Returns the handler's inputs. Raises `NotBegunError` if the message was handled before, was lost, or has expired."""
        # Checked again here: entering the transaction may have waited for minutes.
        if self._with_inbox and not unit.marked:
            raise NotBegunError(self.report_duplicate(run))
        if run.delivery.gone:
            raise NotBegunError(RETURNED)
        if self.has_expired(run):
            run.result = ProbeResult.INCONCLUSIVE
            raise NotBegunError(EXPIRED)
        inputs = Inputs(run.delivery, run.message, body, unit.resources)
        return BatchInputs((inputs,), unit.resources) if self._plan.batch else inputs

    def failure_outcome(self, run: Run, error: BaseException) -> Retry | Dead:
        """Returns the outcome of an attempt that ended with `error`."""
        if is_any_of(error, self._options.pause_on):
            run.result = ProbeResult.PAUSING_FAILURE
        failure = self._context.describe(error)
        if isinstance(error, Reject) or (not isinstance(error, RetryAfter) and is_any_of(error, self._options.dead_on)):
            return Dead(Cause.REJECTED, failure)
        # A subclass of `RetryAfter` with an `__init__` of its own may have no delay, or another value. Then the policy decides.
        delay = getattr(error, "delay", None) if isinstance(error, RetryAfter) else None
        return self._policy.decide(
            failure,
            attempt=run.attempt,
            now=self._context.now(),
            expires_at=run.message.expires_at,
            delay=delay if isinstance(delay, timedelta) and delay >= timedelta(0) else None,
            error=error,
        )

    # --- steps that batches use too ------------------------------------------------------------------------------------

    async def fetch(self, run: Run) -> None:
        """Fetches the body of a message whose body is in the store, for `read`, and sets `run.fetched`. Never raises.

        While the store is unavailable, the message stays in flight for some minutes, and is then postponed.
        """
        large, outage, stopping = self._context.large_bodies, self._context.body_store, self._context.stopping
        if large is None or outage is None or self.has_expired(run):
            return
        patience_ends = perf_counter() + DATABASE_PATIENCE.total_seconds()
        while True:
            try:
                run.fetched = await large.get(run.message.headers[BODY_STORE])
            except BodyStoreUnavailableError as error:
                # No attempt is spent: the store says nothing about the message.
                if await stopping.wait(outage.lost(error)):
                    run.fetched = NotBegunError(RETURNED)
                elif perf_counter() > patience_ends or self.has_expired(run):
                    run.fetched = NotBegunError(Postponed(DATABASE_PAUSE))
                else:
                    continue
            except Exception as error:  # noqa: BLE001  the errors of a store that the application provides
                run.fetched = error
            else:
                outage.answers()
            return

    def read(self, run: Run) -> object:
        """Decodes the body for the callback.

        Raises `NotBegunError` if the message has expired or cannot be read, and while the store is unavailable. Raises
        `UnsupportedVersionError`, `UnknownKeyError` and `BodyStoreUnavailableError`, which are retried: a worker of the newer
        release, or with the key or the store, may get the message next. Raises the errors of the key provider and the store.
        """
        if self.has_expired(run):
            run.result = ProbeResult.INCONCLUSIVE
            raise NotBegunError(EXPIRED)
        if self._with_inbox and (run.message.anonymous or not run.message.id):
            raise self._undecodable(MalformedMessageError(_NO_MESSAGE_ID))
        # Only these: a `ValueError` of a key provider or a store says nothing about the message.
        try:
            body = self._plain_body(run)
        except MalformedMessageError as error:
            raise self._undecodable(error) from error
        try:
            if self._event is not None:
                return self._event.read(body, run.message.headers)
            return self._plan.decode(body)
        except ValueError as error:
            if ENCRYPTION in run.message.headers and isinstance(error, ValidationError):
                # Pydantic's own text quotes values, and failures are stored and sent in plain text.
                each = error.errors(include_url=False, include_context=False, include_input=False)
                reasons = [f"{'.'.join(map(str, one['loc'])) or 'the body'}: {one['msg']}" for one in each]
                error = MalformedMessageError(f"the body is no {error.title}: {'; '.join(reasons)}")
            raise self._undecodable(error) from error

    def _undecodable(self, error: ValueError) -> NotBegunError:
        return NotBegunError(Dead(Cause.UNDECODABLE, self._context.describe(error)))

    def _plain_body(self, run: Run) -> bytes:
        message, body = run.message, run.message.body
        if BODY_STORE in message.headers:
            if run.fetched is None:
                raise BodyStoreUnavailableError(
                    "the body is in a store of large bodies, and this worker has none: give it large_bodies=…, then requeue "
                    "what has become a dead letter"
                )
            if isinstance(run.fetched, Exception):
                raise run.fetched
            body, run.fetched = run.fetched, None  # not kept while the handler runs
        header = message.headers.get(ENCRYPTION)
        if header is None:
            return body
        if self._context.encryption is None:
            raise UnknownKeyError(
                "the body is encrypted, and this worker has no keys: give it encryption=…, then requeue what has become a dead "
                "letter"
            )
        return self._context.encryption.decrypt(body, header, message_id=message.id)

    def invoke(self, inputs: Inputs | BatchInputs) -> Awaitable[object]:
        """Calls the callback, in a thread if it is not async. Its errors are raised here, or when the result is awaited."""
        if self._tracer is not None and self._silent:
            return self._invoke_aloud(inputs, self._tracer)
        return self._invoke(inputs)

    async def _invoke_aloud(self, inputs: Inputs | BatchInputs, tracer: Tracer) -> object:
        with tracer.handler():
            return await self._invoke(inputs)

    def _invoke(self, inputs: Inputs | BatchInputs) -> Awaitable[object]:
        if not self._plan.is_async:
            return self._threads.call(partial(self._plan.call, inputs))
        # Without a limit the callback is awaited directly: a coroutine in between would be resumed at each of its awaits.
        call: Awaitable[object] = self._plan.call(inputs)
        return call if self._options.timeout is None else _await_with_limit(call, self._options.timeout)

    def has_expired(self, run: Run) -> bool:
        """Whether the message has expired."""
        expires_at = run.message.expires_at
        return expires_at is not None and expires_at <= self._context.now()

    def report_duplicate(self, run: Run) -> DeliveryOutcome:
        """Reports a message that was handled before, and returns its outcome."""
        run.result = ProbeResult.INCONCLUSIVE
        if self._tracer is not None:
            self._tracer.record_duplicate(run.message)
        self._context.observer.notify(
            Duplicate(queue=self._queue, exchange_name=self._context.exchange_name, message=run.message)
        )
        return DONE


async def _await_with_limit(call: Awaitable[object], limit: timedelta) -> object:
    with time_limit(limit):
        return await call


def refuse_unstarted(result: object) -> None:
    """Raises `SignatureError` if a handler's result is work that nothing will start, such as a coroutine without `await`."""
    if isinstance(result, CoroutineType | GeneratorType | AsyncGeneratorType):
        if isinstance(result, CoroutineType):
            result.close()  # or else Python warns of it at some later time
        raise SignatureError(
            f"the handler returned {type(result).__name__} {result.__qualname__!r}, which nothing runs: await it, or for a "
            "generator write a function without yield"
        )


def is_any_of(error: BaseException, types: tuple[type[BaseException], ...]) -> bool:
    """Whether `error`, or any error nested in an exception group, is an instance of `types`."""
    pending = [error]
    while pending:  # no recursion: groups may be nested deeper than Python calls
        each = pending.pop()
        if isinstance(each, types):
            return True
        if isinstance(each, BaseExceptionGroup):
            pending.extend(each.exceptions)
    return False


def is_for_us(error: BaseException, task: "asyncio.Task[object] | None") -> bool:
    """Whether `error` is meant for the process or for `task`, rather than a failure of the handler that `task` called."""
    if isinstance(error, asyncio.CancelledError):
        return task is not None and task.cancelling() > 0
    if isinstance(error, GeneratorExit):
        # Raised by the handler, it is a failure. Raised by closing an abandoned coroutine, as the garbage collector does, it
        # comes from outside the task, and nothing may be awaited after it.
        try:
            return asyncio.current_task() is not task
        except RuntimeError:  # no event loop runs
            return task is not None
    return isinstance(error, KeyboardInterrupt)
