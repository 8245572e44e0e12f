"""An application that includes the admin, on a real database, and clients of each role."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import httpx
import pytest

from outbox.admin import Admin, Role
from tests.admin.support import MakeClient, client_of, serving


@pytest.fixture
async def make_client(database: str) -> AsyncIterator[MakeClient]:
    """Creates clients of one application whose broker is PostgreSQL: `make_client(Role.VIEWER)`."""
    async with AsyncExitStack() as stack:
        app = await stack.enter_async_context(serving(Admin(database)))
        clients: list[httpx.AsyncClient] = []

        def make(role: Role | None = Role.OPERATOR) -> httpx.AsyncClient:
            clients.append(client_of(app, role))
            return clients[-1]

        yield make
        for client in clients:
            await client.aclose()


@pytest.fixture
def operator(make_client: MakeClient) -> httpx.AsyncClient:
    """An operator."""
    return make_client(Role.OPERATOR)


@pytest.fixture
def viewer(make_client: MakeClient) -> httpx.AsyncClient:
    """A viewer."""
    return make_client(Role.VIEWER)


@pytest.fixture
def url(database: str) -> str:
    """A database with every table."""
    return database
