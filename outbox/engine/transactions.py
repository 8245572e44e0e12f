"""Opens a handler's transaction, and the threads that sync handlers run in."""

import asyncio
import contextvars
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from datetime import timedelta
from inspect import isawaitable
from queue import SimpleQueue
from time import perf_counter
from types import TracebackType
from typing import Any, NamedTuple

from outbox.core.outcome import RETURNED, DeliveryOutcome, Postponed
from outbox.engine.lifecycle import Outage, Stopping
from outbox.errors import DatabaseUnavailableError, MarkHeldError, StaleDeliveryError, StaleStatementError
from outbox.ports import Ending, Marks, Unit, UnitsOfWork

DATABASE_PATIENCE = timedelta(minutes=5)
"""How long a message waits in flight for its transaction, before it goes away for a while."""
DATABASE_PAUSE = timedelta(seconds=30)
"""How long it then stays away. Given back instead, it would come again at once, and some brokers count how often one does."""
HELD_PAUSE = timedelta(seconds=5)
"""Pause before a message is tried again that another worker holds, or whose handler met a table that had changed."""


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

    def begin(self, message_ids: Sequence[str], ending: Ending | None = None) -> AbstractAsyncContextManager[Unit]:
        """A transaction for these messages; see `outbox.ports.UnitsOfWork.begin`.

        Raises `NotBegunError` when the database stays away for too long, when the worker stops meanwhile, and when one of the
        messages is being handled elsewhere; at the end, after everything in it was undone, also when a table had changed.
        """
        return _Transaction(self, message_ids, ending)

    async def enter(self, message_ids: Sequence[str], ending: Ending | None) -> tuple[AbstractAsyncContextManager[Unit], Unit]:
        """One that has begun. The messages stay in flight while the database is away, so that they do not go in circles."""
        marks = None
        if self._inbox is not None:
            marks = Marks(queue=self._inbox, message_ids=message_ids, patience=self._inbox_wait)
        patience_ends = perf_counter() + DATABASE_PATIENCE.total_seconds()
        while True:
            try:
                context = self._units.begin(self._wanted, marks, ending)
                unit = await context.__aenter__()
            except DatabaseUnavailableError as error:
                if await self._stopping.wait(self._database.lost(error)):
                    raise NotBegunError(RETURNED) from error
                if perf_counter() > patience_ends:
                    raise NotBegunError(Postponed(DATABASE_PAUSE)) from error
            else:
                self._database.answers()
                return context, unit

    async def is_marked(self, message_id: str) -> bool:
        """Whether the message was marked, by any transaction, and that has been committed. Raises `NotBegunError`."""
        was_marked = False
        with suppress(_OnlyLookingError):
            async with self.begin((message_id,)) as unit:
                was_marked = not unit.marked
                raise _OnlyLookingError
        return was_marked


class _Transaction:
    """One of `Transactions`. A class, not a generator: that would be resumed at every await of the handler's."""

    __slots__ = ("_context", "_ending", "_message_ids", "_of")

    def __init__(self, of: Transactions, message_ids: Sequence[str], ending: Ending | None) -> None:
        self._of = of
        self._message_ids = message_ids
        self._ending = ending

    async def __aenter__(self) -> Unit:
        try:
            self._context, unit = await self._of.enter(self._message_ids, self._ending)
        except MarkHeldError as error:
            raise NotBegunError(Postponed(HELD_PAUSE)) from error
        return unit

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        try:
            return await self._context.__aexit__(kind, error, traceback)
        except (MarkHeldError, StaleStatementError) as held:
            raise NotBegunError(Postponed(HELD_PAUSE)) from held
        except StaleDeliveryError as lost:
            # Another worker has the delivery, and what this handler did was rolled back.
            raise NotBegunError(RETURNED) from lost


class _OnlyLookingError(Exception):
    """Leaves a transaction as if it had not been."""


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

        If it returns an awaitable, as a plain function around an async one does, that is awaited here. Cancelled, this no
        longer waits; the function still runs to its end, if it has begun.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        self._outstanding += 1
        if self._outstanding > self._started and self._started < self._limit:
            self._started += 1
            threading.Thread(target=self._serve, name=f"outbox-handler-{self._queue}-{self._started}", daemon=True).start()
        self._calls.put(_Call(function, contextvars.copy_context(), loop, answer))
        result = await answer
        return await result if isawaitable(result) else result

    def close(self) -> None:
        """Lets the threads end, each when what it runs has ended."""
        for _ in range(self._started):
            self._calls.put(None)

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            result: Any = None
            error: BaseException | None = None
            self._running.add(threading.get_ident())
            try:
                # What was cancelled while it waited for a thread must not begin any more: another worker has its message then.
                if not call.answer.done():
                    result = call.context.run(call.function)
            except (StopIteration, GeneratorExit, KeyboardInterrupt) as raised:
                # A future cannot carry the first; the second would close the coroutine that awaits it. The third is never
                # Ctrl-C here, which interrupts the main thread only: passed on, it would end the process for what is a failure
                # of one message.
                error = RuntimeError(f"the callback raised {type(raised).__name__}")
                error.__cause__ = raised
            except BaseException as raised:  # noqa: BLE001  whatever it is, it belongs to the caller, as in asyncio.to_thread
                error = raised
            self._running.discard(threading.get_ident())
            with suppress(RuntimeError):  # the loop was closed meanwhile: nothing waits for the answer
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
