"""docker-compose.yml names servers, commands and settings that exist."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from outbox.environment import KNOWN

COMPOSE: dict[str, Any] = yaml.safe_load(Path("docker-compose.yml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
OURS = ("migrate", "api", "relay", "worker", "archiver", "maintain")


def test_it_brings_the_servers_and_every_process() -> None:
    assert sorted(SERVICES) == sorted(("postgres", "rabbitmq", *OURS))
    assert SERVICES["rabbitmq"]["image"].startswith("rabbitmq:4-management")


@pytest.mark.parametrize("name", ["postgres", "rabbitmq"])
def test_servers_have_health_checks_of_their_own(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"


@pytest.mark.parametrize("name", ["api", "relay", "worker", "archiver", "maintain"])
def test_processes_are_checked_on_the_port_that_they_serve(name: str) -> None:
    environment = SERVICES[name]["environment"]
    monitoring = environment.get("OUTBOX_MONITORING_PORT", "8000")
    assert environment.get("HEALTH_PORT", "8000") == monitoring
    assert "HEALTHCHECK" in Path("Dockerfile").read_text()


@pytest.mark.parametrize("name", OURS)
def test_settings_are_ours(name: str) -> None:
    ours = {key for key in SERVICES[name]["environment"] if key.startswith("OUTBOX_")}
    assert ours <= KNOWN


@pytest.mark.parametrize("name", ["api", "relay", "worker", "archiver", "maintain"])
def test_processes_wait_for_the_tables(name: str) -> None:
    assert SERVICES[name]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"


def test_commands_exist() -> None:
    from click.testing import CliRunner

    from outbox.cli import main

    scripts = tomllib.loads(Path("pyproject.toml").read_text())["project"]["scripts"]
    assert scripts["outbox"] == "outbox.cli:main"
    for name in ("relay", "worker"):
        program, command, *_ = SERVICES[name]["command"]
        assert program == "outbox"
        assert CliRunner().invoke(main, [command, "--help"]).exit_code == 0
    assert SERVICES["api"]["command"][:2] == ["uvicorn", "app:main"]
    assert SERVICES["migrate"]["command"] == ["python", "-m", "app", "migrate"]


def test_processes_have_more_time_to_end_than_their_grace_period() -> None:
    for name in OURS:
        assert int(SERVICES[name]["stop_grace_period"].removesuffix("s")) > 30


def test_the_image_runs_as_nobody_in_particular() -> None:
    lines = Path("Dockerfile").read_text().splitlines()
    assert "USER 10001" in lines
    assert lines.index("USER 10001") < next(i for i, line in enumerate(lines) if line.startswith("CMD"))


def test_what_the_image_is_made_of_is_there_and_not_kept_from_it() -> None:
    lines = [line.split() for line in Path("Dockerfile").read_text().splitlines() if line.startswith("COPY ")]
    copied = {source for _, *sources, _ in lines for source in sources if not any("--from=" in each for each in sources)}
    kept = set(Path(".dockerignore").read_text().split())
    for source in copied:
        assert Path(source).exists(), source
        assert kept & {f"!{source}", f"!{Path(source).parts[0]}"}, source
    assert {"frontend/node_modules", "outbox/admin/ui/static"} <= kept, "what was built here is built anew"
