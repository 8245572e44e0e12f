"""Turns rows of statistics into columns: one value for each step, null where no component reported."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Annotated, Any

from pydantic import Field

from outbox.admin.models import Model, Moment
from outbox.reporting.statistics import LATENCY_BOUNDS, OTHERS, GroupBy

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
        reported = self._by_relays if of_relays else self._by_workers
        cells = [self._cells.get((name, at, of_relays)) for at in self._starts]
        return [
            (cell.counts[metric] if cell is not None else 0)
            if at in reported or (cell is not None and cell.counts[metric])
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


MOST_POINTS = 2_000
"""Points of one answer, all series together."""
USUAL_POINTS = 120
"""Points of a series, or fewer, where nobody asks for a step."""
STEPS = (
    60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 2_592_000,
)  # fmt: skip
"""Seconds of the steps there are. Each is a multiple of the spans that statistics are kept by, up to itself."""
LONGEST = timedelta(days=20 * 366)
RELATIVE = re.compile(r"-(\d{1,7})([smhdw])", re.ASCII)
LENGTH = re.compile(r"(\d{1,7})([smhdw])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_ORIGIN = datetime(2000, 1, 1, tzinfo=UTC)


def seconds_of(number: str, unit: str) -> int:
    """A length of time such as 15 m."""
    return int(number) * _SECONDS[unit]


@dataclass(frozen=True, slots=True)
class Steps:
    """From `since`, which is the beginning of a step, so many steps of `seconds`."""

    since: datetime
    seconds: int
    count: int

    @property
    def until(self) -> datetime:
        """Where the last one ends."""
        return self.since + timedelta(seconds=self.seconds * self.count)

    @property
    def starts(self) -> Sequence[datetime]:
        """Where each begins."""
        return [self.since + timedelta(seconds=self.seconds * number) for number in range(self.count)]


def steps_between(since: datetime, until: datetime, seconds: int) -> Steps:
    """The steps that cover that time."""
    length = timedelta(seconds=seconds)
    first = since - (since - _ORIGIN) % length
    return Steps(first, seconds, max(1, -((first - until) // length)))


def usual_step(since: datetime, until: datetime) -> int:
    """The step of someone who asks for none."""
    return next((step for step in STEPS if (until - since).total_seconds() <= step * USUAL_POINTS), STEPS[-1])


def fitting(since: datetime, until: datetime, least: int, series: int) -> Steps | None:
    """The shortest steps of `least` seconds or more that do not make too many points; None if all do."""
    for step in STEPS:
        steps = steps_between(since, until, step)
        if step >= least and steps.count * series <= MOST_POINTS:
            return steps
    return None


def fitting_each(since: datetime, until: datetime, least: int, most: int) -> Sequence[Steps]:
    """What is fitting for one series, for two, and so on up to `most`, or up to as many as anything fits."""
    each = (fitting(since, until, least, series) for series in range(1, most + 1))
    return [steps for steps in each if steps is not None]


Counts = Annotated[list[int | None], Field(description="One value for each step; null: no data.")]
Measures = Annotated[list[float | None], Field(description="One for each step; null where nothing was measured.")]


class Quantiles(Model):
    """The 50th, 95th and 99th percentiles for each step, as exactly as buckets allow; null where there was no message."""

    p50: list[float | None]
    p95: list[float | None]
    p99: list[float | None]


class SeriesResponse(Model):
    """What happened, step by step, all processes together."""

    group: str | None = Field(description="The queue or routing key; null: everything. `(others)`: all that have no series.")
    created: Counts = Field(description="By the time of creation, counted when they were sent; not by queue.")
    sent: Counts = Field(description="By relays; not by queue.")
    processed: Counts
    failed: Counts = Field(description="Attempts, of which some were `retried` and some made a message `dead`.")
    retried: Counts
    dead: Counts
    duplicates: Counts
    backlog: Counts = Field(description="The highest that was measured; not by group.")
    oldest_age_seconds: Measures = Field(description="The highest age of the oldest due message; not by group.")
    latency_seconds: Quantiles = Field(description="Time in the outbox.")
    handling_seconds: Quantiles = Field(description="Time that a handler ran.")
    latency_buckets: list[list[int] | None] | None = Field(
        description="With `buckets=true`: how many by `bucket_bounds_seconds`."
    )
    handling_buckets: list[list[int] | None] | None = Field(description="With `buckets=true`.")


class StatsResponse(Model):
    """Series over one time. All columns are as long as `starts_at`."""

    from_: Moment = Field(serialization_alias="from", description="Where the first step begins.")
    to: Moment = Field(description="Where the last step ends.")
    as_of: Moment
    step_seconds: int
    step_reason: str | None = Field(description="Why the step is longer than was asked for; null: it is not.")
    group_by: GroupBy
    starts_at: list[Moment]
    complete: list[bool] = Field(description="False for steps that may still get data, usually the newest.")
    bucket_bounds_seconds: list[float] = Field(description="Upper ends; one more bucket is for what took longer.")
    series: list[SeriesResponse]
