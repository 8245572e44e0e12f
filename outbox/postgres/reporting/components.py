"""Which relays, workers and archivers there are, and whether they live."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import asyncpg

from outbox.postgres.pool import Connection
from outbox.postgres.reporting.component import ComponentKind
from outbox.postgres.reporting.statements import reporting_queries

MOST_ENDED = 50
"""Lost and stopped components that are listed."""


class Condition(StrEnum):
    """Late: two signs of life are missing; lost: six are."""

    ALIVE = "alive"
    LATE = "late"
    LOST = "lost"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownComponent:
    """A relay, worker, archiver or maintenance task, as its last sign of life tells; `applied` are the pauses it honours."""

    id: str
    kind: ComponentKind
    name: str
    host: str
    process_id: int
    version: str
    condition: Condition
    started_at: datetime
    seen_at: datetime
    stopped_at: datetime | None
    every: timedelta
    activity: Mapping[str, Any]
    consumers: Sequence[Mapping[str, Any]]
    applied: Sequence[Mapping[str, str]]


async def components(connection: Connection, *, schema: str | None = None) -> Sequence[KnownComponent]:
    """All that are known, by kind and name. Raises the driver's errors."""
    return [_component(row) for row in await connection.fetch(reporting_queries(schema)["list_components"])]


async def recent_components(
    connection: Connection, *, schema: str | None = None, ended: int = MOST_ENDED, schemas: bool = False
) -> Sequence[KnownComponent]:
    """Those that live, up to a thousand, and of the lost and stopped the `ended` last. `schemas`: with those of bodies."""
    rows = await connection.fetch(reporting_queries(schema)["list_recent_components"], ended, schemas)
    return [_component(row) for row in rows]


def _component(row: asyncpg.Record) -> KnownComponent:
    return KnownComponent(
        **{
            **dict(row),
            "kind": ComponentKind(row["kind"]),
            "condition": Condition(row["condition"]),
            "activity": json.loads(row["activity"]),
            "consumers": json.loads(row["consumers"]),
            "applied": json.loads(row["applied"]),
        }
    )
