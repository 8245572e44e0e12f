"""The start finds all routes that would get two sessions, and accepts those with one.

Where nothing of ours starts up, because the relay is another process, the publisher itself refuses such a route.
"""

from collections.abc import AsyncIterator
from typing import Annotated, Any

import httpx
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
    """Depends on everything with one scope."""


async def torn(session: RequestSession, publisher: PublisherDep) -> None:
    """Depends on its session with another scope than its publisher."""


def test_routes_that_take_the_session_under_one_scope_are_accepted() -> None:
    app = FastAPI()
    app.post("/users")(consistent)
    app.include_router(_router(consistent), prefix="/v1")
    check_sessions(app)


def test_a_route_that_would_get_two_sessions_is_named() -> None:
    app = FastAPI()
    app.post("/fine")(consistent)
    app.post("/users")(torn)
    with pytest.raises(ConfigurationError, match=r"^POST /users depends on get_session with .* two sessions"):
        check_sessions(app)


def test_it_is_found_for_a_session_dependency_that_is_a_method() -> None:
    class Database:
        async def session(self) -> AsyncIterator[object]:
            yield object()

    database = Database()
    publisher = publisher_for(database.session)
    app = FastAPI()

    @app.post("/users")
    async def create(session: Annotated[object, Depends(database.session)], bound: Annotated[Any, Depends(publisher)]) -> None:
        pass

    with pytest.raises(ConfigurationError, match=r"^POST /users depends on session with .* two sessions"):
        check_sessions(app)


def test_it_is_found_in_an_included_router() -> None:
    app = FastAPI()
    outer = APIRouter(prefix="/outer")
    outer.include_router(_router(torn), prefix="/inner")
    app.include_router(outer, prefix="/v1")
    with pytest.raises(ConfigurationError, match=r"POST /v1/outer/inner/users depends on"):
        check_sessions(app)


def test_a_dependency_of_the_router_counts_too() -> None:
    app = FastAPI()
    app.include_router(_router(consistent), prefix="/v1", dependencies=[Depends(get_session)])
    with pytest.raises(ConfigurationError, match=r"POST /v1/users depends on"):
        check_sessions(app)


def test_it_is_found_in_a_mounted_application() -> None:
    mounted = FastAPI()
    mounted.post("/users")(torn)
    app = FastAPI()
    app.mount("/sub", mounted)
    with pytest.raises(ConfigurationError, match=r"POST /sub/users depends on"):
        check_sessions(app)


def test_it_is_found_in_a_websocket() -> None:
    app = FastAPI()

    @app.websocket("/feed")
    async def feed(socket: WebSocket, session: RequestSession, publisher: PublisherDep) -> None:
        """Never called."""

    with pytest.raises(ConfigurationError, match=r"WEBSOCKET /feed depends on"):
        check_sessions(app)


def test_a_session_without_cache_is_a_second_session() -> None:
    app = FastAPI()

    @app.post("/users")
    async def create(
        session: Annotated[object, Depends(get_session, scope="function", use_cache=False)], publisher: PublisherDep
    ) -> None:
        """Never called."""

    with pytest.raises(ConfigurationError, match=r"POST /users depends on"):
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

    with pytest.raises(ConfigurationError, match=r"POST /users depends on session_of_user"):
        check_sessions(app)


def test_a_session_is_checked_when_it_is_named_though_no_publisher_is_made_for_it() -> None:
    app = FastAPI()

    @app.get("/users")
    async def read(session: RequestSession, repository: Annotated[object, Depends(get_repository)]) -> None:
        """Never called."""

    check_sessions(app)
    with pytest.raises(ConfigurationError, match=r"GET /users depends on get_session"):
        check_sessions(app, get_session)


async def test_such_a_route_stops_the_start() -> None:
    app = FastAPI(lifespan=outbox_lifespan())
    app.post("/users")(torn)
    with pytest.raises(ConfigurationError, match=r"POST /users"):
        async with app.router.lifespan_context(app):
            pytest.fail("it started")


async def test_without_outbox_lifespan_the_publisher_refuses_a_route_with_two_sessions() -> None:
    app = FastAPI()
    app.post("/users")(torn)
    for _ in range(2):  # the second answer comes from what is remembered
        with pytest.raises(
            ConfigurationError, match=r'^POST /users depends on get_session with .*write Depends\(get_session, scope="f'
        ):
            await _posted(app, "/users")


async def test_the_publisher_accepts_a_route_that_gets_one_session() -> None:
    app = FastAPI()
    app.post("/users")(consistent)
    app.include_router(_router(consistent), prefix="/v1", dependencies=[Depends(get_repository)])
    for path in ("/users", "/v1/users", "/users"):
        assert (await _posted(app, path)).status_code == 200


async def test_the_fix_that_the_publisher_names_is_the_scope_that_it_was_made_for() -> None:
    app = FastAPI()

    @app.post("/users")
    async def create(
        session: FunctionSession, publisher: Annotated[Any, Depends(publisher_for(get_session, scope="request"))]
    ) -> None:
        """Never called."""

    with pytest.raises(ConfigurationError, match=r'write Depends\(get_session, scope="request"\)'):
        await _posted(app, "/users")


async def test_the_publisher_judges_each_inclusion_of_a_router_by_itself() -> None:
    app = FastAPI()
    inner = _router(consistent)
    outer = APIRouter(prefix="/outer")
    outer.include_router(inner, prefix="/inner", dependencies=[Depends(get_session)])
    app.include_router(inner, prefix="/v1")
    app.include_router(outer, prefix="/v2")
    assert (await _posted(app, "/v1/users")).status_code == 200
    with pytest.raises(ConfigurationError, match=r"^POST /v2/outer/inner/users depends on"):
        await _posted(app, "/v2/outer/inner/users")


async def test_the_publisher_sees_the_dependencies_of_the_whole_application() -> None:
    app = FastAPI(dependencies=[Depends(get_session)])
    app.post("/users")(consistent)
    app.include_router(_router(consistent), prefix="/v1")
    for path in ("/users", "/v1/users"):
        with pytest.raises(ConfigurationError, match=f"^POST {path} depends on"):
            await _posted(app, path)


async def test_the_publisher_sees_the_dependencies_of_dependencies() -> None:
    async def get_user(session: RequestSession) -> object:
        return session

    async def get_service(publisher: PublisherDep) -> object:
        return publisher

    app = FastAPI()

    @app.post("/users")
    async def create(user: Annotated[object, Depends(get_user)], service: Annotated[object, Depends(get_service)]) -> None:
        """Never called."""

    with pytest.raises(ConfigurationError, match=r"^POST /users depends on"):
        await _posted(app, "/users")


async def test_the_publisher_refuses_in_a_mounted_application() -> None:
    mounted = FastAPI()
    mounted.post("/users")(torn)
    mounted.include_router(_router(consistent), prefix="/fine")
    outer = APIRouter()
    outer.mount("/within", mounted)
    app = FastAPI()
    app.mount("/sub", mounted)
    app.include_router(outer, prefix="/v1")
    for prefix in ("/sub", "/v1/within"):
        assert (await _posted(app, f"{prefix}/fine/users")).status_code == 200
        with pytest.raises(ConfigurationError, match=r"^POST \S*/users depends on"):
            await _posted(app, f"{prefix}/users")


@pytest.mark.parametrize("prefix", ["", "/v1"])
async def test_the_publisher_refuses_in_a_websocket(prefix: str) -> None:
    router = APIRouter()

    @router.websocket("/feed")
    async def feed(socket: WebSocket, publisher: PublisherDep) -> None:
        await socket.accept()

    app = FastAPI()
    app.include_router(router, prefix="/fine")
    app.include_router(router, prefix=prefix, dependencies=[Depends(get_session)])
    assert await _connected(app, "/fine/feed") == ["websocket.accept"]
    with pytest.raises(ConfigurationError, match=f"^WEBSOCKET {prefix}/feed depends on"):
        await _connected(app, f"{prefix}/feed")


async def _connected(app: FastAPI, path: str) -> list[str]:
    """Messages that a websocket at `path` sends when a client connects."""
    answers: list[str] = []

    async def receive() -> dict[str, str]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        answers.append(message["type"])

    scope = {"type": "websocket", "path": path, "root_path": "", "headers": [], "query_string": b"", "subprotocols": []}
    await app(scope, receive, send)
    return answers


async def _posted(app: FastAPI, path: str) -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        return await client.post(path)


def _router(endpoint: Any) -> APIRouter:
    router = APIRouter()
    router.post("/users")(endpoint)
    return router
