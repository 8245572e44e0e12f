"""The admin served by a real uvicorn in a thread of this process, for clients that speak HTTP."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from fastapi import FastAPI, Request

from outbox.admin import Admin, Principal, Role, admin_router
from tests.support.serving import in_a_thread


def principal_by_token(request: Request) -> Principal | None:
    """Authenticates the tokens `viewer`, `operator` and `admin`."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return Principal(f"a {token}", Role(token)) if scheme == "Bearer" and token in tuple(Role) else None


def _admin(request: Request) -> Admin:
    admin: Admin = request.app.state.admin
    return admin


@contextmanager
def served(*, prefix: str = "/outbox", maintain: Any = None, **admin: Any) -> Iterator[str]:
    """Serves an admin with these arguments, and yields its address. `maintain(admin)` runs at the same time."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with Admin(**admin) as app.state.admin:
            maintenance = None if maintain is None else asyncio.create_task(maintain(app.state.admin))
            yield
            if maintenance is not None:
                maintenance.cancel()
                await asyncio.wait([maintenance])

    app = FastAPI(lifespan=lifespan)
    router = admin_router(_admin, authenticate=principal_by_token)
    app.include_router(router, prefix=prefix)
    with in_a_thread(app) as address:
        yield f"{address}{prefix}"
