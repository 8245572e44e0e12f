"""`python -m benchmarks.scaling`: predicts what a message costs from what was counted, and compares it with what is measured.

`benchmarks/counters.json` has the function calls and socket writes of a message. Two kinds of work are measured to find what
a call and a write take on this machine. From that the costs of two others are predicted, and then measured as well. They are
measured in turn, in several rounds, without history and statistics, as they were counted. `--write` puts the figures into
`docs/scaling.md`.
"""

import argparse
import asyncio
import json
import re
import statistics
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.handling import ORDERS, Handlers, worked_off_by
from benchmarks.measuring import OWN_COST, machine
from benchmarks.relaying import drained
from benchmarks.servers import execute, running_servers
from benchmarks.working import worked_off

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "scaling.md"
COUNTERS = Path(__file__).with_name("counters.json")

Counters = Mapping[str, Mapping[str, float]]
"""By work and counter: what a message takes."""
Measure = Callable[[str, str, int], Awaitable[dict[str, float]]]
"""Works on so many messages, with a database and a broker: the rate, and what one costs the process in microseconds."""


async def _relay(url: str, broker: str, count: int) -> dict[str, float]:
    return await drained("", url, broker, count, history=False)


async def _worker(url: str, broker: str, count: int) -> dict[str, float]:
    return await worked_off("", url, broker, count, 100, history=False)


async def _handlers(url: str, broker: str, count: int) -> dict[str, float]:
    await execute(url, ORDERS)
    handlers = Handlers(count // 4)
    return await worked_off_by("", url, broker, count // 4, handlers, handlers.with_connection, history=False)


@dataclass(frozen=True, slots=True)
class Work:
    """One kind of work, by its name among the counters. Where `fits`, it was measured to find the two unknowns."""

    name: str
    measure: Measure
    fits: bool = False


WORK = (
    Work("worker on RabbitMQ", _worker, fits=True),
    Work("inbox and insert on PostgreSQL", _handlers, fits=True),
    Work("relay to RabbitMQ", _relay),
    Work("inbox and insert on RabbitMQ", _handlers),
)
"""The first has almost no writes, so it says what a call takes, and the second then what a write takes."""


@dataclass(frozen=True, slots=True)
class Model:
    """Microseconds that one function call and one write to a socket take."""

    call: float
    write: float

    @classmethod
    def fitted(cls, costs: Mapping[str, float], counters: Counters) -> "Model":
        """Solves the two equations that the first two kinds of work give."""
        first, second = (counters[work.name] for work in WORK if work.fits)
        cost, other = (costs[work.name] for work in WORK if work.fits)
        determinant = first["calls"] * _writes(second) - second["calls"] * _writes(first)
        return cls(
            call=(cost * _writes(second) - other * _writes(first)) / determinant,
            write=(first["calls"] * other - second["calls"] * cost) / determinant,
        )

    def cost(self, counted: Mapping[str, float]) -> float:
        """What a message takes the process, in microseconds of processor time."""
        return counted["calls"] * self.call + _writes(counted) * self.write


def _writes(counted: Mapping[str, float]) -> float:
    return counted["round trips"] + counted["writes"]


def main() -> None:
    """Measures, prints, and with `--write` writes the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="rounds, of which the median is taken (default 3)")
    parser.add_argument("--amount", type=int, default=20_000, help="messages; a quarter of them for handlers (default 20,000)")
    parser.add_argument("--write", action="store_true", help=f"write the figures into {PAGE.relative_to(ROOT)}")
    wanted = parser.parse_args()
    costs = asyncio.run(_measured(wanted.rounds, wanted.amount))
    shown = report(costs, json.loads(COUNTERS.read_text()))
    shown += f"\n\n{datetime.now(UTC).date().isoformat()}: {machine()}; {wanted.amount:,} messages, {wanted.rounds} rounds."
    print(f"\n{shown}")
    if wanted.write:
        PAGE.write_text(_BLOCK.sub(lambda match: f"{match[1]}{shown}{match[2]}", PAGE.read_text()))


async def _measured(rounds: int, amount: int) -> dict[str, float]:
    samples: dict[str, list[float]] = {work.name: [] for work in WORK}
    with running_servers() as servers:
        for _ in range(rounds):
            for work in WORK:
                async with servers.fresh_database() as url, servers.fresh_vhost() as vhost:
                    figures = await work.measure(url, url if work.name.endswith("PostgreSQL") else vhost, amount)
                    samples[work.name].append(figures[OWN_COST])
    return {name: statistics.median(found) for name, found in samples.items()}


def report(costs: Mapping[str, float], counters: Counters) -> str:
    """The model and its predictions as Markdown."""
    model = Model.fitted(costs, counters)
    lines = [
        f"A call took {model.call:.2f} µs, and a write {model.write:.0f} µs.",
        "",
        "| for each message | calls | writes | predicted, µs | measured, µs | one process on its own core, messages a second |",
        "|---|---|---|---|---|---|",
    ]
    for work in WORK:
        counted = counters[work.name]
        predicted = "fitted" if work.fits else f"{model.cost(counted):,.0f}"
        lines.append(
            f"| {work.name} | {counted['calls']:,.0f} | {_writes(counted):.2f} | {predicted} "
            f"| {costs[work.name]:,.0f} | {1e6 / model.cost(counted):,.0f} |"
        )
    return "\n".join(lines)


_BLOCK = re.compile(r"(<!-- scaling: measured -->\n\n)(?:.*?)(\n\n<!-- /scaling -->)", re.DOTALL)


if __name__ == "__main__":
    main()
