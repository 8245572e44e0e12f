"""Statistics by minute, routing key and queue: added up in memory, merged into the table, read as series, thinned out."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import gcd
from typing import Any, Literal, NamedTuple

from outbox.core.events import BacklogMeasured, BatchSent, Processed, QueueMeasured
from outbox.core.outcome import Dead, Done, Retry
from outbox.postgres.pool import Connection
from outbox.postgres.queries import queries
from outbox.postgres.schema.objects import satellite_names
from outbox.reporting.queries import reporting_queries

LATENCY_BOUNDS = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 3_600, 21_600, 86_400,
)  # fmt: skip
"""Upper ends of the buckets of `latency`, in seconds, each included; one more bucket is for what took longer.

They are written into the table without their bounds, so they never change.
"""
MOST_KEYS = 500
"""Pairs of routing key and queue that one process tells apart in one minute."""
MOST_ROWS = 20_000
"""Rows that wait to be added, while the database is away; what would be another one is not counted."""
OTHERS = "(others)"
"""The name under which the rest is added up."""
MOST_NAME = 255
"""Characters of a routing key or queue; longer ones are cut, because they are part of an index."""
OLDEST_SECONDS = 2 * 86_400.0
"""The creation of a message that is older is counted as of then: the minutes before are being thinned out."""

_COUNTS = ("created", "sent", "processed", "failed", "retried", "dead", "duplicates")
_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True)
class Counts:
    """What is added to one row of the table."""

    created: int = 0
    sent: int = 0
    processed: int = 0
    failed: int = 0
    retried: int = 0
    dead: int = 0
    duplicates: int = 0
    backlog: int | None = None
    oldest_age: timedelta | None = None
    latency: list[int] | None = None

    def took(self, seconds: float) -> None:
        """Counts one more in the bucket of `seconds`."""
        if self.latency is None:
            self.latency = [0] * (len(LATENCY_BOUNDS) + 1)
        self.latency[bisect_left(LATENCY_BOUNDS, seconds)] += 1


class Key(NamedTuple):
    """The row of the table: the beginning of a minute, a routing key, a queue."""

    minute: datetime
    routing_key: str
    queue: str


@dataclass(slots=True)
class Statistics:
    """Adds up events. `now` is the database's clock, as well as it is known, in seconds since 1970."""

    now: Callable[[], float]
    _minutes: dict[datetime, dict[tuple[str, str], Counts]] = field(default_factory=dict)
    _names: dict[tuple[str, str], Counts] = field(default_factory=dict)
    _minute: datetime = _NEVER
    _began: float = 0.0
    _ends: float = 0.0
    _rows: int = 0

    def sent(self, event: BatchSent) -> None:
        """Messages left the outbox: counted as sent now, and as created when they were; latency is their time in it."""
        now = self.now()
        for message in event.messages:
            counts = self._now(now, message.routing_key, "")
            counts.sent += 1
            age = message.age.total_seconds()
            counts.took(age)
            created = now - min(age, OLDEST_SECONDS)
            if created >= self._began:
                counts.created += 1
            else:
                self._at(_minute_of(created), message.routing_key, "").created += 1

    def processed(self, event: Processed, *, duplicate: bool = False) -> None:
        """A delivery was settled; latency is the handler's time."""
        counts = self._now(self.now(), event.message.routing_key, event.queue)
        if duplicate:
            counts.duplicates += 1
            return
        match event.outcome:
            case Done():
                counts.processed += 1
            case Retry():
                counts.failed += 1
                counts.retried += 1
            case Dead():
                counts.failed += 1
                counts.dead += 1
        counts.took(event.duration.total_seconds())

    def measured(self, event: BacklogMeasured | QueueMeasured) -> None:
        """The outbox, or a queue, as it was found; the highest of a minute counts."""
        age = event.oldest_due
        if isinstance(event, BacklogMeasured):
            queue, backlog, age = "", event.unsent, age or timedelta(0)
        else:
            queue, backlog = event.queue, event.depth
        counts = self._now(self.now(), "", queue)
        counts.backlog = max(backlog, counts.backlog or 0)
        if age is not None:
            counts.oldest_age = max(age, counts.oldest_age or timedelta(0))

    def take(self) -> list[tuple[Key, Counts]]:
        """Everything that was added up since the last time, in the order of the keys."""
        minutes, self._minutes, self._names, self._rows = self._minutes, {}, {}, 0
        rows = [(Key(minute, *name), counts) for minute, names in minutes.items() for name, counts in names.items()]
        return sorted(rows, key=lambda row: row[0])

    def give_back(self, taken: Iterable[tuple[Key, Counts]]) -> None:
        """For counts that could not be added now: they are added with the next ones."""
        for key, more in taken:
            known = self._at(*key)
            for name in _COUNTS:
                setattr(known, name, getattr(known, name) + getattr(more, name))
            if more.backlog is not None:
                known.backlog = max(known.backlog or 0, more.backlog)
            if more.oldest_age is not None:
                known.oldest_age = max(known.oldest_age or timedelta(0), more.oldest_age)
            if more.latency is not None:
                known.latency = [a + b for a, b in zip(known.latency or [0] * len(more.latency), more.latency, strict=True)]

    def _now(self, now: float, routing_key: str, queue: str) -> Counts:
        """The row of this minute. Most events are of a name that there was in this minute, and found by one look."""
        if not self._began <= now < self._ends:
            self._minute = _minute_of(now)
            self._began = self._minute.timestamp()
            self._ends = self._began + 60.0
            self._names = {}
        counts = self._names.get((routing_key, queue))
        if counts is None:
            counts = self._at(self._minute, routing_key, queue)
            if len(self._names) < 2 * MOST_KEYS:
                self._names[routing_key, queue] = counts
        return counts

    def _at(self, minute: datetime, routing_key: str, queue: str) -> Counts:
        names = self._minutes.setdefault(minute, {})
        name = (_short(routing_key), _short(queue))
        if name not in names and len(names) >= MOST_KEYS:
            name = (OTHERS, OTHERS if queue else "")
        counts = names.get(name) or Counts()
        if name not in names and self._rows < MOST_ROWS:
            names[name] = counts
            self._rows += 1
        return counts


def _minute_of(now: float) -> datetime:
    return datetime.fromtimestamp(now, UTC).replace(second=0, microsecond=0)


def _short(text: str) -> str:
    return text if len(text) <= MOST_NAME else f"{text[:MOST_NAME]}…"


GroupBy = Literal["none", "queue", "routing_key"]
Span = tuple[datetime, datetime]
"""From, and until: the end is not part of it."""


class SeriesReader:
    """Reads over one connection, which may be in a transaction. Everything raises the driver's errors."""

    def __init__(self, connection: Connection, schema: str | None, group_by: GroupBy, *, queue: str | None = None) -> None:
        self._connection = connection
        self._group_by = group_by
        self._queue = queue
        self._sql = queries("series.sql", **satellite_names(schema))

    async def now(self) -> datetime:
        """The database's clock."""
        now: datetime = await self._connection.fetchval(self._sql["now"])
        return now

    async def coarsest(self, since: datetime, until: datetime, *, hours_matter: bool) -> int:
        """The longest span, in seconds, that statistics of that time are kept by. Hours are looked for if they matter."""
        seconds: int = await self._connection.fetchval(self._sql["coarsest"], since, until, hours_matter)
        return seconds

    async def series(self, asked: Span, covered: Span, steps: Sequence[int], most: int) -> Sequence[Mapping[str, Any]]:
        """What happened in each step, by name, relays and workers apart.

        `steps` are the seconds of a step where there is one name, where there are two, and so on; the last also holds for more.
        `covered` is all that any of them covers of the time that was `asked` for. Of each row `names` says how many names there
        are, up to one more than `most`. The `most` that most happened under have a `place`, from 1 on, the others are `OTHERS`,
        and what belongs to no name has none. Of one queue alone, `OTHERS` are steps in which workers reported anything else.
        """
        name: str = "series"
        arguments: tuple[Any, ...] = (*asked, steps[0])
        if self._queue is not None:
            name, arguments = "series_of_queue", (*arguments, self._queue)
        if self._group_by != "none":
            by_queue = self._group_by == "queue"
            name, arguments = "series_by_name", (*asked, gcd(*steps), *covered, list(steps), most, OTHERS, by_queue)
        rows: Sequence[Any] = await self._connection.fetch(self._sql[name], *arguments)
        return rows


MINUTES_KEPT = timedelta(days=2)
HOURS_KEPT = timedelta(days=60)
BATCH = 1_000
_HOUR, _DAY = 3_600, 86_400


async def thin_stats(
    connection: Connection,
    *,
    schema: str | None = None,
    minutes_kept: timedelta = MINUTES_KEPT,
    hours_kept: timedelta = HOURS_KEPT,
    batch: int = BATCH,
) -> int:
    """Adds up to `batch` old rows to those of longer spans, in UTC; how many those were, so that 0 means that all is done.

    Counts and latencies add up exactly, also while they are added to; of backlog and age the highest stays. Raises the driver's
    errors.
    """
    sql = reporting_queries(schema)["thin_stats"]
    for seconds, kept in ((_HOUR, minutes_kept), (_DAY, hours_kept)):
        async with connection.transaction():
            thinned: int = await connection.fetchval(sql, seconds, kept, batch)
        if thinned:
            return thinned
    return 0
