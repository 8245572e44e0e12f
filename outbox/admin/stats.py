"""`GET /stats`: rows of statistics as columns, one value for each step, null where no component reported."""

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
    """The cells of an answer: by group, by step, of relays and of workers; and who reported in which step."""

    def __init__(self, starts: Sequence[datetime], rows: Sequence[Mapping[str, Any]]) -> None:
        self._starts = starts
        self._cells: dict[tuple[str | None, datetime, bool], Cell] = {}
        for row in rows:
            self._cells.setdefault((row["name"], row["span"], row["of_relays"]), Cell()).take(row)
        # A message's creation may be reported for a time without a relay.
        self._by_relays = {row["span"] for row in rows if row["of_relays"] and (row["sent"] or row["backlog"] is not None)}
        self._by_workers = {row["span"] for row in rows if not row["of_relays"]}
        places = {row["name"]: row["place"] for row in rows if row["place"] is not None}
        self.names: list[str | None] = sorted(places, key=places.__getitem__)
        """The groups, those first that most happened under, and last those that have no series."""
        if OTHERS not in places and any(row["name"] == OTHERS for row in rows):
            self.names.append(OTHERS)

    @property
    def length(self) -> int:
        """How many steps there are."""
        return len(self._starts)

    def counts(self, name: str | None, metric: str, *, of_relays: bool) -> list[int | None]:
        """How many in each step; 0 only where a component reported that there were none."""
        reported = self._by_relays if of_relays else self._by_workers
        cells = [self._cells.get((name, at, of_relays)) for at in self._starts]
        return [
            (cell.counts[metric] if cell is not None else 0)
            if at in reported or (cell is not None and cell.counts[metric])
            else None
            for at, cell in zip(self._starts, cells, strict=True)
        ]

    def measured(self, name: str | None, metric: str, *, of_relays: bool) -> list[Any]:
        """The highest that was measured in each step: by relays of the outbox, by workers of a queue."""
        return [getattr(self._cells.get((name, at, of_relays)), metric, None) for at in self._starts]

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
"""Points of a series, or fewer, where the request names no step."""
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
    backlog: Counts = Field(
        description="The highest number of unsent messages that was measured; of a queue, of those that wait for a worker."
    )
    oldest_age_seconds: Measures = Field(
        description="The highest age of the oldest due message, in the outbox or in the queue; RabbitMQ reports none."
    )
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


LONG = timedelta(days=1)
"""What covers more is remembered for a moment: it reads many rows, and seconds matter little in it."""
MOST_GROUPS = 20
"""Queues or routing keys that have a series, those under which most happened."""
REPORTED_WITHIN = timedelta(seconds=15)
"""What happened is added to the table within this time, by every process that lives."""

router = area("statistics")


def _step(text: str) -> str:
    if text == "auto" or ((match := LENGTH.fullmatch(text)) and 0 < seconds_of(*match.groups()) <= STEPS[-1]):
        return text
    raise ValueError("a step is `auto`, or a length of time such as 60s, 5m, 1h or 1d, up to 30d")


class StatsParameters(Request):
    """What `GET /stats` takes."""

    from_: Annotated[str, Field(alias="from", max_length=64, description="RFC 3339, or before now: `-15m`, `-1h`, `-7d`.")] = (
        "-1h"
    )
    to: Annotated[str, Field(max_length=64, description="RFC 3339, before now as for `from`, or `now`.")] = "now"
    step: Annotated[
        str, AfterValidator(_step), Field(max_length=16, description="`auto`, or a length of time: `60s`, `5m`, `1h`, `1d`.")
    ] = "auto"
    group_by: Annotated[GroupBy, Field(description="One series for each; the largest 20, and the rest together.")] = "none"
    queue: Annotated[
        str | None,
        Field(
            min_length=1, max_length=255, description="Only what workers did with messages of this queue; not with `group_by`."
        ),
    ] = None
    buckets: Annotated[bool, Field(description="Whether to answer the buckets that latencies are counted in, too.")] = False


@router.get("/stats", operation_id="outbox_stats_show")
async def show_statistics(context: Viewer, wanted: Annotated[StatsParameters, Query()]) -> StatsResponse:
    """Shows what was created, sent, processed, failed and dead-lettered in each step, the backlog, and latencies.

    Numbers are those of all processes together, and survive restarts. Null means that no data was reported: no relay or no
    worker ran; 0 means that nothing happened. There are at most 2,000 points in all series together: the step grows with the
    time and the number of groups, and to hours or days where statistics are kept by those only.

    An answer that covers more than a day is computed again after five seconds at the earliest; `as_of` says when it was.
    """
    here = datetime.now(UTC)
    if _time(wanted.to, here, "to") - _time(wanted.from_, here, "from") > LONG:
        return await context.admin.shared(LongSeries).get(wanted)
    return await _answer(context.admin, wanted)


class LongSeries:
    """Answers that took many rows, for all who ask the same: a dashboard asks it again and again."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._answers = StaleWhileRevalidate[StatsResponse]()

    async def get(self, wanted: StatsParameters) -> StatsResponse:
        """What was answered last, or a new answer. Raises what making it raised."""
        return (await self._answers.get(wanted.model_dump_json(), partial(_answer, self._admin, wanted))).value

    async def close(self) -> None:
        """Ends what is being read."""
        await self._answers.close()


async def _answer(admin: Admin, wanted: StatsParameters) -> StatsResponse:
    if wanted.queue is not None and wanted.group_by != "none":
        raise Problem(Code.INVALID_REQUEST, "`queue` names the one series that there is: leave out `group_by`")
    async with admin.reading("reading statistics") as connection:
        reader = SeriesReader(connection, admin.table.schema, wanted.group_by, queue=wanted.queue)
        now = await reader.now()
        since, until = _time(wanted.from_, now, "from"), min(_time(wanted.to, now, "to"), now)
        if since >= until:
            raise Problem(Code.INVALID_REQUEST, "`from` is before `to`, and before now")
        if until - since > LONGEST:
            raise Problem(Code.INVALID_REQUEST, "ask for twenty years at most")
        match = LENGTH.fullmatch(wanted.step)
        least = seconds_of(*match.groups()) if match else usual_step(since, until)
        kept, rows = await _read(reader, since, until, least, 1 if wanted.group_by == "none" else MOST_GROUPS + 1)
    steps = fitting(since, until, max(least, kept), max(1, rows[0]["names"]) if rows else 1)
    if steps is None:
        raise Problem(
            Code.INVALID_REQUEST, f"that would be more than {MOST_POINTS:,} points with any step: ask for a shorter time"
        )
    step_reason = None
    if wanted.step != "auto" and steps.seconds != least:
        if kept == steps.seconds:
            step_reason = f"statistics of that time are kept by the {'day' if kept == 86_400 else 'hour'}"
        else:
            step_reason = f"there are steps of {', '.join(map(str, STEPS))} seconds, and {MOST_POINTS:,} points at most"
    table = Table(steps.starts, rows)
    names = [None] if wanted.group_by == "none" else table.names
    return StatsResponse(
        from_=steps.since,
        to=steps.until,
        as_of=now,
        step_seconds=steps.seconds,
        step_reason=step_reason,
        group_by=wanted.group_by,
        starts_at=list(steps.starts),
        complete=[start + timedelta(seconds=steps.seconds) + REPORTED_WITHIN <= now for start in steps.starts],
        bucket_bounds_seconds=list(LATENCY_BOUNDS),
        series=[_series(table, name, wanted) for name in names],
    )


def _time(text: str, now: datetime, name: str) -> datetime:
    relative = RELATIVE.fullmatch(text)
    try:
        if relative:
            return now - timedelta(seconds=seconds_of(*relative.groups()))
        return now if text == "now" else TypeAdapter(Instant).validate_python(text)
    except (ValidationError, OverflowError):
        raise Problem(
            Code.INVALID_REQUEST, f"`{name}` is a time such as 2026-03-01T12:00:00Z, or before now: -15m, -1h, -7d"
        ) from None


async def _read(
    reader: SeriesReader, since: datetime, until: datetime, least: int, most: int
) -> tuple[int, Sequence[Mapping[str, Any]]]:
    """What statistics of that time are kept by, in seconds, and the rows, by the steps that fit as many series as there are."""
    possible = fitting_each(since, until, least, most)
    first, last = _covered(possible)
    kept = await reader.coarsest(first, last, hours_matter=possible[0].seconds < 3_600)
    if kept > least:
        possible = fitting_each(since, until, kept, most)
    rows = await reader.series((since, until), _covered(possible), [steps.seconds for steps in possible], most - 1)
    return kept, rows


def _covered(possible: Sequence[Steps]) -> tuple[datetime, datetime]:
    return min(steps.since for steps in possible), max(steps.until for steps in possible)


def _series(table: Table, name: str | None, wanted: StatsParameters) -> SeriesResponse:
    counts: dict[str, Any] = {metric: table.counts(name, metric, of_relays=False) for metric in BY_WORKERS}
    by_queue = wanted.group_by == "queue" or wanted.queue is not None
    for metric in BY_RELAYS:  # which know of no queues
        counts[metric] = [None] * table.length if by_queue else table.counts(name, metric, of_relays=True)
    waited, handled = table.buckets(name, of_relays=True), table.buckets(name, of_relays=False)
    return SeriesResponse(
        group=name,
        **counts,
        backlog=table.measured(name, "backlog", of_relays=not by_queue),
        oldest_age_seconds=table.measured(name, "oldest_age", of_relays=not by_queue),
        latency_seconds=Quantiles(**quantiles(waited)),
        handling_seconds=Quantiles(**quantiles(handled)),
        latency_buckets=waited if wanted.buckets else None,
        handling_buckets=handled if wanted.buckets else None,
    )
