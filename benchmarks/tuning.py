"""`python -m benchmarks.tuning`: how the rate of a relay or worker changes with one setting at a time.

Each curve varies one setting and keeps the defaults of the others. Its points are measured in turn, in several rounds, and the
median counts. On a shared machine, only ratios within a curve mean something. `--write` puts the figures into
`docs/tuning.md`, with a plot for each curve, and into `benchmarks/tuning.json`.
"""

import argparse
import asyncio
import json
import re
import statistics
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg

from benchmarks.measuring import OWN_COST, bar_chart, machine, timed
from benchmarks.relaying import drained
from benchmarks.servers import PATIENCE, Servers, filled_outbox, running_commands, running_servers, until_empty
from benchmarks.working import declared_queue, worked_off

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tuning.md"
FIGURES = Path(__file__).with_suffix(".json")
READY = "select count(*) from outbox_component where kind = 'relay' and activity ->> 'state' = 'running' and stopped_at is null"

Point = Callable[[Servers, int], Awaitable[dict[str, float]]]
"""Measures one point: its rate, and with `OWN_COST` behind the name what one message costs the process in microseconds."""


def relay(broker: str, **options: Any) -> Point:
    """One relay that empties a full table."""

    async def measure(servers: Servers, count: int) -> dict[str, float]:
        async with servers.fresh_database() as url, servers.fresh_vhost() as vhost:
            return await drained("", url, vhost if broker == "RabbitMQ" else url, count, **options)

    return measure


def worker(broker: str, prefetch_count: int, **options: Any) -> Point:
    """One worker that empties a full queue with a handler that does nothing."""

    async def measure(servers: Servers, count: int) -> dict[str, float]:
        async with servers.fresh_database() as url, servers.fresh_vhost() as vhost:
            amount = count // 4 if prefetch_count == 1 else count
            return await worked_off("", url, vhost if broker == "RabbitMQ" else url, amount, prefetch_count, **options)

    return measure


def relays(processes: int) -> Point:
    """Several processes of `outbox relay` that share a table. Their own cost is not measured."""

    async def measure(servers: Servers, count: int) -> dict[str, float]:
        async with servers.fresh_database() as url, servers.fresh_vhost() as vhost:
            await declared_queue(url, vhost)
            settings = {"OUTBOX_DATABASE_URL": url, "OUTBOX_BROKER_URL": vhost}
            with running_commands(["relay"], processes, settings):
                await _until_ready(url, processes)
                with timed() as watch:
                    await filled_outbox(url, count)
                    await until_empty(url, "outbox_table")
            return {"": count / watch.seconds}

    return measure


CURVES: Mapping[str, Mapping[str, Point]] = {
    "lanes": {f"lanes={each}": relay("RabbitMQ", lanes=each) for each in (1, 2, 4, 8)},
    "batches": {
        "batch_size=1": relay("RabbitMQ", batch_size=1, count_by=20),
        "batch_size=10": relay("RabbitMQ", batch_size=10, count_by=2),
        "batch_size=100": relay("RabbitMQ", batch_size=100),
        "default: 50 to 500": relay("RabbitMQ"),
        "batch_size=2000": relay("RabbitMQ", batch_size=2_000),
    },
    "bodies": {
        "256 bytes": relay("RabbitMQ"),
        "4 KiB": relay("RabbitMQ", body_bytes=4_096),
        "64 KiB": relay("RabbitMQ", body_bytes=65_536, count_by=8),
    },
    "prefetch": {
        f"{broker}, prefetch_count={each}": worker(broker, each)
        for broker in ("RabbitMQ", "PostgreSQL")
        for each in (1, 10, 100, 500)
    },
    "history": {
        "relay, with history": relay("RabbitMQ"),
        "relay, history=False": relay("RabbitMQ", history=False),
        "worker, with history": worker("PostgreSQL", 100),
        "worker, history=False": worker("PostgreSQL", 100, history=False),
    },
    "processes": {f"{each} relay process{'es' if each > 1 else ''}": relays(each) for each in (1, 2, 4)},
}
"""By name: the points, in the order in which the page shows them."""

Samples = dict[str, dict[str, dict[str, list[float]]]]
"""By curve and point: the samples of `rate`, and of `cost` where it is known."""


def main() -> None:
    """Measures, prints, and with `--write` writes the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tuning", description=__doc__)
    parser.add_argument("curves", nargs="*", help="curves to measure; default: all")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, of which the median is shown (default 3)")
    parser.add_argument("--amount", type=int, default=20_000, help="messages (default 20,000)")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)} and its plots")
    wanted = parser.parse_args()
    if unknown := set(wanted.curves) - set(CURVES):
        parser.error(f"no such curve: {', '.join(sorted(unknown))}; there are {', '.join(CURVES)}")
    samples = asyncio.run(_measured(wanted.curves or list(CURVES), wanted.rounds, wanted.amount))
    for name, points in samples.items():
        print(f"\n{name}\n\n{table(points)}")
    if wanted.write:
        conditions = {
            "date": datetime.now(UTC).date().isoformat(),
            "machine": machine(),
            "messages": wanted.amount,
            "rounds": wanted.rounds,
        }
        write(conditions, samples)


async def _measured(curves: Sequence[str], rounds: int, amount: int) -> Samples:
    samples: Samples = {}
    with running_servers() as servers:
        for _ in range(rounds):
            for curve in curves:
                for point, measure in CURVES[curve].items():
                    for name, value in (await measure(servers, amount)).items():
                        kind = "cost" if name.endswith(OWN_COST) else "rate"
                        samples.setdefault(curve, {}).setdefault(point, {}).setdefault(kind, []).append(value)
    return samples


async def _until_ready(url: str, processes: int) -> None:
    connection = await asyncpg.connect(url)
    try:
        async with asyncio.timeout(PATIENCE):
            while await connection.fetchval(READY) < processes:
                await asyncio.sleep(0.2)
    finally:
        await connection.close()


# --- what is shown -----------------------------------------------------------------------------------------------------


def table(points: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    """The points of a curve as a Markdown table."""
    has_cost = any("cost" in point for point in points.values())
    lines = [f"| | messages a second |{' own cost, µs |' if has_cost else ''}", f"|---|---|{'---|' if has_cost else ''}"]
    for name, point in points.items():
        cost = f" {statistics.median(point['cost']):,.0f} |" if "cost" in point else " |" if has_cost else ""
        lines.append(f"| {name} | {statistics.median(point['rate']):,.0f} |{cost}")
    return "\n".join(lines)


_BLOCK = re.compile(r"(<!-- tuning: (?P<name>[a-z]+) -->\n\n)(?:.*?)(\n\n<!-- /tuning -->)", re.DOTALL)


def write(conditions: Mapping[str, Any], samples: Samples) -> None:
    """Writes the JSON file, the plots, and the tables between the comments of the page."""
    FIGURES.write_text(json.dumps({**conditions, "samples": samples}, indent=2) + "\n")
    for name, points in samples.items():
        medians = {point: statistics.median(each["rate"]) for point, each in points.items()}
        (ROOT / "docs" / "images" / f"tuning-{name}.svg").write_text(bar_chart(f"{name}: messages a second, medians", medians))
    PAGE.write_text(page(PAGE.read_text(), conditions, samples))


def page(text: str, conditions: Mapping[str, Any], samples: Samples) -> str:
    """`text` with the measured figures between its comments."""
    blocks = {
        name: f"![{name}: messages a second](images/tuning-{name}.svg)\n\n{table(points)}" for name, points in samples.items()
    }
    blocks["conditions"] = (
        f"{conditions['date']}: {conditions['machine']}; {conditions['messages']:,} messages, {conditions['rounds']} rounds."
    )
    return _BLOCK.sub(lambda match: f"{match[1]}{blocks.get(match['name'], '')}{match[3]}", text)


if __name__ == "__main__":
    main()
