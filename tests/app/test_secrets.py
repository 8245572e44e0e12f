"""Passwords appear in no log line."""

from pathlib import Path

import pytest

from tests.app.support import Service
from tests.support import eventually_sync
from tests.support.processes import free_port, running

pytestmark = [pytest.mark.slow]

SECRET = "hunter2-and-more"


def test_no_password_is_logged_if_no_server_is_reachable(tmp_path: Path) -> None:
    settings = {
        "OUTBOX_DATABASE_URL": f"postgresql+asyncpg://ada:{SECRET}@127.0.0.1:1/orders?application_name=x",
        "OUTBOX_LISTEN_URL": f"postgresql://ada:{SECRET}@127.0.0.1:2/orders",
        "OUTBOX_BROKER_URL": f"amqp://ada:{SECRET}@127.0.0.1:3/",
        "OUTBOX_METRICS_TOKEN": SECRET,
        "OUTBOX_LOG_LEVEL": "DEBUG",
        "OUTBOX_EXAMPLE": "true",
    }
    port = free_port()
    with running(["-m", "uvicorn", "app:main", "--port", str(port)], tmp_path, settings) as process:
        process.says("Uvicorn running on")
        service = Service(process, f"http://127.0.0.1:{port}")
        parts = service.get("/outbox/health/ready").json()["parts"]
        assert {name for name, state in parts.items() if state == "unavailable"} >= {"database", "schema", "broker"}
        import httpx

        answer = httpx.post(f"{service.url}/orders", json={"customer": "ada", "sku": "book", "quantity": 1}, timeout=30)
        assert answer.status_code == 500
        eventually_sync(lambda: "Traceback" in process.output)
        assert SECRET not in process.output
        assert SECRET not in answer.text


def test_no_password_is_logged_by_a_working_service(database_url: str, broker_url: str, tmp_path: Path) -> None:
    from urllib.parse import urlsplit

    settings = {
        "OUTBOX_DATABASE_URL": database_url,
        "OUTBOX_BROKER_URL": broker_url,
        "OUTBOX_MIGRATE": "true",
        "OUTBOX_LOG_LEVEL": "DEBUG",
        "OUTBOX_EXAMPLE": "true",
    }
    port = free_port()
    with running(["-m", "uvicorn", "app:main", "--port", str(port)], tmp_path, settings) as process:
        process.says("Uvicorn running on")
        service = Service(process, f"http://127.0.0.1:{port}")
        service.is_ready()
        service.ends_as(service.place("flaky"), "confirmed")
        password = urlsplit(database_url).password
        assert password
        assert password not in process.output
        assert f":{urlsplit(broker_url).password}@" not in process.output
