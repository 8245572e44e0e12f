"""One transaction around a message handler: its session, its connection and its publisher are all in it."""

import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import asyncpg

from outbox.core.urls import postgres_url
from outbox.errors import CommitFailedError, ConfigurationError, MarkHeldError, MissingExtraError, Reject
from outbox.ports import Marks, Unit
from outbox.postgres.inbox import Inbox, Marking, ended_by_itself
from outbox.postgres.pool import (
    COMMAND_TIMEOUT,
    CONNECT_TIMEOUT,
    DRIVER_ERRORS,
    KEPT_STATEMENTS,
    Pool,
    PooledConnection,
    Preparing,
    open_connection,
    open_pool,
    reason_of,
    roll_back_quietly,
    taken_from,
    unavailable_error,
)

if TYPE_CHECKING:
    from asyncpg.prepared_stmt import PreparedStatement
    from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession

    _Connection = asyncpg.Connection[asyncpg.Record]
else:  # the class is generic in the stubs only
    _Connection = asyncpg.Connection


APPLICATION_NAME = "outbox worker"
PING_AFTER = 30.0
"""A session's connection that nothing went through for so many seconds is asked whether it lives before it is used."""


class HandlerConnection(_Connection):
    """A connection that handlers may use. Its transactions begin and end together with a statement of ours, in one round trip.

    A commit raises where PostgreSQL answers with a rollback, because a statement failed and the handler went on.
    """

    __slots__ = ("_check", "_first", "_first_status")

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._first = self._first_status = self._check = ""

    async def begin_with(self, statement: str, start: Callable[[], Awaitable[object]]) -> str:
        """Lets `start`, asyncpg's or SQLAlchemy's, begin a transaction with `statement` as its first one; the status of that.

        Nothing is begun where it raises an error of the server's.
        """
        self._first = statement
        try:
            await start()
        finally:
            self._first = ""
        return self._first_status

    def check_before_commit(self, statement: str) -> None:
        """The next commit executes `statement` first, and rolls back and raises if that fails."""
        self._check = statement

    async def execute(self, query: str, *arguments: Any, timeout: float | None = None) -> str:
        """As asyncpg does; its transactions, and SQLAlchemy's, come through here to begin and to end."""
        if query.startswith("BEGIN"):
            self._check = ""
        if self._first and query.startswith("BEGIN"):
            try:
                self._first_status = await super().execute(f"{query}\n{self._first}", timeout=timeout)
            except asyncpg.PostgresError:
                self._top_xact = None  # asyncpg's transaction takes itself for begun
                await roll_back_quietly(super())
                raise
            return "BEGIN"
        if query != "COMMIT;":
            return await super().execute(query, *arguments, timeout=timeout)
        check, self._check = self._check, ""
        try:
            status = await super().execute(f"{check};\n{query}" if check else query, timeout=timeout)
        except asyncpg.PostgresError:
            if self.is_in_transaction():
                await roll_back_quietly(super())
            raise
        if status != "COMMIT":
            raise asyncpg.InFailedSQLTransactionError(_WENT_ON)
        return status


_WENT_ON = "a statement of the handler's had failed, and it went on"


class SessionConnection(HandlerConnection):
    """The same below a SQLAlchemy engine, whose statements it keeps prepared where nothing stands between it and the server."""

    __slots__ = ("_prepared",)

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._prepared: OrderedDict[str, PreparedStatement[Any]] = OrderedDict()

    async def prepare(self, query: str, *, name: str | None = None, **options: Any) -> Any:
        """What SQLAlchemy executes with: the statement of the last time, if it was kept."""
        if options or not getattr(self, "_stmt_cache_enabled", False):
            return await super().prepare(query, name=name, **options)
        statement = self._prepared.pop(query, None) or await super().prepare(query)
        self._prepared[query] = statement
        if len(self._prepared) > KEPT_STATEMENTS:
            self._prepared.popitem(last=False)
        return statement

    async def reload_schema_state(self) -> None:
        """SQLAlchemy wants this after a statement met a table that had changed."""
        self._prepared.clear()
        await super().reload_schema_state()


def handler_engine(url: str, *, size: int) -> "AsyncEngine":
    """A SQLAlchemy engine for handlers' sessions, of up to `size` connections, none of them opened yet.

    Like our other connections it works behind a transaction pooler: there, statements are not kept, and have names of their
    own. Raises `MissingExtraError` without SQLAlchemy.
    """
    try:
        from sqlalchemy import event
        from sqlalchemy.ext.asyncio import create_async_engine
    except ImportError as error:
        raise MissingExtraError(purpose="A consumer's session", extra="sqlalchemy") from error
    engine = create_async_engine(
        "postgresql+asyncpg://",  # SQLAlchemy reads URLs of several hosts otherwise than PostgreSQL and asyncpg do
        pool_size=size,
        max_overflow=0,
        pool_timeout=CONNECT_TIMEOUT.total_seconds(),
        connect_args={
            "async_creator_fn": open_connection,
            "connect": Preparing(keep_plans=True).connect,
            "connection_class": SessionConnection,
            "dsn": postgres_url(url),
            "timeout": CONNECT_TIMEOUT.total_seconds(),
            "command_timeout": COMMAND_TIMEOUT.total_seconds(),
            "prepared_statement_cache_size": 0,
            "prepared_statement_name_func": lambda: f"outbox_{uuid4()}",
            "server_settings": {"application_name": APPLICATION_NAME},
        },
    )
    event.listen(engine.sync_engine, "checkin", _used)
    event.listen(engine.sync_engine, "checkout", _refuse_lost)
    return engine


def _used(_connection: Any, record: Any) -> None:
    record.info["used"] = time.monotonic()


def _refuse_lost(connection: Any, record: Any, _proxy: Any) -> None:
    """In place of a ping before each use, which takes three round trips."""
    from sqlalchemy.exc import DisconnectionError

    if connection.driver_connection.is_closed():
        raise DisconnectionError("the server has closed the connection")
    if time.monotonic() - record.info.get("used", 0.0) > PING_AFTER:
        try:
            connection.ping()
        except Exception as error:
            raise DisconnectionError(f"the connection was lost: {reason_of(error)}") from error


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
        engine, is_ours = None, False
        if url is not None and sessions:
            engine = handler_engine(url, size=sessions)
            stack.push_async_callback(engine.dispose)
        if url is not None and connections and pool is None:
            pool = await open_pool(
                url,
                size=connections,
                application_name=APPLICATION_NAME,
                preparing=Preparing(keep_plans=True),
                connection_class=HandlerConnection,
            )
            stack.callback(pool.terminate)
            is_ours = True
        yield PostgresUnitsOfWork(pool=pool, is_ours=is_ours, engine=engine, bind=bind, inbox=inbox)


class PostgresUnitsOfWork:
    """Implements `outbox.ports.UnitsOfWork`: with a session if one is wanted, otherwise with a connection of the pool.

    A pool that `is_ours` is one of `HandlerConnection`s.
    """

    def __init__(
        self, *, pool: Pool | None, is_ours: bool = False, engine: "AsyncEngine | None", bind: Bind, inbox: Inbox
    ) -> None:
        self._pool = pool
        self._is_ours = is_ours
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

        async with AsyncSession(self._engine, sync_session_class=_session_class(), expire_on_commit=False) as session:
            guarded: Any = session.sync_session
            guarded.closed = marking is not None
            async with _committing(partial(_commit, partial(_commit_session, session), marking), session.rollback):
                resources: dict[str, object] = {"session": session}
                marked = frozenset[str]()
                with _unavailable_errors():
                    if marking is not None:
                        marked = await (_begun_in_session if marking.only else _marked_in_session)(session, marking)
                    elif "connection" in wanted:
                        # SQLAlchemy begins with its own first statement; what is run next to it before would commit by itself.
                        await (await session.connection()).exec_driver_sql("select 1")
                    if "connection" in wanted:
                        resources["connection"] = await _driver_connection(session)
                begun = session.get_transaction()
                with self._publisher(session, wanted) as publisher:
                    yield Unit(resources=resources | publisher, marked=marked)
                if marking is None or not marked:
                    return
                await session.flush()
                if session.get_transaction() is not begun:
                    # After a rollback by the handler, so that what it wrote since is committed with the marks all the same.
                    with _unavailable_errors():
                        if await _marked_in_session(session, marking) != marked:
                            raise MarkHeldError("after a rollback by the handler another worker had marked the message")
                (await _driver_connection(session)).check_before_commit(self._inbox.same_transaction)

    # --- with a connection ---------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _with_connection(
        self, connection: PooledConnection, wanted: frozenset[str], marking: Marking | None
    ) -> AsyncIterator[Unit]:
        transaction = connection.transaction()
        marked = frozenset[str]()
        with _unavailable_errors():
            if self._is_ours and marking is not None and marking.only:
                if _has_row(await _handlers(connection).begin_with(marking.sql, transaction.start)):
                    marked = marking.all
            else:
                await transaction.start()
        async with _committing(partial(_commit, transaction.commit, marking), transaction.rollback):
            if marking is not None and not (self._is_ours and marking.only):
                with _unavailable_errors():
                    marked = await _marked(connection, marking)
            with self._publisher(connection, wanted) as publisher:
                yield Unit(resources={"connection": connection, **publisher}, marked=marked)
            check = self._inbox.same_transaction if marked else ""
            if self._is_ours:
                _handlers(connection).check_before_commit(check)
            else:
                with _ended_errors():
                    await connection.execute(check or "select 1")

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
        with _ended_errors():
            await commit()
    except Reject:
        raise
    except Exception as error:
        if marking is None:
            raise
        raise CommitFailedError(f"committing a handler's transaction: {reason_of(error)}") from error


async def _commit_or_raise(connection: Any) -> None:
    """PostgreSQL commits nothing of a transaction in which a statement failed, and says so only in its answer."""
    if await connection.execute("commit") != "COMMIT":
        raise asyncpg.InFailedSQLTransactionError(_WENT_ON)


@contextmanager
def _ended_errors() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if ended_by_itself(error):
            raise Reject(_ENDED_BY_ITSELF) from error
        raise


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


async def _begun_in_session(session: "AsyncSession", marking: Marking) -> frozenset[str]:
    """Begins the transaction of a session that has none, with a mark as its first statement."""
    connection = await session.connection()
    adapted: Any = (await connection.get_raw_connection()).dbapi_connection
    try:
        # With its own first statement SQLAlchemy would begin with a round trip of its own, and prepare ours.
        status = await adapted.driver_connection.begin_with(marking.sql, adapted._start_transaction)  # noqa: SLF001
    except BaseException:
        await connection.invalidate()
        raise
    return marking.all if _has_row(status) else frozenset()


@cache
def _session_class() -> Any:
    """SQLAlchemy's session, which is `closed` where only the worker may commit it.

    A mark that is committed with a part of the work hides the rest.
    """
    from sqlalchemy import event
    from sqlalchemy.orm import Session

    class HandlerSession(Session):
        closed = False

    def refuse(session: HandlerSession) -> None:
        if session.closed and not session.in_nested_transaction():
            raise Reject("with inbox=True the worker commits, once the handler has returned: use session.begin_nested()")

    event.listen(HandlerSession, "before_commit", refuse)
    return HandlerSession


async def _commit_session(session: "AsyncSession") -> None:
    """The worker's commit."""
    guarded: Any = session.sync_session
    guarded.closed = False
    try:
        await session.commit()
    except Exception as error:
        cause = getattr(getattr(error, "orig", None), "__cause__", None)
        if isinstance(cause, asyncpg.InFailedSQLTransactionError):  # what our connection raised says it better
            raise cause from None
        raise


# --- the driver --------------------------------------------------------------------------------------------------------


async def _driver_connection(session: "AsyncSession") -> Any:
    return (await (await session.connection()).get_raw_connection()).driver_connection


def _handlers(connection: PooledConnection) -> HandlerConnection:
    """What a pool of ours hands out stands in for one of these."""
    handlers: Any = connection
    return handlers  # type: ignore[no-any-return]


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
