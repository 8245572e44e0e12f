"""One transaction around a message handler: its session, its connection and its publisher are all in it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import asyncpg

from outbox.core.urls import postgres_url
from outbox.errors import CommitFailedError, ConfigurationError, MarkHeldError, MissingExtraError, Reject
from outbox.ports import Marks, Unit
from outbox.postgres.inbox import Inbox, Marking
from outbox.postgres.pool import (
    COMMAND_TIMEOUT,
    CONNECT_TIMEOUT,
    DRIVER_ERRORS,
    Pool,
    PooledConnection,
    open_connection,
    open_pool,
    reason_of,
    taken_from,
    unavailable_error,
)

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession


APPLICATION_NAME = "outbox worker"


def handler_engine(url: str, *, size: int) -> "AsyncEngine":
    """A SQLAlchemy engine for handlers' sessions, of up to `size` connections, none of them opened yet.

    Like our other connections it works behind a transaction pooler: statements are not cached, and have names of their own.
    Raises `MissingExtraError` without SQLAlchemy.
    """
    try:
        from sqlalchemy.ext.asyncio import create_async_engine
    except ImportError as error:
        raise MissingExtraError(purpose="A consumer's session", extra="sqlalchemy") from error
    return create_async_engine(
        "postgresql+asyncpg://",  # SQLAlchemy reads URLs of several hosts otherwise than PostgreSQL and asyncpg do
        pool_size=size,
        max_overflow=0,
        pool_timeout=CONNECT_TIMEOUT.total_seconds(),
        pool_pre_ping=True,
        connect_args={
            "async_creator_fn": open_connection,
            "dsn": postgres_url(url),
            "timeout": CONNECT_TIMEOUT.total_seconds(),
            "command_timeout": COMMAND_TIMEOUT.total_seconds(),
            "statement_cache_size": 0,
            "prepared_statement_cache_size": 0,
            "prepared_statement_name_func": lambda: f"outbox_{uuid4()}",
            "server_settings": {"application_name": APPLICATION_NAME},
        },
    )


Bind = Callable[[Any], AbstractContextManager[object]]
"""Makes the publisher for a session or a connection, which publishes within the block and refuses to after it."""


@asynccontextmanager
async def open_units(
    *, url: str | None, pool: Pool | None, sessions: int, connections: int, bind: Bind, inbox: Inbox
) -> AsyncIterator["PostgresUnitsOfWork"]:
    """Within the block there is room for so many handlers with a session, and so many with a connection, at once.

    Nothing is connected yet. A given `pool` serves those without a session and stays open. Raises `MissingExtraError` if
    sessions are wanted without SQLAlchemy.
    """
    async with AsyncExitStack() as stack:
        engine = None
        if url is not None and sessions:
            engine = handler_engine(url, size=sessions)
            stack.push_async_callback(engine.dispose)
        if url is not None and connections and pool is None:
            pool = await open_pool(url, size=connections, application_name=APPLICATION_NAME)
            stack.callback(pool.terminate)
        yield PostgresUnitsOfWork(pool=pool, engine=engine, bind=bind, inbox=inbox)


class PostgresUnitsOfWork:
    """Implements `outbox.ports.UnitsOfWork`: with a session if one is wanted, otherwise with a connection of the pool."""

    def __init__(self, *, pool: Pool | None, engine: "AsyncEngine | None", bind: Bind, inbox: Inbox) -> None:
        self._pool = pool
        self._engine = engine
        self._bind = bind
        self._inbox = inbox

    @asynccontextmanager
    async def begin(self, wanted: frozenset[str], marks: Marks | None = None) -> AsyncIterator[Unit]:
        """See `outbox.ports.UnitsOfWork.begin`."""
        marking = None if marks is None else self._inbox.marking(marks)
        if "session" in wanted:
            async with self._in_session(wanted, marking) as unit:
                yield unit
            return
        if self._pool is None:
            raise ConfigurationError("there is no pool for handlers that take a connection or a publisher")
        async with AsyncExitStack() as stack:
            with _unavailable_errors():
                connection = await stack.enter_async_context(taken_from(self._pool))
            within = self._with_connection if "connection" in wanted else self._behind_the_scenes
            yield await stack.enter_async_context(within(connection, wanted, marking))

    # --- with a session ------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _in_session(self, wanted: frozenset[str], marking: Marking | None) -> AsyncIterator[Unit]:
        from sqlalchemy.ext.asyncio import AsyncSession

        async with AsyncSession(self._engine, expire_on_commit=False) as session:
            guard = _CommitGuard(session, closed=marking is not None)
            async with _committing(partial(_commit, guard.commit, marking), session.rollback):
                marked = frozenset[str]()
                with _unavailable_errors():
                    if marking is not None:
                        marked = await _marked_in_session(session, marking)
                    elif "connection" in wanted:
                        # SQLAlchemy begins with its own first statement; what is run next to it before would commit by itself.
                        await (await session.connection()).exec_driver_sql("select 1")
                    resources = {"session": session, "connection": await _driver_connection(session)}
                begun = session.get_transaction()
                with self._publisher(session, wanted) as publisher:
                    yield Unit(resources=resources | publisher, marked=marked)
                if marking is not None and marked:
                    await session.flush()
                    if session.get_transaction() is begun:
                        status = await (await _driver_connection(session)).execute(self._inbox.same_transaction)
                        if not _has_row(status):
                            raise Reject(_ENDED_BY_ITSELF)
                        return
                    # After a rollback by the handler, so that what it wrote since is committed with the marks all the same.
                    with _unavailable_errors():
                        if await _marked_in_session(session, marking) != marked:
                            raise MarkHeldError("after a rollback by the handler another worker had marked the message")
                elif session.in_transaction():
                    await session.flush()
                    await _require_sound(await _driver_connection(session))

    # --- with a connection ---------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _with_connection(
        self, connection: PooledConnection, wanted: frozenset[str], marking: Marking | None
    ) -> AsyncIterator[Unit]:
        transaction = connection.transaction()
        with _unavailable_errors():
            await transaction.start()
        async with _committing(partial(_commit, transaction.commit, marking), transaction.rollback):
            marked = frozenset[str]()
            if marking is not None:
                with _unavailable_errors():
                    marked = await _marked(connection, marking)
            with self._publisher(connection, wanted) as publisher:
                yield Unit(resources={"connection": connection, **publisher}, marked=marked)
            if not marked:
                await _require_sound(connection)
            elif not _has_row(await connection.execute(self._inbox.same_transaction)):
                raise Reject(_ENDED_BY_ITSELF)

    @asynccontextmanager
    async def _behind_the_scenes(
        self, connection: PooledConnection, wanted: frozenset[str], marking: Marking | None
    ) -> AsyncIterator[Unit]:
        """Where the handler does not get at the connection, its transaction need not be one of asyncpg's: fewer round trips."""
        commit = partial(_commit, partial(_commit_or_raise, connection), marking)
        async with _committing(commit, partial(connection.execute, "rollback")):
            with _unavailable_errors():
                if marking is not None and marking.only:
                    marked = await _marked(connection, marking, first="begin;\n")
                else:
                    await connection.execute("begin")
                    marked = frozenset() if marking is None else await _marked(connection, marking)
            with self._publisher(connection, wanted) as publisher:
                yield Unit(resources=publisher, marked=marked)

    @contextmanager
    def _publisher(self, handle: object, wanted: frozenset[str]) -> Iterator[dict[str, object]]:
        """It ends when the handler does, before the commit: a task that outlives it must not write into what follows."""
        if "publisher" not in wanted:
            yield {}
            return
        with self._bind(handle) as publisher:
            yield {"publisher": publisher}


_ENDED_BY_ITSELF = (
    "the handler ended its transaction by itself, and with it the mark in the inbox: what it did before that stays, what it "
    "did after it was undone. With inbox=True leave commit and rollback to the worker, and use savepoints"
)


@asynccontextmanager
async def _committing(commit: Callable[[], Awaitable[None]], roll_back: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
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


async def _commit(commit: Callable[[], Awaitable[None]], marking: Marking | None) -> None:
    try:
        await commit()
    except Exception as error:
        if marking is None:
            raise
        raise CommitFailedError(f"committing a handler's transaction: {reason_of(error)}") from error


async def _commit_or_raise(connection: Any) -> None:
    """PostgreSQL commits nothing of a transaction in which a statement failed, and says so only in its answer."""
    if await connection.execute("commit") != "COMMIT":
        raise asyncpg.InFailedSQLTransactionError("a statement of the handler's had failed, and it went on")


# --- marks -------------------------------------------------------------------------------------------------------------


async def _marked(connection: Any, marking: Marking, *, first: str = "") -> frozenset[str]:
    """Makes marks; of which messages."""
    if marking.only:
        # Without parameters, and its rows unread: one round trip.
        return marking.all if _has_row(await connection.execute(first + marking.sql)) else frozenset()
    return marking.of(await connection.fetchval(marking.sql) or ())


async def _marked_in_session(session: "AsyncSession", marking: Marking) -> frozenset[str]:
    """Marks through SQLAlchemy, which begins the transaction with it."""
    row = (await (await session.connection()).exec_driver_sql(marking.sql)).first()
    if marking.only:
        return marking.all if row else frozenset()
    return marking.of(row[0] or ()) if row else frozenset()


def _has_row(status: str) -> bool:
    """What a statement's tag (`INSERT 0 1`) says."""
    return not status.endswith(" 0")


class _CommitGuard:
    """Lets only the worker commit a session that marks: a mark that is committed with a part of the work hides the rest."""

    def __init__(self, session: "AsyncSession", *, closed: bool) -> None:
        from sqlalchemy import event

        self._session = session
        self._closed = closed
        if closed:
            event.listen(session.sync_session, "before_commit", self._refuse)

    async def commit(self) -> None:
        """The worker's commit."""
        self._closed = False
        await self._session.commit()

    def _refuse(self, session: Any) -> None:
        if self._closed and not session.in_nested_transaction():
            raise Reject("with inbox=True the worker commits, once the handler has returned: use session.begin_nested()")


# --- the driver --------------------------------------------------------------------------------------------------------


async def _driver_connection(session: "AsyncSession") -> Any:
    return (await (await session.connection()).get_raw_connection()).driver_connection


async def _require_sound(connection: Any) -> None:
    """Raises if a statement failed and the handler went on: PostgreSQL would answer `commit` with a silent rollback."""
    await connection.execute("select 1")


@contextmanager
def _unavailable_errors() -> Iterator[None]:
    """An error before the handler runs is not the message's fault."""
    try:
        yield
    except Exception as error:
        of_sqlalchemy = type(error).__module__.startswith("sqlalchemy.")
        if not isinstance(error, DRIVER_ERRORS) and not of_sqlalchemy:
            raise
        doing = "beginning a handler's transaction"
        if getattr(getattr(error, "orig", error), "sqlstate", None) in _HELD:  # SQLAlchemy's error wraps the driver's
            raise MarkHeldError(f"{doing}: {reason_of(error)}") from error
        raise unavailable_error(doing, error) from error


_HELD = frozenset({"55P03", "40P01", "40001"})
"""lock_not_available, deadlock_detected, serialization_failure: another worker is at the same mark."""
