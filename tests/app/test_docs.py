"""The API documentation page and the OpenAPI document."""

import asyncio
import re
import threading
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fastapi.openapi.utils import get_openapi

from app.service import create_service
from app.settings import Settings

ADMIN = "outbox_"
"""Tags of the admin's operations, which have their own tests."""


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    """A client of the service, which is not started."""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(create_service()), base_url="http://service") as client:
        yield client


async def test_the_docs_list_the_endpoints_without_javascript(client: httpx.AsyncClient) -> None:
    page = (await client.get("/docs")).text
    inside = page.partition('<div id="swagger-ui">')[2].partition("</div>")[0]
    assert "<code>POST /orders</code>" in inside
    assert "Inserts the order and publishes `order.placed` in one transaction" in inside


async def test_the_docs_load_only_files_of_the_service(client: httpx.AsyncClient) -> None:
    page = await client.get("/docs")
    loaded = re.findall(r'<(?:script|link)[^>]* (?:src|href)="([^"]+)"', page.text)
    assert len(loaded) >= 5
    for address in loaded:
        assert not address.startswith(("http:", "https:", "//"))
        if not address.startswith("data:"):
            assert (await client.get(address)).status_code == 200, address
    assert "<script>" not in page.text
    policy = page.headers["content-security-policy"].split("; ")
    assert {"default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"} <= set(policy)
    assert "unsafe" not in str(policy)
    assert (await client.get("/docs/core.py")).status_code == 404
    assert (await client.get("/redoc")).status_code == 404


async def test_the_document_is_built_once_and_in_a_thread(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = list[threading.Thread]()

    def noted(**options: Any) -> dict[str, Any]:
        threads.append(threading.current_thread())
        return get_openapi(**options)

    monkeypatch.setattr("fastapi.applications.get_openapi", noted)
    answers = await asyncio.gather(*(client.get(path) for path in ("/openapi.json", "/openapi.json", "/docs")))
    assert {answer.status_code for answer in answers} == {200}
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()


async def test_a_setting_turns_the_docs_off() -> None:
    service = create_service()
    service.state.settings = Settings(docs=False)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(service), base_url="http://service") as client:
        for path in ("/docs", "/docs/start.js", "/docs/swagger-ui-bundle.js"):
            answer = await client.get(path)
            assert (answer.status_code, "OUTBOX_DOCS" in answer.text) == (404, True)


async def test_the_openapi_document_says_what_each_endpoint_does_and_which_errors_to_expect(client: httpx.AsyncClient) -> None:
    document = (await client.get("/openapi.json")).json()
    operations = {
        f"{method.upper()} {path}": operation
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }
    assert {"GET /outbox/health/live", "GET /outbox/backlog", "POST /outbox/session"} <= operations.keys()
    of_the_service = {
        name: operation for name, operation in operations.items() if not operation["operationId"].startswith(ADMIN)
    }
    assert {name: sorted(operation["responses"]) for name, operation in of_the_service.items()} == {
        "POST /orders": ["201", "422"],
        "GET /orders/{order_id}": ["200", "404", "422"],
    }
    assert all(operation["description"] and operation["tags"] for operation in operations.values())
