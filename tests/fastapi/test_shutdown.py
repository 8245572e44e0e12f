"""Real signals to a real uvicorn: the parts next to the application are stopped at once, and end in time."""

import contextlib
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, Queue

import httpx
import pytest

from tests.support import eventually_sync
from tests.support.processes import free_port

pytestmark = pytest.mark.slow


class Host:
    """Runs `signalled_host.py` in a process."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process = process
        self.url = f"http://127.0.0.1:{port}"
        self._lines: Queue[str] = Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def end(self) -> None:
        """Kills the process if it still runs."""
        self.process.kill()
        self.process.wait()
        self._reader.join()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self._lines.put(line.strip())

    def says(self, expected: str, timeout: float = 60.0) -> None:
        """Waits for the line."""
        seen = []
        with contextlib.suppress(Empty):
            while True:
                seen.append(self._lines.get(timeout=timeout))
                if seen[-1] == expected:
                    return
        pytest.fail(f"it did not say {expected!r} but {seen}")


@contextmanager
def host(grace_seconds: float) -> Iterator[Host]:
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.fastapi.signalled_host", str(grace_seconds), str(port)],
        stdout=subprocess.PIPE,
        text=True,
    )
    running = Host(process, port)
    try:
        running.says("host started")
        running.says("worker runs, handling signals: False")
        eventually_sync(lambda: _alive(running.url))
        yield running
    finally:
        running.end()


def _alive(url: str) -> bool:
    try:
        return httpx.get(f"{url}/outbox/health/ready").is_success
    except httpx.TransportError:
        return False


@contextmanager
def open_request(url: str) -> Iterator[None]:
    """Keeps a request open at least until the end of the block."""
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as connection:
        connection.sendall(b"GET /slow HTTP/1.1\r\nhost: localhost\r\n\r\n")
        yield


def test_parts_are_stopped_while_connections_are_still_open() -> None:
    with host(grace_seconds=30) as running, open_request(running.url):
        running.says("slow begun")
        running.process.send_signal(signal.SIGTERM)
        running.says("worker stopping")
        assert running.process.poll() is None


def test_parts_that_drain_in_time_are_not_cancelled_and_the_host_ends_last() -> None:
    with host(grace_seconds=30) as running, open_request(running.url):
        running.says("slow begun")
        running.process.send_signal(signal.SIGTERM)
        running.says("worker stopping")
        running.process.send_signal(signal.SIGUSR1)  # releases the request and the worker
        running.says("worker drained")
        running.says("host ended")
        assert running.process.wait(60) == -signal.SIGTERM


def test_parts_that_do_not_drain_are_cancelled_after_the_grace_period() -> None:
    with host(grace_seconds=0.5) as running:
        running.process.send_signal(signal.SIGTERM)
        running.says("worker stopping")
        running.says("worker cancelled")
        running.says("worker cancelled twice")
        running.says("host ended")
        assert running.process.wait(60) == -signal.SIGTERM


def test_a_second_ctrl_c_ends_everything_at_once() -> None:
    with host(grace_seconds=60) as running:
        with open_request(running.url):
            running.says("slow begun")
            running.process.send_signal(signal.SIGINT)
            running.says("worker stopping")
            running.process.send_signal(signal.SIGINT)
            running.says("worker cancelled twice")
        # From Python 3.12.1 on, uvicorn waits for open connections even after a second signal.
        running.says("host ended")
        running.process.wait(60)


def test_a_second_ctrl_c_does_not_wait_for_handlers_when_the_server_waits_for_nothing_else() -> None:
    with host(grace_seconds=60) as running:
        running.process.send_signal(signal.SIGINT)
        running.says("worker stopping")
        running.says("lifespan ending")  # from now on uvicorn waits for the lifespan, and looks at its own flag no more
        running.process.send_signal(signal.SIGINT)
        running.says("worker cancelled twice")
        running.says("host ended")
        running.process.wait(60)
