"""Redis for tests: a private server of the program on this machine, or of one that is unpacked from Debian's packages."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from outbox.embedded.binaries import Account
from outbox.embedded.server import StopStep, SupervisedProcess
from tests.servers import apt
from tests.servers.session_folder import one_process_at_a_time
from tests.support.eventually import eventually_sync
from tests.support.processes import free_port

_PACKAGES = ("redis-server", "redis-tools", "libatomic1", "libjemalloc2", "liblzf1")
_UNPACKED = Path("/var/cache/outbox-tests/redis")
_START_SECONDS = 30.0
_ADVICE = (
    "Redis is not on this machine and cannot be unpacked here: install redis-server or valkey-server "
    "(Debian: apt-get install redis-server; macOS: brew install redis)"
)
DURABLE: Mapping[str, str] = {"appendonly": "yes", "appendfsync": "always"}


def ensure_redis() -> None:
    """Redis can be started when this returns; otherwise the session ends with one sentence of advice."""
    with one_process_at_a_time("redis-installation"):
        if _found() is not None:
            return
        if not apt.can_install():
            pytest.exit(_ADVICE, returncode=1)
        print("\nRedis is not on this machine: unpacking Debian's packages with apt-get …", flush=True)
        # Not installed: Debian would start a server for the whole machine.
        shutil.rmtree(_UNPACKED, ignore_errors=True)
        apt.unpack(_PACKAGES, _UNPACKED, _ADVICE)


class Redis:
    """A server in a folder of its own, which keeps what it confirms unless `settings` say otherwise."""

    def __init__(self, folder: Path, settings: Mapping[str, str] = DURABLE) -> None:
        self._folder = folder
        self._settings = dict(settings)
        self.port = free_port()
        self._process: SupervisedProcess | None = None
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.client: Any = redis.Redis(port=self.port, protocol=2, retry=Retry(NoBackoff(), 0))
        """A synchronous client, for a test to look at the server and to change it. Not all of it has types."""

    def start(self, *, loaded: bool = True, **settings: str) -> None:
        """Starts the server with its stored data, and waits until it answers; unless `loaded`, it may still load the data."""
        self._folder.mkdir(exist_ok=True)
        chosen = {**self._settings, **{name.replace("_", "-"): value for name, value in settings.items()}}
        log = self._folder / "output.log"
        self._process = process = SupervisedProcess(
            [
                *_program(),
                *("--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self._folder), "--save", ""),
                *(part for name, value in chosen.items() for part in (f"--{name}", value)),
            ],
            account=Account(os.geteuid(), os.getegid(), switched=False),
            folder=self._folder,
            environment={"PATH": os.defpath, "LD_LIBRARY_PATH": os.pathsep.join(map(str, _UNPACKED.glob("usr/lib/*")))},
            log=log,
            stop_steps=[StopStep(signal=signal.SIGKILL, seconds=5)],
        )
        eventually_sync(
            lambda: self._answers(loaded=loaded) or not process.alive, timeout=_START_SECONDS, message="Redis does not answer"
        )
        if not process.alive:
            pytest.fail(f"Redis did not start: {log.read_text(errors='replace')[-2000:]}", pytrace=False)

    def kill(self) -> None:
        """SIGKILL: only what it has written down survives."""
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
        self.client.close()
        if self._process is not None:
            self._process.stop()

    def configure(self, **settings: object) -> None:
        """Changes settings of the running server."""
        for name, value in settings.items():
            self.client.config_set(name.replace("_", "-"), str(value))

    def create_stream(self, stream: str, group: str = "readers") -> None:
        """Creates an empty stream, as its first reader does."""
        self.client.xgroup_create(stream, group, id="0", mkstream=True)

    def read(self, stream: str) -> Sequence[Mapping[str, bytes]]:
        """The fields of all entries of a stream, in their order."""
        return [{name.decode(): value for name, value in fields.items()} for _, fields in self.client.xrange(stream)]

    def _answers(self, *, loaded: bool) -> bool:
        try:
            is_loading = self.client.info("persistence")["loading"]
        except redis.exceptions.ConnectionError:
            return False
        return not (loaded and is_loading)


@contextmanager
def running_redis(folder: Path, settings: Mapping[str, str] = DURABLE) -> Iterator[Redis]:
    """A server that ends with the block."""
    server = Redis(folder, settings)
    try:
        server.start()
        yield server
    finally:
        server.stop()


def _found() -> str | None:
    searched = os.pathsep.join((os.environ.get("PATH", os.defpath), "/opt/homebrew/bin", str(_UNPACKED / "usr" / "bin")))
    return next((path for name in ("redis-server", "valkey-server") if (path := shutil.which(name, path=searched))), None)


def _program() -> list[str]:
    path = _found()
    return [path] if path is not None else pytest.fail(_ADVICE, pytrace=False)
