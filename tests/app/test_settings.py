"""Settings: complete, documented, and wrong ones stop the start with a sentence."""

import logging
from datetime import timedelta
from pathlib import Path

import pytest

from app.settings import Runs, Settings, read_settings
from outbox.environment import KNOWN, PREFIX, check_environment
from outbox.errors import ConfigurationError
from tests.app.settings_page import row

PAGE = Path("docs/settings.md")


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KNOWN:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_every_setting_is_documented_with_its_default(name: str) -> None:
    assert row(name) in PAGE.read_text()


def test_the_page_documents_nothing_else() -> None:
    documented = [line.split("`")[1] for line in PAGE.read_text().splitlines() if line.startswith("| `OUTBOX_")]
    assert sorted(documented) == sorted(f"{PREFIX}{name.upper()}" for name in Settings.model_fields)


def test_the_commands_and_the_service_know_the_same_variables() -> None:
    assert {f"{PREFIX}{name.upper()}" for name in Settings.model_fields} == KNOWN


def test_without_any_variable_everything_runs_on_an_embedded_server() -> None:
    settings = read_settings()
    assert settings.run == set(Runs)
    assert settings.database_url is None
    assert settings.broker_url is None


def test_times_are_seconds_or_durations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTBOX_PUBLISH_TIMEOUT", "2.5")
    monkeypatch.setenv("OUTBOX_GRACE_PERIOD", "1m30s")
    monkeypatch.setenv("OUTBOX_RETRY_DELAYS", "500ms, 2, 1m")
    settings = read_settings()
    assert settings.publish_timeout == timedelta(seconds=2.5)
    assert settings.grace_period == timedelta(seconds=90)
    assert settings.retry_delays == (timedelta(milliseconds=500), timedelta(seconds=2), timedelta(minutes=1))


def test_no_retries_are_called_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTBOX_RETRY_DELAYS", "none")
    assert read_settings().retry_delays == ()


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("OUTBOX_DATABSE_URL", "OUTBOX_DATABASE_URL"),
        ("OUTBOX_BROKERURL", "OUTBOX_BROKER_URL"),
        ("OUTBOX_PREFETCH", "OUTBOX_PREFETCH_COUNT"),
        ("OUTBOX_LANE", "OUTBOX_LANES"),
        ("outbox_loglevel", "OUTBOX_LOG_LEVEL"),
        ("OUTBOX_POOL_SIZE", "OUTBOX_DATABASE_POOL_SIZE"),
    ],
)
def test_a_misspelt_setting_stops_the_start(given: str, meant: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{given} is not a setting, did you mean {meant}\\?$"):
        check_environment({given: "1"})


@pytest.mark.parametrize("name", ["OUTBOX_HOME", "OUTBOX_RUN_ID", "OUTBOX_IMAGE"])
def test_another_unknown_variable_is_warned_of(name: str, caplog: pytest.LogCaptureFixture) -> None:
    check_environment({name: "1"})
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.WARNING, f"{name} is set, but is not a setting: it has no effect")
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OUTBOX_PORT", "tcp://10.0.0.7:8000"),
        ("OUTBOX_SERVICE_HOST", "10.0.0.7"),
        ("OUTBOX_SERVICE_PORT", "8000"),
        ("OUTBOX_SERVICE_PORT_HTTP", "8000"),
        ("OUTBOX_PORT_8000_TCP_ADDR", "10.0.0.7"),
        ("OUTBOX_HTTP_SERVICE_HOST", "10.0.0.7"),
    ],
)
def test_what_orchestrators_inject_for_a_service_called_outbox_is_no_news(
    name: str, value: str, caplog: pytest.LogCaptureFixture
) -> None:
    check_environment({name: value})
    assert not caplog.records


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"RUN": "api,rely"}, "OUTBOX_RUN: "),
        ({"RUN": ","}, "OUTBOX_RUN: name at least one of api, relay, worker"),
        ({"LANES": "0"}, "OUTBOX_LANES: "),
        ({"PUBLISH_TIMEOUT": "-1"}, "OUTBOX_PUBLISH_TIMEOUT: "),
        ({"GRACE_PERIOD": "inf"}, "OUTBOX_GRACE_PERIOD: 'inf' is not a duration"),
        ({"GRACE_PERIOD": "1e20"}, "OUTBOX_GRACE_PERIOD: '1e20' is not a duration"),
        ({"RETRY_DELAYS": "1s,-1"}, "OUTBOX_RETRY_DELAYS: "),
        ({"RETRY_DELAYS": "1h"}, "OUTBOX_RETRY_DELAYS: '1h' is not a duration"),
        ({"DATABASE_URL": "mysql://ada:hunter2@db/x"}, "OUTBOX_DATABASE_URL: the address must be a postgresql:// URL|scheme"),
        ({"BROKER_URL": "kafka://ada:hunter2@broker"}, "OUTBOX_BROKER_URL: the address has the scheme 'kafka'"),
        ({"CONSUMERS": "not a module"}, "OUTBOX_CONSUMERS: "),
    ],
)
def test_a_value_that_makes_no_sense_is_named(
    variables: dict[str, str], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(PREFIX + name, value)
    with pytest.raises(ConfigurationError, match=sentence) as caught:
        read_settings()
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        (
            {"DATA_DIR": "/data", "DATABASE_URL": "postgresql://ada:hunter2@db/x"},
            "OUTBOX_DATA_DIR is for the embedded server, which OUTBOX_DATABASE_URL replaces",
        ),
        ({"LISTEN_URL": "postgresql://ada:hunter2@db/x"}, "OUTBOX_DATABASE_URL, which is not set"),
        ({"METRICS": "false", "METRICS_TOKEN": "hunter2"}, "OUTBOX_METRICS_TOKEN guards metrics that OUTBOX_METRICS turns off"),
    ],
)
def test_settings_that_contradict_each_other_stop_the_start(
    variables: dict[str, str], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(PREFIX + name, value)
    with pytest.raises(ConfigurationError, match=sentence) as caught:
        read_settings()
    assert "hunter2" not in str(caught.value)


def test_settings_show_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTBOX_DATABASE_URL", "postgresql://ada:hunter2@db/orders")
    monkeypatch.setenv("OUTBOX_BROKER_URL", "amqp://ada:hunter2@broker/")
    monkeypatch.setenv("OUTBOX_METRICS_TOKEN", "hunter2")
    assert "hunter2" not in repr(read_settings())
