"""Clocks: the database's time of day, and hybrid logical clocks.

The stamps of a hybrid clock follow the wall clock as long as it follows causes and effects, and these always. After S. Kulkarni
et al., "Logical Physical Clocks" (2014), with the logical part in the lowest digits of one number.
"""

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Literal

from outbox.errors import ConfigurationError

TOLERANCE = timedelta(seconds=5)
"""How far ahead of the wall clock a stamp of another process may be and still be followed."""
WARN_EVERY = timedelta(minutes=1)
SKEW_TOLERANCE = 1.0
"""Seconds by which this machine's clock may differ from the database's without a warning."""
AGEING = 0.01
"""Seconds by which an answer of the database is worth less, each second."""

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


class DatabaseClock:
    """The database's time of day, by its last answer; this machine's `wall_clock` until there is one.

    In between it runs by the machine's `steady_clock`: setting the machine's clock right changes nothing here. Warns when the
    two clocks differ by more than a second, once, and again when the difference has changed by as much. Both say seconds.
    """

    def __init__(
        self, *, wall_clock: Callable[[], float] = time.time, steady_clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.wall_clock = wall_clock
        self.steady_clock = steady_clock
        self._zero: float | None = None
        self._answered = self._uncertain = 0.0
        self._warned_of: float | None = None

    def seconds(self) -> float:
        """Seconds since 1970."""
        return self.wall_clock() if self._zero is None else self._zero + self.steady_clock()

    def now(self) -> datetime:
        """The moment, in UTC."""
        return datetime.fromtimestamp(self.seconds(), UTC)

    def measured(self, seconds: float, *, asked: float) -> None:
        """The database said `seconds` in its answer to what was asked at `asked`, by the steady clock.

        It is not known when within that time it said so. An answer that is less certain than an earlier one counts only once
        that has aged: by then the steady clock may be off by more.
        """
        answered = self.steady_clock()
        uncertain = (answered - asked) / 2
        if self._zero is not None and uncertain > self._uncertain + (answered - self._answered) * AGEING:
            return
        self._zero, self._answered, self._uncertain = seconds - (asked + uncertain), answered, uncertain
        ahead = self.wall_clock() - (self._zero + answered)
        if abs(ahead) - uncertain > SKEW_TOLERANCE:
            if self._warned_of is None or abs(ahead - self._warned_of) - uncertain > SKEW_TOLERANCE:
                self._warned_of = ahead
                _log.warning(
                    "this machine's clock is %.1f s %s the database's, which decides what has expired: set both by NTP",
                    abs(ahead),
                    "ahead of" if ahead > 0 else "behind",
                )
        elif self._warned_of is not None and abs(ahead) + uncertain <= SKEW_TOLERANCE:
            self._warned_of = None
            _log.info("this machine's clock and the database's agree again")


_PROCESS_CLOCK = HybridClock()


def as_clock(clock: Literal["hlc"] | HybridClock | None) -> HybridClock | None:
    """The clock that a parameter names: "hlc" is the one of this process. Raises `ConfigurationError` for anything else."""
    if clock is None or isinstance(clock, HybridClock):
        return clock
    if clock == "hlc":
        return _PROCESS_CLOCK
    raise ConfigurationError(f'clock is "hlc", a HybridClock or None, not {clock!r}')
