"""An application that includes the admin, on a real database, and clients of each role."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest

from outbox.admin import Admin, Role
from outbox.postgres.pool import Pool, open_pool
from outbox.runtime.settings import VARIABLES
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


@pytest.fixture
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs commands without the settings of the machine."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def on(url: str) -> Callable[[Callable[[Pool], Awaitable[Any]]], Any]:
    """Does something on the test's database."""

    async def work(use: Callable[[Pool], Awaitable[Any]]) -> Any:
        pool = await open_pool(url, size=2, application_name="tests")
        try:
            return await use(pool)
        finally:
            await pool.close()

    return lambda use: asyncio.run(work(use))
