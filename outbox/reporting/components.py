"""Components: relays, workers, archivers and maintenance, their activity and their heartbeats."""

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import uuid4

import asyncpg

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
from outbox.reporting.queries import reporting_queries

TICK = timedelta(milliseconds=500)
"""How long facts wait for others, to be written together."""
LOOK_EVERY = timedelta(seconds=5)
"""How often pauses are looked at and the database's time is asked for, where each change of a pause is notified."""
POLL_EVERY = timedelta(seconds=1)
"""How often pauses are looked at where nothing is notified."""
ADD_UP_EVERY = timedelta(seconds=10)


class ComponentKind(StrEnum):
    """What reports."""

    RELAY = "relay"
    WORKER = "worker"
    ARCHIVER = "archiver"
    MAINTENANCE = "maintenance"


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """Who reports. `consumers` is what a worker runs, as JSON can hold it; `service_version` the release that it is part of."""

    kind: ComponentKind
    name: str
    service_version: str | None = None
    consumers: Sequence[Mapping[str, Any]] = ()
    id: str = field(default_factory=lambda: str(uuid4()))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportingSettings:
    """`history`: whether facts are written; `heartbeat`: how often a sign of life is.

    `borrows`: whether the connection is others' as well, and is to be given back after each round. `index_keys`: by queue, what
    the history finds messages by.
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
"""Lost and stopped components that are listed."""


class ComponentStatus(StrEnum):
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
    service_version: str | None
    condition: ComponentStatus
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
            "condition": ComponentStatus(row["condition"]),
            "activity": json.loads(row["activity"]),
            "consumers": json.loads(row["consumers"]),
            "applied": json.loads(row["applied"]),
        }
    )


RATE_SECONDS = 10.0
"""Rates are those of about the last ten seconds."""
MOST_TEXT = 500
MOST_POISON = 10
"""Poison messages that a heartbeat names."""


@dataclass(slots=True)
class Activity:
    """Keeps what a heartbeat tells. `clock` is a steady one, in seconds; `now` the time of day."""

    stopping: Stopping
    clock: Callable[[], float]
    now: Callable[[], datetime]
    at_first: str = "starting"
    """The state until it is heard that the work began."""
    in_hand: Callable[[], int] | None = None
    """Asked at each heartbeat, where a component has something in flight."""
    paused: set[str] = field(default_factory=set)
    """The queues that take nothing because they are paused; "" for a relay."""
    failing: set[str] = field(default_factory=set)
    """The queues that handle nothing because their handler failed with what it pauses on."""
    poison: dict[tuple[str, str], str] = field(default_factory=dict)
    """The poison messages that wait to run alone, or do, by queue and id, and which of it."""
    changed: bool = True
    """Whether the state is another than at the last heartbeat."""
    _running: bool = False
    _lost: dict[Dependency, str] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)
    _facts: dict[str, Any] = field(default_factory=dict)
    _marks: deque[tuple[float, dict[str, int]]] = field(default_factory=deque)

    def take_note(self, event: Event) -> None:
        """Of what is worth telling; of most events only their number."""
        if type(event) not in _NOTED:  # most are not, and this costs less than to compare with each
            return
        match event:
            case Processed(outcome=outcome):
                self._count(event.status)
                if isinstance(outcome, Retry | Dead):
                    self._failed(event.queue, outcome.failure)
            case BatchSent():
                self._count("sent", len(event.messages))
                self._facts["last_sent_at"] = self._moment()
            case SendFailed():
                self._count(event.type.value)
                if isinstance(event.outcome, Retry | Dead):
                    self._failed(event.routing_key, event.failure)
            case BacklogMeasured(oldest_due=oldest):
                self._facts["unsent"] = event.unsent
                self._facts["oldest_due_seconds"] = None if oldest is None else oldest.total_seconds()
            case WakeModeChanged():
                self._facts["wakes_by"] = event.mode.value
            case SettleFailed():
                self._count("settle_failed")
                self._failed(event.queue, event.reason)
            case _:
                self._change_state(event)
                self.changed = True

    def history_lost(self, count: int) -> None:
        """Facts of the history could not be written, and are not known any more."""
        self._facts["history_lost_count"] = self._facts.get("history_lost_count", 0) + count
        self._facts["history_lost_at"] = self._moment()

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
                self._note_poison(event)

    @property
    def state(self) -> str:
        """In one word, or a few."""
        if self.stopping.requested:
            return "draining"
        if self.paused:
            return "paused"
        if self._lost:
            return f"waiting for {next(iter(self._lost)).value}"
        if any(step != IsolationStep.POSTPONED for step in self.poison.values()):
            return "isolating a poison message"
        return "running" if self._running else self.at_first

    def as_json(self, *, pausing: Sequence[Mapping[str, str]] = ()) -> str:
        """The content of the heartbeat; `pausing` are the pauses that wait for what is in flight."""
        rates = self._rates()
        content: dict[str, Any] = {"state": self.state, **self._facts, "totals": self._counts, "per_second": rates}
        if self.in_hand is not None:
            content["in_hand"] = self.in_hand()
        if self.paused - {""}:
            content["paused_queues"] = sorted(self.paused)
        if self.failing:
            content["failing_queues"] = sorted(self.failing)
        if self.poison:
            content["poison_messages"] = [
                {"queue": queue, "message_id": id_, "step": step} for (queue, id_), step in self.poison.items()
            ]
        if pausing:
            content["pausing"] = pausing
        if self._lost:
            content["waiting_for"] = {dependency.value: reason for dependency, reason in self._lost.items()}
        return json.dumps(content)

    def _rates(self) -> Mapping[str, float]:
        at, counts = self.clock(), dict(self._counts)
        while len(self._marks) > 1 and self._marks[1][0] <= at - RATE_SECONDS:
            self._marks.popleft()
        began, before = self._marks[0] if self._marks else (at, counts)
        self._marks.append((at, counts))
        seconds = at - began
        if seconds <= 0:
            return {}
        return {name: round((count - before.get(name, 0)) / seconds, 1) for name, count in counts.items()}

    def _count(self, name: str, more: int = 1) -> None:
        self._counts[name] = self._counts.get(name, 0) + more

    def _failed(self, subject: str, failure: object) -> None:
        self._facts["last_error"] = {
            "at": self._moment(),
            "about": subject[:MOST_TEXT],
            "text": redacted(str(failure))[:MOST_TEXT],
        }

    def _moment(self) -> str:
        return self.now().astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def _note_poison(self, event: PoisonIsolated) -> None:
        key = event.queue, event.message.id[:MOST_TEXT]
        self.poison.pop(key, None)
        # What is postponed comes again, perhaps to another worker: it is on record until then, the latest few of them.
        if event.step is not IsolationStep.ENDED:
            self.poison[key] = event.step.value
        while len(self.poison) > MOST_POISON:
            del self.poison[next(iter(self.poison))]


_NOTED = frozenset(
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
        last_minute = (now - REPORTED_WITHIN).replace(second=0, microsecond=0) - timedelta(minutes=1)
        known = await recent_components(connection, schema=self._schema)
        relays = [
            each
            for each in known
            if each.kind is ComponentKind.RELAY and each.condition is ComponentStatus.ALIVE and "unsent" in each.activity
        ]
        backlog = max(relays, key=lambda each: each.seen_at).activity if relays else {}
        letters = await connection.fetchrow(self._sql["dead_letters"], MOST_COUNTED + 1)
        assert letters is not None  # noqa: S101  a select without a table
        counts = {
            name: {"value": min(letters[name], MOST_COUNTED), "relation": "eq" if letters[name] <= MOST_COUNTED else "gte"}
            for name in ("open", "parked")
        }
        values: dict[Topic, Any] = {
            ("statistics", ""): {"starts_at": _written(last_minute), "step_seconds": 60},
            ("backlog", ""): {
                "unsent": backlog.get("unsent"),
                "oldest_due_age_seconds": backlog.get("oldest_due_seconds"),
            },
            ("dead_letters", ""): {
                **counts,
                **{name: _written(letters[name]) for name in ("last_failed_at", "last_parked_at", "last_resolved_at")},
            },
            ("pauses", ""): [
                {"scope": each.scope.value, "name": each.name, "expires_at": _written(each.until)}
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
        for row in await connection.fetch(self._sql["operations"], MOST_OPERATIONS):
            values["operation", str(row["id"])] = {**dict(row), "id": str(row["id"])}
        asked = list(sessions)
        rows = await connection.fetch(self._sql["sessions"], asked) if asked else []
        return Look(values, frozenset(bytes(row["token_hash"]) for row in rows))


def _written(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
