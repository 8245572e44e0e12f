"""What routes ask for: the request's session, in a transaction of its own, and a publisher bound to it."""

from collections.abc import AsyncIterator
from contextlib import closing
from typing import Annotated

from fastapi import Depends
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker
from starlette.requests import HTTPConnection

from outbox import BoundPublisher, Publisher


async def get_session(connection: HTTPConnection) -> AsyncIterator[AsyncSession]:
    """One session in one transaction, committed when the route function has returned and before the response leaves."""
    sessions: async_sessionmaker[AsyncSession] = connection.app.state.sessions
    async with sessions() as session, session.begin():
        yield session


SessionDep = Annotated[AsyncSession, Depends(get_session, scope="function")]
"""Take the session like this in every route: the same session under another scope would be another session."""


async def get_publisher(session: SessionDep, connection: HTTPConnection) -> AsyncIterator[BoundPublisher[AsyncSession]]:
    """A publisher whose events are committed with the request's session, or not at all; it ends when that commits."""
    publisher: Publisher = connection.app.state.publisher
    with closing(BoundPublisher(publisher, session)) as bound:
        yield bound


PublisherDep = Annotated[BoundPublisher[AsyncSession], Depends(get_publisher, scope="function")]
