"""The host application of docs/embedding.md: the admin works, and the host's routes are unaffected."""

import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg2
import pytest
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException as StarletteHTTPException

from outbox.admin import Admin, Principal, admin_router
from outbox.admin.access import AdminRoute
from tests.admin.support import client_of, principal_by_header, serving
from tests.support.processes import OurProcess, free_port, running

PAGE = Path(__file__).parents[2] / "docs/embedding.md"
PROGRAM = re.compile(r"```python\n# host\.py\n(?P<text>.*?)```", re.DOTALL)
ADA = {"x-company-key": "a key of Ada's"}
PREFIX = "/internal/outbox"


@pytest.fixture
def host(tmp_path: Path, database: str) -> Iterator[tuple[OurProcess, httpx.Client]]:
    """The application, and a client that sends requests like a proxy that strips its prefix."""
    found = PROGRAM.search(PAGE.read_text())
    assert found is not None
    (tmp_path / "host.py").write_text(found["text"])
    port = free_port()
    arguments = ["-m", "uvicorn", "host:app", "--app-dir", str(tmp_path), "--port", str(port), "--root-path", "/shop"]
    settings = {"DATABASE_URL": database, "ADA_KEY": ADA["x-company-key"]}
    with (
        running(arguments, tmp_path, settings) as process,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client,
    ):
        process.says("Uvicorn running on")
        yield process, client


def test_the_documented_host_is_short() -> None:
    found = PROGRAM.search(PAGE.read_text())
    assert found is not None
    assert sum(bool(line.strip()) and not line.startswith(("import ", "from ")) for line in found["text"].splitlines()) <= 25


def test_host_and_admin_keep_their_paths_behind_a_proxy(host: tuple[OurProcess, httpx.Client], database_url: str) -> None:
    process, client = host
    assert client.get("/greeting").json() == "hello"

    anonymous = client.get(f"{PREFIX}/dlq")
    assert (anonymous.status_code, anonymous.json()) == (401, {"oops": "who are you?"})
    assert client.get(f"{PREFIX}/dlq", headers=ADA).json()["items"] == []

    unknown = client.get(f"{PREFIX}/dlq/17", headers=ADA)
    assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")
    assert unknown.headers["content-type"] == "application/problem+json"
    nowhere = client.get("/nowhere")
    assert (nowhere.status_code, nowhere.json()) == (404, {"detail": "Not Found"})

    page = client.get(f"{PREFIX}/ui/chains/17")
    assert ("content-security-policy" in page.headers, '<base href="../" />' in page.text) == (True, page.status_code == 200)

    assert client.get("/openapi.json").json()["servers"] == [{"url": "/shop"}]

    everything: dict[str, Any] = {"selector": {"filter": {}}}
    token = client.post(f"{PREFIX}/requeue", json={**everything, "dry_run": True}, headers=ADA).json()["confirm_token"]
    begun = client.post(f"{PREFIX}/requeue", json={**everything, "confirm_token": token}, headers=ADA)
    assert begun.status_code == 202
    assert begun.headers["location"] == f"/shop{PREFIX}/operations/1"
    with psycopg2.connect(database_url) as connection, connection.cursor() as cursor:
        cursor.execute("select actor, role from outbox_audit")
        assert cursor.fetchall() == [("ada", "operator")]
    connection.close()

    process.send(signal.SIGTERM)
    process.says("Application shutdown complete")
    assert "the host's own has ended" in process.output


class NotYet(Exception):
    """An exception of the host, which has a handler for it."""


@pytest.mark.parametrize("raised", [NotYet(), StarletteHTTPException(418, "tea"), TimeoutError()])
async def test_exceptions_of_the_hosts_dependency_are_handled_by_the_host(database: str, raised: Exception) -> None:
    async def who() -> Principal:
        raise raised

    async def in_our_format(request: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"oops": type(error).__name__}, 418)

    async with serving(Admin(database), authenticate=who) as app:
        app.add_exception_handler(type(raised), in_our_format)
        answer = await client_of(app).get("/backlog")
    assert (answer.status_code, answer.json()) == (418, {"oops": type(raised).__name__})


async def test_a_request_builds_the_routes_of_its_area_alone(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """FastAPI builds the routes of an included router on the first request: all of them cost a command a tenth of a second."""
    built: list[str] = []
    build = AdminRoute.get_route_handler

    def get_route_handler(route: AdminRoute) -> Any:
        built.append(route.path)
        return build(route)

    monkeypatch.setattr(AdminRoute, "get_route_handler", get_route_handler)
    async with Admin(database) as admin:
        app = FastAPI()
        app.include_router(admin_router(admin, authenticate=principal_by_header), prefix="/outbox")
        async with client_of(app) as client:
            built.clear()
            assert (await client.get("/components")).status_code == 200
            assert (await client.head("/components")).status_code == 200
    assert set(built) == {"/components", "/pause", "/pauses", "/resume"}
