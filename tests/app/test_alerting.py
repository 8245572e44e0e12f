"""The service sends the configured alerts, and refuses invalid settings."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.settings import read_settings
from outbox.errors import ConfigurationError
from tests.app.support import service
from tests.support import eventually
from tests.support.webhooks import SECRET, Receiver, receiving


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as webhook:
        yield webhook


async def test_the_service_sends_alerts_and_a_test_message(database_url: str, tmp_path: Path, receiver: Receiver) -> None:
    settings = {
        "OUTBOX_DATABASE_URL": database_url,
        "OUTBOX_MIGRATE": "true",
        "OUTBOX_RUN": "api",
        "OUTBOX_ENVIRONMENT": "staging",
        "OUTBOX_ALERT_WEBHOOKS": receiver.url,
        "OUTBOX_ALERT_SECRET": SECRET,
        "OUTBOX_ALERT_ON": "no_relay",
        "OUTBOX_ALERT_AFTER": "1ms",
        "OUTBOX_ALERT_EVERY": "0.1",
    }

    async def sent() -> bool:
        return bool(receiver.requests)

    with service(tmp_path, settings) as started:
        await eventually(sent, timeout=60)
        assert "secret-path" not in started.process.output
    sent_body = json.loads(receiver.requests[0][1])
    assert (sent_body["type"], sent_body["data"]["code"], sent_body["data"]["environment"]) == (
        "outbox.alert.fired",
        "no_relay",
        "staging",
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OUTBOX_ALERT_ON", "fire"),
        ("OUTBOX_ALERT_QUIET", "late"),
        ("OUTBOX_ALERT_WEBHOOKS", "ftp://hooks.example/secret-path"),
        ("OUTBOX_ALERT_SECRET", "hunter2"),
        ("OUTBOX_DASHBOARD_URL", "shop.example"),
    ],
)
def test_invalid_alert_settings_are_refused_at_startup(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv("OUTBOX_ALERT_WEBHOOKS", "https://hooks.example/secret-path")
    monkeypatch.setenv("OUTBOX_ALERT_SECRET", SECRET)
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError) as raised:
        read_settings()
    assert "OUTBOX_ALERT" in str(raised.value)
    assert "secret-path" not in str(raised.value)
    assert "hunter2" not in str(raised.value)


def test_alert_settings_without_a_webhook_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTBOX_ALERT_SECRET", SECRET)
    with pytest.raises(ConfigurationError, match="OUTBOX_ALERT_WEBHOOKS"):
        read_settings()
