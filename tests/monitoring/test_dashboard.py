"""The Grafana dashboard: what its script writes, and every panel of it has data at a service with traffic."""

import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from outbox.schema import ensure_outbox_schema_async
from scripts import grafana
from tests.app.support import service
from tests.servers.prometheus import Prometheus, scraping
from tests.support import eventually_sync
from tests.support.processes import running

ROOT = Path(__file__).parents[2]
RULES = ROOT / "monitoring" / "alerts.yml"
DASHBOARD: dict[str, Any] = json.loads((ROOT / "monitoring" / "grafana" / "outbox.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
METRICS = set(re.findall(r"^\| `(outbox_\w+)` \|", (ROOT / "docs" / "metrics.md").read_text(), re.MULTILINE))
EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel["targets"]]
SECONDS = 60
MISSING = {
    "OutboxRelayAbsent",
    "OutboxWorkerAbsent",
    "OutboxConsumerMissing",
    "OutboxMaintenanceAbsent",
    "OutboxVerdictAbsent",
}
"""Alerts that something does not run."""


def test_the_file_is_what_the_script_writes() -> None:
    checked = subprocess.run([sys.executable, "scripts/grafana.py", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert grafana.dashboard() == DASHBOARD


def test_the_script_depends_on_nothing() -> None:
    subprocess.run([sys.executable, "-S", "-c", "import scripts.grafana"], cwd=ROOT, check=True)


def test_panels_and_rules_use_metrics_that_are_documented() -> None:
    used = set(re.findall(r"\boutbox_\w+", " ".join(EXPRESSIONS) + RULES.read_text()))
    known = METRICS | {f"{metric}_{suffix}" for metric in METRICS for suffix in ("bucket", "count", "sum")}
    assert sorted(used - known) == []


def test_recording_rules_that_panels_use_are_there() -> None:
    used = set(re.findall(r"\boutbox:[\w:]+", " ".join(EXPRESSIONS)))
    assert used
    assert used <= set(re.findall(r"record: (\S+)", RULES.read_text()))


def test_panels_do_not_overlap_and_are_described() -> None:
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in DASHBOARD["panels"])
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < grafana.WIDTH
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    assert all(panel["description"] for panel in PANELS)


@pytest.fixture
def prometheus(database_url: str, tmp_path: Path, servers_folder: Path) -> Iterator[Prometheus]:
    """A Prometheus that scrapes the service and its example, at which `outbox demo` places orders."""
    settings = {"OUTBOX_DATABASE_URL": database_url, "OUTBOX_MIGRATE": "true", "OUTBOX_RUN": "api,relay,worker,maintain"}
    demo = ["-m", "outbox.cli", "demo", "--rate", "2", "--duration", "300", "--mix", "book=6,flaky=2,forbidden=1", "--url"]
    with (
        service(tmp_path, settings) as started,
        running([*demo, started.url], tmp_path, name="demo"),
        scraping(started.url.removeprefix("http://"), servers_folder / f"prometheus-{tmp_path.name}", rules=RULES) as server,
    ):
        yield server


@pytest.mark.slow
@pytest.mark.prometheus
async def test_every_panel_has_data_while_the_demo_runs(prometheus: Prometheus, database_url: str) -> None:
    # Attempts to publish that fail are no part of the demo, nor are several destinations.
    await ensure_outbox_schema_async(database_url, destinations=["kafka"])
    connection = await asyncpg.connect(database_url)
    await connection.execute("insert into outbox_table (routing_key, body) values ('no.queue', '{}')")
    await connection.close()
    waiting = list(EXPRESSIONS)

    def all_have_data() -> bool:
        waiting[:] = [expression for expression in waiting if not has_data(prometheus, expression)]
        return not waiting

    try:
        eventually_sync(all_have_data, timeout=90, interval=0.5)
    except AssertionError:
        (target,) = prometheus.data("/api/v1/targets")["activeTargets"]
        pytest.fail("\n".join(["without data:", *waiting, f"last error: {target['lastError']}"]), pytrace=False)
    prometheus.range(DASHBOARD["annotations"]["list"][0]["expr"], seconds=SECONDS)

    def rules_hold() -> bool:
        rules = [rule for group in prometheus.data("/api/v1/rules")["groups"] for rule in group["rules"]]
        assert {rule["name"]: rule.get("lastError") for rule in rules if rule["health"] != "ok"} == {}
        return not MISSING & {rule["name"] for rule in rules if rule.get("alerts")}

    eventually_sync(rules_hold, message="every part of the service runs, and some are reported as absent")


def has_data(prometheus: Prometheus, expression: str) -> bool:
    """Whether the expression, as Grafana fills it in, had a value within the time that the dashboard shows."""
    filled = expression.replace("$__rate_interval", "10s").replace("$queue", ".*")
    assert "$" not in filled
    series = prometheus.range(filled, seconds=SECONDS)
    return any(not math.isnan(float(value)) for each in series for _, value in each["values"])
