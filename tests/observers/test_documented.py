"""The documentation lists exactly the existing metrics, with their types and labels."""

import re
from pathlib import Path

import pytest

from outbox.observers.prometheus import DatabaseCollector
from outbox.runtime import observing

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
ROW = re.compile(r"^\| `(?P<name>outbox_\w+)` \| (?P<type>\w+) \| (?P<labels>[^|]+) \|", re.MULTILINE)


@pytest.fixture
def registered() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Type and labels of each registered metric."""
    from prometheus_client import REGISTRY

    observing.build_observer(enable_metrics=True)
    collectors = {id(collector): collector for collector in REGISTRY._names_to_collectors.values()}.values()
    families = [collector for collector in collectors if getattr(collector, "_name", "").startswith("outbox_")]
    [database] = DatabaseCollector([lambda: {"acme": True}]).collect()
    return {
        database.name: (database.type, tuple(database.samples[0].labels)),
    } | {
        family._name + ("_total" if family._type == "counter" else ""): (family._type, tuple(family._labelnames))  # type: ignore[attr-defined]
        for family in families
    }


def test_the_table_of_metrics_is_the_registry(registered: dict[str, tuple[str, tuple[str, ...]]]) -> None:
    documented = {
        match["name"]: (match["type"], tuple(re.findall(r"`(\w+)`", match["labels"])))
        for match in ROW.finditer(PAGE.read_text())
    }
    assert documented == registered
