"""Every kind of handle that a Publisher takes, opened on a real database in the way that its users open it."""

import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from dataclasses import dataclass
from typing import Any

import asyncpg
import psycopg
import psycopg2
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, async_scoped_session, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker


@dataclass(frozen=True, slots=True)
class Opened:
    """A handle whose transaction has sent nothing yet, and what its owner does with that; all to be called through `done`."""

    handle: Any
    commit: Callable[[], Any]
    rollback: Callable[[], Any]
    execute: Callable[[str], Any]


async def done(result: Any) -> Any:
    """What a call came to, sync or async."""
    return await result if inspect.isawaitable(result) else result


Way = Callable[[str], AbstractAsyncContextManager[Opened]]


def _dialect(url: str, driver: str) -> str:
    return url.replace("postgresql://", f"postgresql+{driver}://")


def async_session(driver: str) -> Way:
    @asynccontextmanager
    async def way(url: str) -> AsyncIterator[Opened]:
        engine = create_async_engine(_dialect(url, driver))
        async with AsyncSession(engine) as session:
            yield Opened(session, session.commit, session.rollback, lambda sql: session.execute(text(sql)))
        await engine.dispose()

    return way


def async_connection(driver: str) -> Way:
    @asynccontextmanager
    async def way(url: str) -> AsyncIterator[Opened]:
        engine = create_async_engine(_dialect(url, driver))
        async with engine.connect() as connection:
            yield Opened(connection, connection.commit, connection.rollback, lambda sql: connection.execute(text(sql)))
        await engine.dispose()

    return way


@asynccontextmanager
async def scoped_async_session(url: str) -> AsyncIterator[Opened]:
    engine = create_async_engine(_dialect(url, "asyncpg"))
    scoped = async_scoped_session(async_sessionmaker(engine), scopefunc=lambda: "the only one")
    yield Opened(scoped, scoped.commit, scoped.rollback, lambda sql: scoped.execute(text(sql)))
    await scoped.remove()
    await engine.dispose()


def session(driver: str) -> Way:
    @asynccontextmanager
    async def way(url: str) -> AsyncIterator[Opened]:
        engine = create_engine(_dialect(url, driver))
        with Session(engine) as session:
            yield Opened(session, session.commit, session.rollback, lambda sql: session.execute(text(sql)))
        engine.dispose()

    return way


def connection(driver: str) -> Way:
    @asynccontextmanager
    async def way(url: str) -> AsyncIterator[Opened]:
        engine = create_engine(_dialect(url, driver))
        with engine.connect() as connection:
            yield Opened(connection, connection.commit, connection.rollback, lambda sql: connection.execute(text(sql)))
        engine.dispose()

    return way


@asynccontextmanager
async def scoped_sync_session(url: str) -> AsyncIterator[Opened]:
    engine = create_engine(_dialect(url, "psycopg2"))
    scoped = scoped_session(sessionmaker(engine))
    yield Opened(scoped, scoped.commit, scoped.rollback, lambda sql: scoped.execute(text(sql)))
    scoped.remove()
    engine.dispose()


@asynccontextmanager
async def asyncpg_connection(url: str) -> AsyncIterator[Opened]:
    connection = await asyncpg.connect(url)
    transaction = connection.transaction()
    await transaction.start()
    yield Opened(connection, transaction.commit, transaction.rollback, connection.execute)
    await connection.close()


@asynccontextmanager
async def asyncpg_pooled(url: str) -> AsyncIterator[Opened]:
    async with asyncpg.create_pool(url, min_size=0, max_size=1) as pool, pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        yield Opened(connection, transaction.commit, transaction.rollback, connection.execute)


@asynccontextmanager
async def psycopg_async_connection(url: str) -> AsyncIterator[Opened]:
    connection = await psycopg.AsyncConnection.connect(url)
    yield Opened(connection, connection.commit, connection.rollback, connection.execute)
    await connection.close()


@asynccontextmanager
async def psycopg_async_cursor(url: str) -> AsyncIterator[Opened]:
    connection = await psycopg.AsyncConnection.connect(url)
    async with connection.cursor() as cursor:
        yield Opened(cursor, connection.commit, connection.rollback, cursor.execute)
    await connection.close()


@asynccontextmanager
async def psycopg_connection(url: str) -> AsyncIterator[Opened]:
    with closing(psycopg.connect(url)) as connection:
        yield Opened(connection, connection.commit, connection.rollback, connection.execute)


def psycopg_cursor(cursor_class: type[psycopg.Cursor[Any]]) -> Way:
    @asynccontextmanager
    async def way(url: str) -> AsyncIterator[Opened]:
        with closing(psycopg.connect(url)) as connection, cursor_class(connection) as cursor:
            yield Opened(cursor, connection.commit, connection.rollback, connection.execute)

    return way


@asynccontextmanager
async def psycopg2_connection(url: str) -> AsyncIterator[Opened]:
    with closing(psycopg2.connect(url)) as connection:
        yield Opened(connection, connection.commit, connection.rollback, connection.cursor().execute)


@asynccontextmanager
async def psycopg2_cursor(url: str) -> AsyncIterator[Opened]:
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        yield Opened(cursor, connection.commit, connection.rollback, cursor.execute)


ASYNC_WAYS: dict[str, Way] = {
    "AsyncSession on asyncpg": async_session("asyncpg"),
    "AsyncSession on psycopg": async_session("psycopg"),
    "async_scoped_session": scoped_async_session,
    "AsyncConnection on asyncpg": async_connection("asyncpg"),
    "AsyncConnection on psycopg": async_connection("psycopg"),
    "asyncpg connection": asyncpg_connection,
    "asyncpg connection of a pool": asyncpg_pooled,
    "psycopg AsyncConnection": psycopg_async_connection,
    "psycopg AsyncCursor": psycopg_async_cursor,
}
SYNC_WAYS: dict[str, Way] = {
    "Session on psycopg2": session("psycopg2"),
    "Session on psycopg": session("psycopg"),
    "scoped_session": scoped_sync_session,
    "Connection on psycopg2": connection("psycopg2"),
    "Connection on psycopg": connection("psycopg"),
    "psycopg connection": psycopg_connection,
    "psycopg cursor": psycopg_cursor(psycopg.Cursor),
    "psycopg ClientCursor": psycopg_cursor(psycopg.ClientCursor),
    "psycopg RawCursor": psycopg_cursor(psycopg.RawCursor),
    "psycopg2 connection": psycopg2_connection,
    "psycopg2 cursor": psycopg2_cursor,
}
WAYS = ASYNC_WAYS | SYNC_WAYS
