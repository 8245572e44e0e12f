"""Clocks: the database's time, and hybrid logical clocks.

A hybrid clock's timestamps always follow cause and effect, and the wall clock where it agrees with that. See S. Kulkarni et
al., "Logical Physical Clocks" (2014); here the logical part is in the lowest digits of one number.
"""

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Literal

from outbox.errors import ConfigurationError

TOLERANCE = timedelta(seconds=5)
"""How far another process's timestamp may be ahead of the wall clock and still be followed."""
WARN_EVERY = timedelta(minutes=1)
SKEW_TOLERANCE = 1.0
"""Seconds by which this machine's clock may differ from the database's without a warning."""
AGEING = 0.01
"""Seconds by which a measurement of the database's clock becomes less certain, per second."""

_MICROSECOND = timedelta(microseconds=1)
_log = logging.getLogger("outbox")


def _wall_clock() -> int:
    return time.time_ns() // 1_000


class HybridClock:
    """Makes timestamps in microseconds since 1970, each greater than all that it has made or observed. Thread-safe.

    `next` returns the greatest of the wall clock's time, its last timestamp plus one, and the greatest observed timestamp plus
    one. So timestamps never decrease, even if the wall clock does, and an effect's is greater than its cause's, on whatever
    machine. Timestamps further ahead than `tolerance` are not followed; they are counted in `ignored`, with a warning at most
    once a minute. `wall_clock` returns microseconds since 1970.
    """

    def __init__(self, *, tolerance: timedelta = TOLERANCE, wall_clock: Callable[[], int] = _wall_clock) -> None:
        if not isinstance(tolerance, timedelta) or tolerance < timedelta(0):
            raise ConfigurationError(f"tolerance must be a timedelta that is not negative, not {tolerance!r}")
        self._tolerance = tolerance // _MICROSECOND
        self._wall_clock = wall_clock
        self._lock = threading.Lock()
        self._last = 0
        self._ignored = 0
        self._warned_at: int | None = None

    @property
    def ignored(self) -> int:
        """How many timestamps were too far ahead to be followed."""
        return self._ignored

    def next(self) -> int:
        """Returns a timestamp for the present, greater than all earlier ones."""
        with self._lock:
            self._last = max(self._last + 1, self._wall_clock())
            return self._last

    def observe(self, stamp: int) -> None:
        """Advances the clock: later timestamps are greater than `stamp`."""
        with self._lock:
            if stamp <= self._last:
                return
            now = self._wall_clock()
            # Without a tolerance, one machine whose clock is years ahead would advance the clocks of all others.
            if stamp - now <= self._tolerance:
                self._last = stamp
                return
            self._ignored += 1
            warn = self._warned_at is None or abs(now - self._warned_at) >= WARN_EVERY // _MICROSECOND
            if warn:
                self._warned_at = now
        if warn:
            _log.warning(
                "a timestamp is %.3f s ahead of this machine's clock, more than the tolerance of %g s, and is ignored (%d so "
                "far): effects of its message may sort before it. Compare the clocks of the machines",
                (stamp - now) / 1e6,
                self._tolerance / 1e6,
                self._ignored,
            )


class DatabaseClock:
    """The database's time, from its last measurement; this machine's `wall_clock` until there is one.

    Between measurements it uses the machine's `steady_clock`, which setting the machine's time does not change. Warns once when
    the two clocks differ by more than a second, and again when the difference changes by as much. Both return seconds.
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
        """Returns the current time, in UTC."""
        return datetime.fromtimestamp(self.seconds(), UTC)

    def measured(self, seconds: float, *, asked: float) -> None:
        """Records that the database returned `seconds` for a query sent at `asked`, by the steady clock."""
        # The database read its clock at an unknown moment of the query's duration.
        answered = self.steady_clock()
        uncertain = (answered - asked) / 2
        # Keep a more certain measurement, until it is so old that the steady clock may have drifted by more.
        if self._zero is not None and uncertain > self._uncertain + (answered - self._answered) * AGEING:
            return
        self._zero, self._answered, self._uncertain = seconds - (asked + uncertain), answered, uncertain
        ahead = self.wall_clock() - (self._zero + answered)
        if abs(ahead) - uncertain > SKEW_TOLERANCE:
            if self._warned_of is None or abs(ahead - self._warned_of) - uncertain > SKEW_TOLERANCE:
                self._warned_of = ahead
                _log.warning(
                    "this machine's clock is %.1f s %s the database's, which decides what has expired: synchronize both by NTP",
                    abs(ahead),
                    "ahead of" if ahead > 0 else "behind",
                )
        elif self._warned_of is not None and abs(ahead) + uncertain <= SKEW_TOLERANCE:
            self._warned_of = None
            _log.info("this machine's clock and the database's agree again")


_PROCESS_CLOCK = HybridClock()


def as_clock(clock: Literal["hlc"] | HybridClock | None) -> HybridClock | None:
    """Converts a `clock` argument: "hlc" is the clock of this process. Raises `ConfigurationError` if it is invalid."""
    if clock is None or isinstance(clock, HybridClock):
        return clock
    if clock == "hlc":
        return _PROCESS_CLOCK
    raise ConfigurationError(f'clock must be "hlc", a HybridClock or None, not {clock!r}')
