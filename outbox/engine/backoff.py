"""Waiting out what is away: longer each time, and at random, so that many who wait do not come back at once."""

from dataclasses import dataclass, field
from datetime import timedelta
from random import Random


@dataclass(slots=True, kw_only=True)
class Pauses:
    """Pauses that double from `first` to `longest`, each shortened by up to half at random; `reset` starts over."""

    first: timedelta = timedelta(milliseconds=100)
    longest: timedelta = timedelta(seconds=5)
    random: Random = field(default_factory=Random)
    _taken: int = 0

    def next(self) -> timedelta:
        """The length of the next pause."""
        pause: timedelta = min(self.first * 2 ** min(self._taken, 30), self.longest)
        self._taken += 1
        return pause * self.random.uniform(0.5, 1.0)

    def reset(self) -> None:
        """The next pause is a first one."""
        self._taken = 0
