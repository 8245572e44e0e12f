"""The alert rules: each fires when it should and only then, uses metrics that exist, and has a section in the runbook."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.servers.prometheus import checked

ROOT = Path(__file__).parents[2]
RULES = ROOT / "monitoring" / "alerts.yml"
CASES = ROOT / "monitoring" / "alerts.test.yml"
PAGE = ROOT / "docs" / "monitoring.md"
ALERTS: dict[str, dict[str, Any]] = {
    rule["alert"]: rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"] if "alert" in rule
}


@pytest.mark.prometheus
def test_the_rules_are_valid() -> None:
    checked("promtool", "check", "rules", "--lint-fatal", str(RULES))


@pytest.mark.slow
@pytest.mark.prometheus
def test_the_rules_fire_and_are_silent_as_their_cases_say() -> None:
    checked("promtool", "test", "rules", str(CASES))


@pytest.mark.parametrize("alert", ALERTS)
def test_every_alert_has_a_case_where_it_fires_and_one_where_it_is_silent(alert: str) -> None:
    cases = [case for test in yaml.safe_load(CASES.read_text())["tests"] for case in test["alert_rule_test"]]
    fires = {bool(case["exp_alerts"]) for case in cases if case["alertname"] == alert}
    assert fires == {True, False}


@pytest.mark.parametrize("alert", ALERTS)
def test_every_alert_says_how_urgent_it_is_and_where_its_runbook_is(alert: str) -> None:
    rule = ALERTS[alert]
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert rule["annotations"].keys() == {"summary", "runbook_url"}
    assert rule["annotations"]["runbook_url"] == f"docs/monitoring.md#{alert.lower()}"


def test_the_runbook_has_a_section_for_each_alert_and_for_no_other() -> None:
    sections = dict(re.findall(r"^### (Outbox\w+)\n(.*?)(?=^#)", PAGE.read_text() + "\n#", re.MULTILINE | re.DOTALL))
    assert sections.keys() == ALERTS.keys()
    for alert, text in sections.items():
        assert [word for word in ("**Means.**", "**Look.**", "**Do.**") if word not in text] == [], alert
        assert "```sh" in text, f"{alert} has no command"


def test_the_page_has_a_table_of_the_alerts_with_their_severities() -> None:
    rows = re.findall(r"^\| \[(\w+)\]\(#(\w+)\) \| (\w+) \|", PAGE.read_text(), re.MULTILINE)
    assert sorted(rows) == sorted((name, name.lower(), rule["labels"]["severity"]) for name, rule in ALERTS.items())
