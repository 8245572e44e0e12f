"""An application with the admin in it, on a real database, and clients of each role."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request

from outbox.admin import Admin, Principal, Role, admin_router
from tests.servers.postgres import with_every_table

PREFIX = "/outbox"
ROLE_HEADER = "x-test-role"


def principal_by_header(request: Request) -> Principal | None:
    """Whoever the test says that asks: the role is in a header, and its name with it."""
    role = request.headers.get(ROLE_HEADER)
    return None if role is None else Principal(f"a {role}", Role(role))


@asynccontextmanager
async def serving(admin: Admin, **options: Any) -> AsyncIterator[FastAPI]:
    """An application with that admin, which is open within the block."""
    app = FastAPI()
    app.include_router(admin_router(admin, authenticate=options.pop("authenticate", principal_by_header)), prefix=PREFIX)
    async with admin:
        yield app


def client_of(app: FastAPI, role: Role | None = Role.OPERATOR) -> httpx.AsyncClient:
    """A client that asks as somebody with that role; None: as nobody."""
    headers = {} if role is None else {ROLE_HEADER: role.value}
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url=f"http://service{PREFIX}", headers=headers)


@pytest.fixture
def database(database_url: str) -> str:
    """The address of a database with every table."""
    return with_every_table(database_url)


MakeClient = Callable[..., httpx.AsyncClient]


@pytest.fixture
async def make_client(database: str) -> AsyncIterator[MakeClient]:
    """Makes clients, `make_client(Role.VIEWER)`, of one application whose broker is the database."""
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
