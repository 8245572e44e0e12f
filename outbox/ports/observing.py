"""Who is told of what happens."""

from typing import Protocol

from outbox.core.events import Event


class Observer(Protocol):
    """Is told of everything that happens."""

    def notify(self, event: Event) -> None:
        """Takes note of `event`, at once and without waiting. What it raises is logged and stops nothing."""
        ...
