"""Sees to it that a message that runs alone is the only marked one in hand, so that a death has one culprit."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from outbox.transports.rabbitmq.arriving import Arrival

QUIET = timedelta(milliseconds=100)
"""So long no other marked message may have arrived before one runs alone: the others are on their way back by then."""


class Member(Protocol):
    """A subscription, as far as isolation is concerned with it."""

    async def postpone_marked(self, running: Sequence["Arrival"]) -> bool:
        """Sends marked messages in hand away for a while, but for those that are `running`; whether there were any."""
        ...


class Isolation:
    """Shared by all subscriptions of a broker.

    When a worker dies, the broker counts that against every message that it had in hand, and for a marked one that count is
    the verdict. So while one runs alone, the other marked ones, also those that arrive meanwhile, are sent away for a while.

    What remains: a marked message that waits for handlers that were already running, and a worker that dies of one of these.
    """

    def __init__(self) -> None:
        self._members: set[Member] = set()
        self._running: list[Arrival] = []
        self._arrived = asyncio.Event()
        self._sweeper: asyncio.Task[None] | None = None

    def join(self, member: Member) -> None:
        """Another subscription that may hold marked messages."""
        self._members.add(member)

    def leave(self, member: Member) -> None:
        """It holds none any more."""
        self._members.discard(member)
        if not self._members:
            self._running.clear()
            self._stop_sweeping()

    def noticed(self, arrival: "Arrival") -> None:
        """A message has arrived."""
        if arrival.mark is not None:
            self._arrived.set()

    async def begin(self, arrival: "Arrival") -> None:
        """Afterwards no other marked message is in hand, or stays there, until `end`."""
        self._running.append(arrival)
        while await self._postpone_others() or await self._another_arrives():
            pass
        if self._sweeper is None:
            self._sweeper = asyncio.create_task(self._sweep(), name="outbox isolation")

    def end(self, arrival: "Arrival") -> None:
        """It runs no more."""
        self._running = [other for other in self._running if other is not arrival]
        if not self._running:
            self._stop_sweeping()

    async def _sweep(self) -> None:
        while True:
            await self._arrived.wait()
            await self._postpone_others()

    def _stop_sweeping(self) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None

    async def _postpone_others(self) -> bool:
        self._arrived.clear()
        postponed = [await member.postpone_marked(self._running) for member in list(self._members)]
        return any(postponed)

    async def _another_arrives(self) -> bool:
        try:
            async with asyncio.timeout(QUIET.total_seconds()):
                return await self._arrived.wait()
        except TimeoutError:
            return False
