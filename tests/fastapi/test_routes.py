"""Starting up finds the routes that would get two sessions, wherever they hide, and accepts those that get one."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

import pytest
from fastapi import APIRouter, Depends, FastAPI, Security, WebSocket
from fastapi.security import SecurityScopes

from outbox.errors import ConfigurationError
from outbox.fastapi import check_sessions, outbox_lifespan, publisher_for


async def get_session() -> AsyncIterator[object]:
    yield object()


async def get_repository(session: Annotated[object, Depends(get_session, scope="function")]) -> object:
    return session


get_publisher = publisher_for(get_session)
FunctionSession = Annotated[object, Depends(get_session, scope="function")]
RequestSession = Annotated[object, Depends(get_session)]
PublisherDep = Annotated[Any, Depends(get_publisher)]


async def consistent(
    session: FunctionSession, repository: Annotated[object, Depends(get_repository)], publisher: PublisherDep
) -> None:
    """Takes everything in one scope."""


async def torn(session: RequestSession, publisher: PublisherDep) -> None:
    """Takes its session under another scope than its publisher does."""


def test_routes_that_take_the_session_under_one_scope_are_accepted() -> None:
    app = FastAPI()
    app.post("/users")(consistent)
    app.include_router(_router(consistent), prefix="/v1")
    check_sessions(app)


def test_a_route_that_would_get_two_sessions_is_named() -> None:
    app = FastAPI()
    app.post("/fine")(consistent)
    app.post("/users")(torn)
    with pytest.raises(ConfigurationError, match=r"^POST /users takes get_session under .* two sessions"):
        check_sessions(app)


def test_it_is_found_in_an_included_router() -> None:
    app = FastAPI()
    outer = APIRouter(prefix="/outer")
    outer.include_router(_router(torn), prefix="/inner")
    app.include_router(outer, prefix="/v1")
    with pytest.raises(ConfigurationError, match=r"POST /v1/outer/inner/users takes"):
        check_sessions(app)


def test_a_dependency_of_the_router_counts_too() -> None:
    app = FastAPI()
    app.include_router(_router(consistent), prefix="/v1", dependencies=[Depends(get_session)])
    with pytest.raises(ConfigurationError, match=r"POST /v1/users takes"):
        check_sessions(app)


def test_it_is_found_in_a_mounted_application() -> None:
    mounted = FastAPI()
    mounted.post("/users")(torn)
    app = FastAPI()
    app.mount("/sub", mounted)
    with pytest.raises(ConfigurationError, match=r"POST /sub/users takes"):
        check_sessions(app)


def test_it_is_found_in_a_websocket() -> None:
    app = FastAPI()

    @app.websocket("/feed")
    async def feed(socket: WebSocket, session: RequestSession, publisher: PublisherDep) -> None:
        """Never called."""

    with pytest.raises(ConfigurationError, match=r"WEBSOCKET /feed takes"):
        check_sessions(app)


def test_a_session_that_is_not_cached_is_a_session_more() -> None:
    app = FastAPI()

    @app.post("/users")
    async def create(
        session: Annotated[object, Depends(get_session, scope="function", use_cache=False)], publisher: PublisherDep
    ) -> None:
        """Never called."""

    with pytest.raises(ConfigurationError, match=r"POST /users takes"):
        check_sessions(app)


def test_security_scopes_that_divide_the_session_are_found() -> None:
    async def get_user(scopes: SecurityScopes) -> list[str]:
        return scopes.scopes

    async def session_of_user(user: Annotated[list[str], Depends(get_user)]) -> AsyncIterator[object]:
        yield object()

    async def reports(session: Annotated[object, Depends(session_of_user, scope="function")]) -> object:
        return session

    app = FastAPI()

    @app.post("/users")
    async def create(
        publisher: Annotated[Any, Depends(publisher_for(session_of_user))],
        reports: Annotated[object, Security(reports, scopes=["reports"])],
    ) -> None:
        """Never called."""

    with pytest.raises(ConfigurationError, match=r"POST /users takes session_of_user"):
        check_sessions(app)


def test_a_session_is_checked_when_it_is_named_though_no_publisher_is_made_for_it() -> None:
    app = FastAPI()

    @app.get("/users")
    async def read(session: RequestSession, repository: Annotated[object, Depends(get_repository)]) -> None:
        """Never called."""

    check_sessions(app)
    with pytest.raises(ConfigurationError, match=r"GET /users takes get_session"):
        check_sessions(app, get_session)


async def test_such_a_route_stops_the_start() -> None:
    app = FastAPI(lifespan=outbox_lifespan())
    app.post("/users")(torn)
    with pytest.raises(ConfigurationError, match=r"POST /users"):
        async with app.router.lifespan_context(app):
            pytest.fail("it started")


def _router(endpoint: Any) -> APIRouter:
    router = APIRouter()
    router.post("/users")(endpoint)
    return router
