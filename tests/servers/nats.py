"""NATS for tests: a private server with JetStream, of the program on this machine or unpacked from Debian's package."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.aio.msg import Msg

from outbox.embedded.binaries import Account
from outbox.embedded.server import StopStep, SupervisedProcess
from tests.servers import apt
from tests.servers.session_folder import one_process_at_a_time
from tests.support.eventually import eventually_sync
from tests.support.processes import free_port

_UNPACKED = Path("/var/cache/outbox-tests/nats")
_START_SECONDS = 30.0
_ADVICE = (
    "NATS is not on this machine and cannot be unpacked here: install nats-server "
    "(Debian: apt-get install nats-server; macOS: brew install nats-server)"
)


def ensure_nats() -> None:
    """NATS can be started when this returns; otherwise the session ends with one sentence of advice."""
    with one_process_at_a_time("nats-installation"):
        if _found() is not None:
            return
        if not apt.can_install():
            pytest.exit(_ADVICE, returncode=1)
        print("\nNATS is not on this machine: unpacking Debian's package with apt-get …", flush=True)
        # Not installed: Debian would start a server for the whole machine.
        shutil.rmtree(_UNPACKED, ignore_errors=True)
        apt.unpack(("nats-server",), _UNPACKED, _ADVICE)


class Nats:
    """A server in a folder of its own, with `settings` in its configuration file. Its streams are files, and survive a kill."""

    def __init__(self, folder: Path, settings: str = "") -> None:
        self._folder = folder
        self._settings = settings
        self.port = free_port()
        self.url = f"nats://127.0.0.1:{self.port}"
        self._process: SupervisedProcess | None = None

    def start(self, *, jetstream: bool = True) -> None:
        """Starts the server with its stored data, and waits until it takes connections."""
        self._folder.mkdir(exist_ok=True)
        log, config = self._folder / "output.log", self._folder / "nats.conf"
        storage = f'jetstream {{ store_dir: "{self._folder / "data"}" }}\n' if jetstream else ""
        config.write_text(f'listen: "127.0.0.1:{self.port}"\n{storage}{self._settings}\n')
        before = log.read_text(errors="replace").count("Server is ready") if log.exists() else 0
        self._process = process = SupervisedProcess(
            [_found() or pytest.fail(_ADVICE, pytrace=False), "--config", str(config)],
            account=Account(os.geteuid(), os.getegid(), switched=False),
            folder=self._folder,
            environment={"PATH": os.defpath},
            log=log,
            stop_steps=[StopStep(signal=signal.SIGKILL, seconds=5)],
        )
        eventually_sync(
            lambda: log.read_text(errors="replace").count("Server is ready") > before or not process.alive,
            timeout=_START_SECONDS,
            message="NATS is not ready",
        )
        if not process.alive:
            pytest.fail(f"NATS did not start: {log.read_text(errors='replace')[-2000:]}", pytrace=False)

    def kill(self) -> None:
        """SIGKILL: only what it has written survives."""
        assert self._process is not None
        self._process.kill()

    def freeze(self) -> None:
        """Stops the process without ending it: connections stay, and nothing is answered."""
        assert self._process is not None
        pid = self._process.pid
        self._process.signal(signal.SIGSTOP)
        eventually_sync(lambda: b"T" in subprocess.check_output(["ps", "-o", "stat=", "-p", str(pid)]))

    def thaw(self) -> None:
        """Continues after `freeze`."""
        assert self._process is not None
        self._process.signal(signal.SIGCONT)

    def stop(self) -> None:
        """Ends the server for good."""
        if self._process is not None:
            self._process.stop()

    async def create_stream(self, name: str, *subjects: str, **settings: Any) -> None:
        """Creates a stream in files, or changes it."""
        async with await nats.connect(self.url) as client:
            jetstream = client.jetstream()
            try:
                await jetstream.add_stream(name=name, subjects=list(subjects), **settings)
            except nats.js.errors.APIError:
                await jetstream.update_stream(name=name, subjects=list(subjects), **settings)

    async def publish(self, subject: str, body: bytes, headers: dict[str, str] | None = None) -> None:
        """Stores a message as a client without Outbox does."""
        async with await nats.connect(self.url) as client:
            await client.jetstream().publish(subject, body, headers=headers)

    async def read(self, stream: str) -> Sequence[Msg]:
        """Returns all messages of a stream, in their order."""
        async with await nats.connect(self.url) as client:
            jetstream = client.jetstream()
            count = (await jetstream.stream_info(stream)).state.messages
            subscription = await jetstream.subscribe(">", stream=stream, ordered_consumer=True)
            return [await subscription.next_msg(timeout=30) for _ in range(count)]

    async def count(self, stream: str) -> int:
        """Returns the number of messages of a stream."""
        async with await nats.connect(self.url) as client:
            return (await client.jetstream().stream_info(stream)).state.messages


@contextmanager
def running_nats(folder: Path, settings: str = "") -> Iterator[Nats]:
    """A server that ends with the block."""
    server = Nats(folder, settings)
    try:
        server.start()
        yield server
    finally:
        server.stop()


def _found() -> str | None:
    folders = (os.environ.get("PATH", os.defpath), "/usr/sbin", "/opt/homebrew/bin", str(_UNPACKED / "usr" / "sbin"))
    return shutil.which("nats-server", path=os.pathsep.join(folders))
