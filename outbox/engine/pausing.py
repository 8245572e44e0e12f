"""Pauses that somebody asks for: what a relay or a worker does while its gate is closed."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from outbox.engine.lifecycle import Stopping
from outbox.ports import Gate


class OpenGate:
    """Implements the Gate port where nobody can ask for a pause."""

    closed = False

    async def opened(self) -> None:
        """See `outbox.ports.Gate.opened`."""

    async def closing(self) -> None:
        """See `outbox.ports.Gate.closing`; waits for ever."""
        await asyncio.get_running_loop().create_future()


OPEN: Gate = OpenGate()


def never_closed(_queue: str) -> Gate:
    """The gate of every queue where nobody can ask for a pause."""
    return OPEN


async def until_opened(gate: Gate, stopping: Stopping) -> None:
    """Returns once no pause is wanted, or when it is time to stop."""
    if gate.closed:
        await _unless_stopping(gate.opened(), stopping)


async def until_closing(gate: Gate, stopping: Stopping) -> None:
    """Returns once a pause is wanted, or when it is time to stop."""
    await _unless_stopping(gate.closing(), stopping)


async def _unless_stopping(waiting: Coroutine[Any, Any, None], stopping: Stopping) -> None:
    task = asyncio.create_task(waiting)
    try:
        with stopping.future() as stop:
            await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        task.cancel()


async def until_set(event: asyncio.Event, stopping: Stopping, *, seconds: float | None) -> None:
    """Returns once `event` is set, when it is time to stop, or after so many seconds."""
    waiting: asyncio.Future[Any] = asyncio.ensure_future(event.wait())
    try:
        with stopping.future() as stop:
            await asyncio.wait({waiting, stop}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
