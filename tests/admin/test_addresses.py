"""Unknown paths, unsupported methods and HEAD below the prefix."""

from contextlib import AsyncExitStack

import asyncpg
import httpx
import pytest
from fastapi import FastAPI

import outbox
from outbox.admin import Admin, Principal, Role, admin_router, health_router
from outbox.admin.problems import MEDIA_TYPE
from outbox.runtime.health import HealthChecks
from tests.admin.support import MakeClient, client_of, principal_by_header, serving

NO_ROUTES = ("/nothing", "/dlq/", "/dlq/17/", "/dlq/17/nothing", "/", "", "/nothing%0A", "/session/17")
OTHER_METHODS = (("DELETE", "/dlq", "GET, HEAD"), ("GET", "/requeue", "POST"), ("PROPFIND", "/backlog", "GET, HEAD"))


def _is_a_problem(answer: httpx.Response, status: int, code: str) -> None:
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.url
    assert answer.headers["content-type"] == MEDIA_TYPE
    assert answer.headers["x-request-id"] == answer.json()["request_id"]


async def test_unauthenticated_clients_do_not_learn_which_paths_exist(make_client: MakeClient) -> None:
    anonymous = make_client(None)
    for path in NO_ROUTES:
        for method in ("GET", "POST", "PROPFIND"):
            _is_a_problem(await anonymous.request(method, path), 401, "unauthenticated")
    for method, path, _ in OTHER_METHODS:
        _is_a_problem(await anonymous.request(method, path), 401, "unauthenticated")


async def test_unauthenticated_clients_do_not_learn_which_parameters_are_valid(make_client: MakeClient) -> None:
    for query in ("actor=%00", "limit=1&limit=2", "limit=x"):
        _is_a_problem(await make_client(None).get(f"/audit?{query}"), 401, "unauthenticated")


async def test_authenticated_clients_learn_the_release(make_client: MakeClient, viewer: httpx.AsyncClient) -> None:
    assert (await viewer.get("/session")).headers["outbox-version"] == outbox.__version__
    assert (await viewer.get("/nowhere")).headers["outbox-version"] == outbox.__version__
    assert "outbox-version" not in (await make_client(None).get("/session")).headers


async def test_an_unknown_path_is_a_problem_and_does_not_reach_the_host(viewer: httpx.AsyncClient) -> None:
    for path in NO_ROUTES:
        for method in ("GET", "POST", "PROPFIND"):
            answer = await viewer.request(method, path, headers={"host": "elsewhere.example"})
            _is_a_problem(answer, 404, "not_found")
            assert "elsewhere" not in str(answer.headers) + answer.text


async def test_a_wrong_method_is_a_problem_with_the_allowed_methods(viewer: httpx.AsyncClient) -> None:
    for method, path, allowed in OTHER_METHODS:
        answer = await viewer.request(method, path)
        _is_a_problem(answer, 405, "method_not_allowed")
        assert answer.headers["allow"] == allowed


@pytest.mark.parametrize("path", ["/backlog", "/dlq", "/session", "/dlq/17", "/events"])
async def test_head_returns_the_headers_of_get_without_a_body(viewer: httpx.AsyncClient, path: str) -> None:
    asked = await viewer.head(path)
    assert asked.content == b""
    assert asked.headers["cache-control"] == "no-store"
    if path != "/events":  # which does not end
        answer = await viewer.get(path)
        assert asked.status_code == answer.status_code
        assert asked.headers["content-type"] == answer.headers["content-type"]


async def test_head_of_the_events_does_not_count_as_a_stream(database: str) -> None:
    async with serving(Admin(database, streams=1)) as app, client_of(app, Role.VIEWER) as viewer:
        assert [(await viewer.head("/events")).status_code for _ in range(3)] == [200, 200, 200]


async def test_head_requires_the_permissions_of_get(make_client: MakeClient) -> None:
    assert (await make_client(None).head("/backlog")).status_code == 401
    assert (await make_client(Role.VIEWER).head("/audit")).status_code == 403


async def test_routes_of_the_host_below_the_prefix_keep_working(database: str) -> None:
    admin, app = Admin(database), FastAPI()
    app.include_router(admin_router(admin, authenticate=principal_by_header), prefix="/outbox")
    app.include_router(health_router(HealthChecks()))

    @app.get("/outboxes/{number}")
    async def outboxes(number: int) -> int:
        return number

    async with admin, client_of(app, None) as anonymous:
        assert (await anonymous.get("/health/live")).json() == {"status": "alive"}
        assert (await anonymous.get("http://service/outboxes/17")).json() == 17
        assert (await anonymous.get("http://service/nowhere")).json() == {"detail": "Not Found"}
        _is_a_problem(await anonymous.get("/nowhere"), 401, "unauthenticated")


async def test_without_a_prefix_unknown_paths_belong_to_the_host(database: str) -> None:
    admin, app = Admin(database), FastAPI()
    app.include_router(admin_router(admin, authenticate=principal_by_header))
    async with admin, httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://service") as anonymous:
        assert (await anonymous.get("/nowhere")).json() == {"detail": "Not Found"}


@pytest.mark.parametrize("ids", [["99999"], ["nothing"], ["outbox-99999", "nothing", "0"]])
@pytest.mark.parametrize("action", ["requeue", "discard", "restore"])
async def test_a_dry_run_of_unknown_ids_finds_nothing(operator: httpx.AsyncClient, action: str, ids: list[str]) -> None:
    answer = await operator.post(f"/{action}", json={"selector": {"ids": ids}, "dry_run": True})
    assert (answer.status_code, answer.json().get("count")) == (200, 0), answer.text


TABLES = (
    "dead_letter",
    "audit",
    "operation",
    "operation_item",
    "confirmation",
    "idempotency",
    "component",
    "control",
    "history",
)
REQUEST_CONTEXT: tuple[tuple[str, str, object], ...] = (
    *(("GET", path, None) for path in ("/dlq", "/dlq/groups", "/dlq/17", "/audit", "/operations", "/operations/17")),
    *(("GET", path, None) for path in ("/backlog", "/messages", "/chains", "/chains/17", "/stats", "/components", "/pauses")),
    ("POST", "/requeue", {"selector": {"ids": ["17"]}}),
    ("POST", "/requeue", {"selector": {"ids": ["17"]}, "dry_run": True}),
    ("POST", "/requeue", {"selector": {"filter": {}}, "confirm_token": "x"}),
    ("POST", "/pause", {"scope": "relay"}),
)


@pytest.mark.parametrize("table", TABLES)
async def test_a_missing_table_is_reported_by_every_endpoint_that_needs_it(
    make_client: MakeClient, database: str, table: str
) -> None:
    connection = await asyncpg.connect(database)
    try:
        await connection.execute(f"drop table outbox_{table} cascade")
    finally:
        await connection.close()
    admin, count = make_client(Role.ADMIN), 0
    for number, (method, path, body) in enumerate(REQUEST_CONTEXT):
        answer = await admin.request(method, path, json=body, headers={"idempotency-key": f"key-{number}"})
        assert answer.status_code != 500, (method, path, answer.text)
        if answer.status_code == 503:
            assert answer.json()["code"] == "schema_outdated", (method, path, answer.text)
            count += 1
    assert count


async def test_a_role_can_be_passed_by_name(database: str) -> None:
    async with serving(Admin(database), authenticate=lambda: Principal("ann", "operator")) as app:  # type: ignore[arg-type]
        answer = await client_of(app).get("/session")
    assert (answer.status_code, answer.json()["role"]) == (200, "operator")


@pytest.mark.parametrize("given", ["ann", {"name": "ann", "role": "operator"}, object()])
async def test_a_value_that_is_no_principal_is_an_internal_error(
    database: str, given: object, caplog: pytest.LogCaptureFixture
) -> None:
    async with AsyncExitStack() as stack:
        app = await stack.enter_async_context(serving(Admin(database), authenticate=lambda: given))
        answer = await client_of(app).get("/backlog")
    _is_a_problem(answer, 500, "internal")
    assert "return a Principal" in caplog.text


def test_an_unknown_role_is_rejected() -> None:
    with pytest.raises(ValueError, match="viewer, operator, admin"):
        Principal("ann", "root")  # type: ignore[arg-type]
