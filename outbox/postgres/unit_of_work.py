"""One transaction around a message handler: its session, its connection and its publisher are all in it."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack, asynccontextmanager, suppress
from functools import cache
from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import asyncpg

from outbox.core.urls import postgres_url
from outbox.errors import CommitFailedError, ConfigurationError, MarkHeldError, MissingExtraError, Reject, StaleStatementError
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
    give_back,
    open_connection,
    open_pool,
    reason_of,
    roll_back_quietly,
    take_from,
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


SPARE_FOR = 30.0
"""A connection that no handler needed for so many seconds goes back to the pool."""


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
            # Left by a transaction that was rolled back after all.
            self._check = ""
        if self._first and query.startswith("BEGIN"):
            try:
                self._first_status = await super().execute(f"{query}\n{self._first}", timeout=timeout)
            except asyncpg.PostgresError:
                # asyncpg's transaction takes itself for begun, and the pool would report that it was left open.
                self._top_xact = None
                await roll_back_quietly(super())
                raise
            return "BEGIN"
        # Savepoints, which handlers make with `transaction()` or `begin_nested()`, end with other words.
        if query != "COMMIT;":
            return await super().execute(query, *arguments, timeout=timeout)
        check, self._check = self._check, ""
        try:
            status = await super().execute(f"{check};\n{query}" if check else query, timeout=timeout)
        except asyncpg.PostgresError:
            # A commit that fails ends the transaction; a check that fails before it does not.
            if self.is_in_transaction():
                await roll_back_quietly(super())
            raise
        if status != "COMMIT":
            raise asyncpg.InFailedSQLTransactionError(_WENT_ON)
        return status


_WENT_ON = "a statement of the handler's had failed, and it went on"


class SessionConnection(HandlerConnection):
    """A `HandlerConnection` below a SQLAlchemy engine. On direct connections it keeps statements prepared."""

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
    prefix, numbers = f"outbox_{uuid4()}", count()
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
            "prepared_statement_name_func": lambda: f"{prefix}_{next(numbers)}",
            "server_settings": {"application_name": APPLICATION_NAME},
        },
    )
    event.listen(engine.sync_engine, "checkin", _used)
    event.listen(engine.sync_engine, "checkout", _refuse_lost)
    return engine


def _used(_connection: Any, record: Any) -> None:
    record.info["used"] = time.monotonic()


def _refuse_lost(connection: Any, record: Any, _proxy: Any) -> None:
    """Replaces SQLAlchemy's `pool_pre_ping`, which costs three round trips before each use."""
    from sqlalchemy.exc import DisconnectionError

    if connection.driver_connection.is_closed():
        raise DisconnectionError("the server has closed the connection")
    now = time.monotonic()
    if now - record.info.get("used", now) > PING_AFTER:  # a new connection has not been used yet
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
        units = PostgresUnitsOfWork(pool=pool, is_ours=is_ours, engine=engine, bind=bind, inbox=inbox)
        stack.callback(units.close)
        yield units


class PostgresUnitsOfWork:
    """Implements `outbox.ports.UnitsOfWork`: with a session if one is wanted, otherwise with a connection of the pool.

    A pool that `is_ours` is one of `HandlerConnection`s.
    """

    def __init__(
        self, *, pool: Pool | None, is_ours: bool = False, engine: "AsyncEngine | None", bind: Bind, inbox: Inbox
    ) -> None:
        self.pool = pool
        self.is_ours = is_ours
        self.engine = engine
        self.bind = bind
        self.inbox = inbox
        self._spare: list[PooledConnection] = []
        self._untouched = 0
        self._returning: asyncio.Task[None] | None = None

    async def take(self, *, seen: bool) -> Any:
        """A connection, for `give_back`; `seen` by the handler. Raises the driver's errors."""
        while self._spare and not seen:
            connection = self._spare.pop()
            self._untouched = min(self._untouched, len(self._spare))
            with suppress(asyncpg.InterfaceError):  # raised for what was lost, which the pool has taken back by itself
                if not connection.is_closed():
                    return connection
        if self.pool is None:
            raise ConfigurationError("there is no pool for handlers that take a connection or a publisher")
        # Ours has room for every handler at once.
        return await take_from(self.pool, crowded=not self.is_ours)

    async def give_back(self, connection: PooledConnection, *, seen: bool) -> None:
        """What a handler has `seen` goes back to the pool, which makes it useless to a task that outlives the handler.

        What it has not is kept for the next one: the pool would make a timer and a task for each of them.
        """
        with suppress(asyncpg.InterfaceError):  # as in `take`
            if connection.is_in_transaction():
                await roll_back_quietly(connection)
            elif self.is_ours and not seen and not connection.is_closed():
                self._spare.append(connection)
                if self._returning is None:
                    self._returning = asyncio.create_task(self._return_unused())
                return
        if self.pool is not None:
            await give_back(self.pool, connection)

    async def _return_unused(self) -> None:
        """Gives those to the pool that no handler needs any more, so that it closes them in its own time."""
        while self._spare and self.pool is not None:
            self._untouched = len(self._spare)
            await asyncio.sleep(SPARE_FOR)
            unused, self._spare = self._spare[: self._untouched], self._spare[self._untouched :]
            for connection in unused:
                await give_back(self.pool, connection)
        self._returning = None

    def close(self) -> None:
        """Ends what goes on by itself; the pool closes the connections."""
        if self._returning is not None:
            self._returning.cancel()

    def begin(self, wanted: frozenset[str], marks: Marks | None = None) -> AbstractAsyncContextManager[Unit]:
        """See `outbox.ports.UnitsOfWork.begin`."""
        marking = None if marks is None else self.inbox.marking(marks)
        if "session" in wanted:
            return _InSession(self, wanted, marking)
        return (_OnConnection if "connection" in wanted else _BehindTheScenes)(self, wanted, marking)


class _Work:
    """One transaction as a context manager. A class, not a generator: each one of those would be resumed at every await."""

    handle: Any
    """What its publisher writes through."""

    def __init__(self, units: PostgresUnitsOfWork, wanted: frozenset[str], marking: Marking | None) -> None:
        self.units = units
        self.wanted = wanted
        self.marking = marking
        self.marked = frozenset[str]()
        self._bound: AbstractContextManager[object] | None = None

    async def __aenter__(self) -> Unit:
        try:
            resources = await self.open()
        except BaseException as error:
            await self.close()
            _raise_unavailable(error)
            raise
        if "publisher" in self.wanted:
            self._bound = self.units.bind(self.handle)
            resources["publisher"] = self._bound.__enter__()
        return Unit(resources=resources, marked=self.marked)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            try:
                if self._bound is not None:
                    # Before the commit: a task that outlives the handler must not write into what follows.
                    self._bound.__exit__(kind, error, traceback)
                if error is None:
                    await self.check()
            except BaseException as failure:
                await self._undo(failure)
                if ended_by_itself(failure):
                    raise Reject(_ENDED_BY_ITSELF) from failure
                raise
            if error is not None:
                await self._undo(error)
                if _is_stale(error):
                    raise StaleStatementError(f"a statement was prepared for other tables: {reason_of(error)}") from error
            else:
                await self._commit()
        finally:
            await self.close()

    async def _undo(self, error: BaseException) -> None:
        """Rolls back; the block's own `error` is raised, whatever becomes of that."""
        try:
            await self.roll_back()
        except Exception as failure:  # noqa: BLE001  the connection is gone, and the transaction with it
            error.add_note(f"rolling back failed, too: {reason_of(failure)}")

    async def _commit(self) -> None:
        try:
            await self.commit()
        except Exception as error:
            if ended_by_itself(error):
                raise Reject(_ENDED_BY_ITSELF) from error
            if self.marking is None:
                raise
            raise CommitFailedError(f"committing a handler's transaction: {reason_of(error)}") from error

    async def open(self) -> dict[str, object]:
        """Begins, with the marks; what the handler gets of it. Sets `handle` and `marked`."""
        raise NotImplementedError

    async def check(self) -> None:
        """The last step before the commit; what it raises undoes everything."""

    async def commit(self) -> None:
        """Commits or raises."""
        raise NotImplementedError

    async def roll_back(self) -> None:
        """Undoes everything."""
        raise NotImplementedError

    async def close(self) -> None:
        """Gives back what was taken, if anything was."""
        raise NotImplementedError


class _BehindTheScenes(_Work):
    """Where the handler does not get at the connection, its transaction need not be one of asyncpg's."""

    seen = False
    connection: Any = None

    async def open(self) -> dict[str, object]:
        self.connection = self.handle = connection = await self.units.take(seen=self.seen)
        if self.marking is not None and self.marking.only:
            self.marked = await _marked(connection, self.marking, first="begin;\n")
        else:
            await connection.execute("begin")
            if self.marking is not None:
                self.marked = await _marked(connection, self.marking)
        return {}

    async def commit(self) -> None:
        """PostgreSQL commits nothing of a transaction in which a statement failed, and says so only in its answer."""
        if await self.connection.execute("commit") != "COMMIT":
            raise asyncpg.InFailedSQLTransactionError(_WENT_ON)

    async def roll_back(self) -> None:
        await self.connection.execute("rollback")

    async def close(self) -> None:
        if self.connection is not None:
            await self.units.give_back(self.connection, seen=self.seen)


class _OnConnection(_BehindTheScenes):
    """With the connection, whose `transaction()` makes savepoints in ours."""

    seen = True

    async def open(self) -> dict[str, object]:
        self.connection = self.handle = connection = await self.units.take(seen=self.seen)
        self._transaction = connection.transaction()
        if self.units.is_ours and self.marking is not None and self.marking.only:
            if _has_row(await connection.begin_with(self.marking.sql, self._transaction.start)):
                self.marked = self.marking.all
        else:
            await self._transaction.start()
            if self.marking is not None:
                try:
                    self.marked = await _marked(connection, self.marking)
                except BaseException as error:
                    await self._undo(error)
                    raise
        return {"connection": connection}

    async def check(self) -> None:
        statement = self.units.inbox.same_transaction if self.marked else ""
        if self.units.is_ours:
            self.connection.check_before_commit(statement)
            return
        await self.connection.execute(statement or "select 1")

    async def commit(self) -> None:
        await self._transaction.commit()

    async def roll_back(self) -> None:
        await self._transaction.rollback()


class _InSession(_Work):
    """With a session of SQLAlchemy's, and on demand with the connection below it.

    SQLAlchemy makes a greenlet for every call; so that they are few, one ends everything.
    """

    failure: Exception | None = None
    """What its commit raised."""

    async def open(self) -> dict[str, object]:
        self.handle = session = _session_maker()(self.units.engine, closed=self.marking is not None)
        if self.marking is not None:
            self.marked = await (_begun_in_session if self.marking.only else _marked_in_session)(session, self.marking)
        elif "connection" in self.wanted:
            # SQLAlchemy begins with its own first statement; what is run next to it before would commit by itself.
            await (await session.connection()).exec_driver_sql("select 1")
        self._begun = session.sync_session.get_transaction()
        if "connection" in self.wanted:
            return {"session": session, "connection": (await session.run_sync(_adapted)).driver_connection}
        return {"session": session}

    async def check(self) -> None:
        session = self.handle
        if await session.run_sync(self._finished) or self.marking is None:
            return
        # After a rollback by the handler, so that what it wrote since is committed with the marks all the same.
        try:
            marked = await _marked_in_session(session, self.marking)
        except Exception as error:
            _raise_unavailable(error)
            raise
        if marked != self.marked:
            raise MarkHeldError("after a rollback by the handler another worker had marked the message")
        self._begun = session.sync_session.get_transaction()
        if not await session.run_sync(self._finished):
            raise RuntimeError("the session was rolled back while it was flushed")

    def _finished(self, session: Any) -> bool:
        """Commits, with the marks; False if they were rolled back."""
        # What it raises is the handler's failure; what the commit raises leaves open whether it was committed.
        if self.marked or session.in_transaction():
            session.flush()
        if self.marked:
            if session.get_transaction() is not self._begun:
                return False
            _adapted(session).driver_connection.check_before_commit(self.units.inbox.same_transaction)
        session.closed = False
        try:
            session.commit()
        except Exception as error:  # noqa: BLE001  `commit` raises it
            self.failure = error
        session.close()
        return True

    async def commit(self) -> None:
        if self.failure is not None:
            cause = getattr(getattr(self.failure, "orig", None), "__cause__", None)
            # What our connection raised says it better.
            raise cause if isinstance(cause, asyncpg.InFailedSQLTransactionError) else self.failure

    async def roll_back(self) -> None:
        await self.handle.rollback()

    async def close(self) -> None:
        if self.handle.sync_session.in_transaction():
            await self.handle.close()


_ENDED_BY_ITSELF = (
    "the handler ended its transaction by itself, and with it the mark in the inbox: what it did before that stays, what it "
    "did after it was undone. With inbox=True leave commit and rollback to the worker, and use savepoints"
)


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
    adapted = await session.run_sync(_adapted)
    try:
        # With its own first statement SQLAlchemy would begin with a round trip of its own, and prepare ours.
        status = await adapted.driver_connection.begin_with(marking.sql, adapted._start_transaction)  # noqa: SLF001
    except BaseException:
        await (await session.connection()).invalidate()
        raise
    return marking.all if _has_row(status) else frozenset()


def _adapted(session: Any) -> Any:
    """SQLAlchemy's face of the driver's connection that a session is on; it takes one."""
    return session.connection().connection.dbapi_connection


@cache
def _session_maker() -> Any:
    """Makes sessions of SQLAlchemy's, which are `closed` where only the worker may commit.

    A mark that is committed with a part of the work hides the rest.
    """
    from sqlalchemy import event
    from sqlalchemy.ext.asyncio import AsyncSession
    from sqlalchemy.orm import Session

    class HandlerSession(Session):
        closed = False

    def refuse(session: HandlerSession) -> None:
        if session.closed and not session.in_nested_transaction():
            raise Reject("with inbox=True the worker commits, once the handler has returned: use session.begin_nested()")

    event.listen(HandlerSession, "before_commit", refuse)

    def made(engine: Any, *, closed: bool) -> AsyncSession:
        session = AsyncSession(engine, sync_session_class=HandlerSession, expire_on_commit=False)
        session.sync_session.closed = closed  # type: ignore[attr-defined]
        return session

    return made


def _is_stale(error: BaseException) -> bool:
    """Whether a table changed after the handler's statement was prepared. The driver prepares it again next time."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, _STALE):
        cause = cause.__cause__  # SQLAlchemy's error has the driver's as its cause
    return cause is not None


_STALE = (asyncpg.InvalidCachedStatementError, asyncpg.OutdatedSchemaCacheError)


def _raise_unavailable(error: BaseException) -> None:
    """An error before the handler runs is not the message's fault."""
    of_sqlalchemy = type(error).__module__.startswith("sqlalchemy.")
    if not isinstance(error, DRIVER_ERRORS) and not of_sqlalchemy:
        return
    doing = "beginning a handler's transaction"
    if getattr(getattr(error, "orig", error), "sqlstate", None) in _HELD:  # SQLAlchemy's error wraps the driver's
        raise MarkHeldError(f"{doing}: {reason_of(error)}") from error
    raise unavailable_error(doing, error) from error


_HELD = frozenset({"55P03", "40P01", "40001"})
"""lock_not_available, deadlock_detected, serialization_failure: another worker is at the same mark."""
