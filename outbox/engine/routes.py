"""Routes that a relay cannot send on: without a bound queue (held) or accepting no messages (stalled), and their probes."""

import asyncio
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from outbox.core.message import Way
from outbox.core.outcome import Held

FIRST_PROBE = timedelta(seconds=1)
LONGEST_PROBE = timedelta(seconds=15)
LONGEST_WAIT = timedelta(minutes=5)
"""Longest wait of a message for one queue, because no relay restores a lost probe of such a route."""
MOST_KEYS = 10_000
"""Most routing keys whose probes are remembered. Beyond it, other keys are probed at `LONGEST_PROBE` from the start."""
LONGEST_HELD_KEY = 1_000
"""Longest routing key, in bytes, that can be held: the index has no room for longer ones, so their rows are parked."""


@dataclass(slots=True)
class _Probe:
    interval: timedelta
    due: datetime


class Holds:
    """The held routing keys known to this relay. Other relays need only the rows."""

    def __init__(self) -> None:
        self._probes: OrderedDict[Way, _Probe] = OrderedDict()

    @property
    def probing(self) -> bool:
        """Whether this relay knows of any held route."""
        return bool(self._probes)

    def hold(self, way: Way, *, was_held: bool, now: datetime) -> Held:
        """Returns how an unroutable message waits: as the probe of its route, or for another probe to succeed.

        The interval doubles each time that a probe (`was_held`) fails, up to `LONGEST_PROBE`. Beyond `MOST_KEYS`, new messages
        do not probe: the store makes one row of each key a probe.
        """
        probe = self._probes.get(way)
        waiting = Held() if way.queue is None else Held(LONGEST_WAIT)
        if probe is None and len(self._probes) >= MOST_KEYS:
            if not was_held:
                return waiting
            interval = LONGEST_PROBE
        elif probe is None:
            interval = FIRST_PROBE
        # A probe that is overdue may have been sent by another relay, or deleted: this message replaces it.
        elif was_held or now >= probe.due + LONGEST_PROBE:
            interval = min(probe.interval * 2, LONGEST_PROBE)
        else:
            return waiting
        self._probes[way] = _Probe(interval, now + interval)
        self._probes.move_to_end(way)
        if len(self._probes) > MOST_KEYS:
            self._probes.popitem(last=False)
        return Held(interval)

    def record_routed(self, way: Way, *, was_held: bool) -> bool:
        """Records that a message on `way` was routed. Returns whether held messages are to be released."""
        return self._probes.pop(way, None) is not None or was_held


FIRST_PAUSE = timedelta(seconds=1)
LONGEST_PAUSE = timedelta(minutes=1)
"""Pause before a stalled route is probed again. It doubles from the first to the longest."""
LARGEST_WINDOW = 32
"""A recovering route is probed with 1, 2, 4, … messages at once. After a window of this size it is no longer stalled."""
MOST_ROUTES = 10_000
"""Most stalled routes that a relay remembers. Messages on further ones wait in the table until there is room."""
MOST_AT_ONCE = 100
"""Most routes probed in one round."""


@dataclass(slots=True)
class _Stall:
    """A stalled route. `silent`: it timed out instead of refusing. `window`: how many messages the next probe sends."""

    silent: bool
    pause: timedelta
    due: float
    began: float
    window: int = 1


class Stalls:
    """The stalled routes known to this relay. Times are those of the running loop's clock."""

    def __init__(self) -> None:
        self._stalls: dict[Way, _Stall] = {}
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._stalls)

    def __contains__(self, way: Way) -> bool:
        return way in self._stalls

    def stall(self, way: Way, *, silent: bool, pause: timedelta) -> bool:
        """Records that `way` accepts no messages, to be probed after `pause`. Returns False if that is known already."""
        if way in self._stalls or len(self._stalls) >= MOST_ROUTES:
            return False
        now = _now()
        self._stalls[way] = _Stall(silent, pause, now + pause.total_seconds(), now)
        self._changed.set()
        return True

    def record_failure(self, way: Way, *, silent: bool) -> None:
        """Records that a probe of `way` failed. The next probe is a single message, after a longer pause."""
        if (stall := self._stalls.get(way)) is not None:
            # A wider window means that the last probe succeeded: the queue is short of room, not closed.
            stall.pause = FIRST_PAUSE if stall.window > 1 else min(max(stall.pause * 2, FIRST_PAUSE), LONGEST_PAUSE)
            stall.silent, stall.window = silent, 1
            stall.due = _now() + stall.pause.total_seconds()

    def record_success(self, way: Way, confirmed: int) -> bool:
        """Records that all messages of a probe were confirmed. Returns whether the route is no longer stalled."""
        stall = self._stalls.get(way)
        if stall is None:
            return False
        # Fewer messages than the window has room for: no more wait on this route, so there is nothing left to send with care.
        if stall.window >= LARGEST_WINDOW or confirmed < stall.window:
            del self._stalls[way]
            return True
        stall.silent, stall.window, stall.due = False, stall.window * 2, _now()
        return False

    def postpone(self, ways: Collection[Way]) -> None:
        """Puts off the probes of `ways` because no message could be claimed: another relay has it, or none waits any more."""
        for way in ways:
            if (stall := self._stalls.get(way)) is not None:
                stall.due = _now() + max(stall.pause, FIRST_PAUSE).total_seconds()

    def forget_all_but(self, waiting: Collection[Way], *, older_than: timedelta) -> Sequence[Way]:
        """Forgets and returns the routes that no message waits for. Keeps new ones, whose messages may not be in the table."""
        old = _now() - older_than.total_seconds()
        gone = [way for way, stall in self._stalls.items() if way not in waiting and stall.began < old]
        for way in gone:
            del self._stalls[way]
        return gone

    async def until_due(self) -> Sequence[tuple[Way, int]]:
        """Waits until routes are due for a probe. Returns them with the number of messages to send on each."""
        while True:
            self._changed.clear()
            now = _now()
            due = [way for way, stall in self._stalls.items() if stall.due <= now]
            answering = [way for way in due if not self._stalls[way].silent]
            if due:
                # Routes that answer, even with refusals, are probed apart from silent ones, which take the whole timeout.
                return [(way, self._stalls[way].window) for way in (answering or due)[:MOST_AT_ONCE]]
            first = min((stall.due for stall in self._stalls.values()), default=None)
            try:
                async with asyncio.timeout_at(first):
                    await self._changed.wait()
            except TimeoutError:
                pass


def can_stall(way: Way) -> bool:
    """Whether the route's names fit into the index of stalled rows."""
    # RabbitMQ's names are shorter: the limit is for other transports.
    return len(way.routing_key.encode()) + len((way.queue or "").encode()) <= LONGEST_HELD_KEY


def _now() -> float:
    return asyncio.get_running_loop().time()
