"""Checks that every route gets one database session: only then do an event and its business write share a transaction.

FastAPI caches one value per dependency *and scope*. A route that depends on its session once with `scope="function"` and once
without a scope would get two sessions, with two commits.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.dependencies import models
from fastapi.dependencies.models import Dependant
from starlette.requests import HTTPConnection
from starlette.routing import BaseRoute

from outbox.errors import ConfigurationError

SESSION_OF = "__outbox_session_dependency__"
"""Attribute of a publisher dependency that holds its session dependency."""


def check_sessions(app: FastAPI, *session_dependencies: Callable[..., Any]) -> None:
    """Raises `ConfigurationError` with the names of the routes of `app` that would get two sessions for one request.

    Checks all routes, including those of routers and mounted applications, for the given session dependencies and those of
    their publishers.
    """
    routes = list(_routes(app.routes))
    of_publishers = (getattr(part.call, SESSION_OF, None) for _, dependant in routes for part in _tree(dependant))
    sessions = {*session_dependencies, *(session for session in of_publishers if session is not None)}
    offenders = [
        offence
        for name, dependant in routes
        for session in sessions
        if (offence := _offence(name, dependant, session)) is not None
    ]
    if offenders:
        raise ConfigurationError(_error_text("; ".join(offenders), 'Depends(..., scope="function")'))


class RouteCheck:
    """Does `check_sessions` for the route of a request, for applications without `outbox_lifespan`.

    The error recommends `scope`. The dependencies of a route are checked at its first request only, because FastAPI fixes them
    when the route is created.
    """

    def __init__(self, session: Callable[..., Any], scope: str | None) -> None:
        self._session = session
        self._fix = f'Depends({_name_of(session)}, scope="{scope}")' if scope else f"Depends({_name_of(session)})"
        # Keyed by identity, because a Dependant has no hash. Keeping the object prevents that its id is reused.
        self._known: dict[int, tuple[Dependant, str | None]] = {}

    def __call__(self, connection: HTTPConnection) -> None:
        """Raises `ConfigurationError` with the fix if the request's route would get two sessions."""
        # Newer FastAPI keeps the dependencies of including routers in a context next to the route. If an application is mounted
        # in a router, that context belongs to the mount and not to this route, so compare them.
        route = connection.scope.get("route")
        context = connection.scope.get("fastapi", {}).get("effective_route_context")
        if context is not None and context.original_route is route:
            route = context
        dependant = getattr(route, "dependant", None)
        if not isinstance(dependant, Dependant):
            return
        if id(dependant) not in self._known:
            name = f"{_methods(route)} {connection.scope.get('root_path', '')}{getattr(route, 'path', '')}"
            self._known[id(dependant)] = dependant, _offence(name, dependant, self._session)
        _, offence = self._known[id(dependant)]
        if offence is not None:
            raise ConfigurationError(_error_text(offence, self._fix))


def _offence(name: str, dependant: Dependant, session: Callable[..., Any]) -> str | None:
    """Describes the problem of a route whose dependencies would get different sessions; None without a problem."""
    # Use FastAPI's own cache key instead of computing it: the rule may change, and the function has moved once.
    get_cache_key: Any = getattr(models, "_get_cache_key", None)
    keys: dict[Hashable, str] = {}
    different: set[str] = set()
    # As FastAPI compares them: each access to a method makes another object.
    for number, part in enumerate(part for part in _tree(dependant) if part.call == session):
        if part.use_cache:
            key: Hashable = get_cache_key(dependant=part) if get_cache_key is not None else part.cache_key  # type: ignore[attr-defined]
            keys[key] = f'scope="{part.scope}"' if part.scope else "no scope"
        else:
            different.add(f"use_cache=False ({number})")
    seen: set[str] = set()
    for words in keys.values():
        # Different keys with the same scope differ in their security scopes.
        different.add(words if words not in seen else f"{words} with other security scopes ({len(seen)})")
        seen.add(words)
    return f"{name} depends on {_name_of(session)} with {' and '.join(sorted(different))}" if len(different) > 1 else None


def _error_text(offence: str, fix: str) -> str:
    return f"{offence}: it would get two sessions with separate commits; write {fix} everywhere"


def _routes(routes: Iterable[BaseRoute], prefix: str = "") -> Iterator[tuple[str, Dependant]]:
    """Yields each route's name, such as `GET /users`, with its dependencies."""
    for included in routes:
        # Newer FastAPI keeps the full path and all dependencies of an included router's route outside of the route.
        contexts = getattr(included, "effective_route_contexts", None)
        for route in [included] if contexts is None else [context.starlette_route or context for context in contexts()]:
            path = prefix + getattr(route, "path", "")
            dependant = getattr(route, "dependant", None)
            if isinstance(dependant, Dependant):
                yield f"{_methods(route)} {path}", dependant
            else:
                yield from _routes(getattr(route, "routes", None) or (), path)


def _methods(route: Any) -> str:
    return ",".join(sorted(getattr(route, "methods", None) or ("WEBSOCKET",)))


def _tree(dependant: Dependant) -> Iterator[Dependant]:
    for part in dependant.dependencies:
        yield part
        yield from _tree(part)


def _name_of(dependency: Callable[..., Any]) -> str:
    return getattr(dependency, "__name__", repr(dependency))
