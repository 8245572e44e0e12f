"""The router that an application includes: all endpoints of the admin API, and a response for unknown paths."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.routing import APIRoute
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.routing import BaseRoute, Match
from starlette.types import Scope

from outbox.admin.access import (
    OUTBOX_NAME,
    UNKNOWN,
    AdminRoute,
    Viewer,
    enter_host_dependency,
    provider_of,
    require_authentication,
)
from outbox.admin.admin import Admin
from outbox.admin.alerts.routes import router as alerts
from outbox.admin.audit import audit
from outbox.admin.authentication import identity, login_routes, logout, own_authentication
from outbox.admin.backlog import backlog
from outbox.admin.chains import attempts
from outbox.admin.chains import router as chains
from outbox.admin.components import components
from outbox.admin.deliveries import deliveries
from outbox.admin.dlq.groups import router as groups
from outbox.admin.dlq.routes import router as dead_letters
from outbox.admin.events import router as events
from outbox.admin.export import export
from outbox.admin.health import health_routes
from outbox.admin.message_changes import deliveries_router, messages_router
from outbox.admin.message_edits import router as message_edits
from outbox.admin.messages import messages
from outbox.admin.outboxes import Outboxes
from outbox.admin.problems import Code, Problem
from outbox.admin.queues import queues
from outbox.admin.repairs.routes import operations_router as operations
from outbox.admin.repairs.routes import router as repairs
from outbox.admin.search import search
from outbox.admin.sessions import router as access
from outbox.admin.stats import router as stats
from outbox.admin.topology import topology
from outbox.admin.ui import ui_routes
from outbox.admin.verdict.routes import router as verdict
from outbox.errors import ConfigurationError
from outbox.runtime.health import HealthChecks

AREAS: tuple[APIRouter, ...] = (
    identity,
    search,
    backlog,
    queues,
    messages,
    messages_router,
    message_edits,
    deliveries,
    deliveries_router,
    groups,
    dead_letters,
    repairs,
    operations,
    chains,
    attempts,
    stats,
    components,
    events,
    topology,
    verdict,
    alerts,
    access,
    audit,
    export,
)
"""Routers whose endpoints require authentication."""


def admin_router(
    admin: Admin | Callable[..., Any] | Mapping[str, Admin],
    *,
    authenticate: Callable[..., Any] | None = None,
    health: HealthChecks | Callable[..., Any] | None = None,
    login_url: str | None = None,
) -> APIRouter:
    """Returns a router with all endpoints. Include it under a prefix:
    `app.include_router(admin_router(admin), prefix="/outbox")`.

    `admin` is the `Admin`, a dependency that returns it, or several of them by name: `{"eu": …, "us": …}`. The API and the
    dashboard of each are then below `/{name}`, with its own tokens, sessions and roles. `GET /outboxes` lists them, and `/ui`
    redirects to the dashboard that was used last. `authenticate` is a dependency that returns a `Principal`, or None
    if the request is not authenticated; exceptions that it raises are handled by the application. Without it, a request needs
    one of the admin's tokens. `login_url` (`/login` or `https://…`) is the application's login page, where the dashboard sends
    browsers that are not logged in. `health`, the checks or a dependency that returns them, adds `/health/live` and
    `/health/ready`, below the prefix itself.

    The health checks, logging in, and the dashboard's files below `/ui/` are public. At every other path below the prefix that
    no other route of the application has, an unauthenticated request gets 401.

    Raises `ConfigurationError` for an invalid `login_url`, and for the name of an outbox that cannot be a segment of a path.
    """
    outboxes = Outboxes(admin) if isinstance(admin, Mapping) else None
    find = provider_of(Admin, admin) if outboxes is None else outboxes.find
    prefix = "" if outboxes is None else f"/{{{OUTBOX_NAME}}}"
    if login_url is not None and authenticate is None:
        raise ConfigurationError("login_url requires authenticate: give both, or neither")
    if login_url is not None and not login_url.startswith(("/", "https://", "http://")):
        raise ConfigurationError(f"login_url must begin with /, https:// or http://, not {login_url[:20]!r}")
    router = APIRouter()
    if health is not None:
        router.include_router(health_routes(health))
    if outboxes is not None:
        router.include_router(outboxes.routes(authenticate))
    names = None if outboxes is None else outboxes.admins.keys()
    ui = ui_routes(host_login=None if authenticate is None else login_url or "", outboxes=names)
    router.include_router(ui, prefix=prefix)
    dependencies = [Depends(require_authentication(find, authenticate or own_authentication(find)), scope="function")]
    if authenticate is not None:
        dependencies.insert(0, Depends(enter_host_dependency))
    protected, public = list(AREAS), list[APIRouter]()
    if authenticate is None:
        protected.append(logout)
        public.append(login_routes(find))
    protected.append(unknown_paths(route for area in (*protected, *public) for route in area.routes))
    for area in public:
        router.include_router(area, prefix=prefix)
    # Included directly instead of through one common router: FastAPI would create every route once more for it.
    for area in protected:
        router.include_router(area, prefix=prefix, dependencies=dependencies)
    return router


_CONVERTOR = "outbox_rest"
_PATH = f"{{address:{_CONVERTOR}}}"
_CHECKING_HOST = "outbox_checking_host_routes"


class _Rest(PathConvertor):
    """Matches nothing, or a slash and anything after it: below `/outbox`, but not `/outboxes`."""

    regex = r"(?:/[\s\S]*)?"


register_url_convertor(_CONVERTOR, _Rest())


def unknown_paths(routes: Iterable[BaseRoute]) -> APIRouter:
    """Returns a router with a catch-all route for every path and method that `routes` do not have. Include it after them."""
    known = [route for route in routes if isinstance(route, APIRoute)]

    async def refuse(context: Viewer, request: Request) -> Response:
        del context
        address = str(request.path_params["address"])
        allowed = {method for route in known if route.path_regex.match(address) for method in route.methods or ()}
        if not allowed:
            raise Problem(Code.NOT_FOUND, "there is no such path: see the OpenAPI document for all paths")
        names = ", ".join(sorted(allowed | ({"HEAD"} if "GET" in allowed else set())))
        raise Problem(Code.METHOD_NOT_ALLOWED, f"this path allows {names}", headers={"allow": names})

    router = APIRouter(route_class=_UnknownPathRoute)
    router.add_api_route(_PATH, refuse, methods=[], operation_id=UNKNOWN, include_in_schema=False)
    return router


class _UnknownPathRoute(AdminRoute):
    """Matches only paths without a route in the host application. If the router has no prefix, it matches nothing."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http" or _CHECKING_HOST in scope:
            return Match.NONE, {}
        match, inner = super().matches(scope)
        # The path within the application, which may be mounted in another application or behind a proxy.
        path, root = str(scope["path"]), str(scope.get("root_path", "")).rstrip("/")
        within = path.removeprefix(root) if path.startswith(f"{root}/") else path
        if match is Match.NONE or inner["path_params"]["address"] == within:
            return Match.NONE, {}
        # This route is one of the host's routes. The key in the scope keeps it from checking the host again, without end.
        routes = scope["app"].routes if "app" in scope else ()
        if any(route.matches({**scope, _CHECKING_HOST: True})[0] is Match.FULL for route in routes):
            return Match.NONE, {}
        return match, inner
