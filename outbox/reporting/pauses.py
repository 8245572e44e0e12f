"""Pauses: set, end and list them in the caller's transaction; and the gates that make components follow them."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from outbox.errors import ConfigurationError
from outbox.reporting.tables import reporting_queries

MAX_TEXT = 1_000
"""Maximum length of a name, a reason and a requester."""


class PauseScope(StrEnum):
    """Kind of target that can be paused."""

    RELAY = "relay"
    WORKER = "worker"
    QUEUE = "queue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Pause of all relays or workers, of those with a name, or of a queue in all workers.

    With `until` None it lasts until it is resumed.
    """

    scope: PauseScope
    name: str = ""
    reason: str | None = None
    requested_by: str | None = None
    requested_at: datetime | None = None
    until: datetime | None = None


async def pause(connection: Any, wanted: Pause, *, schema: str | None = None) -> None:
    """Sets a pause, replacing one with the same scope and name. Components apply it within a second of the commit.

    `connection` is an asyncpg connection; `schema` is the schema of the tables. Raises `ConfigurationError` for an invalid
    pause.
    """
    scope, name = checked_target(wanted.scope, wanted.name)
    for text in (wanted.reason, wanted.requested_by):
        _require_storable(text or "")
    if wanted.until is not None and wanted.until.tzinfo is None:
        raise ConfigurationError(f"the end of a pause needs a time zone, but {wanted.until} has none")
    sql = reporting_queries(schema)["pause"]
    await connection.execute(sql, scope.value, name, wanted.reason, wanted.requested_by, wanted.until)


async def resume(connection: Any, scope: PauseScope | str, name: str = "", *, schema: str | None = None) -> bool:
    """Ends the pause with that scope and name; False if there was none. Other pauses of the same component or queue remain."""
    checked_scope, checked_name = checked_target(scope, name)
    return await connection.fetchval(reporting_queries(schema)["resume"], checked_scope.value, checked_name) is not None


async def pauses(connection: Any, *, schema: str | None = None) -> Sequence[Pause]:
    """Returns the current pauses."""
    rows = await connection.fetch(reporting_queries(schema)["list_pauses"])
    return [Pause(**{**dict(row), "scope": PauseScope(row["scope"])}) for row in rows]


def checked_target(scope: PauseScope | str, name: str) -> tuple[PauseScope, str]:
    """Validates the scope and name of a pause. Raises `ConfigurationError` if they are invalid."""
    if scope not in tuple(PauseScope):
        raise ConfigurationError(f"the scope of a pause is relay, worker or queue, not {scope!r}")
    _require_storable(name)
    if scope == PauseScope.QUEUE and not name:
        raise ConfigurationError("a pause of a queue needs the name of the queue")
    return PauseScope(scope), name


def _require_storable(text: object) -> None:
    if not isinstance(text, str) or "\0" in text or len(text) > MAX_TEXT:
        raise ConfigurationError(f"a name or reason is text of at most {MAX_TEXT:,} characters without NUL")


PauseKey = tuple[str, str]
"""Scope and name of a pause, as in the table."""


@dataclass(slots=True)
class ControlledGate:
    """Implements the Gate port. Closed while any pause of `closed_by` is set."""

    closed_by: frozenset[PauseKey]
    # Two events for one fact: an `asyncio.Event` can be waited for only until it is set.
    _closing: asyncio.Event = field(default_factory=asyncio.Event)
    _opened: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._opened.set()

    @property
    def closed(self) -> bool:
        """See `outbox.ports.Gate.closed`."""
        return self._closing.is_set()

    async def wait_until_open(self) -> None:
        """See `outbox.ports.Gate.wait_until_open`."""
        await self._opened.wait()

    async def wait_until_closed(self) -> None:
        """See `outbox.ports.Gate.wait_until_closed`."""
        await self._closing.wait()

    def update(self, pauses: Iterable[PauseKey]) -> None:
        """Closes the gate if one of the current `pauses` concerns it, and opens it otherwise."""
        closed = not self.closed_by.isdisjoint(pauses)
        entered, left = (self._closing, self._opened) if closed else (self._opened, self._closing)
        entered.set()
        left.clear()


class Gates:
    """The gates of one component, and the current pauses. While the database is away, the last known pauses stay in effect."""

    def __init__(self, kind: str, name: str, *, now: Callable[[], float]) -> None:
        self._own = frozenset({(kind, ""), (kind, name)})
        self._now = now
        self._gates: dict[str, ControlledGate] = {}
        self._ends: dict[PauseKey, float | None] = {}

    def of(self, queue: str = "") -> ControlledGate:
        """Returns the gate of a consumer of `queue`, or of the component itself."""
        gate = self._gates.get(queue)
        if gate is None:
            gate = self._gates[queue] = ControlledGate(self._own | {("queue", queue)} if queue else self._own)
            # A consumer that starts during a pause must be paused from its first message on, and not only after the next look.
            gate.update(self._ends)
        return gate

    def update(self, ends: Mapping[PauseKey, float | None]) -> None:
        """Replaces the current pauses. `ends` maps each to its end by this process's clock, or None."""
        # By a monotonic clock, so that a pause ends on time even if the clock of the machine is set, or the database is away.
        self._ends = {key: end for key, end in ends.items() if end is None or end > self._now()}
        for gate in self._gates.values():
            gate.update(self._ends)

    @property
    def next_end(self) -> float | None:
        """Time of this process's clock at which the next pause expires; None if none does."""
        return min((end for end in self._ends.values() if end is not None), default=None)

    def tick(self) -> None:
        """Ends expired pauses, also while the database is away."""
        self.update(self._ends)

    def progress(self, paused: Iterable[str]) -> "PauseProgress":
        """Sorts the current pauses by whether they are in effect. `paused` are the queues at rest, "" for the component."""
        resting = frozenset(paused)
        concerned = {key: {queue for queue, gate in self._gates.items() if key in gate.closed_by} for key in sorted(self._ends)}
        applied = [key for key, queues in concerned.items() if queues and queues <= resting]
        pending = [key for key, queues in concerned.items() if queues - resting]
        return PauseProgress(tuple(applied), tuple(pending))


@dataclass(frozen=True, slots=True)
class PauseProgress:
    """Pauses in effect, and pauses that still wait for messages in flight."""

    applied: tuple[PauseKey, ...] = ()
    pending: tuple[PauseKey, ...] = ()
