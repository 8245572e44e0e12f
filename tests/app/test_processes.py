"""The processes of docker-compose.yml, with the same commands and settings but the test's servers."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.orders.consumers import consumers
from tests.app.support import Service
from tests.support import eventually_sync
from tests.support.compose import resolved
from tests.support.processes import free_port, running

pytestmark = [pytest.mark.slow]

COMPOSE: dict[str, Any] = yaml.safe_load(Path("docker-compose.yml").read_text())["services"]
MODULES = {"uvicorn": ["-m", "uvicorn"], "outbox": ["-m", "outbox.cli"], "python": []}


def _command(name: str, port: int) -> list[str]:
    program, *rest = COMPOSE[name]["command"]
    return MODULES[program] + [str(port) if part == "8000" else part for part in rest]


def _settings(name: str, database_url: str, broker_url: str, port: int) -> dict[str, str]:
    settings = {key: resolved(str(value)) for key, value in COMPOSE[name]["environment"].items()}
    settings |= {"OUTBOX_DATABASE_URL": database_url, "OUTBOX_BROKER_URL": broker_url}
    for variable in {"OUTBOX_MONITORING_PORT", "HEALTH_PORT"} & set(settings):
        settings[variable] = str(port)
    return settings


def _is_healthy(port: int) -> bool:
    """Runs the container's health check."""
    check = subprocess.run([sys.executable, "docker/healthy.py"], env={"HEALTH_PORT": str(port)}, capture_output=True)
    return check.returncode == 0


@pytest.fixture
def installation(database_url: str, broker_url: str, tmp_path: Path) -> Iterator[Service]:
    with running(_command("migrate", 0), tmp_path, _settings("migrate", database_url, broker_url, 0), name="migrate") as once:
        assert once.wait(60) == 0, once.output
    with ExitStack() as stack:
        ports = {name: free_port() for name in ("api", "relay", "worker")}
        started = {
            name: stack.enter_context(
                running(_command(name, port), tmp_path, _settings(name, database_url, broker_url, port), name=name)
            )
            for name, port in ports.items()
        }
        for port in ports.values():
            eventually_sync(partial(_is_healthy, port), timeout=120, interval=0.3)
        for consumer in consumers:  # what is sent before a queue is bound goes to the others only
            started["worker"].says(f"consumes queue {consumer.queue}, bound")
        yield Service(started["api"], f"http://127.0.0.1:{ports['api']}")


def test_api_relay_and_worker_in_separate_processes_confirm_an_order(installation: Service) -> None:
    installation.ends_as(installation.place(), "confirmed")
    assert "confirmed" not in installation.process.output, "the events are handled elsewhere"


def test_the_demo_drives_orders_to_their_ends(installation: Service, tmp_path: Path) -> None:
    demo = ["-m", "outbox.cli", "demo", "--url", installation.url, "--rate", "10", "--duration", "2"]
    mix = ["--mix", "book=2,flaky=1,forbidden=1"]
    with running([*demo, *mix], tmp_path, name="demo") as process:
        assert process.wait(60) == 0, process.output
    said = dict(
        line.split()[:2] for line in process.output.splitlines() if line.split()[0] in ("placed", "confirmed", "rejected")
    )
    assert int(said["placed"]) == 20
    assert int(said["confirmed"]) + int(said["rejected"]) == 20
