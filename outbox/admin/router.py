"""The router that an application includes: every endpoint of the admin API, and an answer for unknown addresses."""

from collections.abc import Callable, Iterable
from typing import Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.routing import APIRoute
from starlette.convertors import Convertor, register_url_convertor
from starlette.routing import BaseRoute, Match
from starlette.types import Scope

from outbox.admin.access import UNKNOWN, AdminRoute, Viewer, enter_host_dependency, provider_of, require_authentication
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
from outbox.admin.messages import messages
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
    no principal; what else it raises is answered as the application answers it. `login_url` is where the application logs
    people in, `/login` or `https://…`, and where the dashboard leads a browser that is not logged in. Without `authenticate`,
    one of the admin's tokens is required. With `health`, the checks or a dependency that finds them, `/health/live` and
    `/health/ready` are there too; they, logging in and the dashboard's files below `/ui/` are public, and nothing else is:
    below a prefix, a client that is not authenticated gets 401 at every address that no other route of the application has.
    """
    find = provider_of(Admin, admin)
    if login_url is not None and authenticate is None:
        raise ConfigurationError("login_url is for a host's own authentication: give authenticate, or leave it out")
    if login_url is not None and not login_url.startswith(("/", "https://", "http://")):
        raise ConfigurationError(f"login_url begins with /, https:// or http://, not as {login_url[:20]!r}")
    router = APIRouter()
    router.include_router(ui_routes(host_login=None if authenticate is None else login_url or ""))
    if health is not None:
        router.include_router(health_routes(health))
    way_in = [Depends(require_authentication(find, authenticate or own_authentication(find)), scope="function")]
    if authenticate is not None:
        way_in.insert(0, Depends(enter_host_dependency))
    guarded, public = list(AREAS), list[APIRouter]()
    if authenticate is None:
        guarded.append(logout)
        public.append(login_routes(find))
    guarded.append(unknown_addresses(route for area in (*guarded, *public) for route in area.routes))
    for area in public:
        router.include_router(area)
    # Each by itself: of a router that includes others, FastAPI makes every route once more to look at its path.
    for area in guarded:
        router.include_router(area, dependencies=way_in)
    return router


_CONVERTOR = "outbox_rest"
_PATH = f"{{address:{_CONVERTOR}}}"
_ASKING = "outbox_asking_the_host"


class _Rest(Convertor[str]):
    """Nothing, or a slash and whatever follows: `/outbox` has it below it, `/outboxes` has not."""

    regex = r"(?:/[\s\S]*)?"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor(_CONVERTOR, _Rest())


def unknown_addresses(routes: Iterable[BaseRoute]) -> APIRouter:
    """A route that fits what `routes` do not, whatever the method, to be included behind them."""
    known = [route for route in routes if isinstance(route, APIRoute)]

    async def refuse(context: Viewer, request: Request) -> Response:
        del context
        address = str(request.path_params["address"])
        allowed = {method for route in known if route.path_regex.match(address) for method in route.methods or ()}
        if not allowed:
            raise Problem(Code.NOT_FOUND, "there is no such address: the OpenAPI document lists those that there are")
        names = ", ".join(sorted(allowed | ({"HEAD"} if "GET" in allowed else set())))
        raise Problem(Code.METHOD_NOT_ALLOWED, f"it takes {names}", headers={"allow": names})

    router = APIRouter(route_class=_Unknown)
    router.add_api_route(_PATH, refuse, methods=[], operation_id=UNKNOWN, include_in_schema=False)
    return router


class _Unknown(AdminRoute):
    """Leaves to the host what the host has a route for, and, without a prefix, everything."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http" or _ASKING in scope:
            return Match.NONE, {}
        match, inner = super().matches(scope)
        # The path within the application, which a proxy or another application may have mounted.
        path, root = str(scope["path"]), str(scope.get("root_path", "")).rstrip("/")
        within = path.removeprefix(root) if path.startswith(f"{root}/") else path
        if match is Match.NONE or inner["path_params"]["address"] == within:
            return Match.NONE, {}
        # The mark keeps this route from asking the host again, which would ask it again.
        routes = scope["app"].routes if "app" in scope else ()
        if any(route.matches({**scope, _ASKING: True})[0] is Match.FULL for route in routes):
            return Match.NONE, {}
        return match, inner
