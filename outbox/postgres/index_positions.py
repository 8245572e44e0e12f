"""Where claims start to read an index of due rows: at its front, after dead entries, or after the last claimed row."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

import asyncpg

FRONT = -math.inf
"""The beginning of the index, as a due time in seconds since 1970."""
PRIORITIES = 10
SLOW_SECONDS = 0.05
"""A claim from the front that takes longer than this has read mostly dead index entries."""
REST = 10
"""After a slow claim from the front, later claims start further on for this many times its duration, so that slow claims take
a tenth of the time."""
MARGIN_SECONDS = 1.0
"""How far before the first row of the last claim the next one starts, for rows whose transactions took that long."""


class ScanStart:
    """Due times from which the next claim reads each of `count` parts of an index, such as one per priority.

    A transaction that stays open, anywhere in the database, keeps index entries of all rows that are sent or handled meanwhile,
    and each claim from the front reads past them. When that becomes slow, claims start a little before the first row of the
    last claim. Rows before that point, from a long transaction or a claim that was given back, are found by claims from the
    front, which still run as long as they take no more than a tenth of the time.
    """

    def __init__(self, count: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due_times = [FRONT] * count
        self._front_again_at = 0.0

    @property
    def due_times(self) -> Sequence[float]:
        """Due times to start at, in seconds since 1970; `FRONT` for the front of the index."""
        return tuple(self._due_times) if self.seconds_left else (FRONT,) * len(self._due_times)

    @property
    def seconds_left(self) -> float:
        """Seconds until the next claim from the front; 0 if the next claim is one."""
        return max(self._front_again_at - self._clock(), 0.0)

    def record_claim(self, *, since: Sequence[float], seconds: float, firsts: Mapping[int, float]) -> None:
        """Records a claim: where it started, how long it took, and the due time of the first row by part of the index."""
        if FRONT in since and not self.seconds_left:
            self._front_again_at = self._clock() + seconds * REST if seconds > SLOW_SECONDS else 0.0
        for part, due in firsts.items():
            # Before 1970, subtracting a margin could leave the range of PostgreSQL's timestamps.
            self._due_times[part] = due - MARGIN_SECONDS if due > 0 else FRONT


class ScanCursor:
    """The last claimed row of each of `count` priorities since the last claim from the front.

    Until the next vacuum, the index entries of sent rows stay at its front, and each claim from there reads past them and past
    rows that other claims have locked. Rows before the cursor, from a long transaction or a claim that was given back, are
    found by the next claim from the front, which is one in `outbox.postgres.claiming.FAIR_EVERY`.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self.reset()

    @property
    def position(self) -> tuple[Sequence[float], Sequence[int]]:
        """By priority: the due time of the last row in seconds since 1970, and its id; `FRONT` and 0 without one."""
        return self._due_times, self._ids

    def reset(self) -> None:
        """Makes the next claim start at the front."""
        self._due_times = [FRONT] * self._count
        self._ids = [0] * self._count

    def advance(self, priority: int, due: float, row_id: int) -> None:
        """Moves the cursor after the row. Rows before it that were not claimed are left to a claim from the front."""
        self._due_times[priority], self._ids[priority] = due, row_id


@dataclass(frozen=True, slots=True)
class StartTimes:
    """Due times at which a claim started to read, by priority and for rows with an ordering key, and when it began."""

    unkeyed: Sequence[float]
    keyed: Sequence[float]
    began: float

    @property
    def argument(self) -> Sequence[float]:
        """The argument of `claim` in relay.sql: the priorities first, then rows with an ordering key."""
        return (*self.unkeyed, *self.keyed)


class IndexPositions:
    """Positions in the indexes of due rows, learnt from claims. `keyed` is about the index of rows with an ordering key."""

    def __init__(self, unkeyed: ScanStart, keyed: ScanStart) -> None:
        self._unkeyed = unkeyed
        self._keyed = keyed
        self._cursor = ScanCursor(PRIORITIES)

    @property
    def cursor(self) -> tuple[Sequence[float], Sequence[int]]:
        """The arguments of `claim_lean` in relay.sql: the rows after which it starts."""
        return self._cursor.position

    def start(self) -> StartTimes:
        """Returns where any other claim starts now."""
        return StartTimes(self._unkeyed.due_times, self._keyed.due_times, perf_counter())

    def record_claim(self, start: StartTimes, rows: Sequence[asyncpg.Record]) -> None:
        """Records a claim that began at `start`. Its rows are ordered within each priority; one row of nulls means no rows."""
        seconds = perf_counter() - start.began
        firsts: dict[int, float] = {}
        priority = None
        for row in rows:
            if row["priority"] != priority:
                priority = row["priority"]
                firsts.setdefault(priority, row["due"])
        self._unkeyed.record_claim(since=start.unkeyed, seconds=seconds, firsts=firsts)
        self._keyed.record_claim(since=start.keyed, seconds=seconds, firsts={})  # it looked for rows with keys as well
        self._cursor.reset()

    def advance(self, last: asyncpg.Record, row_id: int) -> None:
        """Records the last row of a claim. The next lean claim starts after it."""
        self._cursor.advance(last["priority"], last["due"], row_id)
