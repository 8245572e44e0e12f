"""What a component is doing, made of the events that it is told of."""

import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

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
from outbox.engine.lifecycle import Stopping

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
    """Asked at each heartbeat, where a component has something in hand."""
    paused: set[str] = field(default_factory=set)
    """The queues that take nothing because somebody paused them; "" for a relay."""
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
        note = _NOTES.get(type(event))
        if note is not None:
            note(self, event)

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
        """The content of the heartbeat; `pausing` are the pauses that wait for what is in hand."""
        rates = self._rates()
        told: dict[str, Any] = {"state": self.state, **self._facts, "totals": self._counts, "per_second": rates}
        if self.in_hand is not None:
            told["in_hand"] = self.in_hand()
        if self.paused - {""}:
            told["paused_queues"] = sorted(self.paused)
        if self.failing:
            told["failing_queues"] = sorted(self.failing)
        if self.poison:
            told["poison_messages"] = [
                {"queue": queue, "message_id": id_, "step": step} for (queue, id_), step in self.poison.items()
            ]
        if pausing:
            told["pausing"] = pausing
        if self._lost:
            told["waiting_for"] = {dependency.value: reason for dependency, reason in self._lost.items()}
        return json.dumps(told)

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

    # --- one for each kind of event ------------------------------------------------------------------------------------

    def _started(self, _event: Event) -> None:
        self._running = self.changed = True

    def _gave_over(self, _event: Event) -> None:
        self._running, self.changed = False, True

    def _dependency_lost(self, event: DependencyLost) -> None:
        self._lost[event.dependency] = redacted(event.reason)[:MOST_TEXT]
        self.changed = True

    def _dependency_restored(self, event: DependencyRestored) -> None:
        self._lost.pop(event.dependency, None)
        self.changed = True

    def _paused(self, event: Paused) -> None:
        self.paused.add(event.queue or "")
        self.changed = True

    def _resumed(self, event: Resumed) -> None:
        self.paused.discard(event.queue or "")
        self.changed = True

    def _circuit_opened(self, event: CircuitOpened) -> None:
        self.failing.add(event.queue)
        self.changed = True

    def _circuit_closed(self, event: CircuitClosed) -> None:
        self.failing.discard(event.queue)
        self.changed = True

    def _poison_isolated(self, event: PoisonIsolated) -> None:
        key = event.queue, event.message.id[:MOST_TEXT]
        self.poison.pop(key, None)
        # What is postponed comes again, perhaps to another worker: it is on record until then, the latest few of them.
        if event.step is not IsolationStep.ENDED:
            self.poison[key] = event.step.value
        while len(self.poison) > MOST_POISON:
            del self.poison[next(iter(self.poison))]
        self.changed = True

    def _batch_sent(self, event: BatchSent) -> None:
        self._count("sent", len(event.messages))
        self._facts["last_sent_at"] = self._moment()

    def _send_failed(self, event: SendFailed) -> None:
        self._count(event.type.value)
        if isinstance(event.outcome, Retry | Dead):
            self._failed(event.routing_key, event.failure)

    def _measured(self, event: BacklogMeasured) -> None:
        self._facts["unsent"] = event.unsent
        self._facts["oldest_due_seconds"] = None if event.oldest_due is None else event.oldest_due.total_seconds()

    def _wakes(self, event: WakeModeChanged) -> None:
        self._facts["wakes_by"] = event.mode.value

    def _processed(self, event: Processed) -> None:
        self._counts[event.status] = self._counts.get(event.status, 0) + 1
        if isinstance(event.outcome, Retry | Dead):
            self._failed(event.queue, event.outcome.failure)

    def _settle_failed(self, event: SettleFailed) -> None:
        self._count("settle_failed")
        self._failed(event.queue, event.reason)


_NOTES: Mapping[type, Callable[[Activity, Any], None]] = {
    BacklogMeasured: Activity._measured,  # noqa: SLF001  its own methods, by the kind of event
    BatchSent: Activity._batch_sent,  # noqa: SLF001
    CircuitClosed: Activity._circuit_closed,  # noqa: SLF001
    CircuitOpened: Activity._circuit_opened,  # noqa: SLF001
    ConsumerStarted: Activity._started,  # noqa: SLF001
    DependencyLost: Activity._dependency_lost,  # noqa: SLF001
    DependencyRestored: Activity._dependency_restored,  # noqa: SLF001
    MaintenanceStarted: Activity._started,  # noqa: SLF001
    MaintenanceStopped: Activity._gave_over,  # noqa: SLF001
    Paused: Activity._paused,  # noqa: SLF001
    PoisonIsolated: Activity._poison_isolated,  # noqa: SLF001
    Processed: Activity._processed,  # noqa: SLF001
    RelayStarted: Activity._started,  # noqa: SLF001
    Resumed: Activity._resumed,  # noqa: SLF001
    SendFailed: Activity._send_failed,  # noqa: SLF001
    SettleFailed: Activity._settle_failed,  # noqa: SLF001
    WakeModeChanged: Activity._wakes,  # noqa: SLF001
}
