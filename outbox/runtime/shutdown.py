"""Learns that the server is about to stop, earlier than ASGI says so.

uvicorn waits for open connections *before* it ends the lifespan, so the end of the lifespan comes too late for telling
workers to finish. Its flag is seen where it can be read without touching anything: its signal handler is a method of the
server object that carries the flag.
"""

import asyncio
import signal
from datetime import timedelta
from typing import Protocol, cast

POLL_INTERVAL = timedelta(milliseconds=100)
"""How often the flag is looked at; uvicorn itself looks as often."""


class ServerFlag(Protocol):
    """What is asked of a server: whether it was asked to end, and whether it was asked twice."""

    should_exit: bool
    force_exit: bool


def running_server() -> ServerFlag | None:
    """The uvicorn server that handles this process's signals; None under another server, or outside a main thread."""
    for number in (signal.SIGTERM, signal.SIGINT):
        server = getattr(signal.getsignal(number), "__self__", None)
        if isinstance(getattr(server, "should_exit", None), bool) and hasattr(server, "force_exit"):
            return cast("ServerFlag", server)
    return None


async def server_told_to_exit(server: ServerFlag) -> None:
    """Returns soon after the server was asked to end."""
    while not server.should_exit:  # noqa: ASYNC110 — a signal handler sets the flag, and nothing is notified of it
        await asyncio.sleep(POLL_INTERVAL.total_seconds())


async def server_told_twice(server: ServerFlag) -> None:
    """Returns soon after the server was asked to end at once."""
    while not server.force_exit:  # noqa: ASYNC110 — as above
        await asyncio.sleep(POLL_INTERVAL.total_seconds())
