"""Waiting out what is away: longer each time, at random, and not a moment longer than asked to stop."""

import asyncio
import random
from dataclasses import dataclass, field
from datetime import timedelta


@dataclass(slots=True, kw_only=True)
class Pauses:
    """Pauses that double from `first` to `longest`, each shortened by up to half at random; `reset` starts over."""

    first: timedelta = timedelta(milliseconds=100)
    longest: timedelta = timedelta(seconds=5)
    random: random.Random = field(default_factory=random.Random)
    _taken: int = 0

    def next(self) -> timedelta:
        """The length of the next pause."""
        pause: timedelta = min(self.first * 2 ** min(self._taken, 30), self.longest)
        self._taken += 1
        return pause * self.random.uniform(0.5, 1.0)

    def reset(self) -> None:
        """The next pause is a first one."""
        self._taken = 0


async def pause_unless(stopping: asyncio.Event, pause: timedelta) -> None:
    """Waits for `pause`, or until `stopping` is set."""
    try:
        async with asyncio.timeout(pause.total_seconds()):
            await stopping.wait()
    except TimeoutError:
        pass
