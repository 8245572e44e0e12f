"""Reading statistics as series: added up by steps of time, and told apart by queue or routing key."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from outbox.postgres.pool import Connection
from outbox.postgres.queries import queries
from outbox.postgres.reporting.statements import ORIGIN
from outbox.postgres.reporting.statistics import LATENCY_BOUNDS, OTHERS
from outbox.postgres.schema.objects import satellite_names

GroupBy = Literal["none", "queue", "routing_key"]

_GROUPS: Mapping[GroupBy, tuple[str, str]] = {
    "none": ("''", "true"),
    "queue": ("queue", "queue <> ''"),
    "routing_key": ("routing_key", "(routing_key <> '' or created + sent + processed + failed + duplicates > 0)"),
}
"""By what rows are told apart, and which of them belong to any group."""


class SeriesReader:
    """Reads over one connection, which may be in a transaction. Everything raises the driver's errors."""

    def __init__(self, connection: Connection, schema: str | None, group_by: GroupBy) -> None:
        group, belongs = _GROUPS[group_by]
        sums = ", ".join(f"sum(latency[{number}])" for number in range(1, len(LATENCY_BOUNDS) + 2))
        self._connection = connection
        self._group_by = group_by
        self._sql = queries("series.sql", origin=ORIGIN, group=group, belongs=belongs, sums=sums, **satellite_names(schema))

    async def now(self) -> datetime:
        """The database's clock."""
        now: datetime = await self._connection.fetchval(self._sql["now"])
        return now

    async def coarsest(self, since: datetime, until: datetime, *, hours_matter: bool) -> int:
        """The longest span, in seconds, that statistics of that time are kept by. Hours are looked for if they matter."""
        seconds: int = await self._connection.fetchval(self._sql["coarsest"], since, until, hours_matter)
        return seconds

    async def groups(self, since: datetime, until: datetime, most: int) -> list[str]:
        """The names that most happened under, most first."""
        return [row["name"] for row in await self._connection.fetch(self._sql["groups"], since, until, most)]

    async def reported(
        self, since: datetime, until: datetime, step: int, series: Sequence[Mapping[str, Any]]
    ) -> Sequence[Mapping[str, Any]]:
        """Of which spans relays and workers told anything. Where `series` left out no rows that matter, it tells that."""
        if self._group_by != "routing_key":
            return [_reported(row) for row in series]
        rows: Sequence[Any] = await self._connection.fetch(self._sql["reported"], since, until, step)
        return rows

    async def series(self, since: datetime, until: datetime, step: int, names: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        """What happened in each span, by name, relays and workers apart; names that were not asked for are `OTHERS`."""
        rows: Sequence[Any] = await self._connection.fetch(self._sql["series"], since, until, step, list(names), OTHERS)
        return rows


def _reported(row: Mapping[str, Any]) -> Mapping[str, Any]:
    by_relays = row["of_relays"] and (row["sent"] > 0 or row["backlog"] is not None)
    return {"span": row["span"], "by_relays": by_relays, "by_workers": not row["of_relays"]}
