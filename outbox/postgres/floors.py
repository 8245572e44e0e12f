"""Where claims begin to read, once reading from the front of a queue's index has become slow."""

import math
import time
from collections.abc import Callable, Mapping, Sequence

FRONT = -math.inf
"""The beginning of the index, as a due time in seconds since 1970."""
SLOW_SECONDS = 0.05
"""A claim from the front that takes longer than this has met more dead rows than live ones."""
REST = 10
"""How many times as long as a slow claim took the next ones begin further behind, so that it costs a tenth of the time."""
MARGIN_SECONDS = 1.0
"""How far before the last claim's first row the next one begins: for rows whose transactions took that long."""


class Floors:
    """From which due times on the next claim reads `count` stretches of an index, such as those of priorities.

    A transaction that stays open, anywhere in the database, keeps every row that is sent or handled meanwhile in the index, and
    each claim from the front reads past all of them. So when that has become slow, claims begin a little before where the last
    one found its first row. What came to lie before that, because its transaction was long or a claim was given back, is found
    by a claim from the front, which still happens as often as it costs no more than a tenth of the time.
    """

    def __init__(self, count: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._dues = [FRONT] * count
        self._front_again_at = 0.0

    @property
    def dues(self) -> Sequence[float]:
        """The due times to begin at, in seconds since 1970; `FRONT` for the front."""
        return tuple(self._dues) if self.seconds_left else (FRONT,) * len(self._dues)

    @property
    def seconds_left(self) -> float:
        """How long it is until the next claim from the front; 0: it is the next one."""
        return max(self._front_again_at - self._clock(), 0.0)

    def claimed(self, *, since: Sequence[float], seconds: float, firsts: Mapping[int, float]) -> None:
        """Notes a claim that began at `since`, took `seconds`, and in some stretches found a first row, due at `firsts`."""
        if FRONT in since and not self.seconds_left:
            self._front_again_at = self._clock() + seconds * REST if seconds > SLOW_SECONDS else 0.0
        for stretch, due in firsts.items():
            self._dues[stretch] = due - MARGIN_SECONDS if due > 0 else FRONT  # the calendar has a beginning
