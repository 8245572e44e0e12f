"""The folder of a test session's servers. Each session removes what killed sessions left behind."""

import fcntl
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from outbox.embedded import DataFolderInUseError
from outbox.embedded.server import FolderLock, wait_until

_PREFIX = "outbox-tests-"
_MEMORY = Path("/dev/shm")
_ENOUGH_MEMORY = 4 * 1024**3
"""Required free space in bytes, enough for the servers of several concurrent sessions."""


@contextmanager
def session_folder(*, in_memory: bool = False) -> Iterator[Path]:
    """A folder that the servers' own users can pass through; gone afterwards.

    Not pytest's own temporary folder: that one is closed to other users, and its path is long. `in_memory`, where there is
    room: the files of a fresh database are there ten times as fast as on a disk.
    """
    with one_process_at_a_time("session-folders"):  # a folder that is created but not yet locked looks abandoned
        _remove_abandoned()
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=_MEMORY if in_memory and _has_room(_MEMORY) else None))
        folder.chmod(0o711)
        lock = FolderLock(folder / "lock")
        lock.acquire()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()


@contextmanager
def one_process_at_a_time(what: str) -> Iterator[None]:
    """Lets one test process at a time run the block."""
    with (Path(tempfile.gettempdir()) / f"outbox-{what}-{os.geteuid()}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _has_room(folder: Path) -> bool:
    return folder.is_dir() and os.access(folder, os.W_OK) and shutil.disk_usage(folder).free >= _ENOUGH_MEMORY


def _remove_abandoned() -> None:
    for folder in (*Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"), *_MEMORY.glob(f"{_PREFIX}*")):
        lock = FolderLock(folder / "lock")
        try:
            if folder.stat().st_uid != os.geteuid() and os.geteuid() != 0:
                continue
            lock.acquire()
        except (DataFolderInUseError, FileNotFoundError, PermissionError):
            continue
        _killprocesses_in(folder)
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()


def _killprocesses_in(folder: Path) -> None:
    """Kill processes in the folder. Their supervisors do this unless they were killed too."""
    for pid in processes_in(folder):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not processes_in(folder), 10.0)


def processes_in(folder: Path) -> list[int]:
    """Return the ids of processes whose working folder is the folder or below it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink().is_relative_to(folder):
                found.append(int(process.name))
        except OSError:
            continue
    return found
