"""Several observers as one, none of which can stop the engine; and one that sets a clock by what arrives."""

import logging
from dataclasses import dataclass

from outbox.clock import HybridClock
from outbox.events import Event, Received
from outbox.ports import Observer

_log = logging.getLogger("outbox")


@dataclass(frozen=True, slots=True)
class Observers:
    """Tells each of `members` in turn. One that raises is logged, and the others and the engine go on."""

    members: tuple[Observer, ...]

    def notify(self, event: Event) -> None:
        for member in self.members:
            try:
                member.notify(event)
            except Exception:  # noqa: BLE001 - whatever it is, it is the observer's fault, and messages must flow
                _log.error("%s failed on %s", type(member).__name__, type(event).__name__, exc_info=True)


@dataclass(frozen=True, slots=True)
class ClockFollower:
    """Shows `clock` the stamp of each message before its handler runs, so that whatever that publishes is stamped after it."""

    clock: HybridClock

    def notify(self, event: Event) -> None:
        if isinstance(event, Received) and event.message.hlc is not None:
            self.clock.observe(event.message.hlc)
