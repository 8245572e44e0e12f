"""Thresholds of the verdict: from when on a number needs attention."""

from dataclasses import dataclass
from datetime import timedelta

from outbox.core.arguments import at_least_one
from outbox.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthThresholds:
    """From when on something is worth telling.

    A message that waits for a relay or a worker is late after `late_after`, which is a warning, and overdue after
    `overdue_after`, which is an error; so are held and stalled messages. A queue with more than `queue_depth` messages is
    deep. A component that was lost counts for `lost_for`, unless another of its kind started since. Dead letters are an error
    while one is younger than `dead_letter_window`, and a warning while any is open.

    Raises `ConfigurationError` for times that are not positive, or in the wrong order.
    """

    late_after: timedelta = timedelta(seconds=60)
    overdue_after: timedelta = timedelta(minutes=5)
    queue_depth: int = 10_000
    lost_for: timedelta = timedelta(minutes=15)
    dead_letter_window: timedelta = timedelta(hours=1)

    def __post_init__(self) -> None:
        for name in ("late_after", "overdue_after", "lost_for", "dead_letter_window"):
            if getattr(self, name) <= timedelta(0):
                raise ConfigurationError(f"{name} must be a time above 0, not {getattr(self, name)}")
        if self.overdue_after < self.late_after:
            raise ConfigurationError(f"overdue_after ({self.overdue_after}) is before late_after ({self.late_after})")
        at_least_one("queue_depth", self.queue_depth)
