"""The admin in the service: one development token for all worker processes, and no admin without the API."""

import asyncio
import re
from pathlib import Path

import httpx
import pytest
from anyio.to_thread import current_default_thread_limiter

from app.service import create_service
from app.settings import read_settings
from outbox.admin import Role
from outbox.admin.principals import new_token
from outbox.errors import ConfigurationError
from tests.app.support import Service, service
from tests.servers.postgres import PostgresServer, fresh_database, with_database
from tests.support.dashboard import build_dashboard
from tests.support.processes import free_port, running

pytestmark = [pytest.mark.slow]

TOKEN = re.compile(r"outbox_[A-Za-z0-9_-]{43}")


@pytest.fixture(scope="module", autouse=True)
def _dashboard() -> None:
    build_dashboard()


def _settings(database_url: str, **more: str) -> dict[str, str]:
    return {"OUTBOX_DATABASE_URL": database_url, "OUTBOX_MIGRATE": "true", "OUTBOX_RUN": "api", **more}


def test_all_worker_processes_accept_the_development_token_which_is_printed_once(database_url: str, tmp_path: Path) -> None:
    port = free_port()
    command = ["-m", "uvicorn", "app:main", "--port", str(port), "--workers", "2"]
    with running(command, tmp_path, _settings(database_url, OUTBOX_DEVELOPMENT="true")) as process:
        started = Service(process, f"http://127.0.0.1:{port}")
        started.is_ready()
        process.says("OUTBOX_TOKEN")
        token, again = TOKEN.findall(process.output)
        assert token == again, "it is in the dashboard's link and in what can be typed"
        assert f"  Dashboard {started.url}/outbox/ui/#token={token}\n" in process.output
        for _ in range(10):
            answer = started.get("/outbox/session", headers={"authorization": f"Bearer {token}"})
            assert (answer.status_code, answer.json()["role"]) == (200, "admin")
        assert started.get("/outbox/session").status_code == 401


def test_a_session_is_valid_in_every_process_until_one_of_them_ends_it(database_url: str, tmp_path: Path) -> None:
    token, entry = new_token("alice", Role.OPERATOR)
    settings = _settings(database_url, OUTBOX_ADMIN_TOKENS=str(entry))
    with service(tmp_path, settings) as here, service(tmp_path, settings) as there:
        begun = httpx.post(f"{here.url}/outbox/session", json={"token": token}, timeout=30)
        cookie = {"cookie": f"outbox_session={begun.cookies['outbox_session']}", "sec-fetch-site": "same-origin"}
        for each in (here, there):
            assert each.get("/outbox/session", headers=cookie).json()["authenticated_by"] == "session"
        assert httpx.delete(f"{there.url}/outbox/session", headers=cookie, timeout=30).status_code == 204
        for each in (there, here):
            assert each.get("/outbox/session", headers=cookie).status_code == 401
            assert token not in each.process.output
            assert cookie["cookie"].partition("=")[2] not in each.process.output


def test_one_service_shows_the_outboxes_of_other_databases(
    database: str, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    token, entry = new_token("alice", Role.OPERATOR)
    with fresh_database(postgres_server.url, tables=True) as name:
        others = f"us={with_database(postgres_server.url, name)} away=postgresql://user@127.0.0.1:1/none"
        reader = str(entry).replace("operator", "viewer")
        settings = _settings(
            database,
            OUTBOX_ADMIN_OUTBOX_NAME="eu",
            OUTBOX_ADMIN_DATABASES=others,
            OUTBOX_ADMIN_TOKENS=f"{entry},us/{reader}",
            OUTBOX_ENVIRONMENT="production:red",
        )
        with service(tmp_path, settings) as started:
            headers = {"authorization": f"Bearer {token}"}
            listed = started.get("/outbox/outboxes", headers=headers).json()["items"]
            assert [(each["name"], each["may_enter"]) for each in listed] == [("eu", True), ("us", True), ("away", True)]
            shown = [started.get(f"/outbox/{each}/session", headers=headers).json() for each in ("eu", "us")]
            assert [(each["role"], each["environment"] and each["environment"]["name"]) for each in shown] == [
                ("operator", "production"),
                ("viewer", None),
            ]
            backlogs = [started.get(f"/outbox/{each}/backlog", headers=headers).status_code for each in ("eu", "us", "away")]
            assert backlogs == [200, 200, 503]
            assert started.get("/outbox/backlog", headers=headers).status_code == 404
            assert httpx.get(f"{started.url}/", follow_redirects=True, timeout=30).url.path == "/outbox/eu/ui/"
            paths = started.get("/openapi.json").json()["paths"]
            assert "/outbox/{outbox_name}/backlog" in paths
            assert "/outbox/backlog" not in paths
            assert started.get("/outbox/health/ready").status_code == 200
            metrics = started.get("/metrics").text
            assert 'handler="/outbox/{outbox_name}/backlog"' in metrics


def test_requests_of_the_admin_are_counted_by_their_templates(database_url: str, tmp_path: Path) -> None:
    with service(tmp_path, _settings(database_url)) as started:
        started.get("/outbox/messages/4711")
        metrics = started.get("/metrics").text
        assert 'handler="/outbox/messages/{id}"' in metrics
        assert "messages/4711" not in metrics


def test_a_process_without_the_api_has_no_admin(database_url: str, tmp_path: Path) -> None:
    with service(tmp_path, _settings(database_url, OUTBOX_RUN="maintain")) as started:
        answer = started.get("/outbox/backlog")
        assert (answer.status_code, answer.json()) == (404, {"detail": "this process does not serve the API, see OUTBOX_RUN"})


def test_development_mode_with_configured_tokens_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="OUTBOX_DEVELOPMENT creates an admin token"):
        read_settings(development=True, admin_tokens=(f"alice:admin:{'0' * 64}",))


async def test_requests_are_answered_while_every_thread_is_busy(database_url: str) -> None:
    token, entry = new_token("anna", Role.VIEWER)
    settings = read_settings(database_url=database_url, migrate=True, example=True, run=("api",), admin_tokens=(str(entry),))
    service = create_service(settings)
    client = httpx.AsyncClient(
        transport=httpx.ASGITransport(service), base_url="http://service", headers={"authorization": f"Bearer {token}"}
    )
    limiter, busy = current_default_thread_limiter(), object()
    limiter.total_tokens = 1
    async with service.router.lifespan_context(service), client, asyncio.timeout(30):
        await limiter.acquire_on_behalf_of(busy)
        answers = [await client.get(f"/outbox/{path}") for path in ("health/live", "health/ready", "backlog")]
        answers.append(await client.post("/orders", json={"customer": "anna", "sku": "tea", "quantity": 1}))
        limiter.release_on_behalf_of(busy)
    assert [answer.status_code for answer in answers] == [200, 200, 200, 201]
