"""The API as people and programs read it."""

from collections.abc import AsyncIterator

import httpx
import pytest

from app.service import create_service

ADMIN = "outbox_"
"""What the operations of the admin are called; its own tests say more about them."""


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    """Of the service, which is not started."""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(create_service()), base_url="http://service") as client:
        yield client


async def test_the_docs_say_what_there_is_even_where_their_viewer_cannot_be_loaded(client: httpx.AsyncClient) -> None:
    page = (await client.get("/docs")).text
    inside = page.partition('<div id="swagger-ui">')[2].partition("</div>")[0]
    assert "<code>POST /orders</code>" in inside
    assert "Writes the order and publishes `order.placed`, in one transaction" in inside
    assert "SwaggerUIBundle({" in page


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
