"""Prometheus, and the tools that check its files and Alertmanager's: found on this machine, or unpacked from packages."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from outbox.embedded.binaries import Account
from outbox.embedded.server import StopStep, SupervisedProcess
from tests.servers import apt
from tests.servers.session_folder import one_process_at_a_time
from tests.support.eventually import eventually_sync
from tests.support.processes import free_port

_PROGRAMS = ("prometheus", "promtool", "amtool")
_PACKAGES = ("prometheus", "prometheus-alertmanager")
_UNPACKED = Path("/var/cache/outbox-tests/prometheus")
_START_SECONDS = 30.0
_ADVICE = (
    "Prometheus is not on this machine and cannot be unpacked here: install prometheus, promtool and amtool "
    "(Debian: apt-get install prometheus prometheus-alertmanager; macOS: brew install prometheus alertmanager)"
)


def ensure_prometheus() -> None:
    """Prometheus can be started when this returns; otherwise the session ends with one sentence of advice."""
    with one_process_at_a_time("prometheus-installation"):
        if all(map(_found, _PROGRAMS)):
            return
        if not apt.can_install():
            pytest.exit(_ADVICE, returncode=1)
        print("\nPrometheus is not on this machine: unpacking Debian's packages with apt-get …", flush=True)
        # Not installed: Debian would start a server for the whole machine, and install what its pages need.
        shutil.rmtree(_UNPACKED, ignore_errors=True)
        apt.unpack(_PACKAGES, _UNPACKED, _ADVICE)


def checked(program: str, *arguments: str) -> str:
    """What `promtool` or `amtool` prints about files that are as they should be; otherwise the test fails with that."""
    finished = subprocess.run(
        [_program(program), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120
    )
    assert finished.returncode == 0, finished.stdout
    return finished.stdout


class Prometheus:
    """A running Prometheus, and what it answers."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def is_ready(self) -> bool:
        """Whether it answers queries."""
        try:
            return self._client.get("/-/ready").is_success
        except httpx.TransportError:
            return False

    def range(self, expression: str, *, seconds: int) -> list[dict[str, Any]]:
        """The series of an expression in the last `seconds`, by the second. An expression that it refuses fails the test."""
        now = float(self.data("/api/v1/query", query="time()")["result"][1])
        given = {"query": expression, "start": now - seconds, "end": now, "step": 1}
        series: list[dict[str, Any]] = self.data("/api/v1/query_range", **given)["result"]
        return series

    def data(self, path: str, **parameters: Any) -> Any:
        """What its API answers."""
        answer = self._client.get(path, params=parameters).json()
        assert answer["status"] == "success", (parameters, answer)
        return answer["data"]


@contextmanager
def scraping(target: str, folder: Path, *, rules: Path) -> Iterator[Prometheus]:
    """A Prometheus that scrapes `target`, as `host:port`, and evaluates `rules` every second; it ends with the block."""
    folder.mkdir()
    own_port, log, config = free_port(), folder / "output.log", folder / "prometheus.yml"
    settings: Mapping[str, Any] = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(rules.resolve())],
        "scrape_configs": [{"job_name": "outbox", "static_configs": [{"targets": [target]}]}],
    }
    config.write_text(yaml.safe_dump(settings))
    process = SupervisedProcess(
        [
            _program("prometheus"),
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{own_port}",
        ],
        account=Account(os.geteuid(), os.getegid(), switched=False),
        folder=folder,
        environment={"PATH": os.defpath},
        log=log,
        stop_steps=[StopStep(signal=signal.SIGKILL, seconds=5)],
    )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{own_port}", timeout=30) as client:
            prometheus = Prometheus(client)
            eventually_sync(
                lambda: prometheus.is_ready() or not process.alive, timeout=_START_SECONDS, message="it is not ready"
            )
            if not process.alive:
                pytest.fail(f"Prometheus did not start: {log.read_text(errors='replace')[-2000:]}", pytrace=False)
            yield prometheus
    finally:
        process.stop()


def _found(program: str) -> str | None:
    unpacked = _UNPACKED / "usr" / "bin"
    return shutil.which(program, path=os.pathsep.join((os.environ.get("PATH", os.defpath), "/opt/homebrew/bin", str(unpacked))))


def _program(name: str) -> str:
    return _found(name) or pytest.fail(_ADVICE, pytrace=False)
