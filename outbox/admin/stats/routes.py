"""`GET /stats`."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Any

from fastapi import Query
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from outbox.admin.access import Viewer
from outbox.admin.admin import Admin
from outbox.admin.cache import StaleWhileRevalidate
from outbox.admin.models import Instant, Request
from outbox.admin.problems import Code, Problem
from outbox.admin.routing import area
from outbox.admin.stats.series import (
    BY_RELAYS,
    BY_WORKERS,
    LENGTH,
    LONGEST,
    MOST_POINTS,
    RELATIVE,
    STEPS,
    Quantiles,
    SeriesResponse,
    StatsResponse,
    Steps,
    Table,
    fitting,
    fitting_each,
    quantiles,
    seconds_of,
    usual_step,
)
from outbox.reporting.statistics import LATENCY_BOUNDS, GroupBy, SeriesReader

LONG = timedelta(days=1)
"""What covers more is remembered for a moment: it reads many rows, and seconds matter little in it."""
MOST_GROUPS = 20
"""Queues or routing keys that are told apart, those under which most happened."""
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
    """Answers that took many rows, for whoever asks the same: a dashboard asks it again and again."""

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
    async with admin.reading("reading statistics") as connection:
        reader = SeriesReader(connection, admin.table.schema, wanted.group_by)
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
    for metric in BY_RELAYS:  # which know of no queues
        by_queue = wanted.group_by == "queue"
        counts[metric] = [None] * table.length if by_queue else table.counts(name, metric, of_relays=True)
    waited, handled = table.buckets(name, of_relays=True), table.buckets(name, of_relays=False)
    return SeriesResponse(
        group=name,
        **counts,
        backlog=table.measured(name, "backlog"),
        oldest_age_seconds=table.measured(name, "oldest_age"),
        latency_seconds=Quantiles(**quantiles(waited)),
        handling_seconds=Quantiles(**quantiles(handled)),
        latency_buckets=waited if wanted.buckets else None,
        handling_buckets=handled if wanted.buckets else None,
    )
