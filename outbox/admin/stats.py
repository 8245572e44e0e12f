"""`GET /stats`: statistics as columns, with one value per step; null if no component reported."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import accumulate
from typing import Annotated, Any

from fastapi import Query
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from outbox.admin.access import Viewer, area
from outbox.admin.admin import Admin
from outbox.admin.cache import StaleWhileRevalidate
from outbox.admin.models import Instant, Model, Moment, Request
from outbox.admin.problems import Code, Problem
from outbox.reporting.statistics import LATENCY_BOUNDS, OTHERS, GroupBy, SeriesReader

BY_RELAYS = ("created", "sent")
BY_WORKERS = ("processed", "failed", "retried", "dead", "duplicates")
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


@dataclass(slots=True)
class Cell:
    """Statistics of one group in one step, from relays or from workers."""

    counts: dict[str, int] = field(default_factory=dict)
    backlog: int | None = None
    oldest_age: float | None = None
    latency: list[int] | None = None

    def fill(self, row: Mapping[str, Any]) -> None:
        """Copies the values of a row."""
        self.counts = {name: row[name] for name in (*BY_RELAYS, *BY_WORKERS)}
        self.backlog, self.oldest_age = row["backlog"], row["oldest_age"]
        if row["latency"][0] is not None:
            self.latency = list(row["latency"])


class Table:
    """Cells of a response by group, step and reporter, and the steps in which relays or workers reported."""

    def __init__(self, starts: Sequence[datetime], rows: Sequence[Mapping[str, Any]]) -> None:
        self._starts = starts
        self._cells: dict[tuple[str | None, datetime, bool], Cell] = {}
        for row in rows:
            self._cells.setdefault((row["name"], row["span"], row["of_relays"]), Cell()).fill(row)
        # A relay counts a creation in the step of the creation, so such a row does not show that a relay ran then.
        self._by_relays = {row["span"] for row in rows if row["of_relays"] and (row["sent"] or row["backlog"] is not None)}
        self._by_workers = {row["span"] for row in rows if not row["of_relays"]}
        ranks = {row["name"]: row["place"] for row in rows if row["place"] is not None}
        self.names: list[str | None] = sorted(ranks, key=ranks.__getitem__)
        """Groups by activity, most active first; the combined others are last."""
        if OTHERS not in ranks and any(row["name"] == OTHERS for row in rows):
            self.names.append(OTHERS)

    @property
    def length(self) -> int:
        """Number of steps."""
        return len(self._starts)

    def counts(self, name: str | None, metric: str, *, of_relays: bool) -> list[int | None]:
        """Returns the count of each step; None if no component reported in it."""
        reported = self._by_relays if of_relays else self._by_workers
        cells = [self._cells.get((name, at, of_relays)) for at in self._starts]
        return [
            (cell.counts[metric] if cell is not None else 0)
            if at in reported or (cell is not None and cell.counts[metric])
            else None
            for at, cell in zip(self._starts, cells, strict=True)
        ]

    def measured(self, name: str | None, metric: str, *, of_relays: bool) -> list[Any]:
        """Returns the highest measurement of each step. Relays measure the outbox, workers a queue."""
        return [getattr(self._cells.get((name, at, of_relays)), metric, None) for at in self._starts]

    def buckets(self, name: str | None, *, of_relays: bool) -> list[list[int] | None]:
        """Returns the latency histogram of each step; None if empty."""
        return [getattr(self._cells.get((name, at, of_relays)), "latency", None) for at in self._starts]


def quantiles(buckets: Iterable[Sequence[int] | None]) -> dict[str, list[float | None]]:
    """Returns the quantiles of each step in seconds, by name."""
    columns = [None if counts is None else (counts, list(accumulate(counts))) for counts in buckets]
    return {
        name: [None if column is None else _quantile(*column, share) for column in columns] for name, share in QUANTILES.items()
    }


def quantile(counts: Sequence[int], share: float) -> float | None:
    """Estimates a quantile from a histogram, interpolating linearly within a bucket; None if it is empty.

    Returns the last bound if the quantile is above it.
    """
    return _quantile(counts, list(accumulate(counts)), share)


def _quantile(counts: Sequence[int], totals: Sequence[int], share: float) -> float | None:
    if not totals or not totals[-1]:
        return None
    rank = share * totals[-1]
    number = bisect_left(totals, rank)
    if number >= len(LATENCY_BOUNDS):
        return float(LATENCY_BOUNDS[-1])
    low, high = LATENCY_BOUNDS[number - 1] if number else 0.0, LATENCY_BOUNDS[number]
    below = totals[number - 1] if number else 0
    return round(low + (high - low) * (rank - below) / counts[number], 6)


MOST_POINTS = 2_000
"""Points of one response, over all series."""
DEFAULT_POINTS = 120
"""Most points of a series with the step `auto`."""
STEPS = (
    60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 2_592_000,
)  # fmt: skip
"""Possible steps in seconds. Each is a multiple of every smaller interval that statistics are kept in."""
LONGEST = timedelta(days=20 * 366)
RELATIVE = re.compile(r"-(\d{1,7})([smhdw])", re.ASCII)
LENGTH = re.compile(r"(\d{1,7})([smhdw])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_ORIGIN = datetime(2000, 1, 1, tzinfo=UTC)


def seconds_of(number: str, unit: str) -> int:
    """Converts a duration such as `15`, `m` to seconds."""
    return int(number) * _SECONDS[unit]


@dataclass(frozen=True, slots=True)
class Steps:
    """`count` steps of `seconds` each, from `since` on."""

    since: datetime
    seconds: int
    count: int

    @property
    def until(self) -> datetime:
        """End of the last step."""
        return self.since + timedelta(seconds=self.seconds * self.count)

    @property
    def starts(self) -> Sequence[datetime]:
        """Start of each step."""
        return [self.since + timedelta(seconds=self.seconds * number) for number in range(self.count)]


def steps_between(since: datetime, until: datetime, seconds: int) -> Steps:
    """Returns the steps that cover the time range. They start at multiples of their length."""
    length = timedelta(seconds=seconds)
    first = since - (since - _ORIGIN) % length
    return Steps(first, seconds, max(1, -((first - until) // length)))


def default_step(since: datetime, until: datetime) -> int:
    """Returns the step for `auto`."""
    return next((step for step in STEPS if (until - since).total_seconds() <= step * DEFAULT_POINTS), STEPS[-1])


def fit_steps(since: datetime, until: datetime, least: int, series: int) -> Steps | None:
    """Returns the shortest steps of at least `least` seconds within `MOST_POINTS`; None if there are none."""
    for step in STEPS:
        steps = steps_between(since, until, step)
        if step >= least and steps.count * series <= MOST_POINTS:
            return steps
    return None


def fit_steps_by_series(since: datetime, until: datetime, least: int, most: int) -> Sequence[Steps]:
    """Returns the fitting steps for one series, two series, and so on up to `most`, as long as any fit."""
    each = (fit_steps(since, until, least, series) for series in range(1, most + 1))
    return [steps for steps in each if steps is not None]


Counts = Annotated[list[int | None], Field(description="One value per step; null: no data.")]
Measures = Annotated[list[float | None], Field(description="One value per step; null: nothing was measured.")]


class Quantiles(Model):
    """The 50th, 95th and 99th percentile of each step in seconds, estimated from buckets; null: no messages."""

    p50: list[float | None]
    p95: list[float | None]
    p99: list[float | None]


class SeriesResponse(Model):
    """Statistics per step, summed over all processes."""

    group: str | None = Field(description="The queue or routing key. Null: everything; `(others)`: all other groups.")
    created: Counts = Field(description="Messages by time of creation, counted when they are sent. Not available by queue.")
    sent: Counts = Field(description="Messages that relays sent. Not available by queue.")
    processed: Counts = Field(description="Messages that were handled.")
    failed: Counts = Field(description="Failed attempts, some of which were `retried` or made a message `dead`.")
    retried: Counts = Field(description="Failed attempts that were followed by a retry.")
    dead: Counts = Field(description="Messages that were dead-lettered.")
    duplicates: Counts = Field(description="Messages that were skipped because they had been handled before.")
    backlog: Counts = Field(
        description="Most unsent messages that were measured for a destination; by queue, messages that wait for a worker."
    )
    oldest_age_seconds: Measures = Field(
        description="Highest measured age of the oldest due message, in the outbox or the queue. Null for RabbitMQ queues."
    )
    latency_seconds: Quantiles = Field(description="Time that messages spent in the outbox.")
    handling_seconds: Quantiles = Field(description="Time that handlers ran.")
    latency_buckets: list[list[int] | None] | None = Field(
        description="With `buckets=true`: histogram of each step, by `bucket_bounds_seconds`."
    )
    handling_buckets: list[list[int] | None] | None = Field(description="With `buckets=true`: histogram of each step.")


class StatsResponse(Model):
    """Series over a time range. All columns have one value per entry of `starts_at`."""

    from_: Moment = Field(serialization_alias="from", description="Start of the first step.")
    to: Moment = Field(description="End of the last step.")
    as_of: Moment
    step_seconds: int
    step_reason: str | None = Field(description="Why the step is longer than requested; null: it is as requested.")
    group_by: GroupBy
    starts_at: list[Moment]
    complete: list[bool] = Field(description="False: the step may still receive data, usually the newest one.")
    bucket_bounds_seconds: list[float] = Field(description="Upper bounds of the buckets. One more bucket counts longer times.")
    series: list[SeriesResponse]


LONG = timedelta(days=1)
"""Longer time ranges are cached, since they read many rows and change little within seconds."""
MOST_GROUPS = 20
"""Queues or routing keys with a series of their own, the most active ones."""
REPORTED_WITHIN = timedelta(seconds=15)
"""Time within which every running process writes its statistics."""

router = area("statistics")


def _check_step(text: str) -> str:
    if text == "auto" or ((match := LENGTH.fullmatch(text)) and 0 < seconds_of(*match.groups()) <= STEPS[-1]):
        return text
    raise ValueError("a step is `auto`, or a duration such as 60s, 5m, 1h or 1d, up to 30d")


class StatsParameters(Request):
    """Query parameters of `GET /stats`."""

    from_: Annotated[
        str, Field(alias="from", max_length=64, description="A time in RFC 3339, or relative to now: `-15m`, `-1h`, `-7d`.")
    ] = "-1h"
    to: Annotated[str, Field(max_length=64, description="A time in RFC 3339, relative to now as in `from`, or `now`.")] = "now"
    step: Annotated[
        str, AfterValidator(_check_step), Field(max_length=16, description="`auto`, or a duration: `60s`, `5m`, `1h`, `1d`.")
    ] = "auto"
    group_by: Annotated[GroupBy, Field(description="One series each for the 20 most active, and one for the others.")] = "none"
    queue: Annotated[
        str | None,
        Field(min_length=1, max_length=255, description="Only what workers report of this queue. Not with `group_by`."),
    ] = None
    buckets: Annotated[bool, Field(description="Include the latency histograms.")] = False


@router.get("/stats", operation_id="outbox_stats_show")
async def show_statistics(context: Viewer, parameters: Annotated[StatsParameters, Query()]) -> StatsResponse:
    """Shows messages created, sent, processed, failed and dead-lettered per step, the backlog, and latencies.

    Numbers cover all processes and survive restarts. Null means that no relay or no worker reported data; 0 means that nothing
    happened. A response has at most 2,000 points over all series: the step grows with the time range and the number of groups,
    and for old data to the hour or day that statistics are kept by.

    Time ranges above one day are computed at most every five seconds; `as_of` is the time of the computation.
    """
    # By the local clock, which only decides about the cache: the response uses the database's clock.
    local_now = datetime.now(UTC)
    if _time(parameters.to, local_now, "to") - _time(parameters.from_, local_now, "from") > LONG:
        return await context.admin.shared(LongSeries).get(parameters)
    return await _answer(context.admin, parameters)


class LongSeries:
    """Caches responses for long time ranges, which every open dashboard polls."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._answers = StaleWhileRevalidate[StatsResponse]()

    async def get(self, parameters: StatsParameters) -> StatsResponse:
        """Returns the cached response or a new one. Raises the error of computing it."""
        # By the parameters as they were given: `-7d` is another time at each request, but the same key.
        return (await self._answers.get(parameters.model_dump_json(), partial(_answer, self._admin, parameters))).value

    async def close(self) -> None:
        """Cancels running reads."""
        await self._answers.close()


async def _answer(admin: Admin, parameters: StatsParameters) -> StatsResponse:
    if parameters.queue is not None and parameters.group_by != "none":
        raise Problem(Code.INVALID_REQUEST, "`queue` cannot be combined with `group_by`: omit one of them")
    async with admin.reading("reading statistics") as connection:
        reader = SeriesReader(connection, admin.table.schema, parameters.group_by, queue=parameters.queue)
        now = await reader.now()
        since, until = _time(parameters.from_, now, "from"), min(_time(parameters.to, now, "to"), now)
        if since >= until:
            raise Problem(Code.INVALID_REQUEST, "`from` must be before `to`, and in the past")
        if until - since > LONGEST:
            raise Problem(Code.INVALID_REQUEST, "the time range may be at most twenty years")
        match = LENGTH.fullmatch(parameters.step)
        least = seconds_of(*match.groups()) if match else default_step(since, until)
        most = 1 if parameters.group_by == "none" else MOST_GROUPS + 1
        # The statement finds the number of series itself, so it gets the fitting steps for every number, in one round trip.
        possible = fit_steps_by_series(since, until, least, most)
        first, last = _time_range(possible)
        # The interval in which statistics of that time are kept, in seconds.
        kept = await reader.coarsest(first, last, hours_matter=possible[0].seconds < 3_600)
        if kept > least:
            possible = fit_steps_by_series(since, until, kept, most)
        rows = await reader.series((since, until), _time_range(possible), [steps.seconds for steps in possible], most - 1)
    steps = fit_steps(since, until, max(least, kept), max(1, rows[0]["names"]) if rows else 1)
    if steps is None:
        raise Problem(Code.INVALID_REQUEST, f"more than {MOST_POINTS:,} points with any step: request a shorter time range")
    step_reason = None
    if parameters.step != "auto" and steps.seconds != least:
        if kept == steps.seconds:
            step_reason = f"statistics of that time are kept per {'day' if kept == 86_400 else 'hour'}"
        else:
            step_reason = f"steps are {', '.join(map(str, STEPS))} seconds, and a response has at most {MOST_POINTS:,} points"
    table = Table(steps.starts, rows)
    names = [None] if parameters.group_by == "none" else table.names
    return StatsResponse(
        from_=steps.since,
        to=steps.until,
        as_of=now,
        step_seconds=steps.seconds,
        step_reason=step_reason,
        group_by=parameters.group_by,
        starts_at=list(steps.starts),
        complete=[start + timedelta(seconds=steps.seconds) + REPORTED_WITHIN <= now for start in steps.starts],
        bucket_bounds_seconds=list(LATENCY_BOUNDS),
        series=[_series(table, name, parameters) for name in names],
    )


def _time(text: str, now: datetime, name: str) -> datetime:
    relative = RELATIVE.fullmatch(text)
    try:
        if relative:
            at = now - timedelta(seconds=seconds_of(*relative.groups()))
        else:
            at = now if text == "now" else TypeAdapter(Instant).validate_python(text)
        steps_between(at, at, STEPS[-1])  # raises OverflowError if the first step would begin before the year 1
        return at
    except (ValidationError, OverflowError):
        raise Problem(
            Code.INVALID_REQUEST, f"`{name}` must be a time such as 2026-03-01T12:00:00Z, or relative to now: -15m, -1h, -7d"
        ) from None


def _time_range(possible: Sequence[Steps]) -> tuple[datetime, datetime]:
    return min(steps.since for steps in possible), max(steps.until for steps in possible)


def _series(table: Table, name: str | None, parameters: StatsParameters) -> SeriesResponse:
    counts: dict[str, Any] = {metric: table.counts(name, metric, of_relays=False) for metric in BY_WORKERS}
    by_queue = parameters.group_by == "queue" or parameters.queue is not None
    for metric in BY_RELAYS:  # relays do not know the queues
        counts[metric] = [None] * table.length if by_queue else table.counts(name, metric, of_relays=True)
    waited, handled = table.buckets(name, of_relays=True), table.buckets(name, of_relays=False)
    return SeriesResponse(
        group=name,
        **counts,
        backlog=table.measured(name, "backlog", of_relays=not by_queue),
        oldest_age_seconds=table.measured(name, "oldest_age", of_relays=not by_queue),
        latency_seconds=Quantiles(**quantiles(waited)),
        handling_seconds=Quantiles(**quantiles(handled)),
        latency_buckets=waited if parameters.buckets else None,
        handling_buckets=handled if parameters.buckets else None,
    )
