"""Starts Outbox processes for tests, with only the given settings, and ends them with the test."""

import itertools
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.context import ForkServerContext
from pathlib import Path

import httpx

from outbox.embedded.server import is_free
from tests.support.eventually import eventually_sync


def _ports() -> Iterator[int]:
    # Below the ephemeral ports, of which an outgoing connection may take any before a server binds it. Each test process has
    # a thousand of its own, and two runs on one machine begin at different ones.
    begin = 10_000 + 1_000 * (int(os.environ.get("PYTEST_XDIST_WORKER", "gw9").removeprefix("gw")) % 10)
    return itertools.islice(itertools.cycle(range(begin, begin + 1_000)), os.getpid() % 1_000, None)


_PORTS = _ports()


def free_port() -> int:
    """A port of 127.0.0.1 that is free, and that no other test is given soon."""
    return next(port for port in _PORTS if is_free(port))


def peak_memory(pid: int) -> int:
    """The peak memory of a process in bytes."""
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


def forks() -> ForkServerContext:
    """Processes that are forks of one that has imported Outbox, which saves each two seconds of imports."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    return context


_PRELOADED = [
    "app.service",
    "outbox.cli.doctor",
    "outbox.cli.migrate",
    "outbox.cli.processes",
    "outbox.observers.prometheus",
    "outbox.postgres.unit_of_work",
    "outbox.transports.kafka_source",
    "outbox.transports.postgres.handover",
    "outbox.transports.rabbitmq",
    "sqlalchemy.dialects.postgresql.asyncpg",
    "uvicorn.lifespan.on",
    "uvicorn.loops.auto",
    "uvicorn.protocols.http.auto",
    "uvicorn.protocols.websockets.auto",
    "tests.support.frozen",
]


class _Fork:
    """A module that runs in a fork, with the part of `subprocess.Popen` that `OurProcess` uses."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str], output: Path) -> None:
        module, *others = arguments
        self._process = forks().Process(target=_run_module, args=(module, others, dict(environment), output))
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        # The fork server waits for it as well: it may be gone before its exit code has arrived here.
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


def _run_module(module: str, arguments: Sequence[str], environment: Mapping[str, str], output: Path) -> None:
    """Does in a fork what `python -W error -u -m module …` does in a process of its own."""
    os.setsid()
    written = os.open(output, os.O_WRONLY | os.O_APPEND)
    for number in (1, 2):
        os.dup2(written, number)
    os.close(written)
    sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115  for all of the process
    os.environ.clear()
    os.environ.update(environment)
    warnings.simplefilter("error")
    sys.argv = ["", *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


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

    def is_ready(self, url: str, timeout: float = 60.0) -> None:
        """Waits until it responds at the URL with success."""
        answers: list[object] = []

        def responds() -> bool:
            try:
                answers.append(httpx.get(url, timeout=timeout))
            except httpx.TransportError as error:
                answers.append(error)
            return getattr(answers[-1], "is_success", False) or self._process.poll() is not None

        try:
            eventually_sync(responds, timeout=timeout, interval=0.1)
            assert self._process.poll() is None, f"it ended with {self._process.poll()}"
        except AssertionError as error:
            raise AssertionError(f"{error}\n{answers[-1]!r}\n{self.output[-4000:]}") from None


@contextmanager
def running(
    arguments: Sequence[str], folder: Path, settings: Mapping[str, str] | None = None, *, name: str = "process"
) -> Iterator[OurProcess]:
    """Runs `python <arguments>` in its own process group, and kills it at the end if it still runs.

    `-m module …` runs in a fork, unless it starts processes itself, or settings are read when a library is imported.
    """
    settings = settings or {}
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OUTBOX_")}
    environment |= {"PYTHONUNBUFFERED": "1", "PYTHONWARNINGS": "error", **settings}
    path = folder / f"{name}.log"
    process: subprocess.Popen[bytes] | _Fork
    with path.open("wb") as output:
        is_alone = arguments[0] == "-m" and "--workers" not in arguments
        if is_alone and all(key.startswith(("OUTBOX_", "SHOP_")) for key in settings):
            process = _Fork(arguments[1:], environment, path)
        else:
            command = [sys.executable, *arguments]
            process = subprocess.Popen(command, stdout=output, stderr=output, env=environment, start_new_session=True)
    try:
        yield OurProcess(process, path)
    finally:
        if process.poll() is None:
            with suppress(ProcessLookupError):  # a fork has no group of its own yet
                os.killpg(process.pid, signal.SIGKILL)
            process.send_signal(signal.SIGKILL)
        process.wait()
