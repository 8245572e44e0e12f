"""Observers that wrap others, advance the clock on received messages, or follow the state of one of several databases."""

import logging
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

from outbox.core.clock import HybridClock
from outbox.core.events import (
    BatchFailed,
    Dependency,
    DependencyLost,
    DependencyRestored,
    DutyFailed,
    Event,
    Processed,
    Received,
    RouteStalled,
    SendFailed,
)
from outbox.core.outcome import Dead, Done, Retry
from outbox.masking import Masking
from outbox.ports import Observer

_log = logging.getLogger("outbox")


@dataclass(frozen=True, slots=True)
class Observers:
    """Notifies each of `members` in turn. Logs the error of one that raises, and continues with the others."""

    members: tuple[Observer, ...]

    def notify(self, event: Event) -> None:
        for member in self.members:
            try:
                member.notify(event)
            except Exception:  # noqa: BLE001  a faulty observer must not stop the engine
                _log.error("%s failed on %s", type(member).__name__, type(event).__name__, exc_info=True)


@dataclass(frozen=True, slots=True)
class MaskingObserver:
    """Notifies `observer` of each event, with the secrets masked that are quoted in its failures.

    Log lines, the history and the last error of a component are built from events, and cannot be revealed there. Failures
    stored by the transports are not changed.
    """

    observer: Observer
    masking: Masking

    def notify(self, event: Event) -> None:
        # Nearly every event is one of these two, and contains no failure.
        if isinstance(event, Received) or (isinstance(event, Processed) and isinstance(event.outcome, Done)):
            self.observer.notify(event)
            return
        match event:
            case Processed(outcome=Retry() | Dead() as outcome, message=message):
                masking = self.masking.of_message(message.body, message.headers)
                event = replace(event, outcome=replace(outcome, failure=masking.failure(outcome.failure)))
            case SendFailed() | DutyFailed() | RouteStalled():
                event = replace(event, failure=self.masking.failure(event.failure))
            case BatchFailed():
                masking = self.masking
                for message in event.messages:
                    masking = masking.of_message(message.body, message.headers)
                event = replace(event, failure=masking.failure(event.failure))
        self.observer.notify(event)


@dataclass(frozen=True, slots=True)
class ClockFollower:
    """Advances `clock` to each received message before its handler runs: messages that it publishes get a later timestamp."""

    clock: HybridClock

    def notify(self, event: Event) -> None:
        if isinstance(event, Received) and event.message.hlc is not None:
            self.clock.observe(event.message.hlc)


@dataclass(slots=True)
class ServedDatabase:
    """One of several databases of a process, and the state of the component that serves it.

    The component's task, and all that it starts, has it as `SERVED`: log records and metrics take the name from there.
    """

    name: str
    is_started: bool = False
    """Whether the component has found its database, with its tables."""
    lost: set[Dependency] = field(default_factory=set)
    """The servers that the component waits for."""

    def notify(self, event: Event) -> None:
        """Follows the servers that the component loses and finds again."""
        match event:
            case DependencyLost():
                self.lost.add(event.dependency)
            case DependencyRestored():
                self.lost.discard(event.dependency)


SERVED: ContextVar[ServedDatabase | None] = ContextVar("outbox_served_database", default=None)
"""The database that the calling task or thread serves; None in a process that serves one only."""
