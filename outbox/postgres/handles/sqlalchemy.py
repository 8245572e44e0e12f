"""Writes through SQLAlchemy: its sessions and connections, async and sync, with all three drivers.

Statements run on SQLAlchemy's `Connection`, never on the driver's connection below it: SQLAlchemy begins the caller's
transaction lazily, with the first statement on its `Connection`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, TextClause, TwoPhaseTransaction, insert, table, text
from sqlalchemy.exc import UnboundExecutionError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
from sqlalchemy.orm import Session, scoped_session
from sqlalchemy.sql.dml import Insert as InsertClause

from outbox.errors import ConfigurationError, UnsupportedHandleError
from outbox.postgres.handles.insert import Statement, Values, array_literals
from outbox.postgres.queries import TableName

_DRIVERS = frozenset({"asyncpg", "psycopg", "psycopg2"})
_WITHOUT_NOTIFYING = text("set local outbox.doorbell = 'off'")


@dataclass(frozen=True, slots=True)
class ConnectionWriter:
    """Writes through a `Connection`. Outside of AUTOCOMMIT, its first statement begins a transaction."""

    connection: Connection
    table: TableName

    def __post_init__(self) -> None:
        dialect = self.connection.dialect
        if dialect.name != "postgresql" or dialect.driver not in _DRIVERS:
            raise UnsupportedHandleError(
                f"the outbox table is in PostgreSQL, reached with asyncpg, psycopg or psycopg2; this handle is bound to "
                f"{dialect.name}+{dialect.driver}"
            )

    def in_transaction(self) -> bool:
        return not getattr(self.connection.connection.dbapi_connection, "autocommit", False)

    def execute(self, statement: Statement, values: Values) -> Sequence[Any]:
        if self.connection.dialect.driver != "asyncpg":
            # Not lists, of which an adapter that the caller has registered may make JSON.
            values = array_literals(values)
        if isinstance(self.connection.get_transaction(), TwoPhaseTransaction):
            # PostgreSQL cannot prepare a transaction that has notified. Sleeping relays find the row later.
            self.connection.execute(_WITHOUT_NOTIFYING)
        result = self.connection.execute(_clause(statement), statement.by_name(values))
        return result.scalars().all() if result.returns_rows else ()


@dataclass(frozen=True, slots=True)
class SessionWriter:
    """Writes through a `Session`, without flushing it."""

    session: Session
    table: TableName

    def in_transaction(self) -> bool:
        return self._connection().in_transaction()

    def execute(self, statement: Statement, values: Values) -> Sequence[Any]:
        return self._connection().execute(statement, values)

    def _connection(self) -> ConnectionWriter:
        """Returns the session's connection for inserts into the outbox table."""
        # A session with several binds, or with its own `get_bind`, chooses the connection by the clause.
        try:
            connection = self.session.connection(bind_arguments={"clause": _target(self.table)})
        except UnboundExecutionError as error:
            raise ConfigurationError(
                f"the session has no bind for {self.table}: bind it to an engine; if it has binds for your models, publish "
                f"through session.connection(bind_arguments={{'mapper': YourModel}}), which is in its transaction"
            ) from error
        return ConnectionWriter(connection, self.table)


class ScopedSessionWriter(SessionWriter):
    """Writes through the current session of a `scoped_session`."""

    __slots__ = ()

    def __init__(self, scoped: scoped_session[Session], table: TableName) -> None:
        super().__init__(scoped(), table)


@dataclass(frozen=True, slots=True)
class AsyncConnectionWriter:
    """Writes through an `AsyncConnection`."""

    connection: AsyncConnection
    table: TableName

    async def in_transaction(self) -> bool:
        return await self.connection.run_sync(lambda connection: ConnectionWriter(connection, self.table).in_transaction())

    async def execute(self, statement: Statement, values: Values) -> Sequence[Any]:
        return await self.connection.run_sync(
            lambda connection: ConnectionWriter(connection, self.table).execute(statement, values)
        )


@dataclass(frozen=True, slots=True)
class AsyncSessionWriter:
    """Writes through an `AsyncSession`, without flushing it."""

    session: AsyncSession
    table: TableName

    async def in_transaction(self) -> bool:
        return await self.session.run_sync(lambda session: SessionWriter(session, self.table).in_transaction())

    async def execute(self, statement: Statement, values: Values) -> Sequence[Any]:
        return await self.session.run_sync(lambda session: SessionWriter(session, self.table).execute(statement, values))


class AsyncScopedSessionWriter(AsyncSessionWriter):
    """Writes through the current session of an `async_scoped_session`."""

    __slots__ = ()

    def __init__(self, scoped: async_scoped_session[Any], table: TableName) -> None:
        super().__init__(scoped(), table)


@lru_cache(maxsize=64)
def _clause(statement: Statement) -> TextClause:
    return text(statement.named)


@lru_cache(maxsize=32)
def _target(name: TableName) -> InsertClause:
    """Returns a clause by which a session can choose its bind."""
    return insert(table(name.name, schema=name.schema))
