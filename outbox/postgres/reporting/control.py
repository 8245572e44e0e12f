"""Pauses as rows: asked for, taken back and listed, in whatever transaction the caller has open."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from outbox.errors import ConfigurationError
from outbox.postgres.reporting.statements import reporting_queries

LONGEST_TEXT = 1_000
"""Characters of a name, a reason, and of who asked."""


class PauseScope(StrEnum):
    """What can be paused."""

    RELAY = "relay"
    WORKER = "worker"
    QUEUE = "queue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A wish that something pauses: all relays or workers, or the ones of that name; or a queue, at all workers.

    `until` None: for as long as it is not taken back.
    """

    scope: PauseScope
    name: str = ""
    reason: str | None = None
    requested_by: str | None = None
    requested_at: datetime | None = None
    until: datetime | None = None


async def pause(connection: Any, wanted: Pause, *, schema: str | None = None) -> None:
    """Asks for a pause, in place of one of the same scope and name; components honour it within a second of the commit.

    `connection` is one of asyncpg; `schema` is where the tables are. Raises `ConfigurationError` for a pause that makes no
    sense.
    """
    scope, name = checked(wanted.scope, wanted.name)
    for text in (wanted.reason, wanted.requested_by):
        _require_storable(text or "")
    if wanted.until is not None and wanted.until.tzinfo is None:
        raise ConfigurationError(f"the end of a pause needs a time zone, unlike {wanted.until}")
    sql = _sql(schema)["pause"]
    await connection.execute(sql, scope.value, name, wanted.reason, wanted.requested_by, wanted.until)


async def resume(connection: Any, scope: PauseScope | str, name: str = "", *, schema: str | None = None) -> bool:
    """Takes back the pause of that scope and name; False if there was none. Others that cover the same part stay."""
    checked_scope, checked_name = checked(scope, name)
    return await connection.fetchval(_sql(schema)["resume"], checked_scope.value, checked_name) is not None


async def pauses(connection: Any, *, schema: str | None = None) -> Sequence[Pause]:
    """The pauses that are wanted now."""
    rows = await connection.fetch(_sql(schema)["list_pauses"])
    return [
        Pause(
            scope=PauseScope(row["scope"]),
            name=row["name"],
            reason=row["reason"],
            requested_by=row["requested_by"],
            requested_at=row["requested_at"],
            until=row["until"],
        )
        for row in rows
    ]


def checked(scope: PauseScope | str, name: str) -> tuple[PauseScope, str]:
    """Scope and name of a pause. Raises `ConfigurationError` if there can be no such pause."""
    if scope not in tuple(PauseScope):
        raise ConfigurationError(f"what can be paused is a relay, a worker or a queue, not {scope!r}")
    _require_storable(name)
    if scope == PauseScope.QUEUE and not name:
        raise ConfigurationError("a pause of a queue names the queue")
    return PauseScope(scope), name


def _require_storable(text: object) -> None:
    if not isinstance(text, str) or "\0" in text or len(text) > LONGEST_TEXT:
        raise ConfigurationError(f"a name or reason is text of at most {LONGEST_TEXT:,} characters without NUL")


def _sql(schema: str | None) -> Any:
    return reporting_queries(schema)
