"""The embedded PostgreSQL server: make its data folder once, start it, stop it, clean up after a crash."""

import contextlib
import fcntl
import json
import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self, cast

from outbox.embedded.binaries import (
    MAJOR_VERSION,
    Account,
    Binaries,
    DataFolderInUseError,
    EmbeddedPostgresError,
    account_for,
    installed_binaries,
    reachable_binaries,
)

# Below the range from which Linux (32768) and macOS (49152) take the ports of outgoing connections: while a server is
# restarted, no client can be given its port by accident.
_CANDIDATES = range(20_000, 32_000)


def free_port() -> int:
    """A port of 127.0.0.1 that is free now. Nothing reserves it: a program that binds it must be ready to retry."""
    for port in random.sample(_CANDIDATES, 200):
        if is_free(port):
            return port
    raise OSError(f"no free port between {_CANDIDATES.start} and {_CANDIDATES.stop} on 127.0.0.1")


def is_free(port: int) -> bool:
    """Whether a server could bind the port of 127.0.0.1 now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


class FolderLock:
    """A lock that the operating system releases when its holder dies, however it dies."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock; holding it already is fine.

        Raises:
            DataFolderInUseError: another process, which is named, holds it.
        """
        if self._descriptor is not None:
            return
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 32).decode().strip() or "unknown"
            os.close(descriptor)
            raise DataFolderInUseError(
                f"process {holder} already runs a PostgreSQL in {self._path.parent}: stop it, or choose another folder"
            ) from None
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """Let the next one in; not holding it is fine."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


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
    found: set[int] = set()
    if sys.platform == "linux":
        folder = str(cluster.resolve())
        for entry in os.listdir("/proc"):  # noqa: PTH208  no Path per process
            with contextlib.suppress(OSError):  # it has ended meanwhile, or is another user's
                if entry.isdecimal() and os.readlink(f"/proc/{entry}/cwd") == folder:  # noqa: PTH115  no Path per process
                    found |= {int(entry)} if Path(f"/proc/{entry}/comm").read_text().strip() == "postgres" else set()
        return found
    # Elsewhere there is no folder to look at: the server is known by its own record, its children by their parent.
    postmaster = recorded_pid(cluster)
    command = ["/bin/ps", "-A", "-o", "pid=,ppid=,comm="]
    listing = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603  a fixed command
    for line in listing.stdout.splitlines():
        pid, parent, name = (*line.split(None, 2), "", "", "")[:3]
        if name.endswith("postgres") and postmaster in (int(pid), int(parent)):
            found.add(int(pid))
    return found


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


_SUPERVISOR = Path(__file__).with_name("supervisor.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """One step of stopping a server: a signal, and how many seconds it has before the next step."""

    signal: signal.Signals
    seconds: float


class Supervised:
    """A running server. Closing it, or the death of this process by whatever means, ends the server.

    The server and its supervisor form a session of their own: a Ctrl-C at the terminal reaches this process only, which
    then stops its servers in the order it wants. `scratch` is a folder of the server's that is deleted when it has ended.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        account: Account,
        folder: Path,
        environment: Mapping[str, str],
        log: Path,
        ending: Sequence[Ending],
        scratch: Path | None = None,
    ) -> None:
        order = {
            "command": [str(part) for part in command],
            "folder": str(folder),
            "environment": dict(environment),
            "ending": [(step.signal, step.seconds) for step in ending],
            "identity": account.popen_arguments(),
            "owner": os.getpid(),
            "scratch": str(scratch) if scratch else "",
        }
        self._patience = sum(step.seconds for step in ending) + 5
        with log.open("ab") as stderr:
            self._supervisor = subprocess.Popen(  # noqa: S603 — our own script, and the command we were given
                [sys.executable, "-I", "-S", str(_SUPERVISOR), json.dumps(order)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
                bufsize=0,
            )
        self._control = cast("IO[bytes]", self._supervisor.stdin)
        with cast("IO[bytes]", self._supervisor.stdout) as answer:
            line = answer.readline().decode(errors="replace").strip()
        if not line.isdecimal():
            self.stop()
            raise EmbeddedPostgresError(f"{command[0]} could not be started: {line.removeprefix('error: ') or 'no answer'}")
        self.pid = int(line)

    @property
    def alive(self) -> bool:
        """Whether the server runs."""
        return self._supervisor.poll() is None

    def signal(self, number: signal.Signals) -> None:
        """Send the server a signal; nothing happens if it has exited or was stopped."""
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._control.write(bytes([number]))

    def kill(self) -> None:
        """Kill the server with SIGKILL; it is gone when this returns."""
        self.signal(signal.SIGKILL)
        self.stop()

    def stop(self) -> None:
        """End the server, step by step; it is gone when this returns. Calling it again does nothing."""
        self._control.close()
        self._supervisor.wait(self._patience)


_USER = "outbox"
_DATABASE = "outbox"
_START_SECONDS = 60.0
_PORT_ATTEMPTS = 5
_LOG_LIMIT_BYTES = 5_000_000
_RUNTIME_PREFIX = "outbox-pg-"
# A socket's address has at most 107 bytes on Linux and 103 on macOS, and its name `/.s.PGSQL.12345` needs 16 of them.
_SOCKET_FOLDER_LIMIT_BYTES = 85
_ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}

# Linux resolves this to the working folder without walking the folders above it, some of which may be closed to the
# user that the server runs as.
_WORKING_FOLDER = "/proc/self/cwd"

_ENDING = (
    Ending(signal=signal.SIGINT, seconds=10.0),  # fast: sessions are ended, everything is written
    Ending(signal=signal.SIGQUIT, seconds=5.0),  # immediate: the next start replays the log
    Ending(signal=signal.SIGKILL, seconds=5.0),
)

_SETTINGS: Mapping[str, str] = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_permissions": "0700",
    "max_connections": "400",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] ",
}
_NOT_DURABLE: Mapping[str, str] = {
    # A crash of the server still loses nothing that was committed, since the operating system has it; a crash of the
    # machine may.
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum_naptime": "5s",
    # Shared memory in files among the data, so that a killed server whose folder is then deleted leaves none behind.
    "dynamic_shared_memory_type": "mmap",
}


class EmbeddedPostgres:
    """A PostgreSQL server of our own, with its data in `data_dir`.

    It listens on 127.0.0.1 and on a socket in a private folder, and asks for a password on both. It ends with this
    process, also when that is killed; what a crash leaves behind is cleaned up by the next start. Root runs it as an
    unprivileged user. Methods block; call them in a thread from asynchronous code. One owner at a time.

    Args:
        data_dir: where the data, the password and the log are kept; made if missing. Nothing outside it is changed.
        port: the port to listen on; by default a free one is chosen once and kept while it stays free.
        durable: False trades safety against a crash of the machine for speed, for tests.
    """

    def __init__(self, data_dir: Path, *, port: int | None = None, durable: bool = True) -> None:
        self.data_dir = data_dir.absolute()
        self._wanted_port = port
        self._durable = durable
        self._cluster = self.data_dir / "cluster"
        self._lock = FolderLock(self.data_dir / "lock")
        self._port: int | None = None
        self._process: Supervised | None = None
        self._runtime: Path | None = None

    def __repr__(self) -> str:
        return f"EmbeddedPostgres({str(self.data_dir)!r}, {'running' if self.running else 'stopped'})"

    @property
    def running(self) -> bool:
        """Whether the server's process is alive."""
        return self._process is not None and self._process.alive

    @property
    def url(self) -> str:
        """The `postgresql://` address, password included, of a database of our own; the same after each restart.

        Raises:
            EmbeddedPostgresError: it was never started, so that it has no port yet.
        """
        if self._port is None:
            raise EmbeddedPostgresError("the embedded PostgreSQL has no address before its first start: call start()")
        password = (self.data_dir / "password").read_text().strip()
        return f"postgresql://{_USER}:{password}@127.0.0.1:{self._port}/{_DATABASE}"

    @property
    def log(self) -> Path:
        """The server's log file."""
        return self.data_dir / "server.log"

    def start(self) -> str:
        """Start the server, with its data folder made if it is new, and return its address once it takes connections.

        A server left over by an owner that died is stopped first. Starting a running server only returns its address.

        Raises:
            DataFolderInUseError: another living process runs a server on this folder.
            EmbeddedPostgresError: it cannot run here, or did not come up; the message says what to do.
        """
        if self.running:
            return self.url
        programs = installed_binaries()
        # Others may pass through but not look: the server's own user must reach its cluster.
        mode = 0o711 if os.geteuid() == 0 else 0o700
        try:
            self.data_dir.mkdir(mode=mode, parents=True, exist_ok=True)
        except OSError as error:
            raise EmbeddedPostgresError(f"cannot make the data folder {self.data_dir}: {error.strerror}") from error
        if not os.access(self.data_dir, os.W_OK | os.X_OK):
            raise EmbeddedPostgresError(
                f"cannot write to the data folder {self.data_dir}: it belongs to another user; choose another folder"
            )
        self._lock.acquire()
        try:
            end_leftovers(self._cluster)
            # No process works in the folder any more: if one has that id by now, it is not the server.
            (self._cluster / "postmaster.pid").unlink(missing_ok=True)
            account = account_for(self._cluster)
            runtime = self._make_runtime_folder(account)
            programs = reachable_binaries(programs, account, runtime)
            self._ensure_cluster(programs, account, runtime)
            self._launch(programs, account, runtime)
        except BaseException:
            self.stop()
            raise
        return self.url

    def stop(self) -> None:
        """Stop the server: fast, then immediately, then by force. It is gone when this returns; stopping twice is fine."""
        if self._process is not None:
            self._process.stop()
            self._process = None
        if self._runtime is not None:
            shutil.rmtree(self._runtime, ignore_errors=True)
            self._runtime = None
        self._lock.release()

    def restart(self) -> str:
        """Stop and start again, at the same address."""
        self.stop()
        return self.start()

    def kill(self) -> None:
        """Kill every process of the server with SIGKILL, as a power cut would; `start()` recovers what was committed."""
        if self._process is not None:
            self._process.kill()
            kill_all(self._cluster)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: types.TracebackType | None,
    ) -> None:
        self.stop()

    def _make_runtime_folder(self, account: Account) -> Path:
        """A private folder that the account reaches by a short path: among the data, else among the temporary files."""
        with contextlib.suppress(FileNotFoundError):  # that of an owner which died
            recorded = Path((self.data_dir / "runtime").read_text())
            if recorded.name.startswith(_RUNTIME_PREFIX):
                shutil.rmtree(recorded, ignore_errors=True)
        inside = self.data_dir / "run"
        shutil.rmtree(inside, ignore_errors=True)
        if len(os.fsencode(inside)) <= _SOCKET_FOLDER_LIMIT_BYTES and account.reaches(inside):
            inside.mkdir(mode=0o700)
            self._runtime = inside
        else:
            parent = tempfile.gettempdir()
            short = len(os.fsencode(parent)) <= _SOCKET_FOLDER_LIMIT_BYTES - 20
            self._runtime = Path(tempfile.mkdtemp(prefix=_RUNTIME_PREFIX, dir=parent if short else "/tmp"))  # noqa: S108
            (self.data_dir / "runtime").write_text(str(self._runtime))
        account.own(self._runtime)
        return self._runtime

    def _ensure_cluster(self, programs: Binaries, account: Account, runtime: Path) -> None:
        """Makes the cluster under another name and renames it at the end: a half-made one is never taken for a whole one."""
        if self._cluster.exists():
            made_by = (self._cluster / "PG_VERSION").read_text().strip()
            if made_by != MAJOR_VERSION:
                raise EmbeddedPostgresError(
                    f"the data in {self.data_dir} was made by PostgreSQL {made_by} and this is {MAJOR_VERSION}: "
                    "choose another folder, or move the data with pg_dump"
                )
            if account.switched and self._cluster.stat().st_uid != account.uid:
                account.own(self._cluster)
            return
        unfinished = self.data_dir / "cluster.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        account.own(unfinished)
        password, password_file = secrets.token_urlsafe(24), runtime / "password"
        for path in (self.data_dir / "password", password_file):
            path.unlink(missing_ok=True)
            path.touch(mode=0o600)
            path.write_text(password)
        account.own(password_file)
        location = self._location(unfinished, account)
        locale = ("--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
        access = (f"--username={_USER}", "--auth=scram-sha-256", f"--pwfile={password_file}")
        command: list[str | Path] = [programs.initdb, "-D", location, *locale, *access, "--no-instructions"]
        # SCRAM's 4,096 iterations make a weak password dear to guess; this one has 192 random bits, and tests connect often.
        command += [] if self._durable else ["--no-sync", "-c", "scram_iterations=1"]
        self._run(command, account, unfinished)
        command = [programs.postgres, "--single", "-D", location, "postgres"]
        self._run(command, account, unfinished, statement=f"create database {_DATABASE}")
        password_file.unlink()
        unfinished.rename(self._cluster)

    def _location(self, folder: Path, account: Account) -> Path:
        """How the account calls a folder that is its working folder."""
        return folder if account.reaches(folder) else Path(_WORKING_FOLDER)

    def _run(self, command: Sequence[str | Path], account: Account, folder: Path, *, statement: str = "") -> None:
        finished = subprocess.run(  # noqa: S603 — programs of the wheel
            command,
            cwd=folder,
            env=_ENVIRONMENT,
            input=statement + "\n",
            capture_output=True,
            text=True,
            timeout=_START_SECONDS,
            check=False,
            **account.popen_arguments(),
        )
        if finished.returncode != 0 or "ERROR:" in finished.stderr:
            raise EmbeddedPostgresError(
                f"could not make a PostgreSQL data folder in {self.data_dir}: {finished.stderr.strip()[-800:]}"
            )

    def _launch(self, programs: Binaries, account: Account, runtime: Path) -> None:
        """Starts the server, and returns when it is ready; on another port if another program took its own meanwhile."""
        settings = {**_SETTINGS, **({} if self._durable else _NOT_DURABLE), "unix_socket_directories": str(runtime)}
        for _ in range(_PORT_ATTEMPTS):
            self._port = self._choose_port()
            settings["port"] = str(self._port)
            if self.log.exists() and self.log.stat().st_size > _LOG_LIMIT_BYTES:
                self.log.replace(self.log.with_suffix(".log.old"))
            logged_before = self.log.stat().st_size if self.log.exists() else 0
            self._process = Supervised(
                [
                    programs.postgres,
                    *("-D", self._location(self._cluster, account)),
                    *(part for name, value in settings.items() for part in ("-c", f"{name}={value}")),
                ],
                account=account,
                folder=self._cluster,
                environment=_ENVIRONMENT,
                log=self.log,
                ending=_ENDING,
                scratch=runtime,
            )
            if wait_until(lambda: self._is_ready() or not self.running, _START_SECONDS) and self.running:
                (self.data_dir / "port").write_text(str(self._port))
                return
            self._process.stop()
            self._process = None
            with self.log.open("rb") as log:
                log.seek(logged_before)
                complaint = log.read().decode(errors="replace")
            if "Address already in use" not in complaint or self._wanted_port is not None:
                raise EmbeddedPostgresError(
                    f"PostgreSQL did not start; its log {self.log} ends with: {complaint[-800:].strip()}"
                )
        raise EmbeddedPostgresError(f"PostgreSQL found no free port in {_PORT_ATTEMPTS} attempts; see {self.log}")

    def _choose_port(self) -> int:
        if self._wanted_port is not None:
            if not is_free(self._wanted_port):
                raise EmbeddedPostgresError(f"port {self._wanted_port} of 127.0.0.1 is in use: free it, or name another")
            return self._wanted_port
        kept = self._port
        if kept is None:
            with contextlib.suppress(OSError, ValueError):
                kept = int((self.data_dir / "port").read_text())
        return kept if kept and is_free(kept) else free_port()

    def _is_ready(self) -> bool:
        """Whether the server says so in its lock file, whose eighth line is its state."""
        try:
            lines = (self._cluster / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        return len(lines) > 7 and lines[7].strip() == "ready"
