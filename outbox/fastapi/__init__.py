"""Outbox in any FastAPI application: a publisher for routes, relay and worker next to them.

    sessions = async_sessionmaker(create_async_engine(DATABASE_URL), expire_on_commit=False)
    get_session = transactional(sessions)
    get_publisher = publisher_for(get_session)

    app = FastAPI(lifespan=outbox_lifespan(relay=lambda app: MessageRelay(db_engine_url=…, broker=…)))

    @app.post("/users", status_code=201)
    async def create_user(
        user: User,
        session: Annotated[AsyncSession, Depends(get_session, scope="function")],
        publisher: Annotated[BoundPublisher[AsyncSession], Depends(get_publisher)],
    ) -> None:
        session.add(…)
        await publisher.publish("user.created", user)

Needs the extra `fastapi`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, nullcontext
from datetime import timedelta
from functools import partial
from importlib.util import find_spec
from typing import Any, Literal

from outbox.errors import MissingExtraError

if find_spec("fastapi") is None or find_spec("sqlalchemy") is None:
    raise MissingExtraError(purpose="outbox.fastapi", extra="fastapi")

from fastapi import Depends, FastAPI
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker
from starlette.requests import HTTPConnection

from outbox.fastapi.routes import SESSION_OF, RouteCheck, check_sessions
from outbox.fastapi.supervision import Part, Supervision, supervised
from outbox.publisher import BoundPublisher, Publisher
from outbox.runtime.health import HealthChecks, checking

__all__ = [
    "HealthChecks",
    "Supervision",
    "check_sessions",
    "checking",
    "outbox_lifespan",
    "publisher_for",
    "supervised",
    "transactional",
]


def transactional(sessions: async_sessionmaker[AsyncSession]) -> Callable[[], AsyncIterator[AsyncSession]]:
    """A dependency that gives each request one session in one transaction.

    Take it with `Depends(get_session, scope="function")`, everywhere: then the commit happens when the route function has
    returned and *before* the response leaves, so that a failed commit is a 5xx and never a 201. An exception, an
    `HTTPException` too, rolls everything back; an error response that is *returned* is a response like any other, and commits.

    What runs after the response has begun, a background task or the body of a stream, comes too late for the session: using it
    raises, instead of writing into a transaction that is never committed.
    """

    async def get_session() -> AsyncIterator[AsyncSession]:
        async with sessions(close_resets_only=False) as session, session.begin():
            yield session

    return get_session


def publisher_for(
    get_session: Callable[..., Any],
    *,
    publisher: Publisher | None = None,
    scope: Literal["function", "request"] | None = "function",
) -> Callable[..., Awaitable[BoundPublisher[Any]]]:
    """A dependency that gives each request a publisher bound to the session that `get_session` gives to it.

    What it publishes belongs to the session's transaction: committed with it, rolled back with it. The route's own session
    is the same one, if it is taken under the same `scope`. A route that takes it under another one would have two sessions,
    and publish although its own work fails: starting up with `outbox_lifespan` refuses such routes, and the dependency itself
    does, with a `ConfigurationError` in place of a publisher.

    The publisher ends with the session. In a background task, or in the body of a stream, its methods raise
    `TransactionRequiredError`; what runs there publishes through a session of its own.

    Args:
        get_session: the application's own session dependency, of any kind: a generator, or a function that finds a session.
        publisher: what it is bound from; by default one that writes to `outbox_table`.
        scope: the scope under which the application takes its session. "request" commits after the response has left.
    """
    source = publisher if publisher is not None else Publisher()
    check_route = RouteCheck(get_session, scope)

    async def bound(
        session: Any = Depends(get_session, scope=scope),  # noqa: B008
        *,
        connection: HTTPConnection,
    ) -> AsyncIterator[BoundPublisher[Any]]:
        check_route(connection)
        # Of the session's scope, and made after it: so it ends just before the session commits.
        with closing(BoundPublisher(source, session)) as bound_publisher:
            yield bound_publisher

    # A function, because routes take it without a scope: FastAPI lets no generator that lasts as long as a request depend on
    # one that ends before the response.
    async def get_publisher(bound_publisher: BoundPublisher[Any] = Depends(bound, scope=scope)) -> BoundPublisher[Any]:  # noqa: B008
        return bound_publisher

    setattr(get_publisher, SESSION_OF, get_session)
    return get_publisher


Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[Mapping[str, Any] | None]]
MakePart = Callable[[FastAPI], Part | None]


def outbox_lifespan(
    lifespan: Lifespan | None = None,
    *,
    relay: MakePart | None = None,
    worker: MakePart | None = None,
    archiver: MakePart | None = None,
    maintainer: MakePart | None = None,
    get_session: Callable[..., Any] | None = None,
    health: HealthChecks | None = None,
    grace_period: timedelta = timedelta(seconds=30),
) -> Callable[[FastAPI], AbstractAsyncContextManager[dict[str, Any]]]:
    """A lifespan for `FastAPI(lifespan=…)` that runs these parts in the server's process, if they are given.

    Starting up fails if a route would get two sessions (`check_sessions`). A part that crashes is logged, made again and
    started again with growing pauses. When the server is asked to end, the parts are asked at once, not only when its last
    connection is closed.

    Args:
        lifespan: the application's own; entered first and left last, so that its pools are there for the parts. The state
            that it yields is kept.
        relay, worker, archiver, maintainer: called with the application at start, and again after a crash; None in return
            means: not here. The maintainer is a `Maintenance`.
        get_session: the session dependency to check the routes for, where the publishers are not made by `publisher_for`.
        health: reports how the parts are, under their names.
        grace_period: from the moment in which the server is asked to end; what still runs afterwards is cancelled.
    """
    given = {"relay": relay, "worker": worker, "archiver": archiver, "maintainer": maintainer}
    makers = {name: make for name, make in given.items() if make is not None}

    @asynccontextmanager
    async def combined(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
        check_sessions(app, *([] if get_session is None else [get_session]))
        async with (
            nullcontext() if lifespan is None else lifespan(app) as state,
            supervised({name: partial(make, app) for name, make in makers.items()}, grace_period=grace_period, health=health),
        ):
            yield dict(state or {})

    return combined
