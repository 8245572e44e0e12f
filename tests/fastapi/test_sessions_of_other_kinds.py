"""`publisher_for` works with any session dependency: a synchronous one, one of asyncpg, or a test double."""

from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

import asyncpg
import httpx
import pytest
from fastapi import Depends, FastAPI, HTTPException
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.pool import NullPool

from outbox import BoundPublisher, Publisher, ensure_outbox_table_async
from outbox.errors import ConfigurationError
from outbox.fastapi import publisher_for, transactional
from tests.fastapi.support import client_of, routing_keys


async def test_a_synchronous_session_publishes_without_awaiting(database_url: str) -> None:
    await ensure_outbox_table_async(database_url)
    sessions = sessionmaker(
        create_engine(database_url.replace("postgresql://", "postgresql+psycopg://", 1), poolclass=NullPool)
    )

    def get_session() -> Iterator[Session]:
        with sessions.begin() as session:
            yield session

    app = FastAPI()

    @app.post("/users", status_code=201)
    def create(publisher: Annotated[BoundPublisher[Session], Depends(publisher_for(get_session))], fail: bool = False) -> None:
        publisher.publish("user.created", {})
        if fail:
            raise HTTPException(409)

    async with client_of(app) as client:
        assert (await client.post("/users?fail=true")).status_code == 409
        assert await routing_keys(database_url) == []
        assert (await client.post("/users")).status_code == 201
        assert await routing_keys(database_url) == ["user.created"]


async def test_an_asyncpg_connection_is_a_session_too(database_url: str) -> None:
    await ensure_outbox_table_async(database_url)

    async def get_connection() -> AsyncIterator[Any]:
        connection = await asyncpg.connect(database_url)
        try:
            async with connection.transaction():
                yield connection
        finally:
            await connection.close()

    app = FastAPI()

    @app.post("/users", status_code=201)
    async def create(publisher: Annotated[Any, Depends(publisher_for(get_connection))], fail: bool = False) -> None:
        await publisher.publish("user.created", {})
        if fail:
            raise HTTPException(409)

    async with client_of(app) as client:
        assert (await client.post("/users?fail=true")).status_code == 409
        assert await routing_keys(database_url) == []
        assert (await client.post("/users")).status_code == 201
        assert await routing_keys(database_url) == ["user.created"]


async def test_a_host_s_tests_replace_the_publisher_by_one_that_records() -> None:
    async def get_session() -> AsyncIterator[Any]:
        raise AssertionError("no test of a route needs a database for its events")
        yield

    get_publisher = publisher_for(get_session)
    app = FastAPI()

    @app.post("/users", status_code=201)
    async def create(publisher: Annotated[Any, Depends(get_publisher)]) -> None:
        await publisher.publish("user.created", {"name": "ada"})

    class Recording:
        published: list[tuple[str, object]] = []  # noqa: RUF012 — one test, one list

        async def publish(self, routing_key: str, body: object) -> None:
            self.published.append((routing_key, body))

    app.dependency_overrides[get_publisher] = Recording
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        assert (await client.post("/users")).status_code == 201
    assert Recording.published == [("user.created", {"name": "ada"})]


def test_what_is_no_session_dependency_is_refused_at_once() -> None:
    with pytest.raises(ConfigurationError, match="publisher_for takes a session dependency"):
        publisher_for(sessionmaker())
    with pytest.raises(ConfigurationError, match=r"publisher_for takes a session dependency, .* not NoneType"):
        publisher_for(None)  # type: ignore[arg-type]
    for wrong in (Publisher, "outbox_table"):
        with pytest.raises(ConfigurationError, match=r"publisher must be a Publisher, such as Publisher\(expiration=60\), not"):
            publisher_for(list, publisher=wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="scope must be 'function', 'request' or None, not 'Function'"):
        publisher_for(list, scope="Function")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="transactional takes an async_sessionmaker, not Engine"):
        transactional(create_engine("postgresql://db/x"))  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="transactional takes an async_sessionmaker, not sessionmaker: for sync"):
        transactional(sessionmaker())  # type: ignore[arg-type]


async def test_a_sessionmaker_of_async_sessions_is_one_of_the_older_kind() -> None:
    get_session = transactional(sessionmaker(class_=AsyncSession))  # type: ignore[arg-type]
    async for session in get_session():
        assert session.in_transaction()
