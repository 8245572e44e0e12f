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
    sessions = {*session_dependencies, *_sessions_of_publishers(routes)}
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
        route = _route_of(connection)
        dependant = getattr(route, "dependant", None)
        if not isinstance(dependant, Dependant):
            return
        if id(dependant) not in self._known:
            name = f"{_methods(route)} {connection.scope.get('root_path', '')}{getattr(route, 'path', '')}"
            self._known[id(dependant)] = dependant, _offence(name, dependant, self._session)
        _, offence = self._known[id(dependant)]
        if offence is not None:
            raise ConfigurationError(_explained(offence, self._fix))


def _route_of(connection: HTTPConnection) -> Any:
    """The route that was chosen for the request, with the dependencies of the routers that include it.

    Newer FastAPI leaves those out of the route itself, and names the place of inclusion next to it. That name stays there when
    an application is mounted in a router, and then speaks of the mount.
    """
    route = connection.scope.get("route")
    context = connection.scope.get("fastapi", {}).get("effective_route_context")
    return context if context is not None and context.original_route is route else route


def _offence(name: str, dependant: Dependant, session: Callable[..., Any]) -> str | None:
    places = _places(dependant, session)
    return f"{name} takes {_called(session)} under {' and '.join(sorted(places))}" if len(places) > 1 else None


def _explained(offence: str, fix: str) -> str:
    return f"{offence}: it would get two sessions, each with a commit of its own; write {fix} for it everywhere"


def _routes(routes: Iterable[BaseRoute], prefix: str = "") -> Iterator[tuple[str, Dependant]]:
    """What each route is called (`GET /users`), with the tree of its dependencies."""
    for route in _flattened(routes):
        path = prefix + getattr(route, "path", "")
        dependant = getattr(route, "dependant", None)
        if isinstance(dependant, Dependant):
            yield f"{_methods(route)} {path}", dependant
        else:
            yield from _routes(getattr(route, "routes", None) or (), path)


def _methods(route: Any) -> str:
    return ",".join(sorted(getattr(route, "methods", None) or ("WEBSOCKET",)))


def _flattened(routes: Iterable[BaseRoute]) -> Iterator[Any]:
    """Routes of included routers with their whole path and all their dependencies, which newer FastAPI keeps apart."""
    for route in routes:
        contexts = getattr(route, "effective_route_contexts", None)
        if contexts is None:
            yield route
        else:
            for context in contexts():
                yield context.starlette_route or context


def _sessions_of_publishers(routes: Iterable[tuple[str, Dependant]]) -> Iterator[Callable[..., Any]]:
    for _, dependant in routes:
        for part in _tree(dependant):
            session = getattr(part.call, SESSION_OF, None)
            if session is not None:
                yield session


def _places(dependant: Dependant, session: Callable[..., Any]) -> set[str]:
    """In words, the different sessions that the tree would hold."""
    found = [part for part in _tree(dependant) if part.call is session]
    keys: dict[Hashable, str] = {_cache_key(part): _words(part) for part in found if part.use_cache}
    uncached = {f"use_cache=False ({number})" for number, part in enumerate(found) if not part.use_cache}
    return {*_told_apart(keys.values()), *uncached}


def _told_apart(words: Iterable[str]) -> Iterator[str]:
    """Tells keys apart that read alike but have different security scopes."""
    seen: set[str] = set()
    for word in words:
        yield word if word not in seen else f"{word} with other security scopes ({len(seen)})"
        seen.add(word)


def _tree(dependant: Dependant) -> Iterator[Dependant]:
    for part in dependant.dependencies:
        yield part
        yield from _tree(part)


def _cache_key(dependant: Dependant) -> Hashable:
    """The key under which FastAPI keeps the value; asked of FastAPI, whose rule it is and which moved it once."""
    ask = getattr(models, "_get_cache_key", None)
    key: Hashable = ask(dependant=dependant) if ask is not None else dependant.cache_key  # type: ignore[attr-defined]
    return key


def _words(dependant: Dependant) -> str:
    return f'scope="{dependant.scope}"' if dependant.scope else "no scope"


def _called(dependency: Callable[..., Any]) -> str:
    return getattr(dependency, "__name__", repr(dependency))
