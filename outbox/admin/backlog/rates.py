"""How fast messages come in and go out."""

from collections import deque
from dataclasses import dataclass, field

OVER_SECONDS = 300.0
"""How far back rates look."""
LEAST_SECONDS = 1.0
"""A rate over less says nothing."""


@dataclass(slots=True)
class Intake:
    """How fast ids are given out, by what was seen of their number at several times (in seconds, by any steady clock)."""

    _seen: deque[tuple[float, int]] = field(default_factory=deque)

    def saw(self, at: float, inserted: int) -> None:
        """Takes note. A number that went down belongs to another table, or to one that began anew."""
        if self._seen and inserted < self._seen[-1][1]:
            self._seen.clear()
        self._seen.append((at, inserted))
        while len(self._seen) > 2 and self._seen[1][0] <= at - OVER_SECONDS:
            self._seen.popleft()

    @property
    def per_second(self) -> float | None:
        """Over the last minutes, or since there is anything to compare with; None before."""
        if not self._seen:
            return None
        (began, before), (at, now) = self._seen[0], self._seen[-1]
        return (now - before) / (at - began) if at - began >= LEAST_SECONDS else None


def drained_in(pending: int, *, incoming: float | None, outgoing: float | None) -> float | None:
    """Seconds until nothing is due any more at these rates; None if that is never, or not known."""
    if pending == 0:
        return 0.0
    if outgoing is None or incoming is None or outgoing <= incoming:
        return None
    return pending / (outgoing - incoming)
