"""Starts Outbox processes for tests, with only the given settings, and ends them with the test."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.eventually import eventually_sync


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def peak_memory(pid: int) -> int:
    """The peak memory of a process in bytes."""
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


class OurProcess:
    """A running process and its output."""

    def __init__(self, process: subprocess.Popen[bytes], output: Path) -> None:
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
    """Runs `python <arguments>` in its own process group, and kills it at the end if it still runs."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OUTBOX_")}
    environment |= {"PYTHONUNBUFFERED": "1", "PYTHONWARNINGS": "error", **(settings or {})}
    path = folder / f"{name}.log"
    with path.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, *arguments], stdout=output, stderr=output, env=environment, start_new_session=True
        )
    try:
        yield OurProcess(process, path)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
