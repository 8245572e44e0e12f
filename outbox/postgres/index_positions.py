"""Where claims begin to read an index of due rows: at its front, behind rows that are gone, or where the last claim ended."""

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
"""A claim from the front that takes longer than this has met more dead rows than live ones."""
REST = 10
"""How many times as long as a slow claim took the next ones begin further behind, so that it costs a tenth of the time."""
MARGIN_SECONDS = 1.0
"""How far before the last claim's first row the next one begins: for rows whose transactions took that long."""


class ScanStart:
    """From which due times on the next claim reads each of `count` stretches of an index, such as those of priorities.

    A transaction that stays open, anywhere in the database, keeps every row that is sent or handled meanwhile in the index, and
    each claim from the front reads past all of them. So when that has become slow, claims begin a little before where the last
    one found its first row. A row that came to lie before that, because its transaction was long or a claim was given back, is
    found by a claim from the front, which still happens as often as it costs no more than a tenth of the time.
    """

    def __init__(self, count: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due_times = [FRONT] * count
        self._front_again_at = 0.0

    @property
    def due_times(self) -> Sequence[float]:
        """The due times to begin at, in seconds since 1970; `FRONT` for the front."""
        return tuple(self._due_times) if self.seconds_left else (FRONT,) * len(self._due_times)

    @property
    def seconds_left(self) -> float:
        """How long it is until the next claim from the front; 0: it is the next one."""
        return max(self._front_again_at - self._clock(), 0.0)

    def record_claim(self, *, since: Sequence[float], seconds: float, firsts: Mapping[int, float]) -> None:
        """Notes a claim that began at `since`, took `seconds`, and found a first row, due at `firsts`, in some stretches."""
        if FRONT in since and not self.seconds_left:
            self._front_again_at = self._clock() + seconds * REST if seconds > SLOW_SECONDS else 0.0
        for stretch, due in firsts.items():
            # PostgreSQL's calendar has a beginning: before 1970 a margin could lead out of it.
            self._due_times[stretch] = due - MARGIN_SECONDS if due > 0 else FRONT


class ScanCursor:
    """The last row that was claimed of each of `count` priorities, since a claim from the front.

    Until a vacuum has been, rows that were sent stand at the front of the index, and each claim from there reads past them, and
    past rows that other claims hold. A row that comes to lie before the cursor, because its transaction was long or its claim
    was given back, is for the next claim from the front, of which there is one in `outbox.postgres.claiming.FAIR_EVERY`.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self.reset()

    @property
    def position(self) -> tuple[Sequence[float], Sequence[int]]:
        """By priority: when the last row was due, in seconds since 1970, and its id; `FRONT` and 0 where none was claimed."""
        return self._due_times, self._ids

    def reset(self) -> None:
        """The next claim begins at the front."""
        self._due_times = [FRONT] * self._count
        self._ids = [0] * self._count

    def advance(self, priority: int, due: float, row_id: int) -> None:
        """That row was claimed last; those before it were claimed with it, or are left to a claim from the front."""
        self._due_times[priority], self._ids[priority] = due, row_id


@dataclass(frozen=True, slots=True)
class StartTimes:
    """From which due times on a claim reads: of the priorities, and of rows with an ordering key; and when it began."""

    unkeyed: Sequence[float]
    keyed: Sequence[float]
    began: float

    @property
    def argument(self) -> Sequence[float]:
        """As `claim` in relay.sql takes them: first those of the priorities."""
        return (*self.unkeyed, *self.keyed)


class IndexPositions:
    """What claims have learnt of the index of due rows, of which `keyed` concerns the one of rows with an ordering key."""

    def __init__(self, unkeyed: ScanStart, keyed: ScanStart) -> None:
        self._unkeyed = unkeyed
        self._keyed = keyed
        self._cursor = ScanCursor(PRIORITIES)

    @property
    def cursor(self) -> tuple[Sequence[float], Sequence[int]]:
        """Behind which rows a lean claim begins, as `claim_lean` in relay.sql takes them."""
        return self._cursor.position

    def start(self) -> StartTimes:
        """Where any other claim begins, now."""
        return StartTimes(self._unkeyed.due_times, self._keyed.due_times, perf_counter())

    def record_claim(self, start: StartTimes, rows: Sequence[asyncpg.Record]) -> None:
        """Notes a claim that began at `start`: its rows are in order within each priority, or one of nulls stands for none."""
        seconds = perf_counter() - start.began
        firsts: dict[int, float] = {}
        priority = None
        for row in rows:
            if row["priority"] != priority:
                priority = row["priority"]
                firsts.setdefault(priority, row["due"])
        self._unkeyed.record_claim(since=start.unkeyed, seconds=seconds, firsts=firsts)
        self._keyed.record_claim(since=start.keyed, seconds=seconds, firsts={})  # it looked for rows with keys, too
        self._cursor.reset()

    def advance(self, last: asyncpg.Record, row_id: int) -> None:
        """That row was the last one that a claim took: a lean claim goes on behind it."""
        self._cursor.advance(last["priority"], last["due"], row_id)
