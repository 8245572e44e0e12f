"""Dependencies for routes: a session that commits before the response leaves, and a publisher bound to it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from typing import Any, Literal

from fastapi import Depends
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker
from starlette.requests import HTTPConnection

from outbox.fastapi.routes import SESSION_OF, RouteCheck
from outbox.publisher import BoundPublisher, Publisher


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
