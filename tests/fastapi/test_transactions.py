"""A route's event commits together with its own writes, before the response is sent, or not at all."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

import pytest
from fastapi import BackgroundTasks, Depends, FastAPI, HTTPException
from fastapi.responses import JSONResponse
from sqlalchemy import text
from sqlalchemy.exc import InvalidRequestError
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine

from outbox import BoundPublisher, OutboxMessage, Publisher, ensure_outbox_table_async
from outbox.errors import TransactionRequiredError
from outbox.fastapi import publisher_for, transactional
from tests.fastapi.support import client_of, fetch, routing_keys
from tests.support import eventually

TABLES = """
create table users (name text primary key);
create table badges (
    name text not null references users (name) deferrable initially deferred
)
"""


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine for routes in the server's thread. Its database has the outbox and two more tables."""
    await ensure_outbox_table_async(database_url)
    await _execute(database_url, TABLES)
    engine = create_async_engine(database_url.replace("postgresql://", "postgresql+asyncpg://", 1))
    yield engine
    engine.sync_engine.dispose(close=False)


async def _execute(url: str, statements: str) -> None:
    for statement in statements.split(";"):
        await fetch(url, statement)


@pytest.fixture
def app(engine: AsyncEngine) -> FastAPI:  # noqa: C901 — many short routes
    get_session = transactional(async_sessionmaker(engine, expire_on_commit=False))
    session_dep = Annotated[AsyncSession, Depends(get_session, scope="function")]
    publisher_dep = Annotated[BoundPublisher[AsyncSession], Depends(publisher_for(get_session))]

    app = FastAPI(lifespan=_disposing(engine))  # as where the relay is another process, which checks no routes

    @app.post("/users/{name}", status_code=201)
    async def create(name: str, session: session_dep, publisher: publisher_dep) -> dict[str, str]:
        await session.execute(text("insert into users values (:name)"), {"name": name})
        await publisher.publish("user.created", {"name": name})
        return {"name": name}

    @app.post("/refused/{name}")
    async def refuse(name: str, publisher: publisher_dep) -> None:
        await publisher.publish("user.created", {"name": name})
        raise HTTPException(409, "there is one already")

    @app.post("/broken/{name}", status_code=201)
    async def break_down(name: str, session: session_dep, publisher: publisher_dep) -> None:
        await publisher.publish("user.created", {"name": name})
        raise RuntimeError("a bug")

    @app.post("/badges/{name}", status_code=201)
    async def badge(name: str, session: session_dep, publisher: publisher_dep) -> dict[str, str]:
        await publisher.publish("badge.given", {"name": name})
        await session.execute(text("insert into badges values (:name)"), {"name": name})
        return {"name": name}

    @app.post("/unserialisable", status_code=201)
    async def unserialisable(publisher: publisher_dep) -> int:
        await publisher.publish("user.created", {})
        return "not a number"  # type: ignore[return-value]

    @app.post("/late", status_code=201)
    async def late(session: session_dep, publisher: publisher_dep, tasks: BackgroundTasks) -> None:
        async def publish_too_late() -> None:
            for attempt in (
                lambda: publisher.publish("user.created", {}),
                lambda: publisher.bulk_publish([OutboxMessage("user.created", {})]),
                lambda: publisher.cancel("ada"),
            ):
                with pytest.raises(TransactionRequiredError, match=r"has ended.* a new session"):
                    await attempt()
            with pytest.raises(InvalidRequestError, match="permanently closed"):
                await Publisher().publish(session, "user.created", {})
            app.state.too_late = True

        tasks.add_task(publish_too_late)

    @app.post("/torn/{name}", status_code=201)
    async def torn(name: str, session: Annotated[AsyncSession, Depends(get_session)], publisher: publisher_dep) -> None:
        await publisher.publish("user.created", {"name": name})
        await session.execute(text("insert into users values (:name)"), {"name": name})

    @app.post("/returned")
    async def returned(publisher: publisher_dep) -> JSONResponse:
        await publisher.publish("attempt.noted", {})
        return JSONResponse({"detail": "no"}, status_code=409)

    _add_routes_with_background_tasks(app, engine)
    return app


def _add_routes_with_background_tasks(app: FastAPI, engine: AsyncEngine) -> None:
    # A session of the host's own making, which begins again when it is used again.
    sessions = async_sessionmaker(engine, expire_on_commit=False)

    async def own_session() -> AsyncIterator[AsyncSession]:
        async with sessions() as session, session.begin():
            yield session

    @app.post("/late-own/{name}", status_code=202)
    async def late_own(
        name: str,
        publisher: Annotated[BoundPublisher[AsyncSession], Depends(publisher_for(own_session))],
        tasks: BackgroundTasks,
    ) -> None:
        async def publish_too_late() -> None:
            with pytest.raises(TransactionRequiredError):
                await publisher.publish("user.created", {"name": name})
            app.state.too_late = True

        tasks.add_task(publish_too_late)

    @app.post("/in-time", status_code=202)
    async def in_time(
        publisher: Annotated[BoundPublisher[AsyncSession], Depends(publisher_for(own_session, scope="request"))],
        tasks: BackgroundTasks,
    ) -> None:
        async def publish_in_time() -> None:
            await publisher.publish("user.created", {})

        tasks.add_task(publish_in_time)

    @app.post("/own-session", status_code=202)
    async def with_a_session_of_its_own(tasks: BackgroundTasks) -> None:
        async def publish_afterwards() -> None:
            async with sessions.begin() as session:
                await Publisher().publish(session, "user.created", {})

        tasks.add_task(publish_afterwards)


def _disposing(engine: AsyncEngine) -> Any:
    from contextlib import asynccontextmanager

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await engine.dispose()

    return lifespan


async def test_the_row_and_its_event_are_visible_to_others_when_the_client_has_its_201(app: FastAPI, database_url: str) -> None:
    async with client_of(app) as client:
        for number in range(20):
            answer = await client.post(f"/users/ada{number}")
            assert answer.status_code == 201
            assert (await fetch(database_url, "select count(*) from users"))[0][0] == number + 1
            assert len(await routing_keys(database_url)) == number + 1


async def test_an_http_exception_leaves_no_event(app: FastAPI, database_url: str) -> None:
    async with client_of(app) as client:
        assert (await client.post("/refused/ada")).status_code == 409
    assert await routing_keys(database_url) == []


async def test_a_bug_in_a_route_leaves_no_event(app: FastAPI, database_url: str) -> None:
    async with client_of(app) as client:
        assert (await client.post("/broken/ada")).status_code == 500
    assert await routing_keys(database_url) == []


async def test_a_commit_that_fails_is_a_5xx_and_leaves_no_event(app: FastAPI, database_url: str) -> None:
    async with client_of(app) as client:
        answer = await client.post("/badges/unknown")
        assert answer.status_code == 500
        assert (await client.post("/users/ada")).status_code == 201
        assert (await client.post("/badges/ada")).status_code == 201
    assert await routing_keys(database_url) == ["user.created", "badge.given"]


async def test_a_response_that_cannot_be_serialised_leaves_no_event(app: FastAPI, database_url: str) -> None:
    async with client_of(app) as client:
        assert (await client.post("/unserialisable")).status_code == 500
    assert await routing_keys(database_url) == []


async def test_a_route_with_two_sessions_leaves_neither_rows_nor_events(app: FastAPI, database_url: str) -> None:
    async with client_of(app) as client:
        assert (await client.post("/torn/ada")).status_code == 500
        assert (await client.post("/torn/ada")).status_code == 500
    assert await fetch(database_url, "select * from users") == []
    assert await routing_keys(database_url) == []


async def test_an_error_response_that_is_returned_commits(app: FastAPI, database_url: str) -> None:
    async with client_of(app) as client:
        assert (await client.post("/returned")).status_code == 409
    assert await routing_keys(database_url) == ["attempt.noted"]


async def test_publishing_after_the_commit_raises_instead_of_being_lost(app: FastAPI, database_url: str) -> None:
    async with client_of(app) as client:
        assert (await client.post("/late")).status_code == 201
        await eventually(lambda: getattr(app.state, "too_late", False))
    assert await routing_keys(database_url) == []


async def test_publishing_after_the_commit_leaves_no_connection_in_a_transaction(app: FastAPI, database_url: str) -> None:
    async with client_of(app) as client:
        assert (await client.post("/late-own/ada")).status_code == 202
        await eventually(lambda: getattr(app.state, "too_late", False))
        idle = "select state from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'"
        assert await fetch(database_url, idle) == []
    assert await routing_keys(database_url) == []


@pytest.mark.parametrize("path", ["/in-time", "/own-session"])
async def test_a_background_task_publishes_while_its_session_lasts_and_through_one_of_its_own(
    app: FastAPI, database_url: str, path: str
) -> None:
    async def arrived() -> bool:
        return await routing_keys(database_url) == ["user.created"]

    async with client_of(app) as client:
        assert (await client.post(path)).status_code == 202
        await eventually(arrived)
