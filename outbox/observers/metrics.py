"""What both kinds of metrics have in common: reactions to events, buckets of histograms, and a bound on delays."""

from collections import defaultdict
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

from outbox.core.events import Event, RelayStarted, RelayStopped, RouteResumed, RouteStalled

AGE_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600, 21600, 86400)
"""Seconds, from milliseconds of normal operation to an outage of a day."""

MOST_DELAYS = 50
"""Delays of one queue that have series of their own: handlers may ask for any delay, and each series is kept for good."""
OTHER_DELAYS = "other"

E = TypeVar("E", bound=Event)


class Reactions:
    """An observer that calls functions by the type of the event. Subclasses add them with `_on`."""

    def __init__(self) -> None:
        self._reactions: dict[type, list[Callable[[Any], object]]] = {}

    def notify(self, event: Event) -> None:
        """Updates the metrics of `event`, if it has any."""
        for react in self._reactions.get(type(event), ()):
            react(event)

    def _on(self, kind: type[E], react: Callable[[E], object]) -> None:
        self._reactions.setdefault(kind, []).append(react)

    def _on_stalled_routes(self, change: Callable[[str, int], object]) -> None:
        """Calls `change` with an exchange's name, and how many more of its routes are stalled now; fewer are negative."""
        stalled: defaultdict[str, set[tuple[str, str | None]]] = defaultdict(set)

        def forget(event: RelayStarted | RelayStopped) -> None:
            change(event.exchange_name, -len(stalled.pop(event.exchange_name, ())))

        def follow(event: RouteStalled | RouteResumed) -> None:
            routes, route = stalled[event.exchange_name], (event.routing_key, event.queue)
            before = len(routes)
            (routes.add if isinstance(event, RouteStalled) else routes.discard)(route)
            change(event.exchange_name, len(routes) - before)

        self._on(RelayStarted, forget)
        self._on(RelayStopped, forget)
        self._on(RouteStalled, follow)
        self._on(RouteResumed, follow)


class DelayLabels:
    """Labels of the delays of retries, in seconds: at most `MOST_DELAYS` for each queue, and `OTHER_DELAYS`."""

    def __init__(self) -> None:
        self._known: dict[str, set[str]] = {}

    def of(self, queue: str, delay: timedelta) -> str:
        """Returns `60` for a minute, `0.5` for half a second; never an exponent."""
        label, known = f"{delay.total_seconds():.3f}".rstrip("0").rstrip("."), self._known.setdefault(queue, set())
        if label not in known and len(known) >= MOST_DELAYS:
            return OTHER_DELAYS
        known.add(label)
        return label
