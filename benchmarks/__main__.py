"""`python -m benchmarks`: runs every benchmark, or those whose names contain a word given, and prints medians."""

import argparse
import asyncio
import gc
import json
import logging
import platform
from collections.abc import Awaitable, Callable, Sequence

from benchmarks.administering import admin_reads
from benchmarks.browsing import dashboard
from benchmarks.enduring import long_backlogs, maintenance, pinned_transaction
from benchmarks.handling import handlers_on_postgres, handlers_on_rabbitmq
from benchmarks.idling import idle_databases, idle_processes, idle_processes_far_away, starting
from benchmarks.measuring import OWN_COST, SERVER_COST, Figure, repeated
from benchmarks.publishing import bulk_publishing, encrypting_bodies, many_writers
from benchmarks.relaying import (
    relay_to_kafka,
    relay_to_nats,
    relay_to_postgres,
    relay_to_rabbitmq,
    relay_to_redis,
    relay_variants_to_postgres,
    relay_variants_to_rabbitmq,
)
from benchmarks.reporting import reporting_on_postgres, reporting_on_rabbitmq
from benchmarks.servers import Servers, running_servers
from benchmarks.tracing import tracing_on_postgres, tracing_on_rabbitmq
from benchmarks.working import (
    inbox_on_postgres,
    inbox_on_rabbitmq,
    latency_on_postgres,
    latency_on_rabbitmq,
    worker_on_postgres,
    worker_on_rabbitmq,
)

Benchmark = Callable[[Servers, int], Awaitable[dict[str, float]]]

BENCHMARKS: dict[str, tuple[Benchmark, int, str]] = {
    "bulk": (bulk_publishing, 100_000, "rows/s"),
    "encryption": (encrypting_bodies, 20_000, "µs each"),
    "relay-rabbitmq": (relay_to_rabbitmq, 50_000, "messages/s"),
    "relay-postgres": (relay_to_postgres, 50_000, "messages/s"),
    "relay-kafka": (relay_to_kafka, 50_000, "messages/s"),
    "relay-nats": (relay_to_nats, 50_000, "messages/s"),
    "relay-redis": (relay_to_redis, 50_000, "messages/s"),
    "variants-rabbitmq": (relay_variants_to_rabbitmq, 40_000, "messages/s"),
    "variants-postgres": (relay_variants_to_postgres, 40_000, "messages/s"),
    "worker-rabbitmq": (worker_on_rabbitmq, 30_000, "messages/s"),
    "worker-postgres": (worker_on_postgres, 50_000, "messages/s"),
    "inbox-rabbitmq": (inbox_on_rabbitmq, 6_000, "messages/s"),
    "inbox-postgres": (inbox_on_postgres, 6_000, "messages/s"),
    "handlers-rabbitmq": (handlers_on_rabbitmq, 6_000, "messages/s"),
    "handlers-postgres": (handlers_on_postgres, 6_000, "messages/s"),
    "reports-rabbitmq": (reporting_on_rabbitmq, 100_000, "messages/s"),
    "reports-postgres": (reporting_on_postgres, 100_000, "messages/s"),
    "latency-rabbitmq": (latency_on_rabbitmq, 1_000, "ms"),
    "latency-postgres": (latency_on_postgres, 1_000, "ms"),
    "otel-rabbitmq": (tracing_on_rabbitmq, 20_000, "messages/s"),
    "otel-postgres": (tracing_on_postgres, 20_000, "messages/s"),
    "starts": (starting, 5, "ms"),
    "idle": (idle_processes, 14, "each"),
    "idle-far": (idle_processes_far_away, 14, "each"),
    "databases": (idle_databases, 50, "each"),
    "writers": (many_writers, 16_000, "commits/s"),
    "backlogs": (long_backlogs, 10_000_000, "messages/s"),
    "pinned": (pinned_transaction, 60, "messages/s"),
    "maintenance": (maintenance, 1_000_000, "ms"),
    "admin-reads": (admin_reads, 1_000_000, "ms"),
    "dashboard": (dashboard, 200_000, "ms"),
}
"""Name → benchmark, how many messages (rows, seconds), the unit of its figures."""


def main() -> None:
    """Parses the command line, runs, reports."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(BENCHMARKS)}; parts of names will do; default: all")
    parser.add_argument("--runs", type=int, default=3, help="runs of each, of which the median is shown (default 3)")
    parser.add_argument("--amount", type=int, help="messages, rows or seconds, instead of the benchmark's own")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--no-fsync", action="store_true", help="let PostgreSQL not wait for the disk, to see all but the disk")
    arguments = parser.parse_args()
    logging.getLogger("outbox").setLevel(logging.ERROR)
    figures = asyncio.run(_measure(_chosen(arguments.names), arguments))
    if arguments.json:
        print(json.dumps({figure.name: {"median": figure.median, "unit": figure.unit} for figure in figures}))
    else:
        _print_table(figures)


def _chosen(words: Sequence[str]) -> list[str]:
    """Names that are given, and those that contain a word that is no name."""
    return [
        name for name in BENCHMARKS if not words or any(name == word if word in BENCHMARKS else word in name for word in words)
    ]


async def _measure(names: Sequence[str], wanted: argparse.Namespace) -> list[Figure]:
    figures = []
    with running_servers(durable=not wanted.no_fsync) as servers:
        gc.freeze()  # as `outbox relay` and `outbox worker` do
        for name in names:
            benchmark, count, unit = BENCHMARKS[name]
            count = wanted.amount or count
            samples = await repeated(wanted.runs, lambda run=benchmark, count=count: run(servers, count))  # type: ignore[misc]
            figures += [
                Figure(label, "µs each" if label.endswith((OWN_COST, SERVER_COST)) else unit, values)
                for label, values in samples.items()
            ]
    return figures


def _print_table(figures: Sequence[Figure]) -> None:
    print(f"\nPython {platform.python_version()}, {platform.machine()}; 256-byte bodies; medians\n")
    for figure in figures:
        print(f"{figure.name:<46}{figure.shown(figure.median):>10} {figure.unit:<12}{figure.spread:>22}")


if __name__ == "__main__":
    main()
