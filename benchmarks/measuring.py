"""Timing and reporting: medians over repeated runs, because the machine is shared and one run says little."""

import os
import platform
import statistics
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

OWN_COST = ", own cost"
"""The end of the names of figures in microseconds of our own processor time."""
SERVER_COST = ", PostgreSQL's cost"
"""The end of the names of figures in microseconds of the database server's processor time."""
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Stopwatch:
    """Seconds between entering and leaving `timed`, and those of them that this process, and the server, had a processor."""

    seconds: float = 0.0
    processor_seconds: float = 0.0
    server_seconds: float | None = None

    def rates(self, name: str, count: int) -> dict[str, float]:
        """`count` per second; and what one costs this process, which is the steadier figure on a shared machine."""
        figures = {name: count / self.seconds, name + OWN_COST: self.processor_seconds / count * 1e6}
        return figures if self.server_seconds is None else {**figures, name + SERVER_COST: self.server_seconds / count * 1e6}


@contextmanager
def timed(server: int | None = None) -> Iterator[Stopwatch]:
    """Measures the block. `server` is the process id of a PostgreSQL server, whose processor time is measured too."""
    watch = Stopwatch()
    started, processor = time.perf_counter(), time.process_time()
    before = None if server is None else _processor_seconds_of_family(server)
    yield watch
    watch.seconds = time.perf_counter() - started
    watch.processor_seconds = time.process_time() - processor
    if server is not None and before is not None:
        watch.server_seconds = _processor_seconds_of_family(server) - before


def processor_seconds(pids: Iterable[int]) -> float:
    """User and system time of processes; see proc(5)."""
    return sum(int(fields[11]) + int(fields[12]) for fields in map(_fields, pids)) / _TICKS


def parent_of(pid: int) -> int:
    """The process that started this one."""
    return int(_fields(pid)[1])


def _processor_seconds_of_family(pid: int) -> float:
    """Time of a process and its children, those that have ended included."""
    while True:
        own = _fields(pid)
        children = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        with suppress(FileNotFoundError, ProcessLookupError):  # a child has ended meanwhile: its time is its parent's now
            return processor_seconds(children) + sum(map(int, own[11:15])) / _TICKS


def _fields(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the report."""

    name: str
    unit: str
    samples: Sequence[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def spread(self) -> str:
        return f"{self.shown(min(self.samples))} - {self.shown(max(self.samples))}"

    def shown(self, value: float) -> str:
        """Whole numbers for rates, one decimal for times."""
        return f"{value:,.0f}" if self.unit.endswith("/s") else f"{value:,.1f}"


async def repeated(runs: int, run: Callable[[], Awaitable[dict[str, float]]]) -> dict[str, list[float]]:
    """The samples of `runs` runs, by name. Alternatives that one run measures in turn are compared fairly."""
    samples: dict[str, list[float]] = {}
    for _ in range(runs):
        for name, value in (await run()).items():
            samples.setdefault(name, []).append(value)
    return samples


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of `values` lie."""
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


def machine() -> str:
    """What the figures of a page were measured on: cores, system, version of Python."""
    return f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"


def bar_chart(title: str, values: Mapping[str, float], *, highlighted: str = "") -> str:
    """Horizontal bars as SVG, legible on light and dark pages. Names that begin with `highlighted` have the accent colour."""
    height, most = 26, max(values.values())
    box = f'viewBox="0 0 760 {height * len(values) + 12}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} role="img" font-family="sans-serif" font-size="13">',
        f"<title>{escape(title)}</title>",
    ]
    for number, (name, value) in enumerate(values.items()):
        top, color = 6 + number * height, "#2f5bea" if name.startswith(highlighted) else "#8a94a6"
        width = round(340 * value / most, 1)
        lines += [
            f'<text x="318" y="{top + 16}" text-anchor="end" fill="#6b7688">{escape(name)}</text>',
            f'<rect x="328" y="{top + 3}" width="{width}" height="{height - 7}" rx="3" fill="{color}"/>',
            f'<text x="{334 + width}" y="{top + 16}" fill="#6b7688">{value:,.0f}</text>',
        ]
    return "\n".join((*lines, "</svg>", ""))
