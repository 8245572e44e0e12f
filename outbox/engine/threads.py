"""Threads of a consumer's own, for a callback that is not async."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, NamedTuple


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
