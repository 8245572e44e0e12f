"""Statistics by minute, routing key and queue: summed in memory, merged into the table, read as series, and thinned out."""

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

LATENCY_BOUNDS = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 3_600, 21_600, 86_400,
)  # fmt: skip
"""Upper bounds of the buckets of `latency` in seconds, inclusive. One more bucket counts longer times.

Never change them: the table stores the buckets without their bounds.
"""
MOST_KEYS = 500
"""Number of pairs of routing key and queue that a process counts separately in one minute."""
MOST_ROWS = 20_000
"""Number of rows buffered while the database is away; events that would need another row are not counted."""
OTHERS = "(others)"
"""Name under which further pairs are counted together."""
MOST_NAME = 255
"""Maximum length of a routing key or queue. Longer ones are cut, because they are part of an index."""
OLDEST_SECONDS = 2 * 86_400.0
"""Maximum age of a message for counting its creation; older ones count at this age, because earlier minutes are thinned out."""

_COUNTS = ("created", "sent", "processed", "failed", "retried", "dead", "duplicates")
_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True)
class Counts:
    """Counts to add to one row of the table."""

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

    def add_latency(self, seconds: float) -> None:
        """Increments the bucket of `seconds`."""
        if self.latency is None:
            self.latency = [0] * (len(LATENCY_BOUNDS) + 1)
        self.latency[bisect_left(LATENCY_BOUNDS, seconds)] += 1


class Key(NamedTuple):
    """Key of a row in the table: start of the minute, routing key, queue."""

    minute: datetime
    routing_key: str
    queue: str


@dataclass(slots=True)
class Statistics:
    """Sums events in memory. `now` estimates the database's clock, in seconds since 1970."""

    now: Callable[[], float]
    _minutes: dict[datetime, dict[tuple[str, str], Counts]] = field(default_factory=dict)
    _names: dict[tuple[str, str], Counts] = field(default_factory=dict)
    _minute: datetime = _NEVER
    _began: float = 0.0
    _ends: float = 0.0
    _rows: int = 0
    _highest: dict[str, tuple[float, int, timedelta | None]] = field(default_factory=dict)
    """By queue, "" for the outbox: minute, backlog and age of the highest measurements that were recorded."""

    def sent(self, event: BatchSent) -> None:
        """Counts sent messages in the current minute, and as created in their own; latency is their time in the outbox."""
        now = self.now()
        for message in event.messages:
            counts = self._counts_now(now, message.routing_key, "")
            counts.sent += 1
            age = message.age.total_seconds()
            counts.add_latency(age)
            created = now - min(age, OLDEST_SECONDS)
            if created >= self._began:
                counts.created += 1
            else:
                self._counts_at(_minute_of(created), message.routing_key, "").created += 1

    def processed(self, event: Processed, *, duplicate: bool = False) -> None:
        """Counts a settled delivery; latency is the time in the handler."""
        counts = self._counts_now(self.now(), event.message.routing_key, event.queue)
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
        counts.add_latency(event.duration.total_seconds())

    def measured(self, event: BacklogMeasured | QueueMeasured) -> None:
        """Records a measured backlog of the outbox or a queue; the maximum of each minute is kept.

        What does not exceed the maximum that was recorded for the minute changes nothing, and is not written again.
        """
        age = event.oldest_due
        if isinstance(event, BacklogMeasured):
            queue, backlog, age = "", event.unsent, age or timedelta(0)
        else:
            queue, backlog = event.queue, event.depth
        now = self.now()
        minute = now // 60
        known_minute, most, oldest = self._highest.get(queue, (minute, -1, None))
        if known_minute != minute:
            most, oldest = -1, None
        if backlog <= most and (age is None or (oldest is not None and age <= oldest)):
            return
        if age is not None:
            oldest = max(age, oldest or age)
        self._highest[queue] = (minute, max(backlog, most), oldest)
        counts = self._counts_now(now, "", queue)
        counts.backlog = max(backlog, counts.backlog or 0)
        if age is not None:
            counts.oldest_age = max(age, counts.oldest_age or timedelta(0))

    def take(self) -> list[tuple[Key, Counts]]:
        """Removes and returns all counts, sorted by key."""
        minutes, self._minutes, self._names, self._rows = self._minutes, {}, {}, 0
        # Every process adds its rows in this order, so that concurrent transactions do not deadlock.
        rows = [(Key(minute, *name), counts) for minute, names in minutes.items() for name, counts in names.items()]
        return sorted(rows, key=lambda row: row[0])

    def give_back(self, taken: Iterable[tuple[Key, Counts]]) -> None:
        """Adds counts back that could not be written now."""
        for key, more in taken:
            known = self._counts_at(*key)
            for name in _COUNTS:
                setattr(known, name, getattr(known, name) + getattr(more, name))
            if more.backlog is not None:
                known.backlog = max(known.backlog or 0, more.backlog)
            if more.oldest_age is not None:
                known.oldest_age = max(known.oldest_age or timedelta(0), more.oldest_age)
            if more.latency is not None:
                known.latency = [a + b for a, b in zip(known.latency or [0] * len(more.latency), more.latency, strict=True)]

    def _counts_now(self, now: float, routing_key: str, queue: str) -> Counts:
        """Returns the counts of the current minute."""
        # Called for every message: a cache by full names saves truncating them and computing the minute.
        if not self._began <= now < self._ends:
            self._minute = _minute_of(now)
            self._began = self._minute.timestamp()
            self._ends = self._began + 60.0
            self._names = {}
        counts = self._names.get((routing_key, queue))
        if counts is None:
            counts = self._counts_at(self._minute, routing_key, queue)
            if len(self._names) < 2 * MOST_KEYS:
                self._names[routing_key, queue] = counts
        return counts

    def _counts_at(self, minute: datetime, routing_key: str, queue: str) -> Counts:
        names = self._minutes.setdefault(minute, {})
        name = (_truncated(routing_key), _truncated(queue))
        if name not in names and len(names) >= MOST_KEYS:
            name = (OTHERS, OTHERS if queue else "")
        counts = names.get(name) or Counts()
        # Beyond the limit, the counts go into an object that nothing keeps: callers need no other path.
        if name not in names and self._rows < MOST_ROWS:
            names[name] = counts
            self._rows += 1
        return counts


def _minute_of(now: float) -> datetime:
    return datetime.fromtimestamp(now, UTC).replace(second=0, microsecond=0)


def _truncated(text: str) -> str:
    return text if len(text) <= MOST_NAME else f"{text[:MOST_NAME]}…"


GroupBy = Literal["none", "queue", "routing_key"]
Span = tuple[datetime, datetime]
"""Start and end of a period; the end is exclusive."""


class SeriesReader:
    """Reads series of statistics over one connection, which may be in a transaction. Raises the driver's errors."""

    def __init__(self, connection: Connection, schema: str | None, group_by: GroupBy, *, queue: str | None = None) -> None:
        self._connection = connection
        self._group_by = group_by
        self._queue = queue
        self._sql = queries("series.sql", **satellite_names(schema))

    async def now(self) -> datetime:
        """Returns the database's time."""
        now: datetime = await self._connection.fetchval(self._sql["now"])
        return now

    async def coarsest(self, since: datetime, until: datetime, *, hours_matter: bool) -> int:
        """Returns the longest step of the statistics in that period, in seconds. `hours_matter`: check for hourly rows, too."""
        seconds: int = await self._connection.fetchval(self._sql["coarsest"], since, until, hours_matter)
        return seconds

    async def series(self, asked: Span, covered: Span, steps: Sequence[int], most: int) -> Sequence[Mapping[str, Any]]:
        """Returns the counts of each step by name, with relays and workers in separate rows.

        `steps` lists the length of a step in seconds for one name, for two names, and so on; the last applies to more names.
        `covered` is the period that these steps cover of the `asked` one. In each row, `names` is the number of names, up to
        `most` + 1. The `most` busiest names have a `place`, starting with 1; the others are summed as `OTHERS`, and rows
        without a name have no place. For a single queue, `OTHERS` are steps in which workers reported other queues.
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
