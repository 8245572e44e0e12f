"""How long processes take to start, and what they cost with nothing to do, on the Postgres transport."""

import asyncio
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import asyncpg

from benchmarks.measuring import processor_seconds
from benchmarks.servers import PATIENCE, Servers, filled_outbox, running_commands, until_empty
from benchmarks.working import declared_queue
from tests.servers.postgres import fresh_database, with_database
from tests.servers.proxy import Proxy

SETTLING = 25.0
"""Seconds from the last start to the measurement: what is done once is not measured."""
MEASURED = 20.0
LONG_MEASURED = 120.0
"""For few transactions of many databases."""
DISTANCE = 0.002
"""Seconds to a database that is far away, in each direction."""
CONSUMERS = "tests.cli.slow_consumers"


async def idle_processes(servers: Servers, processes: int) -> dict[str, float]:
    """Transactions a second, and per mille of a processor, of each of so many idle workers, then relays, and of a maintenance.

    A process holds up to six connections: more than thirty need a server with more than the default's room.
    """
    return await _idle(servers, processes, distance=0.0)


async def idle_processes_far_away(servers: Servers, processes: int) -> dict[str, float]:
    """Idle processes whose database is `DISTANCE` away in each direction."""
    return await _idle(servers, processes, distance=DISTANCE)


async def starting(servers: Servers, count: int) -> dict[str, float]:
    """Milliseconds until `import outbox` is done, a relay has sent its first message, and the service is ready: medians.

    Modules are compiled, and the service has started before and has its database.
    """
    figures: dict[str, list[float]] = {}
    with TemporaryDirectory() as folder:
        _ready_after(folder)
        for _ in range(count):
            figures.setdefault("python -c 'import outbox'", []).append(_imported_after())
            figures.setdefault("outbox relay, until a message is sent", []).append(await _sent_after(servers))
            figures.setdefault("python -m app, until it is ready", []).append(_ready_after(folder))
    return {name: statistics.median(samples) for name, samples in figures.items()}


def _imported_after() -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import outbox"], check=True)
    return (time.perf_counter() - began) * 1_000


async def _sent_after(servers: Servers) -> float:
    async with servers.fresh_database() as url:
        await declared_queue(url, url)
        await filled_outbox(url, 1)
        began = time.perf_counter()
        with running_commands(["relay"], 1, {"OUTBOX_DATABASE_URL": url, "OUTBOX_MONITORING_PORT": "0"}):
            await until_empty(url, "outbox_table")
            return (time.perf_counter() - began) * 1_000


def _ready_after(data_dir: str) -> float:
    began = time.perf_counter()
    command, settings = [sys.executable, "-m", "app"], {**os.environ, "OUTBOX_DATA_DIR": data_dir}
    with subprocess.Popen(command, env=settings, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            if not any("Press Ctrl-C" in line for line in process.stdout):
                raise RuntimeError("python -m app did not start")
            return (time.perf_counter() - began) * 1_000
        finally:
            process.terminate()


async def idle_databases(servers: Servers, databases: int) -> dict[str, float]:
    """What one idle `outbox relay --databases` costs for each of so many databases of a server."""
    with ExitStack() as stack:
        names = [stack.enter_context(fresh_database(servers.postgres_url, tables=True)) for _ in range(databases)]
        file = Path(stack.enter_context(TemporaryDirectory())) / "databases"
        file.write_text("".join(f"{name}={with_database(servers.postgres_url, name)}\n" for name in names))
        settings = {"OUTBOX_DATABASES_FILE": str(file), "OUTBOX_MONITORING_PORT": "0"}
        started = stack.enter_context(running_commands(["relay"], 1, settings))
        connection = await asyncpg.connect(servers.postgres_url)
        try:
            listening = "select count(distinct datname) from pg_stat_activity where application_name = 'outbox relay bell'"
            async with asyncio.timeout(PATIENCE):
                while await connection.fetchval(listening) < databases:
                    await asyncio.sleep(1)
            await asyncio.sleep(SETTLING)
            before = await _transactions(connection, names), processor_seconds(each.pid for each in started)
            await asyncio.sleep(LONG_MEASURED)
            after = await _transactions(connection, names), processor_seconds(each.pid for each in started)
            sessions = await connection.fetchval("select count(*) from pg_stat_activity where datname = any ($1)", names)
        finally:
            await connection.close()
        [resident] = re.findall(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{started[0].pid}/status").read_text())
    transactions, processor = (late - early for early, late in zip(before, after, strict=True))
    return {
        f"idle relay of {databases} databases, transactions a minute": transactions / LONG_MEASURED / databases * 60,
        f"idle relay of {databases} databases, per mille of a processor": processor / LONG_MEASURED / databases * 1_000,
        f"idle relay of {databases} databases, connections": sessions / databases,
        f"idle relay of {databases} databases, MB": int(resident) / 1_000 / databases,
    }


async def _idle(servers: Servers, processes: int, *, distance: float) -> dict[str, float]:
    figures = {}
    away = f", {distance * 1_000:g} ms away" if distance else ""
    for kind, arguments in (("worker", ["worker", CONSUMERS]), ("relay", ["relay"]), ("maintenance", ["maintain"])):
        if kind == "maintenance":
            processes = 1  # of several, all but one would stand by
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
                    before = await _transactions(connection), processor_seconds(each.pid for each in started)
                    await asyncio.sleep(MEASURED)
                    after = await _transactions(connection), processor_seconds(each.pid for each in started)
                    memory = _private_megabytes(started)
                finally:
                    await connection.close()
        transactions, processor = (late - early for early, late in zip(before, after, strict=True))
        figures[f"idle {kind} of {processes}{away}, MB not shared"] = memory / processes
        figures[f"idle {kind} of {processes}{away}, transactions"] = transactions / MEASURED / processes
        figures[f"idle {kind} of {processes}{away}, per mille of a processor"] = processor / MEASURED / processes * 1_000
    return figures


async def _all_at_work(connection: asyncpg.Connection, count: int) -> None:
    at_work = "select count(*) from outbox_component where activity ->> 'state' <> 'starting' and stopped_at is null"
    async with asyncio.timeout(PATIENCE):
        while await connection.fetchval(at_work) < count:
            await asyncio.sleep(1)


async def _transactions(connection: asyncpg.Connection, databases: Sequence[str] | None = None) -> int:
    """Transactions in these databases, by default in that of the connection."""
    count: int = await connection.fetchval(
        "select sum(xact_commit + xact_rollback)::bigint from pg_stat_database "
        "where datname = any (coalesce($1, array[current_database()::text]))",
        databases,
    )
    return count


def _private_megabytes(processes: Sequence["subprocess.Popen[bytes]"]) -> float:
    """Memory that is not shared with another process; see proc(5), smaps_rollup."""
    texts = [Path(f"/proc/{process.pid}/smaps_rollup").read_text() for process in processes]
    return (
        sum(int(kilobytes) for text in texts for kilobytes in re.findall(r"^Private_\w+:\s+(\d+) kB", text, re.MULTILINE))
        / 1_000
    )
