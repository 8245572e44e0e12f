"""Threads for callbacks that are not async."""

import asyncio
import threading

import pytest

from outbox.core.threads import Threads
from tests.worker.support import SOON


async def test_a_call_cancelled_before_a_thread_is_free_does_not_start() -> None:
    threads, calls = Threads(1, "test"), []
    begun, let_go = threading.Event(), threading.Event()

    def first() -> None:
        begun.set()
        let_go.wait(SOON)

    running = asyncio.create_task(threads.call(first))
    assert await asyncio.to_thread(begun.wait, SOON)
    waiting = asyncio.create_task(threads.call(lambda: calls.append("begun")))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    let_go.set()
    await running
    await threads.call(lambda: calls.append("next"))
    threads.close()
    assert calls == ["next"]
