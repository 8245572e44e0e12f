"""An application with the admin API, and clients with a role each."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
from fastapi import FastAPI, Request

from outbox.admin import Admin, Principal, Role, admin_router

PREFIX = "/outbox"
ROLE_HEADER = "x-test-role"
MakeClient = Callable[..., httpx.AsyncClient]


def principal_by_header(request: Request) -> Principal | None:
    """Authenticates by a header of the test, which names the role and the principal."""
    role = request.headers.get(ROLE_HEADER)
    return None if role is None else Principal(f"a {role}", Role(role))


@asynccontextmanager
async def serving(admin: Admin, **options: Any) -> AsyncIterator[FastAPI]:
    """Opens the admin for the block, and yields an application with its routes."""
    app = FastAPI()
    app.include_router(admin_router(admin, authenticate=options.pop("authenticate", principal_by_header)), prefix=PREFIX)
    async with admin:
        yield app


def client_of(app: FastAPI, role: Role | None = Role.OPERATOR) -> httpx.AsyncClient:
    """Returns a client with the role; None: an unauthenticated client."""
    headers = {} if role is None else {ROLE_HEADER: role.value}
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url=f"http://service{PREFIX}", headers=headers)
