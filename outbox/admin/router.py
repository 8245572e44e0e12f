"""The router that an application includes: every endpoint of the admin API."""

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Depends

from outbox.admin.access import require_authentication
from outbox.admin.admin import Admin
from outbox.admin.audit import audit
from outbox.admin.backlog.routes import backlog
from outbox.admin.chains.routes import router as chains
from outbox.admin.components.routes import components
from outbox.admin.dlq.routes import router as dead_letters
from outbox.admin.events.routes import router as events
from outbox.admin.health import health_routes
from outbox.admin.messages.routes import messages
from outbox.admin.repairs.routes import operations_router as operations
from outbox.admin.repairs.routes import router as repairs
from outbox.admin.routing import goes_to_the_host
from outbox.admin.security.authentication import own_authentication
from outbox.admin.security.routes import identity, login_routes, logout
from outbox.admin.stats.routes import router as stats
from outbox.admin.topology.routes import topology
from outbox.admin.ui import ui_routes
from outbox.admin.unknown import unknown_addresses
from outbox.admin.verdict.routes import router as verdict
from outbox.errors import ConfigurationError
from outbox.runtime.health import HealthChecks

AREAS: tuple[APIRouter, ...] = (
    identity,
    backlog,
    messages,
    dead_letters,
    repairs,
    operations,
    chains,
    stats,
    components,
    events,
    topology,
    verdict,
    audit,
)
"""The routers of the endpoints that ask who is asking."""


def admin_router(
    admin: Admin | Callable[..., Any],
    *,
    authenticate: Callable[..., Any] | None = None,
    health: HealthChecks | Callable[..., Any] | None = None,
    login_url: str | None = None,
) -> APIRouter:
    """The endpoints, to be included under a prefix: `app.include_router(admin_router(admin), prefix="/outbox")`.

    `admin` is the object, or a dependency that finds it. `authenticate` is a dependency that returns a `Principal`, or None for
    nobody known; what else it raises is answered as the application answers it. `login_url` is where the application logs
    people in, `/login` or `https://…`, and where the dashboard leads whoever is not known. Without `authenticate`, whoever has
    one of the admin's tokens is known. With `health`, the checks or a dependency that finds them, `/health/live` and
    `/health/ready` are there too; they, logging in and the dashboard's files below `/ui/` are public, and nothing else is:
    below a prefix, whoever is not known is answered so at every address that no other route of the application has.
    """
    find = _found(admin)
    router = APIRouter()
    router.include_router(ui_routes(host_login=_host_login(authenticate, login_url)))
    if health is not None:
        router.include_router(health_routes(health))
    way_in = [Depends(require_authentication(find, authenticate or own_authentication(find)), scope="function")]
    guarded = APIRouter(dependencies=way_in if authenticate is None else [Depends(goes_to_the_host), *way_in])
    for area in AREAS:
        guarded.include_router(area)
    routers = list(AREAS)
    if authenticate is None:
        login = login_routes(find)
        router.include_router(login)
        guarded.include_router(logout)
        routers += [login, logout]
    guarded.include_router(unknown_addresses(route for area in routers for route in area.routes))
    router.include_router(guarded)
    return router


def _host_login(authenticate: Callable[..., Any] | None, login_url: str | None) -> str | None:
    if login_url is not None and authenticate is None:
        raise ConfigurationError("login_url is for a host's own authentication: give authenticate, or leave it out")
    if login_url is not None and not login_url.startswith(("/", "https://", "http://")):
        raise ConfigurationError(f"login_url begins with /, https:// or http://, not as {login_url[:20]!r}")
    return None if authenticate is None else login_url or ""


def _found(admin: Admin | Callable[..., Any]) -> Callable[..., Any]:
    if not isinstance(admin, Admin):
        return admin

    async def find() -> Admin:
        return admin

    return find
