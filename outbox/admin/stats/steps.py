"""Times as a request for statistics writes them, and steps of time that are not too many."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

MOST_POINTS = 2_000
"""Points of one answer, all series together."""
USUAL_POINTS = 120
"""Points of a series, or fewer, where nobody asks for a step."""
STEPS = (
    60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 2_592_000,
)  # fmt: skip
"""Seconds of the steps there are. Each is a multiple of the spans that statistics are kept by, up to itself."""
LONGEST = timedelta(days=20 * 366)
RELATIVE = re.compile(r"-(\d{1,7})([smhdw])", re.ASCII)
LENGTH = re.compile(r"(\d{1,7})([smhdw])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_ORIGIN = datetime(2000, 1, 1, tzinfo=UTC)


def seconds_of(number: str, unit: str) -> int:
    """A length of time such as 15 m."""
    return int(number) * _SECONDS[unit]


@dataclass(frozen=True, slots=True)
class Steps:
    """From `since`, which is the beginning of a step, so many steps of `seconds`."""

    since: datetime
    seconds: int
    count: int

    @property
    def until(self) -> datetime:
        """Where the last one ends."""
        return self.since + timedelta(seconds=self.seconds * self.count)

    @property
    def starts(self) -> Sequence[datetime]:
        """Where each begins."""
        return [self.since + timedelta(seconds=self.seconds * number) for number in range(self.count)]


def steps_between(since: datetime, until: datetime, seconds: int) -> Steps:
    """The steps that cover that time."""
    length = timedelta(seconds=seconds)
    first = since - (since - _ORIGIN) % length
    return Steps(first, seconds, max(1, -((first - until) // length)))


def usual_step(since: datetime, until: datetime) -> int:
    """The step of someone who asks for none."""
    return next((step for step in STEPS if (until - since).total_seconds() <= step * USUAL_POINTS), STEPS[-1])


def fitting(since: datetime, until: datetime, least: int, series: int) -> Steps | None:
    """The shortest steps of `least` seconds or more that do not make too many points; None if all do."""
    for step in STEPS:
        steps = steps_between(since, until, step)
        if step >= least and steps.count * series <= MOST_POINTS:
            return steps
    return None


def fitting_each(since: datetime, until: datetime, least: int, most: int) -> Sequence[Steps]:
    """What is fitting for one series, for two, and so on up to `most`, or up to as many as anything fits."""
    each = (fitting(since, until, least, series) for series in range(1, most + 1))
    return [steps for steps in each if steps is not None]
