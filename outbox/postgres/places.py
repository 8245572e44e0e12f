"""Where claims of rows without ordering keys begin to read: at the front, behind what is gone, or where the last one ended."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

import asyncpg

from outbox.postgres.bookmarks import Bookmarks
from outbox.postgres.floors import Floors

PRIORITIES = 10


@dataclass(frozen=True, slots=True)
class Start:
    """From which due times a claim reads: those of the priorities, and that of rows with ordering keys; and when it began."""

    dues: Sequence[float]
    keyed_dues: Sequence[float]
    began: float

    @property
    def argument(self) -> Sequence[float]:
        """As `from_floors` and `keyed_after` take them."""
        return (*self.dues, *self.keyed_dues)


class Places:
    """What claims have learnt of the index of due rows. `keyed` are the floors of rows with ordering keys."""

    def __init__(self, floors: Floors, keyed: Floors) -> None:
        self._floors = floors
        self._keyed = keyed
        self._bookmarks = Bookmarks(PRIORITIES)

    @property
    def bookmarks(self) -> tuple[Sequence[float], Sequence[int]]:
        """Behind which rows a lean claim begins, as `from_bookmarks` takes them."""
        return self._bookmarks.places

    def start(self) -> Start:
        """Where any other claim begins, now."""
        return Start(self._floors.dues, self._keyed.dues, perf_counter())

    def found(self, start: Start, rows: Sequence[asyncpg.Record]) -> None:
        """A claim that began at `start` shows these rows, in order within each priority, or one that stands for none."""
        seconds = perf_counter() - start.began
        self._floors.claimed(since=start.dues, seconds=seconds, firsts=_first_dues(rows))
        self._keyed.claimed(since=start.keyed_dues, seconds=seconds, firsts={})  # it looked for rows with keys, too
        self._bookmarks.forget()

    def took(self, last: asyncpg.Record, row_id: int) -> None:
        """That row was the last one that a claim took: a lean one goes on behind it."""
        self._bookmarks.put(last["priority"], last["due"], row_id)


def _first_dues(rows: Sequence[asyncpg.Record]) -> Mapping[int, float]:
    """When the first row of each priority was due; nothing of the row that stands for none."""
    firsts: dict[int, float] = {}
    priority = None
    for row in rows:
        if row["priority"] != priority:
            priority = row["priority"]
            firsts.setdefault(priority, row["due"])
    return firsts
