"""Lets a message that workers died of run alone, so that a further death has one culprit. Costs the others two additions."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Quarantine:
    """Counts who runs; while there is a suspect, nobody else begins."""

    def __init__(self) -> None:
        self._running = 0
        self._suspects = 0
        self._open = asyncio.Event()
        self._open.set()
        self._emptied = asyncio.Event()
        self._turn = asyncio.Lock()

    @property
    def closed(self) -> bool:
        """Whether a suspect runs or waits to."""
        return self._suspects > 0

    async def opened(self) -> None:
        """Returns when no suspect is left. Look at `closed` first: this is the way that takes time."""
        while self._suspects:
            await self._open.wait()

    def enter(self) -> None:
        """Somebody who is no suspect begins to run. Call it only while not `closed`, and `leave` afterwards."""
        self._running += 1

    def leave(self) -> None:
        """Somebody who is no suspect has ended."""
        self._running -= 1
        if self._suspects:
            self._emptied.set()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """For a suspect: within the block nobody else runs. Entering waits for those who do, and for other suspects."""
        self._suspects += 1
        self._open.clear()
        try:
            async with self._turn:
                while self._running:
                    self._emptied.clear()
                    await self._emptied.wait()
                yield
        finally:
            self._suspects -= 1
            if not self._suspects:
                self._open.set()
