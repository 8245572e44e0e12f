"""Connections and sessions for message handlers: few round trips, and nothing of one handler is left to the next."""

import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from functools import cache, lru_cache
from itertools import count
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import asyncpg

from outbox.core.urls import postgres_url
from outbox.errors import MissingExtraError, Reject, TransactionRequiredError
from outbox.ports import Statement
from outbox.postgres.pool import (
    COMMAND_TIMEOUT,
    CONNECT_TIMEOUT,
    DRIVER_ERRORS,
    KEPT_STATEMENTS,
    Connector,
    PooledConnection,
    open_connection,
    reason_of,
    roll_back_quietly,
)

if TYPE_CHECKING:
    from asyncpg.prepared_stmt import PreparedStatement
    from sqlalchemy.ext.asyncio import AsyncEngine

    _Connection = asyncpg.Connection[asyncpg.Record]
else:  # the class is generic in the stubs only
    _Connection = asyncpg.Connection


APPLICATION_NAME = "outbox worker"
PING_AFTER = 30.0
"""Seconds without use after which a session's connection is pinged before the next one."""


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
        """Returns a proxy for one handler, in place of the pool's own, `pooled`. After `take_back` it refuses every call."""
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
        """Records whether a handler's statement contains SET."""
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
            raise asyncpg.InFailedSQLTransactionError(FAILED_EARLIER)
        return status


_LONGEST_SETTING = 2_000
"""Number of characters of a handler's statement that are searched for SET."""
# SET LOCAL and the like end with the transaction. The driver turns `jit` off and on again while it looks up types.
_BEFORE = r"(?:^|;)(?:\s|--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)*"
_SETTING = _BEFORE + r"set\s(?!\s*(?:local|transaction|constraints)\s)|\bset_config\b(?!\('jit'|\s*\([^()]*,\s*true\s*\))"
_find_setting = lru_cache(maxsize=KEPT_STATEMENTS)(re.compile(_SETTING, re.IGNORECASE).search)

FAILED_EARLIER = "an earlier statement failed and the handler went on, so PostgreSQL rolled back instead of committing"


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
    """Returns a SQLAlchemy engine for handlers' sessions, with up to `size` connections, none of which is open yet.

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
            "connect": Connector(keep_plans=True).connect,
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
    """Records when a connection was used last. Closes one that a handler's task still uses, or that is in a transaction."""
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
    """Replaces lost connections, as SQLAlchemy's `pool_pre_ping` does with three round trips before each use."""
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
    if caused_by(context.original_exception, *USELESS_AFTER):
        context.is_disconnect = True
        lacks_statements = caused_by(context.original_exception, asyncpg.InvalidSQLStatementNameError)
        context.invalidate_pool_on_disconnect = not lacks_statements


_SESSION_ENDED = "the session of this handler has ended with it: a task that runs later needs a session of its own"


@cache
def session_maker() -> Any:
    """Returns a factory of sessions. A `closed` one refuses commits by the handler; one that has `ended` refuses everything.

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

    def make(engine: Any, *, closed: bool) -> AsyncSession:
        session = AsyncSession(engine, sync_session_class=HandlerSession, expire_on_commit=False)
        session.sync_session.closed = closed  # type: ignore[attr-defined]
        _SESSION.set(session.sync_session)
        return session

    return make


def caused_by(error: BaseException, *kinds: type[BaseException]) -> bool:
    """Whether an error is one of the driver's `kinds`, which SQLAlchemy wraps."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, kinds):
        cause = cause.__cause__
    return cause is not None


USELESS_AFTER = (asyncpg.InvalidSQLStatementNameError, asyncpg.ReadOnlySQLTransactionError)
"""Errors of a connection without its prepared statements, or to a server that is read-only: only another one is of use."""
