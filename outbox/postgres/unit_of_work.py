"""One transaction around a message handler, shared by its session, its connection and its publisher."""

import asyncio
import re
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack, asynccontextmanager, suppress
from contextvars import ContextVar
from functools import cache, lru_cache
from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import asyncpg

from outbox.core.urls import postgres_url
from outbox.errors import (
    CommitFailedError,
    ConfigurationError,
    MarkHeldError,
    MissingExtraError,
    Reject,
    StaleDeliveryError,
    StaleStatementError,
    TransactionRequiredError,
)
from outbox.ports import Ending, Marks, Statement, Unit
from outbox.postgres.inbox import Inbox, Marking, ended_by_itself
from outbox.postgres.pool import (
    COMMAND_TIMEOUT,
    CONNECT_TIMEOUT,
    DRIVER_ERRORS,
    KEPT_STATEMENTS,
    REFUSALS,
    Pool,
    PooledConnection,
    Preparing,
    give_back,
    open_connection,
    open_pool,
    reason_of,
    roll_back_quietly,
    take_from,
    terminate,
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
"""Seconds without use after which a session's connection is pinged before the next one."""


SPARE_FOR = 30.0
"""Seconds without use after which a kept connection goes back to the pool."""

CLOSE_AGAIN = 0.1
"""Seconds between two attempts to close a session that a task of its handler still uses."""


class HandlerConnection(_Connection):
    """A connection for handlers that sends a statement of ours together with BEGIN or COMMIT, in one round trip.

    A commit that PostgreSQL turns into a rollback, because an earlier statement failed and the handler went on, raises.
    """

    __slots__ = ("_before_commit", "_first", "_first_status", "_names", "_number", "has_settings")

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._first: Statement | None = None
        self._first_status = ""
        self._before_commit: Sequence[Statement] = ()
        self._names: dict[str, str] = {}
        self._number = 0
        self.has_settings = False
        """Whether a handler has set something that outlives its transaction; see `reset_settings`."""

    async def send(self, *statements: "str | Statement", timeout: float | None = None) -> str:
        """Sends statements in one string. Returns the status of the last one.

        On a direct connection the server keeps each `Statement` prepared by a name, so that it is not planned again.
        """
        new: list[str] = []
        parts = [each if isinstance(each, str) else self._by_name(each, new) for each in statements]
        try:
            return await super().execute("\n".join(parts), timeout=timeout)
        except BaseException:
            # Whether the server prepared them before the error is unknown, so they get other names next time.
            for template in new:
                self._names.pop(template, None)
            raise

    def _by_name(self, statement: Statement, new: list[str]) -> str:
        if not getattr(self, "_stmt_cache_enabled", False):
            return f"{statement.text};"
        prepare = ""
        if (name := self._names.get(statement.template)) is None:
            self._number += 1
            name = self._names[statement.template] = f"outbox_{self._number}"
            new.append(statement.template)
            prepare = f"prepare {name}{f' ({statement.types})' if statement.types else ''} as {statement.template};\n"
        parameters = f" ({', '.join(statement.literals)})" if statement.literals else ""
        # Until the commit, before which nothing of the handler's runs any more.
        setting = "set local enable_seqscan = off;\n" if statement.needs_index else ""
        return f"{prepare}{setting}execute {name}{parameters};"

    async def begin_with(self, statement: Statement, start: Callable[[], Awaitable[object]]) -> str:
        """Calls `start`, which begins a transaction, and sends `statement` with its BEGIN. Returns the statement's status.

        `start` is asyncpg's or SQLAlchemy's. When the server reports an error, no transaction is left open.
        """
        self._first = statement
        try:
            await start()
        finally:
            self._first = None
        return self._first_status

    @staticmethod
    def lend(pooled: PooledConnection) -> PooledConnection:
        """A proxy for one handler, in place of `pooled`, the pool's own. After `take_back` it refuses every call."""
        proxy: Any = pooled
        proxy._con._set_proxy(None)  # noqa: SLF001
        return asyncpg.pool.PoolConnectionProxy(proxy._holder, proxy._con)  # noqa: SLF001

    @staticmethod
    def take_back(pooled: PooledConnection, lent: Any) -> None:
        """Ends the use of a proxy as a release to the pool would, but without the pool's task and timer."""
        lent._detach()  # noqa: SLF001
        connection = getattr(pooled, "_con", None)
        if connection is not None:  # None: the connection was lost, and the pool has replaced it
            connection._on_release()  # noqa: SLF001
            connection._set_proxy(pooled)  # noqa: SLF001
            if connection._listeners:  # noqa: SLF001  the next handler's transaction must not get them
                connection.terminate()

    def check_before_commit(self, statements: Sequence[Statement]) -> None:
        """Sends `statements` in front of the next COMMIT. If one fails, the commit raises and everything is rolled back."""
        self._before_commit = statements

    async def reset_settings(self) -> None:
        """Ends what a handler has set with SET, or else closes the connection. A pooler, if there is one, does so itself."""
        self.has_settings = False
        if getattr(self, "_stmt_cache_enabled", False):
            try:
                await super().execute("set session authorization default; reset all", timeout=1)
            except BaseException as error:
                self.terminate()
                if not isinstance(error, DRIVER_ERRORS):
                    raise

    def note(self, query: str) -> None:
        """Takes notice of a handler's SET."""
        if not self.has_settings:
            self.has_settings = _find_setting(query[:_LONGEST_SETTING]) is not None

    async def _get_statement(self, query: str, *arguments: Any, **options: Any) -> Any:
        self.note(query)  # of `fetch`, `prepare` and the like
        return await super()._get_statement(query, *arguments, **options)  # type: ignore[misc]

    async def execute(self, query: str, *arguments: Any, timeout: float | None = None) -> str:
        """Overrides asyncpg's method, through which its transactions and SQLAlchemy's send BEGIN and COMMIT."""
        self.note(query)
        if query.startswith("BEGIN"):
            # A transaction that was rolled back may have left a check behind.
            self._before_commit = ()
        if self._first is not None and query.startswith("BEGIN"):
            try:
                self._first_status = await self.send(query, self._first, timeout=timeout)
            except asyncpg.PostgresError:
                # asyncpg noted the transaction as begun, and the pool would report that it was left open.
                self._top_xact = None
                await roll_back_quietly(super())
                raise
            return "BEGIN"
        # Savepoints, which handlers make with `transaction()` or `begin_nested()`, end with RELEASE.
        if query != "COMMIT;":
            return await super().execute(query, *arguments, timeout=timeout)
        statements, self._before_commit = self._before_commit, ()
        try:
            status = await self.send(*statements, query, timeout=timeout)
        except asyncpg.PostgresError:
            # A failed COMMIT ends the transaction. A failed check in front of it does not.
            if self.is_in_transaction():
                await roll_back_quietly(super())
            raise
        if status != "COMMIT":
            raise asyncpg.InFailedSQLTransactionError(_FAILED_EARLIER)
        return status


_LONGEST_SETTING = 2_000
"""So many characters of a handler's statement are searched for SET."""
# SET LOCAL and the like end with the transaction. The driver turns `jit` off and on again while it looks up types.
_BEFORE = r"(?:^|;)(?:\s|--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)*"
_SETTING = _BEFORE + r"set\s(?!\s*(?:local|transaction|constraints)\s)|\bset_config\b(?!\('jit'|\s*\([^()]*,\s*true\s*\))"
_find_setting = lru_cache(maxsize=KEPT_STATEMENTS)(re.compile(_SETTING, re.IGNORECASE).search)

_FAILED_EARLIER = "an earlier statement failed and the handler went on, so PostgreSQL rolled back instead of committing"


class SessionConnection(HandlerConnection):
    """A `HandlerConnection` of a SQLAlchemy engine. It keeps statements prepared if no pooler is in between."""

    __slots__ = ("_prepared",)

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._prepared: OrderedDict[str, PreparedStatement[Any]] = OrderedDict()

    async def prepare(self, query: str, *, name: str | None = None, **options: Any) -> Any:
        """Returns the statement as prepared earlier, if it was. SQLAlchemy calls this for each execution."""
        if options or not getattr(self, "_stmt_cache_enabled", False):
            return await super().prepare(query, name=name, **options)
        self.note(query)
        statement = self._prepared.pop(query, None) or await super().prepare(query)
        self._prepared[query] = statement
        if len(self._prepared) > KEPT_STATEMENTS:
            self._prepared.popitem(last=False)
        return statement

    async def reload_schema_state(self) -> None:
        """Forgets prepared statements. SQLAlchemy calls this when a statement met a table that had changed."""
        self._prepared.clear()
        await super().reload_schema_state()


def handler_engine(url: str, *, size: int) -> "AsyncEngine":
    """A SQLAlchemy engine for handlers' sessions, with up to `size` connections, none of them open yet.

    Works behind a transaction pooler: there, no statement stays prepared, and each has a unique name. Raises
    `MissingExtraError` without SQLAlchemy.
    """
    try:
        from sqlalchemy import event
        from sqlalchemy.ext.asyncio import create_async_engine
    except ImportError as error:
        raise MissingExtraError(purpose="A consumer's session", extra="sqlalchemy") from error
    prefix, numbers = f"outbox_{uuid4()}", count()
    engine = create_async_engine(
        "postgresql+asyncpg://",  # no URL: SQLAlchemy reads one with several hosts differently from PostgreSQL and asyncpg
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
            # `SessionConnection.prepare` keeps the statements instead, and only where no pooler is in between.
            "prepared_statement_cache_size": 0,
            "prepared_statement_name_func": lambda: f"{prefix}_{next(numbers)}",
            "server_settings": {"application_name": APPLICATION_NAME},
        },
    )
    event.listen(engine.sync_engine, "checkin", _note_use)
    event.listen(engine.sync_engine, "checkout", _refuse_lost)
    event.listen(engine.sync_engine, "handle_error", _leave_useless)
    return engine


def _note_use(connection: Any, record: Any) -> None:
    """Notes when a connection was used last. Ends one that a task of the handler still uses, or kept from being rolled back."""
    record.info["used"] = time.monotonic()
    driver = None if connection is None else connection.driver_connection
    if driver is None or driver.is_closed():
        return
    # SQLAlchemy's lock for one statement at a time: the transaction of a statement that has just been sent is not known yet.
    if connection._execute_mutex.locked() or driver.is_in_transaction():  # noqa: SLF001
        driver.terminate()


_SESSION: ContextVar[Any] = ContextVar("outbox_handler_session", default=None)
"""The session of the handler that the calling task runs, or that has started it."""


def _refuse_lost(connection: Any, record: Any, _proxy: Any) -> None:
    """Replaces SQLAlchemy's `pool_pre_ping`, which costs three round trips before each use."""
    from sqlalchemy.exc import DisconnectionError
    from sqlalchemy.util import await_only

    # A task that was connecting when its handler failed: no one would give the connection back.
    if getattr(_SESSION.get(), "ended", False):
        raise TransactionRequiredError(_SESSION_ENDED)
    if connection.driver_connection.has_settings:
        await_only(connection.driver_connection.reset_settings())
    if connection.driver_connection.is_closed():
        raise DisconnectionError("the server has closed the connection")
    now = time.monotonic()
    if now - record.info.get("used", now) > PING_AFTER:  # a new connection has not been used yet
        try:
            connection.ping()
        except Exception as error:
            raise DisconnectionError(f"the connection was lost: {reason_of(error)}") from error


def _leave_useless(context: Any) -> None:
    """Closes all connections to a server that is read-only, as `outbox.postgres.pool.taken_from` does.

    Also closes a connection that a handler left without its prepared statements, by DEALLOCATE ALL or DISCARD.
    """
    if _caused_by(context.original_exception, *_USELESS_AFTER):
        context.is_disconnect = True
        lacks_statements = _caused_by(context.original_exception, asyncpg.InvalidSQLStatementNameError)
        context.invalidate_pool_on_disconnect = not lacks_statements


Bind = Callable[[Any], AbstractContextManager[object]]
"""Makes the publisher for a session or a connection. It refuses to publish after the block."""


@asynccontextmanager
async def open_units(
    *, url: str | None, pool: Pool | None, sessions: int, connections: int, bind: Bind, inbox: Inbox
) -> AsyncIterator["PostgresUnitsOfWork"]:
    """Transactions for up to `sessions` handlers with a session, and `connections` handlers without one, at the same time.

    Opens no connection yet. A given `pool` serves handlers without a session and stays open. Raises `MissingExtraError` if
    `sessions` is not 0 and SQLAlchemy is missing.
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
            # Not `close`, which would wait for spare connections, and for those that abandoned handlers still have.
            stack.callback(pool.terminate)
            is_ours = True
        database = None if url is None else postgres_url(url)
        units = PostgresUnitsOfWork(pool=pool, is_ours=is_ours, engine=engine, bind=bind, inbox=inbox, database=database)
        stack.callback(units.close)
        yield units


class PostgresUnitsOfWork:
    """Implements `outbox.ports.UnitsOfWork`: with a session if the handler takes one, otherwise with a connection of the pool.

    The connections of a pool that `is_ours` are `HandlerConnection`s. Deliveries of `database`, a URL, end in their handler's
    transaction.
    """

    def __init__(
        self,
        *,
        pool: Pool | None,
        is_ours: bool = False,
        engine: "AsyncEngine | None",
        bind: Bind,
        inbox: Inbox,
        database: str | None = None,
    ) -> None:
        self.database = database
        self.pool = pool
        self.is_ours = is_ours
        self.engine = engine
        self.bind = bind
        self.inbox = inbox
        self._spare: list[PooledConnection] = []
        self._untouched = 0
        self._waiting = 0
        self._returning: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[None]] = set()

    async def take(self) -> Any:
        """A connection of the pool, for `give_back`. Raises the driver's errors."""
        while self._spare:
            connection = self._spare.pop()
            # Taken from the top: with less work, those at the bottom stay unused, and `_return_unused` gives them back.
            self._untouched = min(self._untouched, len(self._spare))
            with suppress(asyncpg.InterfaceError):  # raised for a lost connection, which the pool has replaced
                if not connection.is_closed():
                    return connection
        if self.pool is None:
            raise ConfigurationError("there is no pool for handlers that take a connection or a publisher")
        # Our own pool has a connection for every handler, but for those whose delivery was lost and came again.
        self._waiting += 1
        try:
            return await take_from(self.pool, crowded=not self.is_ours)
        finally:
            self._waiting -= 1

    async def give_back(self, connection: Any) -> None:
        """Keeps a connection of our own pool for the next handler: the pool would make a timer and a task for each use."""
        with suppress(asyncpg.InterfaceError):  # as in `take`
            was_left_open = connection.is_in_transaction()
            if was_left_open:
                await roll_back_quietly(connection)
            if self.is_ours and connection.has_settings:
                await connection.reset_settings()
            # A handler that waits for a connection waits at the pool, and would not see one that is kept here.
            if self.is_ours and not was_left_open and not self._waiting and not connection.is_closed():
                self._spare.append(connection)
                if self._returning is None:
                    self._returning = asyncio.create_task(self._return_unused())
                return
        if self.pool is not None:
            await give_back(self.pool, connection)

    async def _return_unused(self) -> None:
        """Gives idle connections back to the pool, which closes them after a while."""
        while self._spare and self.pool is not None:
            self._untouched = len(self._spare)
            await asyncio.sleep(SPARE_FOR)
            unused, self._spare = self._spare[: self._untouched], self._spare[self._untouched :]
            for connection in unused:
                await give_back(self.pool, connection)
        self._returning = None

    def close_later(self, session: "AsyncSession") -> None:
        """Closes a session as soon as no task of its handler uses it any more."""

        async def close() -> None:
            while session.sync_session.in_transaction():
                await asyncio.sleep(CLOSE_AGAIN)
                with suppress(Exception):
                    await session.close()

        task = asyncio.create_task(close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def close(self) -> None:
        """Stops the tasks that return idle connections and close sessions. The pool and the engine close the connections."""
        for task in (*self._closing, *([] if self._returning is None else [self._returning])):
            task.cancel()

    def begin(
        self, wanted: frozenset[str], marks: Marks | None = None, ending: Ending | None = None
    ) -> AbstractAsyncContextManager[Unit]:
        """See `outbox.ports.UnitsOfWork.begin`."""
        marking = None if marks is None else self.inbox.marking(marks)
        if ending is not None and ending.database != self.database:
            ending = None
        if "session" in wanted:
            return _SessionTransaction(self, wanted, marking, ending)
        # The connections of a given pool cannot put statements in front of a commit.
        ending = ending if self.is_ours else None
        return (_ConnectionTransaction if "connection" in wanted else _BareTransaction)(self, wanted, marking, ending)


class _HandlerTransaction(ABC):
    """One transaction as a context manager. A class, because a generator would be resumed at every await of the handler."""

    handle: Any
    """What the handler's publisher writes through."""

    def __init__(
        self, units: PostgresUnitsOfWork, wanted: frozenset[str], marking: Marking | None, ending: Ending | None
    ) -> None:
        self.units = units
        self.wanted = wanted
        self.marking = marking
        self.ending = ending
        self.marked = frozenset[str]()
        self._bound: AbstractContextManager[object] | None = None

    async def __aenter__(self) -> Unit:
        try:
            resources = await self.open()
        except BaseException as error:
            self.leave(error)
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
                    # Before the commit: a task that outlives the handler must not publish in the next transaction.
                    self._bound.__exit__(kind, error, traceback)
                if error is None:
                    await self.check()
            except BaseException as failure:
                await self._undo(failure)
                if ended_by_itself(failure):
                    raise Reject(_ENDED_BY_HANDLER) from failure
                raise
            if error is not None:
                await self._undo(error)
                if _caused_by(error, *_STALE):
                    raise StaleStatementError(f"a statement was prepared for other tables: {reason_of(error)}") from error
            else:
                await self._commit()
        finally:
            await self.close()

    async def _undo(self, error: BaseException) -> None:
        """Rolls back. A failure to do so becomes a note of `error`, which the caller raises."""
        if self.leave(error):
            return
        try:
            await self.roll_back()
        except Exception as failure:  # noqa: BLE001  the connection is gone, and the transaction with it
            error.add_note(f"the rollback failed as well: {reason_of(failure)}")

    async def _commit(self) -> None:
        try:
            await self.commit()
        except Exception as error:
            self.leave(error)
            if ended_by_itself(error):
                raise Reject(_ENDED_BY_HANDLER) from error
            if _caused_by(error, asyncpg.InvalidSQLStatementNameError):
                raise StaleStatementError(f"the handler deallocated statements of the worker: {reason_of(error)}") from error
            if self.ending is not None:
                if _LEASE_LOST in str(error):
                    raise StaleDeliveryError("another worker has the delivery, so the handler was rolled back") from error
                self.ending.unknown()
            # Only a mark can show later whether an interrupted commit succeeded. Without one, the attempt has failed.
            if self.marking is None:
                raise
            raise CommitFailedError(f"committing a handler's transaction: {reason_of(error)}") from error
        if self.ending is not None:
            self.ending.committed()

    def before_commit(self) -> Sequence[Statement]:
        """What to send in front of COMMIT: it fails if the mark is not in this transaction, or the lease is lost."""
        if self.ending is not None:
            return (self.ending.statement(marked=bool(self.marked)),)
        return (self.units.inbox.same_transaction,) if self.marked else ()

    def leave(self, error: BaseException) -> bool:  # noqa: ARG002  a session's connection is left by `_leave_useless`
        """Closes the connection, and returns True, if it is of no use after `error`."""
        return False

    @abstractmethod
    async def open(self) -> dict[str, object]:
        """Begins and makes the marks. Returns the handler's resources. Sets `handle` and `marked`."""

    @abstractmethod
    async def check(self) -> None:
        """Runs just before the commit. If it raises, the transaction is rolled back."""

    @abstractmethod
    async def commit(self) -> None:
        """Commits or raises."""

    @abstractmethod
    async def roll_back(self) -> None:
        """Rolls back."""

    @abstractmethod
    async def close(self) -> None:
        """Gives back the connection, if there is one."""


class _BareTransaction(_HandlerTransaction):
    """For handlers that take no connection. It sends BEGIN and COMMIT itself; asyncpg's `Transaction` objects cost more."""

    connection: Any = None

    def leave(self, error: BaseException) -> bool:
        is_useless = self.connection is not None and _caused_by(error, *_USELESS_AFTER)
        if is_useless:
            terminate(self.connection)
        return is_useless

    async def open(self) -> dict[str, object]:
        self.connection = self.handle = connection = await self.units.take()
        if self.marking is not None and self.marking.only:
            if self.units.is_ours:
                status = await connection.send("begin;", self.marking.statement)
            else:
                status = await connection.execute(f"begin;\n{self.marking.sql}")
            self.marked = self.marking.all if _has_row(status) else frozenset()
        else:
            await connection.execute("begin")
            if self.marking is not None:
                self.marked = await _marked(connection, self.marking)
        return {}

    async def check(self) -> None:
        """Does nothing: such a handler cannot end its transaction."""

    async def commit(self) -> None:
        """Commits. A transaction with a failed statement is rolled back instead, which only the command tag says."""
        before = () if self.ending is None else (self.ending.statement(marked=False),)
        try:
            status = await (self.connection.send(*before, "commit") if before else self.connection.execute("commit"))
        except asyncpg.PostgresError:
            if self.connection.is_in_transaction():
                await self.roll_back()
            raise
        if status != "COMMIT":
            raise asyncpg.InFailedSQLTransactionError(_FAILED_EARLIER)

    async def roll_back(self) -> None:
        await self.connection.execute("rollback")

    async def close(self) -> None:
        if self.connection is not None:
            await self.units.give_back(self.connection)


class _ConnectionTransaction(_BareTransaction):
    """For handlers that take the connection. Its `transaction()` makes savepoints within ours."""

    _pooled: Any = None

    async def open(self) -> dict[str, object]:
        self.connection = self._pooled = connection = await self.units.take()
        if self.units.is_ours:
            self.connection = connection = HandlerConnection.lend(connection)
        self.handle = connection
        self._transaction = connection.transaction()
        if self.units.is_ours and self.marking is not None and self.marking.only:
            if _has_row(await connection.begin_with(self.marking.statement, self._transaction.start)):
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
        statements = self.before_commit()
        if self.units.is_ours:
            self.connection.check_before_commit(statements)
            return
        await self.connection.execute(";\n".join(each.text for each in statements) or "select 1")

    async def commit(self) -> None:
        await self._transaction.commit()

    async def roll_back(self) -> None:
        await self._transaction.rollback()

    async def close(self) -> None:
        if self.units.is_ours and self.connection is not self._pooled:
            HandlerConnection.take_back(self._pooled, self.connection)
        self.connection = self._pooled
        await super().close()


class _SessionTransaction(_HandlerTransaction):
    """For handlers that take a SQLAlchemy session, or a session and its connection.

    SQLAlchemy makes a greenlet for each call, so one call flushes, checks and commits.
    """

    failure: Exception | None = None
    """The error that the commit raised, kept for `commit` to raise."""

    async def open(self) -> dict[str, object]:
        self.handle = session = _session_maker()(self.units.engine, closed=self.marking is not None)
        _SESSION.set(session.sync_session)
        if self.marking is not None:
            self.marked = await (_begun_in_session if self.marking.only else _marked_in_session)(session, self.marking)
        elif "connection" in self.wanted:
            # SQLAlchemy sends BEGIN with its own first statement. Earlier statements on the bare connection would autocommit.
            await (await session.connection()).exec_driver_sql("select 1")
        self._begun = session.sync_session.get_transaction()
        if "connection" in self.wanted:
            return {"session": session, "connection": (await session.run_sync(_adapted)).driver_connection}
        return {"session": session}

    async def check(self) -> None:
        session = self.handle
        if await session.run_sync(self._finished) or self.marking is None:
            return
        # The handler rolled back, and the marks with it. Make them again, so that they are committed with what it wrote since.
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
        """Flushes and commits. False, with nothing committed, if the handler had rolled the marks back."""
        # An error of the flush is the handler's failure. An error of the commit leaves open whether it was committed.
        if self.marked or session.in_transaction():
            session.flush()
        if self.marked and session.get_transaction() is not self._begun:
            return False
        if not session.in_transaction():
            # The handler used no session, or committed by itself: no commit of ours follows that could end the delivery.
            self.ending = None
        elif before := self.before_commit():
            if (adapted := _adapted(session)).autocommit:
                self.ending = None  # it has committed each statement, and sends no COMMIT
            else:
                adapted.driver_connection.check_before_commit(before)
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
            # Our connection's own error is clearer than SQLAlchemy's wrapper.
            raise cause if isinstance(cause, asyncpg.InFailedSQLTransactionError) else self.failure

    async def roll_back(self) -> None:
        await self.handle.rollback()

    async def close(self) -> None:
        session = self.handle.sync_session
        session.ended = True
        if session.in_transaction():
            try:
                await self.handle.close()
            except Exception:  # noqa: BLE001  a task of the handler uses it, as after `gather`; its connection is not to be lost
                self.units.close_later(self.handle)


_SESSION_ENDED = "the session of this handler has ended with it: a task that runs later needs a session of its own"
_ENDED_BY_HANDLER = (
    "the handler ended its transaction itself, and with it the mark in the inbox: its writes before that stay, its later "
    "writes were rolled back. With inbox=True leave commit and rollback to the worker, and use savepoints"
)


# --- marks -------------------------------------------------------------------------------------------------------------


async def _marked(connection: Any, marking: Marking) -> frozenset[str]:
    """Makes the marks. Returns the ids of the messages that were not marked before."""
    if marking.only:
        # A statement without parameters, whose rows are not read, takes one round trip.
        return marking.all if _has_row(await connection.execute(marking.sql)) else frozenset()
    return marking.of(await connection.fetchval(marking.sql) or ())


async def _marked_in_session(session: "AsyncSession", marking: Marking) -> frozenset[str]:
    """Makes the marks through SQLAlchemy, as the first statement of its transaction."""
    row = (await (await session.connection()).exec_driver_sql(marking.sql)).first()
    if marking.only:
        return marking.all if row else frozenset()
    return marking.of(row[0] or ()) if row else frozenset()


def _has_row(status: str) -> bool:
    """Whether a command tag (`INSERT 0 1`) counts a row."""
    return not status.endswith(" 0")


async def _begun_in_session(session: "AsyncSession", marking: Marking) -> frozenset[str]:
    """Begins the transaction of a fresh session and makes its mark, in one round trip."""
    adapted = await session.run_sync(_adapted)
    try:
        # Left alone, SQLAlchemy would send BEGIN in a round trip of its own, and prepare the statement in another.
        status = await adapted.driver_connection.begin_with(marking.statement, adapted._start_transaction)  # noqa: SLF001
    except BaseException:
        await (await session.connection()).invalidate()
        raise
    return marking.all if _has_row(status) else frozenset()


def _adapted(session: Any) -> Any:
    """SQLAlchemy's adapter of the driver's connection. The session checks out a connection if it has none."""
    return session.connection().connection.dbapi_connection


@cache
def _session_maker() -> Any:
    """A factory of sessions. A `closed` session refuses commits by the handler; one that has `ended` refuses everything.

    With an inbox, a commit in the middle would store the mark with only a part of the work, and a retry would skip the rest.
    """
    from sqlalchemy import event
    from sqlalchemy.ext.asyncio import AsyncSession
    from sqlalchemy.orm import Session

    class HandlerSession(Session):
        closed = False
        ended = False

        def get_bind(self, *arguments: Any, **options: Any) -> Any:
            # A task that outlives its handler would begin a transaction that nothing ends, and keep its connection.
            if self.ended:
                raise TransactionRequiredError(_SESSION_ENDED)
            return super().get_bind(*arguments, **options)

    def refuse(session: HandlerSession) -> None:
        if session.closed and not session.in_nested_transaction():
            raise Reject("with inbox=True the worker commits, once the handler has returned: use session.begin_nested()")

    event.listen(HandlerSession, "before_commit", refuse)

    def made(engine: Any, *, closed: bool) -> AsyncSession:
        session = AsyncSession(engine, sync_session_class=HandlerSession, expire_on_commit=False)
        session.sync_session.closed = closed  # type: ignore[attr-defined]
        return session

    return made


_LEASE_LOST = "outbox.lease_lost"
"""The setting that `Ending.statement` reads, and that nothing sets, where the delivery is not leased any more."""


def _caused_by(error: BaseException, *kinds: type[BaseException]) -> bool:
    """Whether an error is one of the driver's `kinds`, which SQLAlchemy wraps."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, kinds):
        cause = cause.__cause__
    return cause is not None


_USELESS_AFTER = (asyncpg.InvalidSQLStatementNameError, asyncpg.ReadOnlySQLTransactionError)
"""Errors of a connection without its prepared statements, or to a server that is read-only: only another one is of use."""

_STALE = (asyncpg.InvalidCachedStatementError, asyncpg.OutdatedSchemaCacheError)
"""A table changed after the handler's statement was prepared. The driver prepares it again next time."""


def _raise_unavailable(error: BaseException) -> None:
    """Raises a database error from before the handler ran as one that spends no attempt of the message."""
    of_sqlalchemy = type(error).__module__.startswith("sqlalchemy.")
    if (not isinstance(error, DRIVER_ERRORS) and not of_sqlalchemy) or _caused_by(error, *REFUSALS):
        return  # a mark that a trigger refuses fails its message only
    doing = "beginning a handler's transaction"
    if getattr(getattr(error, "orig", error), "sqlstate", None) in _HELD:  # SQLAlchemy's error wraps the driver's
        raise MarkHeldError(f"{doing}: {reason_of(error)}") from error
    raise unavailable_error(doing, error) from error


_HELD = frozenset({"55P03", "40P01", "40001"})
"""lock_not_available, deadlock_detected, serialization_failure: another worker is at the same mark."""
