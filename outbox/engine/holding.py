"""Unroutable messages: which of a routing key's rows is sent again to find out, and when."""

from collections import OrderedDict
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
