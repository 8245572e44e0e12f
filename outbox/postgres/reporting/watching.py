"""Looking at what changes: the state of everything an operator watches, as small values that can be compared."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from outbox.postgres.names import TableName
from outbox.postgres.pool import Connection
from outbox.postgres.queries import queries
from outbox.postgres.reporting.component import ComponentKind
from outbox.postgres.reporting.components import Condition, KnownComponent, recent_components
from outbox.postgres.reporting.control import pauses
from outbox.postgres.schema.objects import satellite_names

MOST_COUNTED = 10_000
MOST_OPERATIONS = 20
REPORTED_WITHIN = timedelta(seconds=15)
"""What happened is added to statistics within this time, by every process that lives."""

Topic = tuple[str, str]
"""What a value is about: a kind, and of which one; the name is empty where there is one only."""


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen: values of JSON by what they are about, and which of the sessions go on that were asked about."""

    values: Mapping[Topic, Any]
    sessions: frozenset[bytes]


class Watching:
    """Looks over one connection at a time. Raises the driver's errors."""

    def __init__(self, table: TableName) -> None:
        self._schema = table.schema
        self._sql = queries("watching.sql", table=table.sql, **satellite_names(table.schema))

    async def look(self, connection: Connection, sessions: Iterable[bytes]) -> Look:
        """Everything as it is now."""
        now = await connection.fetchval(self._sql["now"])
        known = await recent_components(connection, schema=self._schema)
        values: dict[Topic, Any] = {
            ("statistics", ""): _last_complete_minute(now),
            ("backlog", ""): _backlog(known),
            ("dead-letters", ""): await self._dead_letters(connection),
            ("pauses", ""): [
                {"scope": each.scope.value, "name": each.name, "until": _written(each.until)}
                for each in await pauses(connection, schema=self._schema)
            ],
        }
        values |= {("component", each.id): _component(each) for each in known}
        for row in await connection.fetch(self._sql["operations"], MOST_OPERATIONS):
            values["operation", str(row["id"])] = {**dict(row), "id": str(row["id"])}
        return Look(values, await self._sessions(connection, list(sessions)))

    async def _dead_letters(self, connection: Connection) -> Mapping[str, Any]:
        row = await connection.fetchrow(self._sql["dead_letters"], MOST_COUNTED + 1)
        assert row is not None  # noqa: S101  a select without a table
        counts = {
            name: {"value": min(row[name], MOST_COUNTED), "relation": _relation(row[name])} for name in ("open", "parked")
        }
        times = {name: _written(row[name]) for name in ("last_death", "last_parked", "last_resolution")}
        return {**counts, **times}

    async def _sessions(self, connection: Connection, asked: list[bytes]) -> frozenset[bytes]:
        rows = await connection.fetch(self._sql["sessions"], asked) if asked else []
        return frozenset(bytes(row["token_hash"]) for row in rows)


def _last_complete_minute(now: datetime) -> Mapping[str, Any]:
    ended = (now - REPORTED_WITHIN).replace(second=0, microsecond=0)
    return {"starts_at": _written(ended - timedelta(minutes=1)), "step_seconds": 60}


def _backlog(known: Iterable[KnownComponent]) -> Mapping[str, Any]:
    """As the relay tells it that was heard of last."""
    relays = [
        each
        for each in known
        if each.kind is ComponentKind.RELAY and each.condition is Condition.ALIVE and "unsent" in each.activity
    ]
    latest = max(relays, key=lambda each: each.seen_at, default=None)
    activity = {} if latest is None else latest.activity
    return {"unsent": activity.get("unsent"), "oldest_due_seconds": activity.get("oldest_due_seconds")}


def _component(known: KnownComponent) -> Mapping[str, Any]:
    return {
        "id": known.id,
        "kind": known.kind.value,
        "name": known.name,
        "condition": known.condition.value,
        "state": known.activity.get("state"),
    }


def _relation(count: int) -> str:
    return "eq" if count <= MOST_COUNTED else "gte"


def _written(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
