"""Connections to PostgreSQL: from a URL or a given pool, bounded in time, and working behind a transaction pooler."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import asyncpg

from outbox.core.urls import postgres_url, redacted, unreadable_file
from outbox.engine.observers import SERVED
from outbox.errors import DatabaseUnavailableError, StatementTimeoutError

if TYPE_CHECKING:
    _Connection = asyncpg.Connection[asyncpg.Record]


KEPT_STATEMENTS = 64
"""How many prepared statements a connection keeps. Beyond that, the least recently used ones are closed."""


class Connector:
    """Opens connections that keep prepared statements, unless they go through a transaction pooler.

    Checks this for each new connection, because a pooler may have been added or removed. With `keep_plans` PostgreSQL decides
    which plans it keeps. Otherwise it keeps none, because tables that are used as queues grow a thousandfold within seconds.
    """

    def __init__(self, *, keep_plans: bool = False) -> None:
        self._keep_plans = keep_plans
        self._kept = KEPT_STATEMENTS

    async def connect(self, *arguments: Any, **options: Any) -> "_Connection":
        """Opens a connection as `asyncpg.connect` does. Opens another if a pooler was added or removed since the last one."""
        assumed = self._kept  # other tasks connect meanwhile, and may change it
        connection: _Connection = await _connect(*arguments, **options, statement_cache_size=assumed)
        try:
            kept = self._kept = KEPT_STATEMENTS if await is_direct(connection, keep_plans=self._keep_plans) else 0
            if kept != assumed:
                await connection.close(timeout=1)
                connection = await _connect(*arguments, **options, statement_cache_size=kept)
                await is_direct(connection, keep_plans=self._keep_plans)  # sets how this one plans
        except BaseException:
            connection.terminate()
            raise
        return connection


async def is_direct(connection: "_Connection", *, keep_plans: bool = True) -> bool:
    """Whether no pooler is in between: the process id that was reported at the start is that of the process that answers.

    Poolers use many servers' processes, and report a number of their own. Without `keep_plans`, also makes a direct connection
    plan each statement again for each use, and compile none, which would take longer than running it.
    """
    settings = {} if keep_plans else {"plan_cache_mode": "force_custom_plan", "jit": "off"}
    answer = ", ".join(f"pg_catalog.set_config('{name}', '{value}', false)" for name, value in settings.items()) or "1"
    # One round trip of the simple protocol, which prepares no statement: behind a pooler, another session would find it.
    pid = connection.get_server_pid()
    return await connection.execute(f"select {answer} where pg_catalog.pg_backend_pid() = {pid}") == "SELECT 1"


CONNECT_TIMEOUT = timedelta(seconds=10)
"""Longest wait for a new connection, or for a free one of the pool."""
SPARE_LIFETIME = timedelta(seconds=40)
"""How long a pool keeps a connection that it does not use, in a process that serves several databases. The driver has 300 s.

Longer than the pauses of an idle relay or worker, which would otherwise connect again after each.
"""
COMMAND_TIMEOUT = timedelta(seconds=60)
"""Longest wait for any single statement, so that no task waits for ever for a server that vanished silently."""

if TYPE_CHECKING:
    Pool = asyncpg.Pool[asyncpg.Record]
    PooledConnection = asyncpg.pool.PoolConnectionProxy[asyncpg.Record]
    Connection = asyncpg.Connection[asyncpg.Record] | PooledConnection
else:  # the classes are generic in the stubs only
    Pool = asyncpg.Pool
    PooledConnection = asyncpg.pool.PoolConnectionProxy
    Connection = asyncpg.Connection | PooledConnection

Connect = Callable[[], AbstractAsyncContextManager[Connection]]
"""Opens a connection that no other task uses until the block ends."""

# asyncpg itself raises an AttributeError if a connection is lost while it prepares a statement.
DRIVER_ERRORS = (
    OSError,
    TimeoutError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    AttributeError,
)
"""What the driver raises when the server is unavailable, or refuses."""

REFUSALS = (
    asyncpg.DataError,
    asyncpg.ProgramLimitExceededError,
    asyncpg.IntegrityConstraintViolationError,
    asyncpg.PLPGSQLError,
)
"""Errors about the values of a statement, raised by PostgreSQL, the driver, or a trigger. Trying again does not help."""


_TLS_FILES = ("sslrootcert", "sslcert", "sslkey", "sslcrl")


class NoConnectionError(TimeoutError):
    """No connection was opened, or none of the pool became free, in time."""


async def open_pool(
    url: str,
    *,
    size: int,
    application_name: str,
    connect_timeout: timedelta = CONNECT_TIMEOUT,
    connector: Connector | None = None,
    connection_class: type[Connection] = asyncpg.Connection,
) -> Pool:
    """Returns a pool of up to `size` connections, none of which is open yet.

    Statements are prepared for one use, because named ones do not survive a transaction pooler. With `connector` they are kept
    if there is no pooler. Connections are not reset between uses, because Outbox sets nothing outside of a transaction.
    """
    arguments = _connection_arguments(application_name, connect_timeout) | {"connect": _connect}
    if connector is not None:
        del arguments["statement_cache_size"]
        arguments |= {"connect": connector.connect, "connection_class": connection_class}
    if SERVED.get() is not None:
        # Of several databases most are idle at any time, and a server has few connections for all of them.
        arguments["max_inactive_connection_lifetime"] = SPARE_LIFETIME.total_seconds()
    pool: Pool = asyncpg.create_pool(postgres_url(url), min_size=0, max_size=size, reset=_keep_as_it_is, **arguments)
    return await pool


def connect_to(url: str, *, application_name: str, connect_timeout: timedelta = CONNECT_TIMEOUT) -> Connect:
    """Returns a function that opens connections outside of any pool."""
    dsn = postgres_url(url)

    @asynccontextmanager
    async def connect() -> AsyncIterator[Connection]:
        connection = await open_connection(dsn, **_connection_arguments(application_name, connect_timeout))
        try:
            yield connection
        finally:
            await close_quietly(connection)

    return connect


async def _connect(dsn: str | None = None, **arguments: Any) -> Any:
    """Opens a connection as `asyncpg.connect` does. Errors name the host or the file, which those of the system do not."""
    try:
        return await asyncpg.connect(dsn, **arguments)
    except socket.gaierror as error:
        hosts = urlsplit(dsn or "").netloc.rpartition("@")[2]
        raise socket.gaierror(error.errno, f"{error.strerror}: {hosts or 'the host of PGHOST'}") from error
    except OSError as error:
        if problem := unreadable_file(dsn or "", _TLS_FILES):
            raise OSError(problem) from error
        raise


async def open_connection(
    dsn: str | None = None, *, connect: Callable[..., Awaitable[Any]] = _connect, **arguments: Any
) -> Any:
    """Opens a connection. Raises `NoConnectionError` if that takes too long, which is not a slow statement."""
    with _no_connection_errors(arguments["timeout"]):
        return await connect(dsn, **arguments)


def borrow_from(pool: Pool, *, connect_timeout: timedelta = CONNECT_TIMEOUT) -> Connect:
    """Returns a function that takes connections of `pool`, and gives them back without listeners and locks."""

    @asynccontextmanager
    async def connect() -> AsyncIterator[Connection]:
        async with taken_from(pool, connect_timeout=connect_timeout) as connection:
            try:
                yield connection
            finally:
                try:
                    await connection.reset(timeout=1)
                except DRIVER_ERRORS:
                    terminate(connection)

    return connect


@asynccontextmanager
async def taken_from(pool: Pool, *, connect_timeout: timedelta = CONNECT_TIMEOUT) -> AsyncIterator[PooledConnection]:
    """Takes a connection of `pool`, and gives it back at the end of the block. Closes it if its server is read-only."""
    connection = await take_from(pool, connect_timeout=connect_timeout)
    try:
        yield connection
    except asyncpg.ReadOnlySQLTransactionError:
        # A standby, or a former primary: the address may lead to the new one by now, which only a new connection reaches.
        terminate(connection)
        raise
    finally:
        await give_back(pool, connection)


async def take_from(pool: Pool, *, connect_timeout: timedelta = CONNECT_TIMEOUT, crowded: bool = True) -> PooledConnection:
    """Takes a connection of `pool`, for `give_back`. Raises `NoConnectionError`, or another of the driver's errors.

    `crowded` False: the pool always has room, so only connecting takes time, which the pool limits itself.
    """
    seconds = connect_timeout.total_seconds()
    with _no_connection_errors(seconds):
        return await pool.acquire(timeout=seconds if crowded else None)


@contextmanager
def _no_connection_errors(seconds: float) -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        if error.errno is not None:  # the operating system's, which says more
            raise
        raise NoConnectionError(f"no connection within {seconds:g} s") from error


async def give_back(pool: Pool, connection: PooledConnection) -> None:
    """Gives back a connection, which the pool closes if it is broken. Ignores the driver's errors about that.

    They would replace the error or the cancellation with which the caller ends: a task whose cancellation is lost runs on.
    """
    try:
        await pool.release(connection)
    except DRIVER_ERRORS:
        return


async def roll_back_quietly(connection: Any, *, after: BaseException | None = None) -> None:
    """Rolls a transaction back. Closes a connection that does not answer within a second, which has the same effect.

    `after` is the error that ended the transaction: if the server is read-only, closes the connection, as `taken_from` does.
    """
    if isinstance(after, asyncpg.ReadOnlySQLTransactionError):
        terminate(connection)
        return
    try:
        await connection.execute("rollback", timeout=1)
    except DRIVER_ERRORS:
        terminate(connection)
    # Cancelled meanwhile: whether the rollback arrived is unknown, and closing the connection ends the transaction for certain.
    except BaseException:
        terminate(connection)
        raise


@asynccontextmanager
async def optional_tables(connection: Any, *, or_forbidden: bool = True) -> AsyncIterator[None]:
    """Runs the block in a savepoint. Ends it silently if a table does not exist or, with `or_forbidden`, may not be used.

    An installation may lack the tables of reports, or of queues in PostgreSQL; the transaction continues without them. Turn
    `or_forbidden` off where a missing privilege must not look like an empty table.
    """
    missing = (asyncpg.UndefinedTableError, *((asyncpg.InsufficientPrivilegeError,) if or_forbidden else ()))
    with suppress(*missing):
        async with connection.transaction():
            yield


async def close_pool(pool: Pool) -> None:
    """Closes a pool that `open_pool` made: waits for a second for its connections, then cuts them off."""
    try:
        async with asyncio.timeout(1):
            await pool.close()
    except DRIVER_ERRORS:
        pool.terminate()
        await asyncio.sleep(0)  # the iteration of the loop in which cut connections close their sockets


@asynccontextmanager
async def given_or_open(
    given: Pool | None, url: str | None, *, size: int, application_name: str, connector: Connector | None = None
) -> AsyncIterator[Pool]:
    """Yields the `given` pool, which stays open; without one, a pool of up to `size` connections to `url`, then closes it."""
    if given is not None:
        yield given
        return
    pool = await open_pool(url or "", size=size, application_name=application_name, connector=connector)
    try:
        yield pool
    finally:
        await close_pool(pool)


async def close_quietly(connection: Any) -> None:
    """Closes `connection`: waits for a second for the server, then cuts it off. Ignores the driver's errors."""
    try:
        await connection.close(timeout=1)
    except DRIVER_ERRORS:
        connection.terminate()


def terminate(connection: Any) -> None:
    """Closes a connection without waiting. Does nothing if it was lost, and the pool has taken it back already."""
    with suppress(asyncpg.InterfaceError):
        connection.terminate()


@contextmanager
def unavailable_errors(
    doing: str, *, limit: timedelta = COMMAND_TIMEOUT, lock_timeout: timedelta | None = None
) -> Iterator[None]:
    """Turns the driver's errors into `DatabaseUnavailableError`, with `doing` in its text, and without secrets.

    If something took too long while the server answered, raises `StatementTimeoutError`, which names the limit. `limit` is that
    of the driver for a statement; `lock_timeout` is that of the transaction, if it has one.
    """
    try:
        yield
    except DRIVER_ERRORS as error:
        raise unavailable_error(doing, error, limit=limit, lock_timeout=lock_timeout) from error


def unavailable_error(
    doing: str, error: BaseException, *, limit: timedelta = COMMAND_TIMEOUT, lock_timeout: timedelta | None = None
) -> DatabaseUnavailableError:
    """Returns the error to raise in place of the driver's `error`; see `unavailable_errors`."""
    # The server's reason for ending a session is the cause of the driver's error about the lost connection. SQLAlchemy's error
    # has the driver's as its cause.
    cause: BaseException | None = error
    while cause is not None and not (isinstance(cause, asyncpg.PostgresError) and cause.sqlstate in _SERVER_TIMEOUTS):
        cause = cause.__cause__
    if isinstance(cause, asyncpg.PostgresError):
        timeout = _SERVER_TIMEOUTS[cause.sqlstate]
        seconds = f" of {lock_timeout.total_seconds():g} s" if timeout is _LOCK_TIMEOUT and lock_timeout is not None else ""
        return StatementTimeoutError(f"{doing}: {timeout}{seconds} ({reason_of(error)})")
    # The driver's own limit. One that the operating system reports for a connection has a number.
    if isinstance(error, TimeoutError) and error.errno is None and not isinstance(error, NoConnectionError):
        return StatementTimeoutError(f"{doing} took longer than its limit of {limit.total_seconds():g} s")
    return DatabaseUnavailableError(f"{doing}: {reason_of(error)}")


_LOCK_TIMEOUT = "waited for a lock for longer than lock_timeout"
_SERVER_TIMEOUTS = {
    "57014": "was cancelled, by statement_timeout or by an operator",
    "55P03": _LOCK_TIMEOUT,
    "25P03": "the transaction was idle for longer than idle_in_transaction_session_timeout, and the server ended its session",
    "25P04": "the transaction took longer than transaction_timeout, and the server ended its session",
}


def reason_of(error: BaseException) -> str:
    """Returns what the driver reported, in one line and without secrets."""
    text = redacted(str(error)).strip().splitlines()
    if text and isinstance(error, asyncpg.InvalidPasswordError):
        return text[0]  # after the name of the type, masking would hide a word of it
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__


async def _keep_as_it_is(_connection: Any) -> None:
    """Does nothing: asyncpg itself rolls back a transaction that was left open, and there is nothing else to reset."""


def _connection_arguments(application_name: str, connect_timeout: timedelta) -> dict[str, Any]:
    return {
        "statement_cache_size": 0,
        "timeout": connect_timeout.total_seconds(),
        "command_timeout": COMMAND_TIMEOUT.total_seconds(),
        "server_settings": {"application_name": application_name},
    }
