"""Hybrid logical clocks: stamps that follow the wall clock as long as it follows causes and effects, and these always.

After S. Kulkarni et al., "Logical Physical Clocks" (2014), with the logical part in the lowest digits of one number.
"""

import logging
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Literal

from outbox.errors import ConfigurationError

TOLERANCE = timedelta(seconds=5)
"""How far ahead of the wall clock a stamp of somebody else's may be and still be followed."""
WARN_EVERY = timedelta(minutes=1)

_MICROSECOND = timedelta(microseconds=1)
_log = logging.getLogger("outbox")


def _wall_clock() -> int:
    return time.time_ns() // 1_000


class HybridClock:
    """Makes stamps in microseconds since 1970, each above all that it has made or seen before. For any number of threads.

    `next` answers with the greatest of the wall clock's time, the last stamp and the greatest seen one, these two plus one. So
    stamps never run backwards, also when the wall clock does, and an effect's is above its cause's, whichever machines they
    are of. Stamps that are further ahead than `tolerance` are not followed, because one machine whose clock is years ahead
    would else take everybody along; they are counted in `ignored` and warned of, at most once a minute. `wall_clock` answers in
    microseconds since 1970.
    """

    def __init__(self, *, tolerance: timedelta = TOLERANCE, wall_clock: Callable[[], int] = _wall_clock) -> None:
        if not isinstance(tolerance, timedelta) or tolerance < timedelta(0):
            raise ConfigurationError(f"tolerance is a timedelta that is not negative, not {tolerance!r}")
        self._tolerance = tolerance // _MICROSECOND
        self._wall_clock = wall_clock
        self._lock = threading.Lock()
        self._last = 0
        self._ignored = 0
        self._warned_at: int | None = None

    @property
    def ignored(self) -> int:
        """How many stamps were too far ahead to be followed."""
        return self._ignored

    def next(self) -> int:
        """A stamp for something that happens now, above every earlier one."""
        with self._lock:
            self._last = max(self._last + 1, self._wall_clock())
            return self._last

    def observe(self, stamp: int) -> None:
        """Something with `stamp` is known here now: what is stamped from now on comes after it."""
        with self._lock:
            if stamp <= self._last:
                return
            now = self._wall_clock()
            if stamp - now <= self._tolerance:
                self._last = stamp
                return
            self._ignored += 1
            warn = self._warned_at is None or abs(now - self._warned_at) >= WARN_EVERY // _MICROSECOND
            if warn:
                self._warned_at = now
        if warn:
            _log.warning(
                "a stamp is %.3f s ahead of this machine's clock, more than the tolerance of %g s, and is not followed (%d so "
                "far): what follows from its message may sort before it; compare the clocks of the machines",
                (stamp - now) / 1e6,
                self._tolerance / 1e6,
                self._ignored,
            )


_PROCESS_CLOCK = HybridClock()


def as_clock(clock: Literal["hlc"] | HybridClock | None) -> HybridClock | None:
    """The clock that a parameter names: "hlc" is the one of this process. Raises `ConfigurationError` for anything else."""
    if clock is None or isinstance(clock, HybridClock):
        return clock
    if clock == "hlc":
        return _PROCESS_CLOCK
    raise ConfigurationError(f'clock is "hlc", a HybridClock or None, not {clock!r}')
