"""How far ahead a worker claims: what it will finish within a quarter second, by what it finished lately."""

from collections.abc import Callable
from dataclasses import dataclass

HORIZON_SECONDS = 0.25
MOST_AHEAD = 5_000
"""Most deliveries that are claimed ahead."""
MOST_BYTES_AHEAD = 16 * 1024 * 1024
"""Most bytes of bodies that are claimed ahead, judged by the sizes of those that came."""
_WINDOW_SECONDS = 0.05


@dataclass(slots=True)
class Pace:
    """Counts what is finished; `clock` is in seconds."""

    clock: Callable[[], float]
    _since: float | None = None
    _finished: int = 0
    _rate: float = 0.0
    _size: float = 0.0

    def finished(self) -> None:
        """One more."""
        self._finished += 1

    def claimed(self, sizes: list[int]) -> None:
        """Deliveries with bodies of these sizes came."""
        if sizes:
            self._size = max(sum(sizes) / len(sizes), self._size * 0.9)

    def ahead(self) -> int:
        """How many to claim beyond what can be in hand. After a pause it starts over."""
        now = self.clock()
        if self._since is None:
            self._since = now
        elapsed = now - self._since
        if elapsed >= _WINDOW_SECONDS:
            self._rate = self._finished / elapsed
            self._since, self._finished = now, 0
        room = MOST_BYTES_AHEAD / self._size if self._size else MOST_AHEAD
        return int(min(self._rate * HORIZON_SECONDS, room, MOST_AHEAD))
