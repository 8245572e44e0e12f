"""A host application of some twenty lines, with relay and worker beside its routes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI
from pydantic import BaseModel
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine

from outbox import MessageRelay, Worker, consume
from outbox.admin import health_router
from outbox.fastapi import outbox_lifespan, publisher_for, transactional
from outbox.health import HealthChecks
from outbox.publisher import BoundPublisher
from outbox.schema import ensure_outbox_schema_async
from tests.fastapi.support import client_of, routing_keys
from tests.support import eventually


class User(BaseModel):
    name: str


@asynccontextmanager
async def _disposing(engine: AsyncEngine) -> AsyncIterator[None]:
    yield
    await engine.dispose()


async def test_a_host_publishes_relays_and_consumes_in_one_process(database_url: str) -> None:
    await ensure_outbox_schema_async(database_url)
    welcomed: list[str] = []

    # The twenty lines.
    engine = create_async_engine(database_url.replace("postgresql://", "postgresql+asyncpg://"))
    get_session = transactional(async_sessionmaker(engine, expire_on_commit=False))
    get_publisher = publisher_for(get_session)
    health = HealthChecks()

    @consume("user.created")
    async def welcome(user: User) -> None:
        welcomed.append(user.name)

    app = FastAPI(
        lifespan=outbox_lifespan(
            lambda _: _disposing(engine),
            relay=lambda _: MessageRelay(db_engine_url=database_url, broker=database_url),
            worker=lambda _: Worker(broker=database_url, consumers=[welcome]),
            health=health,
        )
    )
    app.include_router(health_router(health))

    @app.post("/users", status_code=201)
    async def create_user(
        user: User,
        session: Annotated[AsyncSession, Depends(get_session, scope="function")],
        publisher: Annotated[BoundPublisher[AsyncSession], Depends(get_publisher)],
    ) -> User:
        await publisher.publish("user.created", user)
        return user

    async with client_of(app) as client:
        assert (await client.post("/users", json={"name": "ada"})).status_code == 201
        await eventually(lambda: welcomed == ["ada"])
        assert (await client.get("/outbox/health/ready")).json()["parts"] == {"relay": "ok", "worker": "ok", "server": "ok"}
        await eventually(lambda: _is_empty(database_url))


async def _is_empty(url: str) -> bool:
    return await routing_keys(url) == []
