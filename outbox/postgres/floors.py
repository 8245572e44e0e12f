"""Where claims begin to read, once reading from the front of a queue's index has become slow."""

import math
import time
from collections.abc import Callable

FRONT = -math.inf
"""The beginning of the index, as a due time in seconds since 1970."""
SLOW_SECONDS = 0.02
"""A claim from the front that takes longer than this has met more dead rows than live ones."""
REST = 10
"""How many times as long as a slow claim took the next ones begin further behind, so that it costs a tenth of the time."""
MARGIN_SECONDS = 0.001
"""What seconds that travelled as a number may have lost."""


class Floor:
    """From which due time on the next claim reads.

    A transaction that stays open, anywhere in the database, keeps every row that is sent or handled meanwhile in the index, and
    each claim from the front reads past all of them. So when that has become slow, claims begin where the last one found its
    first row. What came to lie before it, because its transaction was long or a claim was given back, is found by a claim from
    the front, which still happens as often as it costs no more than a tenth of the time.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due = FRONT
        self._front_again_at = 0.0

    @property
    def due(self) -> float:
        """The due time to begin at, in seconds since 1970; `FRONT` for the front."""
        return self._due if self.seconds_left > 0 else FRONT

    @property
    def seconds_left(self) -> float:
        """How long it is until the next claim from the front; nothing left: now."""
        return max(self._front_again_at - self._clock(), 0.0)

    def claimed(self, *, since: float, seconds: float, first: float | None) -> None:
        """Notes a claim that began at `since`, took `seconds`, and whose first row was due at `first` (None: it found none)."""
        if since == FRONT:
            self._front_again_at = self._clock() + seconds * REST if seconds > SLOW_SECONDS else 0.0
        if first is not None:
            self._due = first - MARGIN_SECONDS
