"""What idle processes cost: `outbox worker` and `outbox relay` with nothing to do, on the Postgres transport."""

import asyncio
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import asyncpg

from benchmarks.servers import PATIENCE, Servers, running_commands
from tests.servers.proxy import Proxy

SETTLING = 25.0
"""Seconds from the last start to the measurement: what is done once is not measured."""
MEASURED = 20.0
DISTANCE = 0.002
"""Seconds to a database that is far away, in each direction."""
CONSUMERS = "tests.cli.slow_consumers"
_TICKS = os.sysconf("SC_CLK_TCK")


async def idle_processes(servers: Servers, processes: int) -> dict[str, float]:
    """Transactions a second, and per mille of a processor, of each of so many idle workers, and then relays.

    A process holds up to six connections: more than thirty need a server with more than the default's room.
    """
    return await _idle(servers, processes, distance=0.0)


async def idle_processes_far_away(servers: Servers, processes: int) -> dict[str, float]:
    """Idle processes whose database is `DISTANCE` away in each direction."""
    return await _idle(servers, processes, distance=DISTANCE)


async def _idle(servers: Servers, processes: int, *, distance: float) -> dict[str, float]:
    figures = {}
    away = f", {distance * 1_000:g} ms away" if distance else ""
    for kind, arguments in (("worker", ["worker", CONSUMERS]), ("relay", ["relay"])):
        async with servers.fresh_database() as url:
            with (
                Proxy(url) as proxy,
                running_commands(arguments, processes, {"OUTBOX_DATABASE_URL": proxy.url if distance else url}) as started,
            ):
                proxy.delay(distance)
                connection = await asyncpg.connect(url)
                try:
                    await _all_at_work(connection, processes)
                    await asyncio.sleep(SETTLING)
                    before = await _transactions(connection), _processor_seconds(started)
                    await asyncio.sleep(MEASURED)
                    after = await _transactions(connection), _processor_seconds(started)
                finally:
                    await connection.close()
        transactions, processor = (late - early for early, late in zip(before, after, strict=True))
        figures[f"idle {kind} of {processes}{away}, transactions"] = transactions / MEASURED / processes
        figures[f"idle {kind} of {processes}{away}, per mille of a processor"] = processor / MEASURED / processes * 1_000
    return figures


async def _all_at_work(connection: asyncpg.Connection, count: int) -> None:
    running = "select count(*) from outbox_component where activity ->> 'state' = 'running' and stopped_at is null"
    async with asyncio.timeout(PATIENCE):
        while await connection.fetchval(running) < count:
            await asyncio.sleep(1)


async def _transactions(connection: asyncpg.Connection) -> int:
    count: int = await connection.fetchval(
        "select xact_commit + xact_rollback from pg_stat_database where datname = current_database()"
    )
    return count


def _processor_seconds(processes: Sequence["subprocess.Popen[bytes]"]) -> float:
    """User and system time; see proc(5)."""
    fields = [Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split() for process in processes]
    return sum(int(each[11]) + int(each[12]) for each in fields) / _TICKS
