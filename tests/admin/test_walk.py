"""Checks of every route of the admin: authentication, roles, cross-site protection, and documentation."""

import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import asyncpg
import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute, iter_route_contexts

from outbox.admin import Admin, Role, admin_router
from outbox.admin.access import LOGOUT, Require
from outbox.admin.examples import EXAMPLES
from outbox.admin.problems import MEDIA_TYPE, Code
from outbox.runtime.health import HealthChecks
from tests.admin.support import MakeClient, client_of, serving

PUBLIC = {"outbox_session_begin", "outbox_session_methods", "outbox_health_live", "outbox_health_ready"}
DASHBOARD = {(method, path) for method in ("GET", "HEAD") for path in ("/ui", "/ui/{address}")}
LOGIN = {("GET", "/session/oidc"), ("GET", "/session/oidc/callback")}
"""Routes that the OpenAPI document omits: public files without data, and the redirects of single sign-on."""
SAFE = {"GET", "HEAD", "OPTIONS"}


@dataclass(frozen=True)
class Operation:
    """One method of one path."""

    method: str
    path: str
    name: str

    @property
    def url(self) -> str:
        return re.sub(r"\{[^}]*\}", "17", self.path)

    def __str__(self) -> str:
        return self.name


def _operations(*, in_document: bool) -> Iterator[Operation]:
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.include_router(admin_router(Admin("postgresql://user@localhost/none"), health=HealthChecks()))
    for route in iter_route_contexts(app.routes):
        assert isinstance(route.original_route, APIRoute)
        if route.original_route.include_in_schema is in_document:
            for method in route.methods or ():
                yield Operation(method, str(route.path_format), str(route.original_route.operation_id))


OPERATIONS = sorted(_operations(in_document=True), key=str)
CLOSED = [operation for operation in OPERATIONS if operation.name not in PUBLIC]
UNSAFE = [operation for operation in CLOSED if operation.method not in SAFE and operation.name != LOGOUT]


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    app = FastAPI()
    app.include_router(admin_router(Admin("postgresql://user@localhost/none"), health=HealthChecks()))
    return app.openapi()


@pytest.fixture
async def read_only(database: str) -> AsyncIterator[FastAPI]:
    async with serving(Admin(database, read_only=True)) as app:
        yield app


def test_the_walk_covers_every_route() -> None:
    names = [operation.name for operation in OPERATIONS]
    assert set(names) > PUBLIC
    assert len(names) == len(set(names))
    assert len(UNSAFE) >= 9


def test_only_files_and_redirects_are_undocumented() -> None:
    assert {(operation.method, operation.path) for operation in _operations(in_document=False)} == DASHBOARD | LOGIN


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_every_operation_has_an_id_a_description_and_a_tag(operation: Operation, document: dict[str, Any]) -> None:
    documented = document["paths"][operation.path][operation.method.lower()]
    assert re.fullmatch(r"outbox_[a-z]+(_[a-z]+)*", documented["operationId"])
    assert documented["description"].strip()
    assert documented["tags"]


@pytest.mark.parametrize("operation", CLOSED, ids=str)
def test_every_operation_documents_its_problems_as_problems_only(operation: Operation, document: dict[str, Any]) -> None:
    responses = document["paths"][operation.path][operation.method.lower()]["responses"]
    assert {"401", "403", "422", "500", "503"} <= responses.keys()
    for status, response in responses.items():
        if int(status) >= 400:
            assert response["content"] == {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/OutboxProblem"}}}
            assert all(str(Code(code).status) == status for code in response["x-problem-codes"])
    assert "OutboxProblem" in document["components"]["schemas"]


@pytest.mark.parametrize("operation", CLOSED, ids=str)
def test_every_protected_operation_documents_its_security_schemes(operation: Operation, document: dict[str, Any]) -> None:
    documented = document["paths"][operation.path][operation.method.lower()]
    assert documented["security"] == [{"OutboxToken": []}, {"OutboxSession": []}]


def test_every_protected_operation_requires_a_role() -> None:
    app = FastAPI()
    app.include_router(admin_router(Admin("postgresql://user@localhost/none")))
    for route in iter_route_contexts(app.routes):
        original = route.original_route
        if isinstance(original, APIRoute) and original.operation_id in {operation.name for operation in CLOSED}:
            assert any(isinstance(one.call, Require) for one in original.dependant.dependencies), original.operation_id


async def test_every_example_is_accepted(make_client: MakeClient) -> None:
    admin = make_client(Role.ADMIN)
    for operation in CLOSED:
        example = EXAMPLES[operation.name]
        if operation.name in ("outbox_events_stream", LOGOUT):  # does not end; is there with our own authentication only
            continue
        answer = await admin.request(operation.method, example.address, json=example.body)
        assert answer.status_code in (200, 201, 404), (operation, answer.text)


async def test_unauthenticated_requests_are_refused_everywhere(make_client: MakeClient) -> None:
    anonymous = make_client(None)
    for operation in CLOSED:
        for content in (None, b"{", b"[" * 100_000, b"\xff" * 5_000_000):
            answer = await anonymous.request(
                operation.method, operation.url, content=content, headers={"content-type": "application/json"}
            )
            if operation.name == LOGOUT:  # is there with our own authentication only
                continue
            assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated"), operation
            _has_our_headers(answer)


async def test_a_viewer_can_change_nothing_and_every_attempt_is_recorded(make_client: MakeClient, database: str) -> None:
    viewer = make_client(Role.VIEWER)
    for operation in UNSAFE:
        for content in (b"{}", b"{"):
            answer = await viewer.request(
                operation.method, operation.url, content=content, headers={"content-type": "application/json"}
            )
            assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), operation
            _has_our_headers(answer)
    assert await _denied(database, "forbidden") == sorted(2 * [_action(operation) for operation in UNSAFE])


async def test_requests_from_another_site_change_nothing_and_are_recorded(make_client: MakeClient, database: str) -> None:
    admin = make_client(Role.ADMIN)
    for operation in UNSAFE:
        answer = await admin.request(operation.method, operation.url, json={}, headers={"sec-fetch-site": "cross-site"})
        assert (answer.status_code, answer.json()["code"]) == (403, "cross_site"), operation
    assert await _denied(database, "cross_site") == sorted(_action(operation) for operation in UNSAFE)


async def test_a_read_only_installation_refuses_every_change(read_only: FastAPI, database: str) -> None:
    async with client_of(read_only, Role.ADMIN) as admin:
        for operation in UNSAFE:
            answer = await admin.request(operation.method, operation.url, json={})
            assert (answer.status_code, answer.json()["code"]) == (403, "read_only"), operation
        assert (await admin.get("/session")).json()["permissions"]["repair"] is False
    assert await _denied(database, "read_only") == sorted(_action(operation) for operation in UNSAFE)


def _has_our_headers(answer: httpx.Response) -> None:
    assert answer.headers["content-type"] == MEDIA_TYPE
    assert answer.headers["x-request-id"] == answer.json()["request_id"]
    assert (answer.headers["cache-control"], answer.headers["x-content-type-options"]) == ("no-store", "nosniff")


def _action(operation: Operation) -> str:
    """The audit's action of an operation: `dlq.…` for dead letters, `pause` and `resume`, otherwise by area."""
    return {
        "outbox_requeue": "dlq.requeue",
        "outbox_discard": "dlq.discard",
        "outbox_restore": "dlq.restore",
        "outbox_messages_send_now": "messages.send_now",
        "outbox_deliveries_dead_letter": "deliveries.dead_letter",
    }.get(operation.name, operation.name.removeprefix("outbox_").replace("_", "."))


async def _denied(database: str, code: str) -> list[str]:
    connection = await asyncpg.connect(database)
    try:
        rows = await connection.fetch(
            "select action from outbox_audit where outcome = 'denied' and details->>'code' = $1 order by action collate \"C\"",
            code,
        )
    finally:
        await connection.close()
    return [row["action"] for row in rows]
