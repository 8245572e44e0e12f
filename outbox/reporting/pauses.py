"""Pauses: set, ended and listed in the caller's transaction, and watched by the components that they concern."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from outbox.errors import ConfigurationError
from outbox.reporting.queries import reporting_queries

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
    sql = reporting_queries(schema)["pause"]
    await connection.execute(sql, scope.value, name, wanted.reason, wanted.requested_by, wanted.until)


async def resume(connection: Any, scope: PauseScope | str, name: str = "", *, schema: str | None = None) -> bool:
    """Takes back the pause of that scope and name; False if there was none. Others that cover the same part stay."""
    checked_scope, checked_name = checked(scope, name)
    return await connection.fetchval(reporting_queries(schema)["resume"], checked_scope.value, checked_name) is not None


async def pauses(connection: Any, *, schema: str | None = None) -> Sequence[Pause]:
    """The pauses that are wanted now."""
    rows = await connection.fetch(reporting_queries(schema)["list_pauses"])
    return [Pause(**{**dict(row), "scope": PauseScope(row["scope"])}) for row in rows]


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


Wish = tuple[str, str]
"""The scope and the name of a pause, as in the table."""


@dataclass(slots=True)
class ControlledGate:
    """Implements the Gate port: closed while any of `closed_by` is wanted."""

    closed_by: frozenset[Wish]
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

    def heed(self, wanted: Iterable[Wish]) -> None:
        """Closes or opens, as `wanted` has it."""
        closed = not self.closed_by.isdisjoint(wanted)
        entered, left = (self._closing, self._opened) if closed else (self._opened, self._closing)
        entered.set()
        left.clear()


class Gates:
    """The gates of one component, and the pauses that hold. While the database is away, what was wanted last stays wanted."""

    def __init__(self, kind: str, name: str, *, now: Callable[[], float]) -> None:
        self._own = frozenset({(kind, ""), (kind, name)})
        self._now = now
        self._gates: dict[str, ControlledGate] = {}
        self._ends: dict[Wish, float | None] = {}

    def of(self, queue: str = "") -> ControlledGate:
        """The gate of a consumer of `queue`; without one, that of the component itself."""
        gate = self._gates.get(queue)
        if gate is None:
            gate = self._gates[queue] = ControlledGate(self._own | {("queue", queue)} if queue else self._own)
            gate.heed(self._ends)
        return gate

    def heed(self, ends: Mapping[Wish, float | None]) -> None:
        """Takes note of the pauses that are wanted, and when, by this process's clock, each of them ends."""
        self._ends = {wish: end for wish, end in ends.items() if end is None or end > self._now()}
        for gate in self._gates.values():
            gate.heed(self._ends)

    @property
    def next_end(self) -> float | None:
        """When the next pause ends by itself, by this process's clock; None if none does."""
        return min((end for end in self._ends.values() if end is not None), default=None)

    def tick(self) -> None:
        """Ends the pauses whose time is over, also while the database is away."""
        self.heed(self._ends)

    def heeded(self, paused: Iterable[str]) -> "Heeded":
        """The pauses that hold and concern a gate, `paused` being the queues at rest, or "" for the component itself."""
        resting = frozenset(paused)
        concerned = {
            wish: {queue for queue, gate in self._gates.items() if wish in gate.closed_by} for wish in sorted(self._ends)
        }
        applied = [wish for wish, queues in concerned.items() if queues and queues <= resting]
        pending = [wish for wish, queues in concerned.items() if queues - resting]
        return Heeded(tuple(applied), tuple(pending))


@dataclass(frozen=True, slots=True)
class Heeded:
    """Pauses that are honoured, and those that wait for what is in flight."""

    applied: tuple[Wish, ...] = ()
    pending: tuple[Wish, ...] = ()
