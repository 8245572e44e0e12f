"""From rows of statistics to columns: a value for each step, null where nobody told anything."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import accumulate
from typing import Any

from outbox.reporting.statistics import LATENCY_BOUNDS, OTHERS

BY_RELAYS = ("created", "sent")
BY_WORKERS = ("processed", "failed", "retried", "dead", "duplicates")
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


@dataclass(slots=True)
class Cell:
    """What is known of one group in one step, of relays or of workers."""

    counts: dict[str, int] = field(default_factory=dict)
    backlog: int | None = None
    oldest_age: float | None = None
    latency: list[int] | None = None

    def take(self, row: Mapping[str, Any]) -> None:
        """The row of this group, step and kind."""
        self.counts = {name: row[name] for name in (*BY_RELAYS, *BY_WORKERS)}
        self.backlog, self.oldest_age = row["backlog"], row["oldest_age"]
        if row["latency"][0] is not None:
            self.latency = list(row["latency"])


class Table:
    """The cells of an answer: by group, by step, of relays and of workers; and who told anything in which step."""

    def __init__(self, starts: Sequence[datetime], rows: Sequence[Mapping[str, Any]]) -> None:
        self._starts = starts
        self._cells: dict[tuple[str | None, datetime, bool], Cell] = {}
        for row in rows:
            self._cells.setdefault((row["name"], row["span"], row["of_relays"]), Cell()).take(row)
        # A message's creation may be told of a time without a relay.
        self._by_relays = {row["span"] for row in rows if row["of_relays"] and (row["sent"] or row["backlog"] is not None)}
        self._by_workers = {row["span"] for row in rows if not row["of_relays"]}
        places = {row["name"]: row["place"] for row in rows if row["place"] is not None}
        self.names: list[str | None] = sorted(places, key=places.__getitem__)
        """The groups, those first that most happened under, and last those that are not told apart."""
        if OTHERS not in places and any(row["name"] == OTHERS for row in rows):
            self.names.append(OTHERS)

    @property
    def length(self) -> int:
        """How many steps there are."""
        return len(self._starts)

    def counts(self, name: str | None, metric: str, *, of_relays: bool) -> list[int | None]:
        """How many in each step; 0 only where somebody told that there were none."""
        told = self._by_relays if of_relays else self._by_workers
        cells = [self._cells.get((name, at, of_relays)) for at in self._starts]
        return [
            (cell.counts[metric] if cell is not None else 0)
            if at in told or (cell is not None and cell.counts[metric])
            else None
            for at, cell in zip(self._starts, cells, strict=True)
        ]

    def measured(self, name: str | None, metric: str) -> list[Any]:
        """The highest that was measured in each step."""
        return [getattr(self._cells.get((name, at, True)), metric, None) for at in self._starts]

    def buckets(self, name: str | None, *, of_relays: bool) -> list[list[int] | None]:
        """How many took how long, in each step in which any did."""
        return [getattr(self._cells.get((name, at, of_relays)), "latency", None) for at in self._starts]


def quantiles(buckets: Iterable[Sequence[int] | None]) -> dict[str, list[float | None]]:
    """By name the quantiles of each step, in seconds."""
    columns = [None if counts is None else (counts, list(accumulate(counts))) for counts in buckets]
    return {
        name: [None if column is None else _quantile(*column, share) for column in columns] for name, share in QUANTILES.items()
    }


def quantile(counts: Sequence[int], share: float) -> float | None:
    """What `share` of all did not exceed, taking the times within a bucket as evenly spread; None if there were none.

    Of what took longer than the last bound no more is known than that.
    """
    return _quantile(counts, list(accumulate(counts)), share)


def _quantile(counts: Sequence[int], totals: Sequence[int], share: float) -> float | None:
    if not totals or not totals[-1]:
        return None
    wanted = share * totals[-1]
    number = bisect_left(totals, wanted)
    if number >= len(LATENCY_BOUNDS):
        return float(LATENCY_BOUNDS[-1])
    low, high = LATENCY_BOUNDS[number - 1] if number else 0.0, LATENCY_BOUNDS[number]
    below = totals[number - 1] if number else 0
    return round(low + (high - low) * (wanted - below) / counts[number], 6)
