"""Unknown addresses below the prefix: authenticated first, then answered with a problem instead of a redirect."""

from collections.abc import Iterable

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from starlette.convertors import Convertor, register_url_convertor
from starlette.routing import BaseRoute, Match
from starlette.types import Scope

from outbox.admin.access import Viewer
from outbox.admin.problems import Code, Problem
from outbox.admin.routing import UNKNOWN, AdminRoute

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
        if match is Match.NONE or inner["path_params"]["address"] == _path(scope) or _host_has(scope):
            return Match.NONE, {}
        return match, inner


def _path(scope: Scope) -> str:
    """The path within the application, which a proxy or another application may have mounted."""
    path, root = str(scope["path"]), str(scope.get("root_path", "")).rstrip("/")
    return path.removeprefix(root) if path.startswith(f"{root}/") else path


def _host_has(scope: Scope) -> bool:
    routes = scope["app"].routes if "app" in scope else ()
    return any(route.matches({**scope, _ASKING: True})[0] is Match.FULL for route in routes)
