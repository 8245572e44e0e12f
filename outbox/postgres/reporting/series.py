"""Reading statistics as series: added up by steps of time, and told apart by queue or routing key."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from math import gcd
from typing import Any, Literal

from outbox.postgres.pool import Connection
from outbox.postgres.queries import queries
from outbox.postgres.reporting.statements import ORIGIN
from outbox.postgres.reporting.statistics import LATENCY_BOUNDS, OTHERS
from outbox.postgres.schema.objects import satellite_names

GroupBy = Literal["none", "queue", "routing_key"]
Span = tuple[datetime, datetime]
"""From, and until: the end is not part of it."""

_COUNTS = ("created", "sent", "processed", "failed", "retried", "dead", "duplicates")
_BUCKETS = range(1, len(LATENCY_BOUNDS) + 2)
_GROUPS: Mapping[GroupBy, tuple[str, str]] = {
    "none": ("null::text", "true"),
    "queue": ("queue", "queue <> ''"),
    "routing_key": (
        "case when routing_key <> '' or created + sent + processed + failed + duplicates > 0 then routing_key end",
        "true",
    ),
}
"""What rows are told apart by, null where they belong to no group; and which of them are read."""


class SeriesReader:
    """Reads over one connection, which may be in a transaction. Everything raises the driver's errors."""

    def __init__(self, connection: Connection, schema: str | None, group_by: GroupBy) -> None:
        group, belongs = _GROUPS[group_by]
        self._connection = connection
        self._sql = queries("series.sql", origin=ORIGIN, group=group, belongs=belongs, **_sums(), **satellite_names(schema))

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
        and what belongs to no name has none.
        """
        rows: Sequence[Any] = await self._connection.fetch(
            self._sql["series"], *asked, gcd(*steps), *covered, list(steps), most, OTHERS
        )
        return rows


def _sums() -> Mapping[str, str]:
    """The columns of counts and of the buckets of latencies: of cells, and of what is made of cells."""
    buckets = [f"sum(latency[{number}]::float8) as bucket_{number}" for number in _BUCKETS]
    return {
        "cell_sums": ", ".join([*(f"sum({name}::float8) as {name}" for name in _COUNTS), *buckets]),
        "sums": ", ".join(f"sum({name})::bigint as {name}" for name in _COUNTS),
        "latency": ", ".join(f"sum(bucket_{number})" for number in _BUCKETS),
    }
