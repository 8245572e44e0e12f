"""Starts Outbox processes for tests, with only the given settings, and ends them with the test."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, ClassVar

from tests.support.eventually import eventually_sync

ROOT = Path(__file__).parents[2]


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def peak_memory(pid: int) -> int:
    """The peak memory of a process in bytes."""
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


class _Fork:
    """A program in a fork of the preloaded process, with the part of `subprocess.Popen` that tests use."""

    _template: ClassVar[tuple[subprocess.Popen[bytes], socket.socket] | None] = None

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str], output: IO[bytes]) -> None:
        module, *others = arguments
        self._reports, theirs = socket.socketpair()
        request = json.dumps({"module": module, "arguments": others, "environment": dict(environment)})
        with theirs:
            socket.send_fds(self._requests(), [request.encode()], [output.fileno(), theirs.fileno()])
        self._file = self._reports.makefile("r")
        self.pid = int(self._file.readline())
        self._returncode: int | None = None

    @classmethod
    def _requests(cls) -> socket.socket:
        """Where the preloaded process takes requests. It starts with the first, and ends with this process."""
        if cls._template is None:
            ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
            command = [sys.executable, "-m", "tests.support.preloaded", str(theirs.fileno())]
            with theirs:
                process = subprocess.Popen(
                    command, env=_environment({}), pass_fds=[theirs.fileno()], cwd=ROOT, start_new_session=True
                )
            cls._template = process, ours
        return cls._template[1]

    def poll(self) -> int | None:
        """The exit code, None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Waits for the exit code, negative for a signal."""
        if self._returncode is None:
            if not select.select([self._reports], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
            self._returncode = int(self._file.readline())
            self._file.close()
            self._reports.close()
        return self._returncode

    def send_signal(self, number: int) -> None:
        """Sends a signal, unless it is known to have ended."""
        if self.poll() is None:
            os.kill(self.pid, number)


class OurProcess:
    """A running process and its output."""

    def __init__(self, process: subprocess.Popen[bytes] | _Fork, output: Path) -> None:
        self._process = process
        self._output = output

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def output(self) -> str:
        """Its standard output and standard error so far."""
        return self._output.read_text(errors="replace")

    def send(self, number: signal.Signals) -> None:
        """Sends a signal."""
        self._process.send_signal(number)

    def wait(self, timeout: float = 60.0) -> int:
        """Waits for the end of the process and returns its exit code."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it did not end within {timeout} s:\n{self.output[-4000:]}") from None

    def says(self, text: str, timeout: float = 60.0) -> None:
        """Waits until the output contains `text`."""

        def said() -> bool:
            return text in self.output or self._process.poll() is not None

        eventually_sync(said, timeout=timeout, message=f"the output does not contain {text!r}")
        assert text in self.output, f"it ended with {self._process.poll()}:\n{self.output[-4000:]}"


@contextmanager
def running(
    arguments: Sequence[str], folder: Path, settings: Mapping[str, str] | None = None, *, name: str = "process"
) -> Iterator[OurProcess]:
    """Runs `python <arguments>` in its own process group, and kills it at the end if it still runs.

    `-m module …` runs in a fork of a process that has imported Outbox, unless the settings contain other variables than
    Outbox's: libraries read those when they are imported.
    """
    settings = settings or {}
    environment = _environment(settings)
    path = folder / f"{name}.log"
    is_forked = arguments[0] == "-m" and all(key.startswith("OUTBOX_") for key in settings) and Path.cwd() == ROOT
    process: subprocess.Popen[bytes] | _Fork
    with path.open("wb") as output:
        if is_forked:
            process = _Fork(arguments[1:], environment, output)
        else:
            command = [sys.executable, *arguments]
            process = subprocess.Popen(command, stdout=output, stderr=output, env=environment, start_new_session=True)
    try:
        yield OurProcess(process, path)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _environment(settings: Mapping[str, str]) -> dict[str, str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OUTBOX_")}
    return environment | {"PYTHONUNBUFFERED": "1", "PYTHONWARNINGS": "error", **settings}
