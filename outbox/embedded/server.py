"""The embedded PostgreSQL server: creates its data folder, starts and stops it, and cleans up after a crash."""

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

# Below the ephemeral ports of Linux (from 32768) and macOS (from 49152), so that no outgoing connection takes the port while a
# server restarts.
_CANDIDATES = range(20_000, 32_000)


def free_port() -> int:
    """Returns a port of 127.0.0.1 that is free now. It is not reserved, so the caller must handle a failed bind."""
    for port in random.sample(_CANDIDATES, 200):
        if is_free(port):
            return port
    raise OSError(f"no free port between {_CANDIDATES.start} and {_CANDIDATES.stop} on 127.0.0.1")


def is_free(port: int) -> bool:
    """Whether a server could bind the port on 127.0.0.1 now."""
    with socket.socket() as probe:
        # As PostgreSQL does it, for which connections in TIME_WAIT do not occupy a port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


class FolderLock:
    """A file lock that the operating system releases when its owner dies for any reason."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Acquire the lock. Does nothing if it is already acquired.

        Raises:
            DataFolderInUseError: another process, named in the message, holds it.
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
                f"process {holder} already runs PostgreSQL in {self._path.parent}: stop it, or choose another folder"
            ) from None
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """Release the lock. Does nothing if it is not acquired."""
        if self._descriptor is not None:
            # The file stays: if it were deleted, two processes could each lock a file of that name.
            os.close(self._descriptor)
            self._descriptor = None


_POLL_SECONDS = 0.01


def stop_orphans(cluster: Path, *, fast_seconds: float = 10.0) -> bool:
    """Stop every PostgreSQL process in the cluster's folder; return whether there was one.

    Requests a fast shutdown first. After `fast_seconds` the remaining processes are killed. No committed data is lost, because
    the next start replays the log.
    """
    if not server_processes(cluster):
        return False
    postmaster = recorded_pid(cluster)
    if postmaster in server_processes(cluster):
        # A process that is stopped would get the next signal only when it goes on.
        _signal({postmaster}, signal.SIGCONT)
        _signal({postmaster}, signal.SIGINT)
        wait_until(lambda: not server_processes(cluster), fast_seconds)
    kill_all(cluster)
    return True


def kill_all(cluster: Path) -> None:
    """Kill every PostgreSQL process in the cluster's folder, and wait until they are gone."""
    _signal(server_processes(cluster), signal.SIGKILL)
    wait_until(lambda: not server_processes(cluster), 10.0)


def server_processes(cluster: Path) -> set[int]:
    """Return the ids of the PostgreSQL processes in the cluster's folder."""
    found: set[int] = set()
    if sys.platform == "linux":
        folder = str(cluster.resolve())
        for entry in os.listdir("/proc"):  # noqa: PTH208  no Path per process
            with contextlib.suppress(OSError):  # the process ended meanwhile, or belongs to another user
                if entry.isdecimal() and os.readlink(f"/proc/{entry}/cwd") == folder:  # noqa: PTH115  no Path per process
                    found |= {int(entry)} if Path(f"/proc/{entry}/comm").read_text().strip() == "postgres" else set()
        return found
    # Without /proc, find the server by its lock file, and its children by their parent.
    postmaster = recorded_pid(cluster)
    command = ["/bin/ps", "-A", "-o", "pid=,ppid=,comm="]
    listing = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603  a fixed command
    for line in listing.stdout.splitlines():
        pid, parent, name = (*line.split(None, 2), "", "", "")[:3]
        if name.endswith("postgres") and postmaster in (int(pid), int(parent)):
            found.add(int(pid))
    return found


def recorded_pid(cluster: Path) -> int:
    """Return the server's process id from its lock file; 0 without one."""
    try:
        return int((cluster / "postmaster.pid").read_text().split("\n", 1)[0])
    except (OSError, ValueError):
        return 0


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Poll until the condition holds; return whether it did in time."""
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
class StopStep:
    """A step of stopping a server: a signal, and the seconds to wait before the next step."""

    signal: signal.Signals
    seconds: float


class SupervisedProcess:
    """A running server process. It stops when it is closed, and when this process dies for any reason.

    The server and its supervisor have their own session: a Ctrl-C in the terminal reaches only this process, which then stops
    its servers in its own order. The folder `scratch` is deleted when the server has stopped.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        account: Account,
        folder: Path,
        environment: Mapping[str, str],
        log: Path,
        stop_steps: Sequence[StopStep],
        scratch: Path | None = None,
    ) -> None:
        instructions = {
            "command": [str(part) for part in command],
            "folder": str(folder),
            "environment": dict(environment),
            "stop_steps": [(step.signal, step.seconds) for step in stop_steps],
            "identity": account.popen_arguments(),
            "owner": os.getpid(),
            "scratch": str(scratch) if scratch else "",
        }
        self._stop_timeout = sum(step.seconds for step in stop_steps) + 5
        with log.open("ab") as stderr:
            self._supervisor = subprocess.Popen(  # noqa: S603 — a script of this package, and the caller's command
                # Isolated and without site-packages, because nothing of the owner's environment may affect the supervisor.
                [sys.executable, "-I", "-S", str(_SUPERVISOR), json.dumps(instructions)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
                # Each byte is a signal, and must arrive at once.
                bufsize=0,
            )
        self._control = cast("IO[bytes]", self._supervisor.stdin)
        with cast("IO[bytes]", self._supervisor.stdout) as output:
            # Waits until the supervisor has started the server or failed to, so that an error is raised here.
            line = output.readline().decode(errors="replace").strip()
        if not line.isdecimal():
            self.stop()
            raise EmbeddedPostgresError(f"{command[0]} could not be started: {line.removeprefix('error: ') or 'no output'}")
        self.pid = int(line)

    @property
    def alive(self) -> bool:
        """Whether the server runs."""
        return self._supervisor.poll() is None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the server. Does nothing if it has exited."""
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._control.write(bytes([number]))

    def kill(self) -> None:
        """Kill the server with SIGKILL, and wait until it is gone."""
        self.signal(signal.SIGKILL)
        self.stop()

    def stop(self) -> None:
        """Stop the server step by step, and wait until it is gone. Calling it again does nothing."""
        self._control.close()
        self._supervisor.wait(self._stop_timeout)


_USER = "outbox"
_DATABASE = "outbox"
_START_SECONDS = 60.0
_PORT_ATTEMPTS = 5
_LOG_LIMIT_BYTES = 5_000_000
_RUNTIME_PREFIX = "outbox-pg-"
_UNFINISHED_PREFIX = "cluster.unfinished"
# A socket path has at most 107 bytes on Linux and 103 on macOS, 16 of them for the file name `/.s.PGSQL.12345`.
_SOCKET_FOLDER_LIMIT_BYTES = 85
_ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}

# Linux resolves this to the working folder without traversing its parents, which may be closed to the server's user.
_WORKING_FOLDER = "/proc/self/cwd"

_STOP_STEPS = (
    StopStep(signal=signal.SIGINT, seconds=10.0),  # fast: ends sessions and writes a checkpoint
    StopStep(signal=signal.SIGQUIT, seconds=5.0),  # immediate: the next start replays the log
    StopStep(signal=signal.SIGKILL, seconds=5.0),
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
    # A crash of the server loses no committed data, because the operating system has it. A crash of the machine may.
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum_naptime": "5s",
    # Shared memory as files in the data folder: deleting the folder of a killed server leaves none behind.
    "dynamic_shared_memory_type": "mmap",
}


class EmbeddedPostgres:
    """A private PostgreSQL server with its data in `data_dir`.

    It listens on 127.0.0.1 and on a socket in a private folder, and requires a password on both. It stops with this process,
    even if this process is killed; the next start cleans up after a crash. Root runs it as an unprivileged user. Methods block;
    call them in a thread from asynchronous code. One process at a time can use a data folder.

    Args:
        data_dir: folder for the data, the password and the log; created if missing. Nothing outside it is changed.
        port: the port to listen on; by default a free port is chosen once and kept while it stays free.
        durable: False trades safety against a crash of the machine for speed, for tests.
    """

    def __init__(self, data_dir: Path, *, port: int | None = None, durable: bool = True) -> None:
        self.data_dir = data_dir.absolute()
        self._requested_port = port
        self._durable = durable
        self._cluster = self.data_dir / "cluster"
        self._lock = FolderLock(self.data_dir / "lock")
        self._port: int | None = None
        self._process: SupervisedProcess | None = None
        self._runtime: Path | None = None

    def __repr__(self) -> str:
        return f"EmbeddedPostgres({str(self.data_dir)!r}, {'running' if self.running else 'stopped'})"

    @property
    def running(self) -> bool:
        """Whether the server's process is alive."""
        return self._process is not None and self._process.alive

    @property
    def url(self) -> str:
        """The `postgresql://` address of the database, with the password; the same after each restart.

        Raises:
            EmbeddedPostgresError: the server was never started, so it has no port.
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
        """Start the server, creating its data folder if missing, and return its address when it accepts connections.

        Stops a server that a dead owner left behind. For a running server, only returns its address.

        Raises:
            DataFolderInUseError: another running process uses the folder.
            EmbeddedPostgresError: the server cannot run here, or did not start; the message says what to do.
        """
        if self.running:
            return self.url
        programs = installed_binaries()
        # For root, other users may traverse but not list the folder: the server's user must reach its cluster.
        mode = 0o711 if os.geteuid() == 0 else 0o700
        try:
            self.data_dir.mkdir(mode=mode, parents=True, exist_ok=True)
        except OSError as error:
            raise EmbeddedPostgresError(f"cannot create the data folder {self.data_dir}: {error.strerror}") from error
        if not os.access(self.data_dir, os.W_OK | os.X_OK):
            raise EmbeddedPostgresError(
                f"cannot write to the data folder {self.data_dir}: it belongs to another user; choose another folder"
            )
        try:
            self._lock.acquire()
            stop_orphans(self._cluster)
            # If another program has the recorded process id by now, the server would refuse to start.
            (self._cluster / "postmaster.pid").unlink(missing_ok=True)
            account = account_for(self._cluster)
            runtime = self._make_runtime_folder(account)
            programs = reachable_binaries(programs, account, runtime)
            self._ensure_cluster(programs, account, runtime)
            self._launch(programs, account, runtime)
            return self.url
        except BaseException as error:
            self.stop()
            if isinstance(error, OSError | subprocess.TimeoutExpired):
                raise EmbeddedPostgresError(
                    f"PostgreSQL cannot run in {self.data_dir}: {error}; repair this folder, or choose another one"
                ) from error
            raise

    def stop(self) -> None:
        """Stop the server: fast, then immediate, then by SIGKILL, and wait until it is gone. May be called twice."""
        if self._process is not None:
            self._process.stop()
            self._process = None
        if self._runtime is not None:
            shutil.rmtree(self._runtime, ignore_errors=True)
            self._runtime = None
        self._lock.release()

    def restart(self) -> str:
        """Stop and start the server at the same address."""
        self.stop()
        return self.start()

    def kill(self) -> None:
        """Kill every process of the server with SIGKILL, like a power failure. `start()` recovers committed data."""
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
        """Create a private folder with a path that a socket can have, in the data folder or else in the temporary folder."""
        with contextlib.suppress(FileNotFoundError):  # left behind by a process that died
            recorded = Path((self.data_dir / "runtime").read_text())
            if recorded.name.startswith(_RUNTIME_PREFIX):
                shutil.rmtree(recorded, ignore_errors=True)
        inside = self.data_dir / "run"
        shutil.rmtree(inside, ignore_errors=True)
        # A comma would end the path: PostgreSQL's setting is a list.
        fits = len(os.fsencode(inside)) <= _SOCKET_FOLDER_LIMIT_BYTES and "," not in str(inside)
        if fits and account.reaches(inside):
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
        """Create the cluster unless it exists."""
        for left_behind in self.data_dir.glob(f"{_UNFINISHED_PREFIX}*"):
            shutil.rmtree(left_behind, ignore_errors=True)
        if self._cluster.exists():
            version = (self._cluster / "PG_VERSION").read_text().strip()
            if version != MAJOR_VERSION:
                raise EmbeddedPostgresError(
                    f"the data in {self.data_dir} was created by PostgreSQL {version}, and this is PostgreSQL {MAJOR_VERSION}: "
                    "choose another folder, or migrate the data with pg_dump"
                )
            if account.switched and self._cluster.stat().st_uid != account.uid:
                account.own(self._cluster)
            return
        # Created under another name and renamed at the end, so that an interrupted initdb is never used as a cluster. Each time
        # under a new name: an initdb whose owner was killed goes on, and deletes what is in its folder when it fails.
        unfinished = Path(tempfile.mkdtemp(prefix=_UNFINISHED_PREFIX, dir=self.data_dir))
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
        # SCRAM's 4,096 iterations protect weak passwords. This one has 192 random bits, and tests connect often.
        command += [] if self._durable else ["--no-sync", "-c", "scram_iterations=1"]
        self._run(command, account, unfinished)
        # In single-user mode: no client can connect before the database exists.
        command = [programs.postgres, "--single", "-D", location, "postgres"]
        self._run(command, account, unfinished, statement=f"create database {_DATABASE}")
        password_file.unlink()
        unfinished.rename(self._cluster)

    def _location(self, folder: Path, account: Account) -> Path:
        """Return a path by which the account reaches its working folder."""
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
                f"could not create a PostgreSQL data folder in {self.data_dir}: {finished.stderr.strip()[-800:]}"
            )

    def _launch(self, programs: Binaries, account: Account, runtime: Path) -> None:
        """Start the server and wait until it is ready. Retries with another port if the port was taken meanwhile."""
        settings = {**_SETTINGS, **({} if self._durable else _NOT_DURABLE), "unix_socket_directories": str(runtime)}
        for _ in range(_PORT_ATTEMPTS):
            self._port = self._choose_port()
            settings["port"] = str(self._port)
            if self.log.exists() and self.log.stat().st_size > _LOG_LIMIT_BYTES:
                self.log.replace(self.log.with_suffix(".log.old"))
            logged_before = self.log.stat().st_size if self.log.exists() else 0
            self._process = SupervisedProcess(
                [
                    programs.postgres,
                    *("-D", self._location(self._cluster, account)),
                    *(part for name, value in settings.items() for part in ("-c", f"{name}={value}")),
                ],
                account=account,
                folder=self._cluster,
                environment=_ENVIRONMENT,
                log=self.log,
                stop_steps=_STOP_STEPS,
                scratch=runtime,
            )
            if wait_until(lambda: self._is_ready() or not self.running, _START_SECONDS) and self.running:
                (self.data_dir / "port").write_text(str(self._port))
                return
            self._process.stop()
            self._process = None
            with self.log.open("rb") as log:
                log.seek(logged_before)
                output = log.read().decode(errors="replace")
            if "Address already in use" not in output or self._requested_port is not None:
                raise EmbeddedPostgresError(f"PostgreSQL did not start; its log {self.log} ends with: {output[-800:].strip()}")
        raise EmbeddedPostgresError(f"PostgreSQL found no free port in {_PORT_ATTEMPTS} attempts; see {self.log}")

    def _choose_port(self) -> int:
        if self._requested_port is not None:
            if not is_free(self._requested_port):
                raise EmbeddedPostgresError(f"port {self._requested_port} of 127.0.0.1 is in use: free it, or choose another")
            return self._requested_port
        kept = self._port
        if kept is None:
            with contextlib.suppress(OSError, ValueError):
                kept = int((self.data_dir / "port").read_text())
        return kept if kept and is_free(kept) else free_port()

    def _is_ready(self) -> bool:
        """Whether the eighth line of the lock file, the state of the server, is `ready`."""
        try:
            lines = (self._cluster / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        return len(lines) > 7 and lines[7].strip() == "ready"
