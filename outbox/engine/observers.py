"""Observers that wrap others: several as one, with masked secrets; and one that advances the clock on received messages."""

import logging
from dataclasses import dataclass, replace

from outbox.core.clock import HybridClock
from outbox.core.events import BatchFailed, DutyFailed, Event, Processed, Received, RouteStalled, SendFailed
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
