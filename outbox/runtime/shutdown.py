"""Detects the shutdown of uvicorn before ASGI reports it.

uvicorn waits for open connections *before* it ends the lifespan, which is too late to start draining workers. This module finds
the server through its signal handler, a method of the server object, and polls the flags of that object.
"""

import asyncio
import signal
from datetime import timedelta
from typing import Protocol, cast

POLL_INTERVAL = timedelta(milliseconds=100)
"""Interval of polling the flag; uvicorn uses the same."""


class ServerFlags(Protocol):
    """The flags of a uvicorn server: asked to exit, and asked to exit a second time."""

    should_exit: bool
    force_exit: bool


def running_server() -> ServerFlags | None:
    """Returns the uvicorn server that handles this process's signals; None under another server, or outside the main thread."""
    for number in (signal.SIGTERM, signal.SIGINT):
        server = getattr(signal.getsignal(number), "__self__", None)
        if isinstance(getattr(server, "should_exit", None), bool) and hasattr(server, "force_exit"):
            return cast("ServerFlags", server)
    return None


async def wait_for_exit(server: ServerFlags) -> None:
    """Returns when the server was asked to exit."""
    while not server.should_exit:  # noqa: ASYNC110 — a signal handler sets the flag without a notification
        await asyncio.sleep(POLL_INTERVAL.total_seconds())


async def wait_for_forced_exit(server: ServerFlags) -> None:
    """Returns when the server was asked to exit a second time, which ends it immediately."""
    while not server.force_exit:  # noqa: ASYNC110 — as above
        await asyncio.sleep(POLL_INTERVAL.total_seconds())
