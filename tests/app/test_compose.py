"""docker-compose.yml uses existing commands and settings, and publishes nothing to other machines."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from outbox.cli import main
from outbox.runtime.settings import VARIABLES
from tests.servers.prometheus import checked
from tests.support.compose import resolved

ENV_EXAMPLE = Path(".env.example")
MONITORING = Path("monitoring")
COMPOSE: dict[str, Any] = yaml.safe_load(Path("docker-compose.yml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
PROCESSES = ("api", "relay", "worker", "archiver", "maintain")
OURS = ("migrate", *PROCESSES)
MONITORS = ("prometheus", "alertmanager", "grafana")
VARIABLE = re.compile(r"\$\{(?P<name>\w+):?(?P<sign>[-?])")


def test_it_starts_the_servers_and_every_process() -> None:
    assert sorted(SERVICES) == sorted(("postgres", "rabbitmq", "token", *OURS, *MONITORS))
    assert SERVICES["rabbitmq"]["image"].startswith("rabbitmq:4-management")


@pytest.mark.parametrize("name", ["postgres", "rabbitmq"])
def test_servers_have_their_own_health_checks(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"


@pytest.mark.parametrize("name", PROCESSES)
def test_processes_are_checked_on_the_port_that_they_serve(name: str) -> None:
    environment = SERVICES[name]["environment"]
    monitoring = environment.get("OUTBOX_MONITORING_PORT", "8000")
    assert environment.get("HEALTH_PORT", "8000") == monitoring
    assert SERVICES[name]["healthcheck"]["test"] == ["CMD", "python", "/usr/local/lib/healthy.py"]
    assert "COPY docker/healthy.py /usr/local/lib/healthy.py" in Path("Dockerfile").read_text().splitlines()


@pytest.mark.parametrize("name", OURS)
def test_all_variables_are_settings(name: str) -> None:
    ours = {key for key in SERVICES[name]["environment"] if key.startswith("OUTBOX_")}
    assert ours <= VARIABLES


@pytest.mark.parametrize("name", PROCESSES)
def test_processes_wait_for_the_tables(name: str) -> None:
    assert SERVICES[name]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"


def test_ports_are_published_on_loopback_by_default() -> None:
    published = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert len(published) == 5
    for port in published:
        assert resolved(port).startswith("127.0.0.1:"), port


def test_the_admin_uses_the_tokens_of_the_environment_and_metrics_require_a_token() -> None:
    environment = SERVICES["api"]["environment"]
    assert resolved(environment["OUTBOX_ADMIN_TOKENS"]) == ""
    assert resolved(environment["OUTBOX_ADMIN_TOKENS"], OUTBOX_ADMIN_TOKENS="ada:viewer:00") == "ada:viewer:00"
    assert resolved(environment["OUTBOX_METRICS_TOKEN"]) == "outbox"
    assert resolved(environment["OUTBOX_METRICS_TOKEN"], OUTBOX_METRICS_TOKEN="secret") == "secret"


def test_the_management_api_is_configured_for_queue_depths() -> None:
    for name in PROCESSES:
        assert resolved(SERVICES[name]["environment"]["OUTBOX_MANAGEMENT_URL"]) == "http://outbox:outbox@rabbitmq:15672"


def test_the_example_environment_lists_every_variable_with_its_default() -> None:
    example = dict(line.split("=", 1) for line in ENV_EXAMPLE.read_text().splitlines() if line and line[0] != "#")
    text = Path("docker-compose.yml").read_text()
    assert set(example) == {match["name"] for match in VARIABLE.finditer(text)}
    for line in text.splitlines():
        assert resolved(line, **example) == resolved(line)
    assert ".env" in Path(".gitignore").read_text().split()


def test_a_token_is_created_with_one_command() -> None:
    service = SERVICES["token"]
    assert service["profiles"] == ["token"]
    assert "depends_on" not in service
    answer = CliRunner().invoke(main, service["command"][1:])
    assert re.search(r"^ +OUTBOX_ADMIN_TOKENS=admin:admin:[0-9a-f]{64}$", answer.output, re.MULTILINE)


# --- the profile `monitoring` ---------------------------------------------------------------------------------------------


def configuration(name: str) -> Any:
    return yaml.safe_load((MONITORING / name).read_text())


def mounts(service: str) -> dict[str, str]:
    """What a service sees at which path, of the files of this repository."""
    volumes = [volume.split(":") for volume in SERVICES[service]["volumes"]]
    return {target: source for source, target, *_ in volumes if source.startswith("./")}


def test_monitoring_is_a_profile_and_changes_nothing_else() -> None:
    assert {name for name, service in SERVICES.items() if service.get("profiles") == ["monitoring"]} == set(MONITORS)
    assert not any(set(MONITORS) & set(service.get("depends_on", ())) for service in SERVICES.values())


def test_what_is_mounted_is_there_and_read_only() -> None:
    for service in MONITORS:
        for volume in SERVICES[service]["volumes"]:
            source, *_, last = volume.split(":")
            if source.startswith("./"):
                assert Path(source).exists(), source
                assert last == "ro", volume
            else:
                assert source in COMPOSE["volumes"]


def test_every_process_is_scraped_on_the_port_that_it_serves() -> None:
    scraped = {
        (name, source["port"])
        for job in configuration("prometheus.yml")["scrape_configs"]
        for source in job["dns_sd_configs"]
        for name in source["names"]
    }
    served = {(name, int(SERVICES[name]["environment"].get("OUTBOX_MONITORING_PORT", "8000"))) for name in PROCESSES}
    assert scraped == served
    # The commands listen on 127.0.0.1 unless they are configured otherwise.
    assert "OUTBOX_MONITORING_HOST=0.0.0.0" in Path("Dockerfile").read_text()


def test_prometheus_finds_its_rules_and_the_token_that_the_api_asks_for() -> None:
    prometheus = configuration("prometheus.yml")
    folder = Path("/etc/prometheus")
    assert mounts("prometheus")[str(folder / "prometheus.yml")] == "./monitoring/prometheus.yml"
    for rules in prometheus["rule_files"]:
        assert mounts("prometheus")[str(folder / rules)] == f"./monitoring/{rules}"
    with_token = {
        job["job_name"]: job["authorization"]["credentials_file"]
        for job in prometheus["scrape_configs"]
        if "authorization" in job
    }
    (config,) = SERVICES["prometheus"]["configs"]
    assert with_token == {"outbox-api": Path(config["target"]).name}
    assert Path(config["target"]).parent == folder
    content = COMPOSE["configs"][config["source"]]["content"]
    assert resolved(content) == resolved(SERVICES["api"]["environment"]["OUTBOX_METRICS_TOKEN"])
    assert resolved(content, OUTBOX_METRICS_TOKEN="secret") == "secret"


def test_alerts_reach_alertmanager_and_inhibit_alerts_that_exist() -> None:
    (manager,) = configuration("prometheus.yml")["alerting"]["alertmanagers"]
    assert manager["static_configs"] == [{"targets": ["alertmanager:9093"]}]
    text = (MONITORING / "alertmanager.yml").read_text()
    routes = yaml.safe_load(text)
    assert routes["route"]["receiver"] in {receiver["name"] for receiver in routes["receivers"]}
    alerts = {rule["alert"] for group in configuration("alerts.yml")["groups"] for rule in group["rules"] if "alert" in rule}
    assert set(re.findall(r"Outbox\w+", text)) <= alerts


def test_grafana_has_the_data_source_and_the_dashboard() -> None:
    provisioning = MONITORING / "grafana" / "provisioning"
    (source,) = yaml.safe_load((provisioning / "datasources" / "prometheus.yml").read_text())["datasources"]
    assert (source["type"], source["url"], source["isDefault"]) == ("prometheus", "http://prometheus:9090", True)
    assert source["jsonData"]["timeInterval"] == configuration("prometheus.yml")["global"]["scrape_interval"]
    (provider,) = yaml.safe_load((provisioning / "dashboards" / "outbox.yml").read_text())["providers"]
    dashboard = f"{provider['options']['path']}/outbox.json"
    assert mounts("grafana") == {
        "/etc/grafana/provisioning": "./monitoring/grafana/provisioning",
        dashboard: "./monitoring/grafana/outbox.json",
    }
    assert SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"] == dashboard


@pytest.mark.prometheus
def test_prometheus_and_alertmanager_understand_their_configuration() -> None:
    checked("promtool", "check", "config", "--syntax-only", "monitoring/prometheus.yml")
    checked("amtool", "check-config", "monitoring/alertmanager.yml")


def test_commands_exist() -> None:
    scripts = tomllib.loads(Path("pyproject.toml").read_text())["project"]["scripts"]
    assert scripts["outbox"] == "outbox.cli.__main__:run"
    for name in PROCESSES[1:]:
        program, command, *_ = SERVICES[name]["command"]
        assert program == "outbox"
        assert CliRunner().invoke(main, [command, "--help"]).exit_code == 0
    assert SERVICES["api"]["command"][:2] == ["uvicorn", "app:main"]
    assert SERVICES["migrate"]["command"] == ["python", "-m", "app", "migrate"]


def test_the_stop_timeout_is_longer_than_the_grace_period() -> None:
    for name in OURS:
        assert int(SERVICES[name]["stop_grace_period"].removesuffix("s")) > 30


def test_the_image_runs_as_an_unprivileged_user() -> None:
    lines = Path("Dockerfile").read_text().splitlines()
    assert "USER 10001" in lines
    assert lines.index("USER 10001") < next(i for i, line in enumerate(lines) if line.startswith("CMD"))


def test_the_files_that_the_image_copies_exist_and_are_not_ignored() -> None:
    lines = [line.split() for line in Path("Dockerfile").read_text().splitlines() if line.startswith("COPY ")]
    copied = {source for _, *sources, _ in lines for source in sources if not any("--from=" in each for each in sources)}
    kept = set(Path(".dockerignore").read_text().split())
    for source in copied:
        assert Path(source).exists(), source
        assert kept & {f"!{source}", f"!{Path(source).parts[0]}"}, source
    assert {"frontend/node_modules", "outbox/admin/ui/static"} <= kept, "what was built here is built again"


def test_the_image_downloads_packages_only_with_hashes() -> None:
    text = Path("Dockerfile").read_text().replace("\\\n", " ")
    commands = [command.split() for line in text.splitlines() if line.startswith("RUN ") for command in line[4:].split("&&")]
    fetching = [command for command in commands if command[0].endswith("pip")]
    assert len(fetching) == 4
    for command in fetching:
        assert "--no-deps" in command
        assert ("--require-hashes" in command) != ("--no-index" in command), command
        assert ("wheel" in command) == ("--no-build-isolation" in command), command
    commands_of_others = [command[:2] for command in commands if command not in fetching]
    assert ["python", "scripts/dashboard.py"] in commands_of_others, "it checks the hashes of requirements/node.lock itself"


def test_the_image_builds_the_wheel_with_the_build_requirements_of_the_tests() -> None:
    build, tested = (pins(Path("requirements", name).read_text()) for name in ("build.lock", "dev.lock"))
    assert build.items() <= tested.items()
    backend = tomllib.loads(Path("pyproject.toml").read_text())["build-system"]["requires"]
    assert {re.split(r"[><=!~]", requirement)[0] for requirement in backend} <= {pin.split("==")[0] for pin in build}


def pins(lock: str) -> dict[str, tuple[str, ...]]:
    """Returns each pinned package with its hashes."""
    blocks = re.findall(r"^(\S+==\S+)(.*(?:\n +.*)*)", lock, re.MULTILINE)
    return {pin: tuple(re.findall(r"sha256:[0-9a-f]+", hashes)) for pin, hashes in blocks}
