"""An application with the admin API, clients with a role each, and the command line."""

from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
from click.testing import CliRunner, Result
from fastapi import FastAPI, Request

from outbox.admin import Admin, Principal, Role, admin_router
from outbox.cli import main

PREFIX = "/outbox"
ROLE_HEADER = "x-test-role"
MakeClient = Callable[..., httpx.AsyncClient]


def principal_by_header(request: Request) -> Principal | None:
    """Authenticates by a header of the test, which names the role and the principal."""
    role = request.headers.get(ROLE_HEADER)
    return None if role is None else Principal(f"a {role}", Role(role))


class _Service:
    """An application whose admin can be replaced: its routes are built once for many tests, which took most of their time."""

    def __init__(self, authenticate: Callable[..., Any] | None) -> None:
        self.app = FastAPI()
        self.admin: Admin | None = None
        self.app.include_router(admin_router(lambda: self.admin, authenticate=authenticate), prefix=PREFIX)


_free: dict[Callable[..., Any] | None, list[_Service]] = defaultdict(list)
"""Applications that no test uses now, by the function that authenticates."""


@asynccontextmanager
async def serving(admin: Admin, *, authenticate: Callable[..., Any] | None = principal_by_header) -> AsyncIterator[FastAPI]:
    """Opens the admin for the block, and yields an application with its routes."""
    service = _free[authenticate].pop() if _free[authenticate] else _Service(authenticate)
    service.admin = admin
    async with admin:
        yield service.app
    # Not after an error: the application may still answer a request.
    _free[authenticate].append(service)


def client_of(app: FastAPI, role: Role | None = Role.OPERATOR) -> httpx.AsyncClient:
    """Returns a client with the role; None: an unauthenticated client."""
    headers = {} if role is None else {ROLE_HEADER: role.value}
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url=f"http://service{PREFIX}", headers=headers)


def outbox(*arguments: str, **environment: str) -> Result:
    """Runs `outbox …` in this process."""
    return CliRunner().invoke(main, list(arguments), env=environment)
