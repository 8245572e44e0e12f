"""One transaction around a message handler: its session, its connection and its publisher are all in it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from outbox.errors import ConfigurationError, DatabaseUnavailableError, MissingExtraError
from outbox.postgres.pool import COMMAND_TIMEOUT, CONNECT_TIMEOUT, DRIVER_ERRORS, Pool, open_pool, reason_of, taken_from
from outbox.urls import postgres_url

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession

Bind = Callable[[Any], object]
"""Makes the publisher for a session or a connection."""

APPLICATION_NAME = "outbox worker"


@asynccontextmanager
async def open_units(
    *, url: str | None, pool: Pool | None, sessions: int, connections: int, bind: Bind
) -> AsyncIterator["PostgresUnitsOfWork"]:
    """Within the block there is room for so many handlers with a session, and so many with a connection, at once.

    Nothing is connected yet. A given `pool` serves those without a session and stays open. Raises `MissingExtraError` if
    sessions are wanted without SQLAlchemy.
    """
    async with AsyncExitStack() as stack:
        engine = None
        if url is not None and sessions:
            engine = _handler_engine(url, size=sessions)
            stack.push_async_callback(engine.dispose)
        if url is not None and connections and pool is None:
            pool = await open_pool(url, size=connections, application_name=APPLICATION_NAME)
            stack.callback(pool.terminate)
        yield PostgresUnitsOfWork(pool=pool, engine=engine, bind=bind)


class PostgresUnitsOfWork:
    """Implements `outbox.ports.UnitsOfWork`: with a session if one is wanted, otherwise with a connection of the pool."""

    def __init__(self, *, pool: Pool | None, engine: "AsyncEngine | None", bind: Bind) -> None:
        self._pool = pool
        self._engine = engine
        self._bind = bind

    @asynccontextmanager
    async def begin(self, wanted: frozenset[str]) -> AsyncIterator[Mapping[str, object]]:
        """See `outbox.ports.UnitsOfWork.begin`."""
        if "session" in wanted:
            async with self._in_session(wanted) as resources:
                yield resources
        else:
            async with self._in_connection(wanted) as resources:
                yield resources

    @asynccontextmanager
    async def _in_session(self, wanted: frozenset[str]) -> AsyncIterator[Mapping[str, object]]:
        from sqlalchemy.ext.asyncio import AsyncSession

        async with AsyncSession(self._engine, expire_on_commit=False) as session:
            with _unavailable_errors():
                driver_connection = await _driver_connection(session)
                if "connection" in wanted:
                    # SQLAlchemy begins with its own first statement; what is run beside it before that would commit by itself.
                    await (await session.connection()).exec_driver_sql("select 1")
            resources = {"session": session, "connection": driver_connection}
            if "publisher" in wanted:
                resources["publisher"] = self._bind(session)
            async with _committing(session.commit, session.rollback):
                yield resources
                if session.in_transaction():
                    await session.flush()
                    await _require_sound(await _driver_connection(session))

    @asynccontextmanager
    async def _in_connection(self, wanted: frozenset[str]) -> AsyncIterator[Mapping[str, object]]:
        if self._pool is None:
            raise ConfigurationError("there is no pool for handlers that take a connection or a publisher")
        async with AsyncExitStack() as stack:
            with _unavailable_errors():
                connection = await stack.enter_async_context(taken_from(self._pool))
            transaction = connection.transaction()
            with _unavailable_errors():
                await transaction.start()
            resources: dict[str, object] = {"connection": connection}
            if "publisher" in wanted:
                resources["publisher"] = self._bind(connection)
            async with _committing(transaction.commit, transaction.rollback):
                yield resources
                await _require_sound(connection)


@asynccontextmanager
async def _committing(commit: Callable[[], Awaitable[None]], roll_back: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Commits after the block, or rolls back; then the block's own error is raised, whatever becomes of the rollback."""
    try:
        yield
    except BaseException as error:
        try:
            await roll_back()
        except Exception as failure:  # noqa: BLE001  the connection is gone, and the transaction with it
            error.add_note(f"rolling back failed, too: {reason_of(failure)}")
        raise
    await commit()


async def _driver_connection(session: "AsyncSession") -> Any:
    return (await (await session.connection()).get_raw_connection()).driver_connection


async def _require_sound(connection: Any) -> None:
    """Raises if a statement failed and the handler went on: PostgreSQL would answer `commit` with a silent rollback."""
    await connection.execute("select 1")


@contextmanager
def _unavailable_errors() -> Iterator[None]:
    """Whatever goes wrong before the handler runs is not the message's fault."""
    try:
        yield
    except DRIVER_ERRORS as error:
        raise DatabaseUnavailableError(f"beginning a handler's transaction: {reason_of(error)}") from error
    except Exception as error:
        if not type(error).__module__.startswith("sqlalchemy."):
            raise
        raise DatabaseUnavailableError(f"beginning a handler's transaction: {reason_of(error)}") from error


def _handler_engine(url: str, *, size: int) -> "AsyncEngine":
    """A SQLAlchemy engine for handlers' sessions, of up to `size` connections, none of them opened yet.

    Like our other connections it works behind a transaction pooler: statements are not cached, and have names of their own.
    Raises `MissingExtraError` without SQLAlchemy.
    """
    try:
        from sqlalchemy.ext.asyncio import create_async_engine
    except ImportError as error:
        raise MissingExtraError(purpose="A consumer's session", extra="sqlalchemy") from error
    return create_async_engine(
        "postgresql+asyncpg" + postgres_url(url).removeprefix("postgresql"),
        pool_size=size,
        max_overflow=0,
        pool_timeout=CONNECT_TIMEOUT.total_seconds(),
        pool_pre_ping=True,
        connect_args={
            "timeout": CONNECT_TIMEOUT.total_seconds(),
            "command_timeout": COMMAND_TIMEOUT.total_seconds(),
            "statement_cache_size": 0,
            "prepared_statement_cache_size": 0,
            "prepared_statement_name_func": lambda: f"outbox_{uuid4()}",
            "server_settings": {"application_name": APPLICATION_NAME},
        },
    )
