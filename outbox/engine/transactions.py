"""Opens a handler's transaction, and the threads that sync handlers run in."""

import asyncio
import contextvars
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta
from queue import SimpleQueue
from time import perf_counter
from typing import Any, NamedTuple

from outbox.core.outcome import RETURNED, DeliveryOutcome, Postponed
from outbox.engine.lifecycle import Outage, Stopping
from outbox.errors import DatabaseUnavailableError, MarkHeldError
from outbox.ports import Marks, Unit, UnitsOfWork

DATABASE_PATIENCE = timedelta(minutes=5)
"""How long a message waits in hand for its transaction, before it goes away for a while."""
DATABASE_PAUSE = timedelta(seconds=30)
"""How long it then stays away. Given back instead, it would come again at once, and some brokers count how often one does."""
HELD_PAUSE = timedelta(seconds=5)
"""How long a message stays away that is being handled elsewhere."""


class NotBegunError(Exception):
    """The handler was not called, or as good as not: its transaction is not there. `outcome` is what becomes of the message."""

    def __init__(self, outcome: DeliveryOutcome) -> None:
        super().__init__(outcome)
        self.outcome = outcome


class Transactions:
    """Begins a transaction for each call of a handler that takes part in one.

    `wanted` names what the handler takes of it. With an `inbox`, the name of a queue, the messages are marked in it first, and
    a mark that another transaction holds is waited for, up to `inbox_wait`.
    """

    def __init__(
        self,
        units: UnitsOfWork,
        wanted: frozenset[str],
        *,
        database: Outage,
        stopping: Stopping,
        inbox: str | None,
        inbox_wait: timedelta,
    ) -> None:
        self._units = units
        self._wanted = wanted
        self._database = database
        self._stopping = stopping
        self._inbox = inbox
        self._inbox_wait = inbox_wait

    @asynccontextmanager
    async def begin(self, message_ids: Sequence[str]) -> AsyncIterator[Unit]:
        """A transaction for these messages; see `outbox.ports.UnitsOfWork.begin`.

        Raises `NotBegunError` when the database stays away for too long, when the worker stops meanwhile, and when one of the
        messages is being handled elsewhere; also at the end, after everything in it was undone.
        """
        try:
            async with AsyncExitStack() as stack:
                yield await self._begun(stack, self._marks(message_ids))
        except MarkHeldError as error:
            raise NotBegunError(Postponed(HELD_PAUSE)) from error

    async def is_marked(self, message_id: str) -> bool:
        """Whether the message was marked, by whatever transaction, and that has been committed. Raises `NotBegunError`."""
        try:
            async with self.begin((message_id,)) as unit:
                _undo(marked=not unit.marked)
        except _OnlyLookingError as seen:
            return seen.marked
        raise AssertionError("the transaction was not undone")

    def _marks(self, message_ids: Sequence[str]) -> Marks | None:
        if self._inbox is None:
            return None
        return Marks(queue=self._inbox, message_ids=message_ids, patience=self._inbox_wait)

    async def _begun(self, stack: AsyncExitStack, marks: Marks | None) -> Unit:
        """The messages stay in hand while the database is away, so that they do not go in circles."""
        patience_ends = perf_counter() + DATABASE_PATIENCE.total_seconds()
        while True:
            try:
                unit = await stack.enter_async_context(self._units.begin(self._wanted, marks))
            except DatabaseUnavailableError as error:
                if await self._stopping.wait(self._database.lost(error)):
                    raise NotBegunError(RETURNED) from error
                if perf_counter() > patience_ends:
                    raise NotBegunError(Postponed(DATABASE_PAUSE)) from error
            else:
                self._database.answers()
                return unit


class _OnlyLookingError(Exception):
    """Leaves a transaction as if it had not been."""

    def __init__(self, *, marked: bool) -> None:
        super().__init__(marked)
        self.marked = marked


def _undo(*, marked: bool) -> None:
    raise _OnlyLookingError(marked=marked)


class _Call(NamedTuple):
    function: Callable[[], Any]
    context: contextvars.Context
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[Any]


class Threads:
    """At most `limit` threads for the consumer of `queue`, started as they are needed.

    Daemons, unlike those of an executor: a callback that never returns cannot keep the process from ending when its grace
    period is over.
    """

    def __init__(self, limit: int, queue: str = "") -> None:
        self._limit = limit
        self._queue = queue
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._started = 0
        self._outstanding = 0
        self._running: set[int] = set()

    @property
    def running(self) -> int:
        """How many functions run now, those included that nothing waits for any more."""
        return len(self._running)

    async def call(self, function: Callable[[], Any]) -> Any:
        """What `function` returns or raises, called in a thread with a copy of the caller's context variables.

        Cancelled, this no longer waits; the function still runs to its end, if it has begun.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        self._outstanding += 1
        if self._outstanding > self._started and self._started < self._limit:
            self._started += 1
            threading.Thread(target=self._serve, name=f"outbox-handler-{self._queue}-{self._started}", daemon=True).start()
        self._calls.put(_Call(function, contextvars.copy_context(), loop, answer))
        return await answer

    def close(self) -> None:
        """Lets the threads end, each when what it runs has ended."""
        for _ in range(self._started):
            self._calls.put(None)

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            # What was cancelled while it waited for a thread must not begin any more: its message is somebody else's by then.
            self._running.add(threading.get_ident())
            result, error = (None, None) if call.answer.done() else _outcome(call)
            self._running.discard(threading.get_ident())
            with suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits for the answer
                call.loop.call_soon_threadsafe(self._answered, call.answer, result, error)
            del call, result, error  # what a handler worked on is not kept until the next one comes

    def _answered(self, answer: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
        self._outstanding -= 1
        if answer.done():
            return
        if error is None:
            answer.set_result(result)
        else:
            answer.set_exception(error)


def _outcome(call: _Call) -> tuple[Any, BaseException | None]:
    try:
        return call.context.run(call.function), None
    except (StopIteration, GeneratorExit, KeyboardInterrupt) as error:
        # A future cannot carry the first; the second would close the coroutine that awaits it. The third is never Ctrl-C here,
        # which interrupts the main thread only: passed on, it would end the process for what is a failure of one message.
        failure = RuntimeError(f"the callback raised {type(error).__name__}")
        failure.__cause__ = error
        return None, failure
    except BaseException as error:  # noqa: BLE001  whatever it is, it belongs to the caller, as in asyncio.to_thread
        return None, error
