"""Handles that a Publisher can write through: sessions, connections and cursors of SQLAlchemy, asyncpg and psycopg.

Recognises handles without importing any library: an object of a library that was not imported cannot exist.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from outbox.core.outcome import qualified_name
from outbox.errors import UnsupportedHandleError
from outbox.postgres.handles.insert import AsyncWriter, SyncWriter
from outbox.postgres.queries import TableName

ACCEPTED = (
    "a SQLAlchemy AsyncSession, async_scoped_session, AsyncConnection, Session, scoped_session or Connection on PostgreSQL "
    "(asyncpg, psycopg or psycopg2), an asyncpg Connection, or a psycopg or psycopg2 connection or cursor"
)


@dataclass(frozen=True, slots=True)
class _Kind:
    """A class by its name, so that it need not be imported, and what to do with its instances.

    For handles, `use` is the writer as `module:class` of this package. For other objects, it is advice to the caller.
    """

    library: str
    name: str
    use: str

    def includes(self, handle: object) -> bool:
        class_ = getattr(sys.modules.get(self.library), self.name, None)
        return isinstance(class_, type) and isinstance(handle, class_)


_ASYNC = (
    _Kind("sqlalchemy.ext.asyncio", "AsyncSession", "sqlalchemy:AsyncSessionWriter"),
    # asyncpg registers the proxies that its pool hands out as instances of this class.
    _Kind("asyncpg", "Connection", "asyncpg:ConnectionWriter"),
    _Kind("sqlalchemy.ext.asyncio", "AsyncConnection", "sqlalchemy:AsyncConnectionWriter"),
    _Kind("sqlalchemy.ext.asyncio", "async_scoped_session", "sqlalchemy:AsyncScopedSessionWriter"),
    _Kind("psycopg", "AsyncConnection", "psycopg:AsyncConnectionWriter"),
    _Kind("psycopg", "AsyncCursor", "psycopg:AsyncCursorWriter"),
)
_SYNC = (
    _Kind("sqlalchemy.orm", "Session", "sqlalchemy:SessionWriter"),
    _Kind("sqlalchemy", "Connection", "sqlalchemy:ConnectionWriter"),
    _Kind("sqlalchemy.orm", "scoped_session", "sqlalchemy:ScopedSessionWriter"),
    _Kind("psycopg", "Connection", "psycopg:ConnectionWriter"),
    _Kind("psycopg", "Cursor", "psycopg:CursorWriter"),
    _Kind("psycopg2.extensions", "connection", "psycopg2:ConnectionWriter"),
    _Kind("psycopg2.extensions", "cursor", "psycopg2:CursorWriter"),
)
_ADVICE = (
    _Kind("sqlalchemy.ext.asyncio", "AsyncEngine", "Open a transaction: async with engine.begin() as connection"),
    _Kind("sqlalchemy.ext.asyncio", "async_sessionmaker", "Open a session: async with sessionmaker.begin() as session"),
    _Kind("sqlalchemy", "Engine", "Open a transaction: with engine.begin() as connection"),
    _Kind("sqlalchemy.orm", "sessionmaker", "Open a session: with sessionmaker.begin() as session"),
    _Kind("asyncpg.pool", "Pool", "Take a connection: async with pool.acquire() as connection, connection.transaction()"),
    _Kind("psycopg_pool", "AsyncConnectionPool", "Take a connection: async with pool.connection() as connection"),
    _Kind("psycopg_pool", "ConnectionPool", "Take a connection: with pool.connection() as connection"),
    _Kind("psycopg2.pool", "AbstractConnectionPool", "Take a connection: connection = pool.getconn()"),
    _Kind("types", "CoroutineType", "Await it first"),
)


def is_async(handle: object) -> bool:
    """Whether `handle` is async, so that writing must be awaited."""
    return _find(handle, _ASYNC) is not None


def async_writer(handle: object, table: TableName) -> AsyncWriter:
    """Returns a writer to `table` through an async `handle`. Raises `UnsupportedHandleError` for anything else."""
    writer: AsyncWriter = _writer(handle, table, _ASYNC)
    return writer


def sync_writer(handle: object, table: TableName) -> SyncWriter:
    """Returns a writer to `table` through a sync `handle`. Raises `UnsupportedHandleError` for anything else."""
    writer: SyncWriter = _writer(handle, table, _SYNC)
    return writer


def _writer(handle: object, table: TableName, kinds: Iterable[_Kind]) -> Any:
    kind = _find(handle, kinds)
    if kind is None:
        name = qualified_name(type(handle))
        if _find(handle, _ASYNC):
            raise UnsupportedHandleError(f"{name} is an async handle: await publish or publish_async, and so on")
        if _find(handle, _SYNC):
            raise UnsupportedHandleError(f"{name} is not an async handle: call publish or publish_sync, and so on")
        advice = _find(handle, _ADVICE)
        refusal = f"cannot publish through {name}; hand over {ACCEPTED}" + (f". {advice.use}" if advice else "")
        raise UnsupportedHandleError(refusal)
    module, _, name = kind.use.partition(":")
    return getattr(import_module(f"{__name__}.{module}"), name)(handle, table)


def _find(handle: object, kinds: Iterable[_Kind]) -> _Kind | None:
    return next((kind for kind in kinds if kind.includes(handle)), None)
