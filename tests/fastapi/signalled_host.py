"""A host for tests that send signals: its worker is a stand-in that prints on standard output which calls it gets.

`GET /slow` is answered, and the worker's message is finished, when SIGUSR1 arrives.
"""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from fastapi import FastAPI
from starlette.types import Message, Receive, Scope, Send

from outbox.admin import health_router
from outbox.fastapi import HealthChecks, outbox_lifespan


def say(line: str) -> None:
    """One line, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class Stubborn:
    """Works on one message when it is stopped, and needs until SIGUSR1 to finish it."""

    def __init__(self, released: asyncio.Event) -> None:
        self._stop = asyncio.Event()
        self._released = released

    async def run(self, *, handle_signals: bool = True) -> None:
        """Drains when cancelled, as relay and worker do; ends when cancelled twice."""
        say(f"worker runs, handling signals: {handle_signals}")
        try:
            await self._stop.wait()
            await self._released.wait()
            say("worker drained")
        except asyncio.CancelledError:
            say("worker cancelled")
            try:
                await self._released.wait()
            except asyncio.CancelledError:
                say("worker cancelled twice")
            raise

    def stop(self) -> None:
        """Notes that it was stopped."""
        say("worker stopping")
        self._stop.set()


released = asyncio.Event()
health = HealthChecks()


@asynccontextmanager
async def own(_: FastAPI) -> AsyncIterator[None]:
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, released.set)
    say("host started")
    try:
        yield
    finally:
        say("host ended")


app = FastAPI(
    lifespan=outbox_lifespan(
        own, worker=lambda _: Stubborn(released), health=health, grace_period=timedelta(seconds=float(sys.argv[1]))
    )
    if sys.argv[1:]
    else None
)
app.include_router(health_router(health))


@app.get("/slow")
async def slow() -> str:
    """Answers when it is released."""
    say("slow begun")
    await released.wait()
    return "done"


async def telling(scope: Scope, receive: Receive, send: Send) -> None:
    """The application, which says when the server ends its lifespan."""

    async def observed() -> Message:
        message = await receive()
        if message["type"] == "lifespan.shutdown":
            say("lifespan ending")
        return message

    await app(scope, observed, send)


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(telling, port=int(sys.argv[2]), log_level="warning")
