"""Limits the concurrent requests of each principal, so that one cannot delay the others."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from outbox.admin.problems import Code, Problem

if TYPE_CHECKING:
    from outbox.admin.admin import Admin

LONGEST_WAIT = timedelta(seconds=5)
"""How long a request waits for others of the same principal."""
MOST_WAITING = 50
"""Requests of one principal that wait."""


class Reads:
    """The requests that read, for one admin: so many of each principal at a time, and the others in turn."""

    def __init__(self, admin: "Admin") -> None:
        self._most = admin.reads_per_principal
        self._of: dict[str, _Turns] = {}

    async def close(self) -> None:
        """There is nothing to close."""

    @asynccontextmanager
    async def turn(self, principal: str) -> AsyncIterator[None]:
        """Waits until it is a request's turn. Raises `too_many_requests` for one that would wait for long."""
        turns = self._of.setdefault(principal, _Turns(asyncio.Semaphore(self._most)))
        turns.requests += 1
        try:
            await self._wait(turns)
            try:
                yield
            finally:
                turns.free.release()
        finally:
            turns.requests -= 1
            if not turns.requests:
                del self._of[principal]

    async def _wait(self, turns: "_Turns") -> None:
        if turns.requests > self._most + MOST_WAITING:
            raise too_many(f"more than {MOST_WAITING} requests of yours wait already")
        try:
            async with asyncio.timeout(LONGEST_WAIT.total_seconds()):
                await turns.free.acquire()
        except TimeoutError:
            raise too_many(f"{self._most} requests of yours are being answered, and took long") from None


@dataclass(slots=True)
class _Turns:
    free: asyncio.Semaphore
    requests: int = field(default=0)


def too_many(reason: str, *, seconds: int = 2) -> Problem:
    """What one principal asks too much of, and when to try again."""
    return Problem(Code.TOO_MANY_REQUESTS, f"{reason}: try again", headers={"retry-after": str(seconds)})
