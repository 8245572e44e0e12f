"""Consumers with handlers that hang, for tests that stop a process."""

import asyncio
import threading

from outbox import consume


@consume("work.#", queue="tests.work")
async def swallow(number: int) -> None:
    """Swallows every cancellation."""
    print(f"begun {number}", flush=True)
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            continue


@consume("work.#", queue="tests.work")
def hang(number: int) -> None:
    """Hangs in a thread of the worker."""
    print(f"begun {number}", flush=True)
    threading.Event().wait()


@consume("work.#", queue="tests.work")
async def hang_elsewhere(number: int) -> None:
    """Hangs in a thread that Python joins before it exits."""
    print(f"begun {number}", flush=True)
    await asyncio.to_thread(threading.Event().wait)


@consume("work.#", queue="tests.work")
async def obey(number: int) -> None:
    """Returns."""
    print(f"handled {number}", flush=True)
