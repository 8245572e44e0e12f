"""The router that an application includes: every endpoint of the admin, behind its entrance."""

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Depends

from outbox.admin.access import entrance
from outbox.admin.admin import Admin
from outbox.admin.backlog import backlog
from outbox.admin.chains import router as chains
from outbox.admin.problems import Code, documented
from outbox.admin.repairs.operations import router as operations
from outbox.admin.repairs.routes import router as repairs
from outbox.admin.routing import AdminRoute

AREAS: tuple[APIRouter, ...] = (backlog, chains, repairs, operations)
"""The routers of the endpoints that ask who is asking."""


def admin_router(admin: Admin | Callable[..., Any], *, authenticate: Callable[..., Any]) -> APIRouter:
    """The endpoints, to be included under a prefix: `app.include_router(admin_router(admin), prefix="/outbox")`.

    `admin` is the object, or a dependency that finds it. `authenticate` is a dependency that returns a `Principal`, or None for
    nobody known; what else it raises is answered as the application answers it.
    """
    find = (lambda: admin) if isinstance(admin, Admin) else admin
    router = APIRouter(
        route_class=AdminRoute,
        dependencies=[Depends(entrance(find, authenticate))],
        responses=documented(
            Code.UNAUTHENTICATED, Code.FORBIDDEN, Code.INVALID_REQUEST, Code.INTERNAL, Code.DATABASE_UNAVAILABLE
        ),
    )
    for area in AREAS:
        router.include_router(area)
    return router
