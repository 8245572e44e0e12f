"""What a relay knows of its routes: those that no queue is bound for, those that take no messages, and when each is probed."""

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
"""How long a message for one queue waits for another one's probe: no relay looks after those whose probe was lost."""
MOST_KEYS = 10_000
"""Routing keys whose probes are remembered. Once there are as many, others probe at `LONGEST_PROBE` from the start."""
LONGEST_HELD_KEY = 1_000
"""Bytes of a routing key: the index of held rows has no room for longer ones, so rows of such a key are parked instead."""


@dataclass(slots=True)
class _Probe:
    interval: timedelta
    due: datetime


class Holds:
    """What this relay knows of held routing keys. The rows themselves know enough for any other relay to go on."""

    def __init__(self) -> None:
        self._probes: OrderedDict[Way, _Probe] = OrderedDict()

    @property
    def probing(self) -> bool:
        """Whether any way is held, as far as this relay knows."""
        return bool(self._probes)

    def hold(self, way: Way, *, was_held: bool, now: datetime) -> Held:
        """How an unroutable message waits: as the probe of its way, or for the probe's success.

        The interval doubles each time that a probe (`was_held`) comes back, up to `LONGEST_PROBE`. When there are more keys
        than are remembered, a new message does not probe: the store sees to it that some row of its key does.
        """
        probe = self._probes.get(way)
        waiting = Held() if way.queue is None else Held(LONGEST_WAIT)
        if probe is None and len(self._probes) >= MOST_KEYS:
            if not was_held:
                return waiting
            interval = LONGEST_PROBE
        elif probe is None:
            interval = FIRST_PROBE
        elif was_held or now >= probe.due + LONGEST_PROBE:
            interval = min(probe.interval * 2, LONGEST_PROBE)
        else:
            return waiting
        self._probes[way] = _Probe(interval, now + interval)
        self._probes.move_to_end(way)
        if len(self._probes) > MOST_KEYS:
            self._probes.popitem(last=False)
        return Held(interval)

    def routed(self, way: Way, *, was_held: bool) -> bool:
        """Notes that a message on `way` found a queue; True if held ones are to be released for it."""
        return self._probes.pop(way, None) is not None or was_held


FIRST_PAUSE = timedelta(seconds=1)
LONGEST_PAUSE = timedelta(minutes=1)
"""How long a stalled route is left alone before the next probe: it doubles from the first to the longest."""
LARGEST_WINDOW = 32
"""A route that takes messages again gets 1, 2, 4, … at once. After so many all the others follow by way of the lanes."""
MOST_ROUTES = 10_000
"""Routes that a relay remembers. The messages of those beyond wait in the table until there is room."""
MOST_AT_ONCE = 100
"""Routes that one round probes."""


@dataclass(slots=True)
class _Stall:
    """`silent`: it was found by waiting in vain, not by a refusal. `window`: how many messages are sent at once to find out."""

    silent: bool
    pause: timedelta
    due: float
    began: float
    window: int = 1


class Stalls:
    """What this relay knows of stalled routes. Times are those of the running loop's clock."""

    def __init__(self) -> None:
        self._stalls: dict[Way, _Stall] = {}
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._stalls)

    def __contains__(self, way: Way) -> bool:
        return way in self._stalls

    def stall(self, way: Way, *, silent: bool, pause: timedelta | None = None) -> bool:
        """Notes that `way` takes no messages, and is to be probed after `pause`, or the usual one; False if that is known."""
        pause = FIRST_PAUSE if pause is None else pause
        if way in self._stalls or len(self._stalls) >= MOST_ROUTES:
            return False
        now = _now()
        self._stalls[way] = _Stall(silent, pause, now + pause.total_seconds(), now)
        self._changed.set()
        return True

    def failed(self, way: Way, *, silent: bool) -> None:
        """Notes that a probe of `way` was not confirmed: the next one is a single message, after a longer pause."""
        if (stall := self._stalls.get(way)) is not None:
            # Where messages came through just before, the queue is short of room rather than closed.
            stall.pause = FIRST_PAUSE if stall.window > 1 else min(max(stall.pause * 2, FIRST_PAUSE), LONGEST_PAUSE)
            stall.silent, stall.window = silent, 1
            stall.due = _now() + stall.pause.total_seconds()
            self._changed.set()

    def passed(self, way: Way, confirmed: int) -> bool:
        """Notes that all messages of a probe were confirmed; True: the route is healthy, and the others may follow."""
        stall = self._stalls.get(way)
        if stall is None:
            return False
        if stall.window >= LARGEST_WINDOW or confirmed < stall.window:
            del self._stalls[way]
            return True
        stall.silent, stall.window, stall.due = False, stall.window * 2, _now()
        return False

    def postpone(self, ways: Collection[Way]) -> None:
        """Notes that nothing was there to probe `ways` with: another relay has it, or nothing waits any more."""
        for way in ways:
            if (stall := self._stalls.get(way)) is not None:
                stall.due = _now() + max(stall.pause, FIRST_PAUSE).total_seconds()

    def forget_all_but(self, waiting: Collection[Way], *, older_than: timedelta) -> Sequence[Way]:
        """Forgets the routes that no message waits for, unless they are so young that it may not be in the table yet; which."""
        old = _now() - older_than.total_seconds()
        gone = [way for way, stall in self._stalls.items() if way not in waiting and stall.began < old]
        for way in gone:
            del self._stalls[way]
        return gone

    async def until_due(self) -> Sequence[tuple[Way, int]]:
        """Waits until routes are to be probed; which, and with how many messages each.

        Routes that answer, even by refusals, come first and by themselves: those that are silent take their time.
        """
        while True:
            self._changed.clear()
            now = _now()
            due = [way for way, stall in self._stalls.items() if stall.due <= now]
            answering = [way for way in due if not self._stalls[way].silent]
            if due:
                return [(way, self._stalls[way].window) for way in (answering or due)[:MOST_AT_ONCE]]
            first = min((stall.due for stall in self._stalls.values()), default=None)
            try:
                async with asyncio.timeout_at(first):
                    await self._changed.wait()
            except TimeoutError:
                pass


def can_stall(way: Way) -> bool:
    """Whether the index of stalled rows has room for it. No broker takes longer names; it is for transports of other kinds."""
    return len(way.routing_key.encode()) + len((way.queue or "").encode()) <= LONGEST_HELD_KEY


def _now() -> float:
    return asyncio.get_running_loop().time()
