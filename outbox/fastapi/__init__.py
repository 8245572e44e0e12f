"""Outbox in a FastAPI application: a publisher as a dependency, relay and worker in the lifespan.

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

from outbox.errors import ConfigurationError, MissingExtraError

if find_spec("fastapi") is None or find_spec("sqlalchemy") is None:
    raise MissingExtraError(purpose="outbox.fastapi", extra="fastapi")

from fastapi import Depends, FastAPI
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker
from sqlalchemy.orm import sessionmaker
from starlette.requests import HTTPConnection

from outbox.fastapi.routes import SESSION_OF, RouteCheck, check_sessions
from outbox.publisher import BoundPublisher, Publisher
from outbox.runtime.health import HealthChecks, checking
from outbox.runtime.supervision import Part, Supervision, supervised

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
    """Returns a dependency that gives each request one session with one transaction.

    Use it as `Depends(get_session, scope="function")` everywhere. The transaction then commits after the route function has
    returned and *before* the response is sent, so a failed commit becomes a 5xx response and never a 201. An exception,
    including `HTTPException`, rolls everything back; an error response that is *returned* commits like any other response.

    Code that runs after the response has started, such as a background task or the body of a stream, must not use the session:
    it raises, because its transaction is over.
    """
    makes_sync_sessions = isinstance(sessions, sessionmaker) and not issubclass(sessions.class_, AsyncSession)
    if not callable(sessions) or makes_sync_sessions:
        instead = ": for sync sessions write a generator, `with sessions.begin() as session: yield session`"
        raise ConfigurationError(
            f"transactional takes an async_sessionmaker, not {type(sessions).__name__}{instead if makes_sync_sessions else ''}"
        )

    async def get_session() -> AsyncIterator[AsyncSession]:
        # `close_resets_only=False` makes a closed session raise: it would otherwise begin a transaction that nothing commits.
        async with sessions(close_resets_only=False) as session, session.begin():
            yield session

    return get_session


def publisher_for(
    get_session: Callable[..., Any],
    *,
    publisher: Publisher | None = None,
    scope: Literal["function", "request"] | None = "function",
) -> Callable[..., Awaitable[BoundPublisher[Any]]]:
    """Returns a dependency that gives each request a publisher bound to its session from `get_session`.

    Published messages belong to the session's transaction: they are committed and rolled back with it. A route that depends on
    `get_session` with the same `scope` gets the same session. With another scope it would get a second session, and could
    publish although its own work fails. `outbox_lifespan` refuses to start with such a route, and the dependency itself raises
    `ConfigurationError` for it.

    The publisher ends with the session: in a background task or the body of a stream, its methods raise
    `TransactionRequiredError`. Use a new session there.

    Args:
        get_session: the session dependency of the application: a generator, or a function that returns a session.
        publisher: the publisher to bind; by default one that writes to `outbox_table`.
        scope: the scope with which the application depends on its session. "request" commits after the response was sent.
    """
    if isinstance(get_session, async_sessionmaker | sessionmaker) or not callable(get_session):
        instead = "a session factory" if callable(get_session) else type(get_session).__name__
        raise ConfigurationError(f"publisher_for takes a session dependency, such as transactional(…) returns, not {instead}")
    if publisher is not None and (isinstance(publisher, type) or not callable(getattr(publisher, "publish", None))):
        raise ConfigurationError(f"publisher must be a Publisher, such as Publisher(expiration=60), not {publisher!r:.80}")
    if scope not in ("function", "request", None):
        raise ConfigurationError(f"scope must be 'function', 'request' or None, not {scope!r}")
    source = publisher if publisher is not None else Publisher()
    check_route = RouteCheck(get_session, scope)

    async def bound(
        session: Any = Depends(get_session, scope=scope),  # noqa: B008
        *,
        connection: HTTPConnection,
    ) -> AsyncIterator[BoundPublisher[Any]]:
        check_route(connection)
        # It has the session's scope and is created after the session, so it closes right before the session commits.
        with closing(BoundPublisher(source, session)) as bound_publisher:
            yield bound_publisher

    # A function and not a generator, because routes depend on it without a scope: FastAPI does not allow a generator of the
    # request scope to depend on one of the function scope.
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
    """Returns a lifespan for `FastAPI(lifespan=…)` that runs the given parts in the server's process.

    The start fails if a route would get two sessions (`check_sessions`). A part that crashes is logged, created and started
    again, with growing pauses. The parts are asked to stop as soon as the server is, not only when its last connection closes.

    Args:
        lifespan: the application's own lifespan. It is entered first and left last, so the parts can use its pools. Its state
            is kept.
        relay, worker, archiver, maintainer: functions that create the parts. They are called with the application at the start
            and after each crash; return None to run no such part. The maintainer is a `Maintenance`.
        get_session: a session dependency to check the routes for, if publishers are not made by `publisher_for`.
        health: reports the health of each part under its name.
        grace_period: time limit for the parts from the moment when the server is asked to stop. Then they are cancelled.
    """
    given = {"relay": relay, "worker": worker, "archiver": archiver, "maintainer": maintainer}
    makers = {name: make for name, make in given.items() if make is not None}
    for name, make in makers.items():
        if not callable(make):
            raise ConfigurationError(f"{name} must be a function that creates the part: write {name}=lambda app: …")

    @asynccontextmanager
    async def combined(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
        check_sessions(app, *([] if get_session is None else [get_session]))
        async with (
            nullcontext() if lifespan is None else lifespan(app) as state,
            supervised({name: partial(make, app) for name, make in makers.items()}, grace_period=grace_period, health=health),
        ):
            yield dict(state or {})

    return combined
