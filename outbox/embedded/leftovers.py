"""Servers that outlived their owner: found by the folder they work in, and ended."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

_POLL_SECONDS = 0.01


def end_leftovers(cluster: Path, *, fast_seconds: float = 10.0) -> bool:
    """End every PostgreSQL process that works in the cluster's folder; whether there was one.

    The server is asked for a fast shutdown first; after `fast_seconds` what is left is killed, which loses nothing that
    was committed: the next start replays the log.
    """
    if not server_processes(cluster):
        return False
    postmaster = recorded_pid(cluster)
    if postmaster in server_processes(cluster):
        _signal({postmaster}, signal.SIGCONT)
        _signal({postmaster}, signal.SIGINT)
        wait_until(lambda: not server_processes(cluster), fast_seconds)
    kill_all(cluster)
    return True


def kill_all(cluster: Path) -> None:
    """Kill every PostgreSQL process that works in the cluster's folder; they are gone when this returns."""
    _signal(server_processes(cluster), signal.SIGKILL)
    wait_until(lambda: not server_processes(cluster), 10.0)


def server_processes(cluster: Path) -> set[int]:
    """The ids of the PostgreSQL processes that work in the cluster's folder."""
    if sys.platform == "linux":
        folder = str(cluster.resolve())
        return {pid for pid in _all_pids() if _works_in(pid, folder)}
    # Elsewhere there is no folder to look at: the server is known by its own record, its children by their parent.
    postmaster = recorded_pid(cluster)
    return {pid for pid, parent, name in _ps() if name.endswith("postgres") and postmaster in (pid, parent)}


def recorded_pid(cluster: Path) -> int:
    """The server's process id according to its own lock file; 0 where there is none."""
    try:
        return int((cluster / "postmaster.pid").read_text().split("\n", 1)[0])
    except (OSError, ValueError):
        return 0


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Poll until the condition holds; whether it did in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _signal(pids: set[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _all_pids() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdecimal()]  # noqa: PTH208 — no Path per process


def _works_in(pid: int, folder: str) -> bool:
    try:
        if os.readlink(f"/proc/{pid}/cwd") != folder:  # noqa: PTH115 — no Path per process
            return False
        return Path(f"/proc/{pid}/comm").read_text().strip() == "postgres"
    except OSError:
        return False


def _ps() -> list[tuple[int, int, str]]:
    command = ["/bin/ps", "-A", "-o", "pid=,ppid=,comm="]
    listing = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 — a fixed command
    rows = (line.split(None, 2) for line in listing.stdout.splitlines())
    return [(int(row[0]), int(row[1]), row[2]) for row in rows if len(row) == 3]
