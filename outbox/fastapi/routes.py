"""Checks that every route gets exactly one database session, so that an event and its business write share a transaction.

FastAPI keeps one value per dependency *and scope*: a route that takes its session once with `scope="function"` and once
without would get two sessions, with two commits.
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
"""The attribute in which a publisher dependency names the session dependency that it writes through."""


def check_sessions(app: FastAPI, *session_dependencies: Callable[..., Any]) -> None:
    """Raises `ConfigurationError`, naming the routes, if a route of `app` would be given two sessions for one request.

    Looks at every route, those of routers and mounted applications included. The session dependencies are those given, and
    those that the publishers of the routes write through.
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
        raise ConfigurationError(_explained("; ".join(offenders), 'Depends(..., scope="function")'))


class RouteCheck:
    """`check_sessions` for the route of a request, where no lifespan of ours has looked at all of them before.

    `scope` is that under which the session is wanted, for the error to name. One traversal of a route's dependencies, at its
    first request; what it found holds for all later ones, because FastAPI fixes the dependencies of a route when it is made.
    """

    def __init__(self, session: Callable[..., Any], scope: str | None) -> None:
        self._session = session
        self._fix = f'Depends({_called(session)}, scope="{scope}")' if scope else f"Depends({_called(session)})"
        # By identity, for a Dependant has no hash; it is kept, so that nothing else can get its identity.
        self._known: dict[int, tuple[Dependant, str | None]] = {}

    def __call__(self, connection: HTTPConnection) -> None:
        """Raises `ConfigurationError`, with the fix, if the request's route would be given two sessions."""
        # The route that was chosen, with the dependencies of the routers that include it. Newer FastAPI leaves those out of the
        # route itself, and names the place of inclusion next to it. That name stays there when an application is mounted in a
        # router, and then speaks of the mount.
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
            raise ConfigurationError(_explained(offence, self._fix))


def _offence(name: str, dependant: Dependant, session: Callable[..., Any]) -> str | None:
    """What is wrong with a route, in words, if its dependencies would hold different sessions."""
    # The key under which FastAPI keeps a value is asked of FastAPI, whose rule it is and which moved it once.
    ask: Any = getattr(models, "_get_cache_key", None)
    keys: dict[Hashable, str] = {}
    different: set[str] = set()
    for number, part in enumerate(part for part in _tree(dependant) if part.call is session):
        if part.use_cache:
            key: Hashable = ask(dependant=part) if ask is not None else part.cache_key  # type: ignore[attr-defined]
            keys[key] = f'scope="{part.scope}"' if part.scope else "no scope"
        else:
            different.add(f"use_cache=False ({number})")
    seen: set[str] = set()
    for words in keys.values():  # those that read alike have different security scopes
        different.add(words if words not in seen else f"{words} with other security scopes ({len(seen)})")
        seen.add(words)
    return f"{name} takes {_called(session)} under {' and '.join(sorted(different))}" if len(different) > 1 else None


def _explained(offence: str, fix: str) -> str:
    return f"{offence}: it would get two sessions, each with a commit of its own; write {fix} for it everywhere"


def _routes(routes: Iterable[BaseRoute], prefix: str = "") -> Iterator[tuple[str, Dependant]]:
    """What each route is called (`GET /users`), with the tree of its dependencies."""
    for included in routes:
        # Newer FastAPI keeps the whole path and all dependencies of an included router's route apart from the route.
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


def _called(dependency: Callable[..., Any]) -> str:
    return getattr(dependency, "__name__", repr(dependency))
