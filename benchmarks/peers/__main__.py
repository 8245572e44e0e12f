"""`make bench-peers`: how fast one worker of ours, and of others, empties a queue.

The others run in an environment of their own, `build/peers`, from `requirements/peers.lock`. All use the same servers, one
after another, in several rounds, of which the median counts. `--write` puts the figures into `docs/benchmarks.md`, with a plot
for each server, and into `benchmarks/peers/figures.json`.
"""

import argparse
import asyncio
import json
import os
import re
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.measuring import bar_chart, machine
from benchmarks.servers import Servers, running_servers

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ENVIRONMENT = ROOT / "build" / "peers"
LOCK = ROOT / "requirements" / "peers.lock"
PAGE = ROOT / "docs" / "benchmarks.md"
FIGURES = HERE / "figures.json"
PATIENCE = 120.0
"""Longest wait for one peer to empty its queue, in seconds."""

PEERS: Mapping[str, Sequence[str]] = {
    "RabbitMQ": (
        "Outbox, default",
        "Outbox, prefetch 100",
        "aio-pika, prefetch 10",
        "aio-pika, prefetch 100",
        "FastStream, default",
        "FastStream, prefetch 100",
        "taskiq, default",
        "taskiq, qos 100",
        "Celery, default: 2 processes",
        "Celery, solo, multiplier 128",
        "Dramatiq, default: 8 threads",
        "Dramatiq, 2 threads",
    ),
    "PostgreSQL": (
        "Outbox, default",
        "Outbox, prefetch 100",
        "pgqueuer, default",
        "pgqueuer, batches of 100",
        "procrastinate, default",
        "procrastinate, concurrency 30",
        "faststream-outbox, default",
        "faststream-outbox, 10 workers, batches of 100",
        "Oban, default",
        "Oban, limit 100",
        "pgmq, one by one",
        "pgmq, batches of 100",
    ),
}
"""What is measured on which server: ours, then each peer as it comes and as its documentation advises for short handlers."""
PREDECESSOR = ("predecessor, default", "predecessor, prefetch 100")
"""Measured on RabbitMQ if its folder is given."""
SLOW = ("procrastinate, ", "faststream-outbox, default", "Oban, ", "pgmq, one by one")
"""Gets a tenth of the messages."""
PACKAGES = (
    "aio-pika",
    "faststream",
    "taskiq",
    "celery",
    "dramatiq",
    "pgqueuer",
    "procrastinate",
    "faststream-outbox",
    "oban",
    "pgmq",
)

Rates = dict[str, dict[str, list[float]]]
"""By server and name: messages a second, in each round."""


def main() -> None:
    """Measures, prints, and writes if that is wanted."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of the names of those to measure; default: all")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, of which the median is shown (default 3)")
    parser.add_argument("--amount", type=int, default=20_000, help="messages (default 20,000)")
    parser.add_argument("--predecessor", type=Path, help="folder that contains the package `outbox` of the predecessor")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)} and what belongs to it")
    wanted = parser.parse_args()
    if wanted.predecessor and not (wanted.predecessor / "outbox").is_dir():
        parser.error(f"--predecessor {wanted.predecessor}: no folder `outbox` in it")
    python = environment()
    rates = asyncio.run(_measured(python, wanted.names, wanted.rounds, wanted.amount, wanted.predecessor))
    figures = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "messages": wanted.amount,
        "rounds": wanted.rounds,
        "versions": versions(python),
        "rates": rates,
    }
    print("\n".join(table(rates[server]) for server in rates))
    if wanted.write:
        written(figures)


def environment() -> Path:
    """The Python of the peers' environment, which is made if it is not there, is of another Python, or not as the lock says."""
    python, installed = ENVIRONMENT / "bin" / "python", ENVIRONMENT / "installed.lock"
    wanted = f"# {sys.version}\n{LOCK.read_text()}"
    if not installed.exists() or installed.read_text() != wanted:
        print("bench-peers: making build/peers from requirements/peers.lock", flush=True)
        venv.create(ENVIRONMENT, clear=True, with_pip=True)
        options = ("--quiet", "--disable-pip-version-check", "--require-hashes")
        subprocess.run([python, "-m", "pip", "install", *options, "-r", LOCK], check=True)
        installed.write_text(wanted)
    return python


def versions(python: Path) -> dict[str, str]:
    """Of the peers."""
    program = (
        "import importlib.metadata as m, json; there = {d.name: d.version for d in m.distributions()}; "
        f"print(json.dumps({{n: there[n] for n in {PACKAGES} if n in there}}))"
    )
    found: dict[str, str] = json.loads(subprocess.run([python, "-c", program], check=True, capture_output=True).stdout)
    return found


async def _measured(python: Path, words: Sequence[str], rounds: int, amount: int, predecessor: Path | None) -> Rates:
    rates: Rates = {}
    measured = {server: [name for name in names if _installable(name)] for server, names in PEERS.items()}
    if predecessor:
        measured["RabbitMQ"] += PREDECESSOR
    with running_servers() as servers:
        for _ in range(rounds):
            for server, names in measured.items():
                for name in names:
                    if not words or any(word in name for word in words):
                        number = amount // 10 if name.startswith(SLOW) else amount
                        rate = await _rate(servers, python, server, name, number, predecessor)
                        print(f"{server:<12}{name:<48}{rate:>10,.0f}", flush=True)
                        rates.setdefault(server, {}).setdefault(name, []).append(rate)
    return rates


def _installable(name: str) -> bool:
    if name.startswith("Oban") and sys.version_info < (3, 12):
        print(f"{name}: not measured, because it needs Python 3.12", flush=True)
        return False
    return True


async def _rate(servers: Servers, python: Path, server: str, name: str, amount: int, predecessor: Path | None) -> float:
    async with servers.fresh_database() as url, servers.fresh_vhost() as broker:
        target = broker if server == "RabbitMQ" else url
        if name.startswith("Outbox"):
            return said([sys.executable, "-m", "benchmarks.peers.ours", name, target, str(amount), url])
        if name in PREDECESSOR:
            return said([sys.executable, HERE / "on_predecessor.py", str(predecessor), name, target, str(amount), url])
        return said([python, HERE / f"on_{server.lower()}.py", name, target, str(amount)])


def said(command: Sequence[str | Path]) -> float:
    """The rate that a peer's process prints. It is ended then, with all that it started."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, start_new_session=True)
        try:
            rate = _line(process)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if rate is None:
            errors.seek(0)
            raise RuntimeError(f"{command[-3]} said no rate: {errors.read()[-2000:]}")
    return rate


def _line(process: "subprocess.Popen[bytes]") -> float | None:
    ends, text = time.monotonic() + PATIENCE, b""
    while process.stdout and select.select([process.stdout], [], [], max(0.0, ends - time.monotonic()))[0]:
        part = os.read(process.stdout.fileno(), 65_536)
        text += part
        if found := re.search(rb'^\{"rate": ([0-9.]+)\}$', text, re.MULTILINE):
            return float(found[1])
        if not part:
            break
    return None


# --- what is shown -----------------------------------------------------------------------------------------------------


def table(rates: Mapping[str, Sequence[float]]) -> str:
    """As Markdown."""
    rows = [
        f"| {name} | {statistics.median(samples):,.0f} | {min(samples):,.0f} to {max(samples):,.0f} |"
        for name, samples in rates.items()
    ]
    return "\n".join(("| | messages a second | from, to |", "|---|---|---|", *rows))


_BLOCK = re.compile(r"(<!-- peers: (?P<name>[A-Za-z]+) -->\n\n)(?:.*?)(\n\n<!-- /peers -->)", re.DOTALL)


def written(figures: Mapping[str, Any]) -> None:
    """Into the page, the plots and the JSON file."""
    FIGURES.write_text(json.dumps(figures, indent=2) + "\n")
    for server, rates in figures["rates"].items():
        medians = {name: statistics.median(samples) for name, samples in rates.items()}
        chart = bar_chart(f"{server}: messages a second, medians", medians, highlighted="Outbox")
        (ROOT / "docs" / "images" / f"peers-{server.lower()}.svg").write_text(chart)
    PAGE.write_text(page(PAGE.read_text(), figures))


def page(text: str, figures: Mapping[str, Any]) -> str:
    """`text` with what `figures` say between its comments."""
    used = ", ".join(f"{name} {version}" for name, version in figures["versions"].items())
    blocks = {
        server: f"![messages a second on {server}](images/peers-{server.lower()}.svg)\n\n{table(rates)}"
        for server, rates in figures["rates"].items()
    }
    amount = f"{figures['messages']:,} messages, {figures['rounds']} rounds"
    blocks["conditions"] = f"{figures['date']}: {figures['machine']}; {amount}. {used}."
    return _BLOCK.sub(lambda match: f"{match[1]}{blocks[match['name']]}{match[3]}", text)


if __name__ == "__main__":
    main()
