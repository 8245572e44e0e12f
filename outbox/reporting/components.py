"""Components (relays, workers, archivers, maintenance): their activity and their heartbeats."""

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import uuid4

import asyncpg

from outbox.core.destinations import DEFAULT
from outbox.core.events import (
    BacklogMeasured,
    BatchSent,
    CircuitClosed,
    CircuitOpened,
    ConsumerStarted,
    Dependency,
    DependencyLost,
    DependencyRestored,
    Event,
    IsolationStep,
    MaintenanceStarted,
    MaintenanceStopped,
    Paused,
    PoisonIsolated,
    Processed,
    RelayStarted,
    Resumed,
    SendFailed,
    SettleFailed,
    WakeModeChanged,
)
from outbox.core.outcome import Dead, Retry
from outbox.core.urls import redacted
from outbox.engine.index_keys import IndexKeys
from outbox.engine.lifecycle import Stopping
from outbox.postgres.pool import Connection
from outbox.postgres.queries import TableName, queries
from outbox.postgres.schema.objects import satellite_names
from outbox.reporting.facts import CAPACITY
from outbox.reporting.pauses import pauses
from outbox.reporting.tables import reporting_queries

TICK = timedelta(milliseconds=500)
"""Time for which facts are collected, to be written in one batch."""
LOOK_EVERY = timedelta(minutes=1)
"""Interval at which pauses and the database's clock are read, if changes of pauses are also notified."""
POLL_EVERY = timedelta(seconds=1)
"""Interval at which pauses are read if notifications do not arrive."""
ADD_UP_EVERY = timedelta(seconds=10)


class ComponentKind(StrEnum):
    """Kind of a component that reports."""

    RELAY = "relay"
    WORKER = "worker"
    ARCHIVER = "archiver"
    MAINTENANCE = "maintenance"


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A reporting component. `consumers` describes a worker's consumers as JSON; `service_version` is the service's release.

    `destination` is the one that a relay serves; None for other kinds.
    """

    kind: ComponentKind
    name: str
    service_version: str | None = None
    destination: str | None = None
    consumers: Sequence[Mapping[str, Any]] = ()
    id: str = field(default_factory=lambda: str(uuid4()))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportingSettings:
    """Settings of a reporter. `history`: whether facts are written; `heartbeat`: the interval between heartbeats.

    `borrows`: whether the connection is shared, and returned after each round. `index_keys`: by queue, the index keys under
    which the history stores messages.
    """

    history: bool = True
    index_keys: Mapping[str, IndexKeys] = field(default_factory=dict)
    borrows: bool = False
    heartbeat: timedelta = timedelta(seconds=5)
    tick: timedelta = TICK
    look_every: timedelta = LOOK_EVERY
    poll_every: timedelta = POLL_EVERY
    add_up_every: timedelta = ADD_UP_EVERY
    capacity: int = CAPACITY


MOST_ENDED = 50
"""Number of lost and stopped components that are listed."""


class ComponentStatus(StrEnum):
    """Status of a component by its heartbeats. `LATE`: two are missing; `LOST`: six are missing."""

    ALIVE = "alive"
    LATE = "late"
    LOST = "lost"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownComponent:
    """A component as of its last heartbeat. `every` is the interval between heartbeats, `applied` the pauses in effect."""

    id: str
    kind: ComponentKind
    name: str
    host: str
    process_id: int
    version: str
    service_version: str | None
    condition: ComponentStatus
    started_at: datetime
    seen_at: datetime
    stopped_at: datetime | None
    every: timedelta
    activity: Mapping[str, Any]
    consumers: Sequence[Mapping[str, Any]]
    applied: Sequence[Mapping[str, str]]

    def has_paused(self, queue: str) -> bool:
        """Whether this worker takes nothing from `queue`, because the queue or the whole worker is paused."""
        state, queues = self.activity.get("state"), self.activity.get("paused_queues")
        # It reports `paused` as soon as one queue is, with a list. "" in the list stands for all; so does no list.
        return queue in queues or "" in queues if isinstance(queues, list) else state == "paused"


async def components(connection: Connection, *, schema: str | None = None) -> Sequence[KnownComponent]:
    """Returns all components, sorted by kind and name. Raises the driver's errors."""
    return [_component(row) for row in await connection.fetch(reporting_queries(schema)["list_components"])]


async def recent_components(
    connection: Connection, *, schema: str | None = None, ended: int = MOST_ENDED, schemas: bool = False
) -> Sequence[KnownComponent]:
    """Returns up to a thousand running components, and the last `ended` lost or stopped ones. `schemas`: with body schemas."""
    rows = await connection.fetch(reporting_queries(schema)["list_recent_components"], ended, schemas)
    return [_component(row) for row in rows]


def _component(row: asyncpg.Record) -> KnownComponent:
    activity, consumers, applied = (json.loads(row[name]) for name in ("activity", "consumers", "applied"))
    # A heartbeat may come from another release: what has an unexpected form is skipped.
    return KnownComponent(
        **{
            **dict(row),
            "kind": ComponentKind(row["kind"]),
            "condition": ComponentStatus(row["condition"]),
            "activity": activity if isinstance(activity, dict) else {},
            "consumers": [
                each
                for each in (consumers if isinstance(consumers, list) else ())
                if isinstance(each, dict) and all(isinstance(each.get(name, ""), str) for name in ("queue", "binding_key"))
            ],
            "applied": [each for each in applied if isinstance(each, dict)] if isinstance(applied, list) else [],
        }
    )


RATE_SECONDS = 10.0
"""Period over which rates are averaged."""
MOST_TEXT = 500
MOST_POISON = 10
"""Number of poison messages that a heartbeat lists."""


@dataclass(slots=True)
class Activity:
    """Collects the content of heartbeats from events. `clock` is a monotonic clock in seconds; `now` is the time of day."""

    stopping: Stopping
    clock: Callable[[], float]
    now: Callable[[], datetime]
    initial_state: str = "starting"
    """State until an event says that the component has started."""
    destination: str | None = None
    """The destination that a relay serves."""
    in_flight: Callable[[], int] | None = None
    """Returns the number of messages in flight; called for each heartbeat."""
    paused: set[str] = field(default_factory=set)
    """Paused queues that have come to rest; "" for a relay."""
    failing: set[str] = field(default_factory=set)
    """Queues whose consumer has paused itself because its handler failed."""
    poison: dict[tuple[str, str], str] = field(default_factory=dict)
    """Poison messages that are being isolated, by queue and id, with the current step."""
    changed: bool = True
    """Whether the state has changed since the last heartbeat."""
    _running: bool = False
    _lost: dict[Dependency, str] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)
    _values: dict[str, Any] = field(default_factory=dict)
    _samples: deque[tuple[float, dict[str, int]]] = field(default_factory=deque)

    def record(self, event: Event) -> None:
        """Updates counts and state from `event`."""
        # Most events are not in the set, and this lookup is cheaper than trying each case.
        if type(event) not in _RECORDED_EVENTS:
            return
        match event:
            case Processed(outcome=outcome):
                self._count(event.status)
                if isinstance(outcome, Retry | Dead):
                    self._record_error(event.queue, outcome.failure)
            case BatchSent():
                self._count("sent", len(event.messages))
                self._values["last_sent_at"] = self._timestamp()
            case SendFailed():
                self._count(event.type.value)
                if isinstance(event.outcome, Retry | Dead):
                    self._record_error(event.routing_key, event.failure)
            case BacklogMeasured(oldest_due=oldest):
                self._values["unsent"] = event.unsent
                self._values["oldest_due_age_seconds"] = None if oldest is None else oldest.total_seconds()
            case WakeModeChanged():
                self._values["wakes_by"] = event.mode.value
            case SettleFailed():
                self._count("settle_failed")
                self._record_error(event.queue, event.reason)
            case _:
                self._change_state(event)
                self.changed = True

    def record_lost_facts(self, count: int) -> None:
        """Counts facts of the history that could not be written and were dropped."""
        self._values["history_lost_count"] = self._values.get("history_lost_count", 0) + count
        self._values["history_lost_at"] = self._timestamp()

    def _change_state(self, event: Event) -> None:
        match event:
            case ConsumerStarted() | MaintenanceStarted() | RelayStarted():
                self._running = True
            case MaintenanceStopped():
                self._running = False
            case DependencyLost():
                self._lost[event.dependency] = redacted(event.reason)[:MOST_TEXT]
            case DependencyRestored():
                self._lost.pop(event.dependency, None)
            case Paused():
                self.paused.add(event.queue or "")
            case Resumed():
                self.paused.discard(event.queue or "")
            case CircuitOpened():
                self.failing.add(event.queue)
            case CircuitClosed():
                self.failing.discard(event.queue)
            case PoisonIsolated():
                self._record_poison(event)

    @property
    def state(self) -> str:
        """Current state in a word or a few."""
        if self.stopping.requested:
            return "draining"
        if self.paused:
            return "paused"
        if self._lost:
            return f"waiting for {next(iter(self._lost)).value}"
        if any(step != IsolationStep.POSTPONED for step in self.poison.values()):
            return "isolating a poison message"
        return "running" if self._running else self.initial_state

    def as_json(self, *, pausing: Sequence[Mapping[str, str]] = ()) -> str:
        """Content of the heartbeat as JSON; `pausing` are pauses that wait for messages in flight."""
        at, counts = self.clock(), dict(self._counts)
        # Keeps one sample from before the period: rates count from there.
        while len(self._samples) > 1 and self._samples[1][0] <= at - RATE_SECONDS:
            self._samples.popleft()
        began, before = self._samples[0] if self._samples else (at, counts)
        self._samples.append((at, counts))
        rates: dict[str, float] = {}
        if (seconds := at - began) > 0:
            rates = {name: round((count - before.get(name, 0)) / seconds, 1) for name, count in counts.items()}
        content: dict[str, Any] = {"state": self.state, **self._values, "totals": counts, "per_second": rates}
        if self.destination is not None:
            content["destination"] = self.destination
        if self.in_flight is not None:
            content["in_flight"] = self.in_flight()
        if self.paused - {""}:
            content["paused_queues"] = sorted(self.paused)
        if self.failing:
            content["failing_queues"] = sorted(self.failing)
        if self.poison:
            content["poison_messages"] = [
                {"queue": queue, "message_id": id_, "step": step} for (queue, id_), step in self.poison.items()
            ]
        if pausing:
            content["pending_pauses"] = pausing
        if self._lost:
            content["waiting_for"] = {dependency.value: reason for dependency, reason in self._lost.items()}
        return json.dumps(content)

    def _count(self, name: str, more: int = 1) -> None:
        self._counts[name] = self._counts.get(name, 0) + more

    def _record_error(self, subject: str, failure: object) -> None:
        self._values["last_failure"] = {
            "failed_at": self._timestamp(),
            "subject": subject[:MOST_TEXT],
            "text": redacted(str(failure))[:MOST_TEXT],
        }

    def _timestamp(self) -> str:
        return _format_time(self.now())

    def _record_poison(self, event: PoisonIsolated) -> None:
        key = event.queue, event.message.id[:MOST_TEXT]
        self.poison.pop(key, None)
        # A postponed message will be delivered again, perhaps to another worker, so it stays listed; only the latest few do.
        if event.step is not IsolationStep.ENDED:
            self.poison[key] = event.step.value
        while len(self.poison) > MOST_POISON:
            del self.poison[next(iter(self.poison))]


_RECORDED_EVENTS = frozenset(
    {
        BacklogMeasured,
        BatchSent,
        CircuitClosed,
        CircuitOpened,
        ConsumerStarted,
        DependencyLost,
        DependencyRestored,
        MaintenanceStarted,
        MaintenanceStopped,
        Paused,
        PoisonIsolated,
        Processed,
        RelayStarted,
        Resumed,
        SendFailed,
        SettleFailed,
        WakeModeChanged,
    }
)

MAX_COUNTED = 10_000
MAX_OPERATIONS = 20
REPORTED_WITHIN = timedelta(seconds=15)
"""Time within which every running process has added its events to the statistics."""

Topic = tuple[str, str]
"""Subject of a value: its kind, and its name, which is empty if there is only one of that kind."""


@dataclass(frozen=True, slots=True)
class LiveState:
    """Current JSON values by topic, and the token hashes of those requested sessions that are still valid."""

    values: Mapping[Topic, Any]
    sessions: frozenset[bytes]


class LiveStateReader:
    """Reads the values that live updates of the dashboard compare. Raises the driver's errors."""

    def __init__(self, table: TableName) -> None:
        self._schema = table.schema
        self._sql = queries("watching.sql", table=table.sql, **satellite_names(table.schema))

    async def read(self, connection: Connection, sessions: Iterable[bytes]) -> LiveState:
        """Reads all values as they are now."""
        now = await connection.fetchval(self._sql["now"])
        last_minute = (now - REPORTED_WITHIN).replace(second=0, microsecond=0) - timedelta(minutes=1)
        known = await recent_components(connection, schema=self._schema)
        # Of each destination what its relay has measured last: all its relays measure the same rows.
        measured = {
            str(each.activity.get("destination", DEFAULT)): each.activity
            for each in sorted(known, key=lambda each: each.seen_at)
            if each.kind is ComponentKind.RELAY and each.condition is ComponentStatus.ALIVE
        }.values()
        unsent, ages = (
            [each[name] for each in measured if isinstance(each.get(name), int | float)]
            for name in ("unsent", "oldest_due_age_seconds")
        )
        letters = await connection.fetchrow(self._sql["dead_letters"], MAX_COUNTED + 1)
        assert letters is not None  # noqa: S101  a select without a table
        counts = {
            name: {"value": min(letters[name], MAX_COUNTED), "relation": "eq" if letters[name] <= MAX_COUNTED else "gte"}
            for name in ("open", "parked")
        }
        values: dict[Topic, Any] = {
            ("statistics", ""): {"starts_at": _iso_time(last_minute), "step_seconds": 60},
            ("backlog", ""): {
                "unsent": sum(unsent) if unsent else None,
                "oldest_due_age_seconds": max(ages, default=None),
            },
            ("dead_letters", ""): {
                **counts,
                **{name: _iso_time(letters[name]) for name in ("last_failed_at", "last_parked_at", "last_resolved_at")},
            },
            ("pauses", ""): [
                {"scope": each.scope.value, "name": each.name, "expires_at": _iso_time(each.until)}
                for each in await pauses(connection, schema=self._schema)
            ],
        }
        for each in known:
            state = str(each.activity.get("state", "")).replace(" ", "_")
            values["component", each.id] = {
                "id": each.id,
                "kind": each.kind.value,
                "name": each.name,
                "status": each.condition.value,
                "state": state,
            }
        for row in await connection.fetch(self._sql["operations"], MAX_OPERATIONS):
            values["operation", str(row["id"])] = {**dict(row), "id": str(row["id"])}
        asked = list(sessions)
        rows = await connection.fetch(self._sql["sessions"], asked) if asked else []
        return LiveState(values, frozenset(bytes(row["token_hash"]) for row in rows))


def _iso_time(moment: datetime | None) -> str | None:
    return None if moment is None else _format_time(moment)


def _format_time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
