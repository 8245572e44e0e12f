"""Threads for functions that block: handlers that are not async, files, and functions of the user."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from inspect import isawaitable
from queue import SimpleQueue
from typing import Any, NamedTuple


class _Call(NamedTuple):
    function: Callable[[], Any]
    context: contextvars.Context
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[Any]


class Threads:
    """Runs functions in at most `limit` threads, started when needed. Their names begin with `outbox-{name}`.

    It has threads of its own: functions that never return would take all of the event loop's, which resolves addresses in them.
    The threads are daemons, unlike those of an executor, and keep no process from ending.
    """

    def __init__(self, limit: int, name: str) -> None:
        self._limit = limit
        self._name = name
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._started = 0
        self._outstanding = 0
        self._running: set[int] = set()

    @property
    def running(self) -> int:
        """How many functions are running, including cancelled calls."""
        return len(self._running)

    async def call(self, function: Callable[[], Any]) -> Any:
        """Calls `function` in a thread, with a copy of the caller's context variables. Returns or raises as it does.

        Awaits the result if it is awaitable, as that of a plain function around an async one is. Cancelled, it stops waiting; a
        function that has started still runs to its end.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        self._outstanding += 1
        if self._outstanding > self._started and self._started < self._limit:
            self._started += 1
            threading.Thread(target=self._serve, name=f"outbox-{self._name}-{self._started}", daemon=True).start()
        self._calls.put(_Call(function, contextvars.copy_context(), loop, answer))
        result = await answer
        return await result if isawaitable(result) else result

    def close(self) -> None:
        """Ends the threads, each after the function that it runs."""
        for _ in range(self._started):
            self._calls.put(None)

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            result: Any = None
            error: BaseException | None = None
            # No lock: each thread adds and removes its own id, and each of these calls is atomic.
            self._running.add(threading.get_ident())
            try:
                # A call that was cancelled while it waited for a thread must not start: another worker may have its message.
                if not call.answer.done():
                    result = call.context.run(call.function)
            except (StopIteration, GeneratorExit, KeyboardInterrupt) as raised:
                # A future cannot hold a StopIteration, and a GeneratorExit would close the coroutine that awaits it. A
                # KeyboardInterrupt is not Ctrl-C, which interrupts the main thread only: passed on, it would end the process
                # for a failure of one message.
                error = RuntimeError(f"the function raised {type(raised).__name__}")
                error.__cause__ = raised
            except BaseException as raised:  # noqa: BLE001  raised to the caller, as in asyncio.to_thread
                error = raised
            self._running.discard(threading.get_ident())
            with suppress(RuntimeError):  # the loop is closed: no task waits for the answer
                call.loop.call_soon_threadsafe(self._resolve, call.answer, result, error)
            del call, result, error  # frees the message and its result before the next call arrives

    def _resolve(self, answer: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
        # In the thread of the loop, as in `call`, so that the counter needs no lock.
        self._outstanding -= 1
        if answer.done():
            return
        if error is None:
            answer.set_result(result)
        else:
            answer.set_exception(error)
