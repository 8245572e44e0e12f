"""Dependencies of the routes: a session with a transaction per request, and a publisher bound to it."""

from collections.abc import AsyncIterator
from contextlib import closing
from typing import Annotated

from fastapi import Depends
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker
from starlette.requests import HTTPConnection

from outbox import BoundPublisher, Publisher


async def get_session(connection: HTTPConnection) -> AsyncIterator[AsyncSession]:
    """Yields a session in a transaction that commits after the route function returns and before the response is sent."""
    sessions: async_sessionmaker[AsyncSession] = connection.app.state.sessions
    async with sessions() as session, session.begin():
        yield session


SessionDep = Annotated[AsyncSession, Depends(get_session, scope="function")]
"""Use this in every route. FastAPI caches dependencies per scope: with another scope a route would get another session."""


async def get_publisher(session: SessionDep, connection: HTTPConnection) -> AsyncIterator[BoundPublisher[AsyncSession]]:
    """Yields a publisher whose events commit or roll back with the request's session. It is closed at the commit."""
    publisher: Publisher = connection.app.state.publisher
    with closing(BoundPublisher(publisher, session)) as bound:
        yield bound


PublisherDep = Annotated[BoundPublisher[AsyncSession], Depends(get_publisher, scope="function")]
