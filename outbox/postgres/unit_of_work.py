"""One transaction around a message handler, shared by its session, its connection and its publisher."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack, asynccontextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

import asyncpg

from outbox.core.urls import postgres_url
from outbox.errors import (
    CommitFailedError,
    ConfigurationError,
    MarkHeldError,
    StaleDeliveryError,
    StaleStatementError,
    TransactionEndedError,
)
from outbox.ports import Ending, Marks, Statement, Unit
from outbox.postgres.handler_connections import (
    APPLICATION_NAME,
    FAILED_EARLIER,
    USELESS_AFTER,
    HandlerConnection,
    caused_by,
    handler_engine,
    session_maker,
)
from outbox.postgres.inbox import Inbox, Marking, ended_by_itself
from outbox.postgres.pool import (
    DRIVER_ERRORS,
    REFUSALS,
    Connector,
    Pool,
    PooledConnection,
    give_back,
    open_pool,
    reason_of,
    roll_back_quietly,
    take_from,
    terminate,
    unavailable_error,
)

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession

SPARE_FOR = 30.0
"""Seconds without use after which a kept connection goes back to the pool."""

CLOSE_AGAIN = 0.1
"""Seconds between two attempts to close a session that a task of its handler still uses."""

Bind = Callable[[Any], AbstractContextManager[object]]
"""Makes the publisher for a session or a connection. It refuses to publish after the block."""


@asynccontextmanager
async def open_units(
    *, url: str | None, pool: Pool | None, sessions: int, connections: int, bind: Bind, inbox: Inbox
) -> AsyncIterator["PostgresUnitsOfWork"]:
    """Yields transactions for up to `sessions` handlers with a session, and `connections` without one, at the same time.

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
                connector=Connector(keep_plans=True),
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
        """Takes a connection of the pool, for `give_back`. Raises the driver's errors."""
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
                    raise TransactionEndedError(_ENDED_BY_HANDLER) from failure
                raise
            if error is not None:
                was_ended = bool(self.marked) and await self.was_ended()
                await self._undo(error)
                if was_ended and isinstance(error, Exception) and await self._marks_stay():
                    # As after a handler that returns: another attempt would find the mark, and skip what is left to do.
                    raise TransactionEndedError(_ENDED_BY_HANDLER) from error
                if caused_by(error, *_STALE):
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

    async def _marks_stay(self) -> bool:
        """Whether the marks are there after the rollback, because the handler had committed them."""
        try:
            return self.marking is not None and not await self.mark_again(self.marking)
        except Exception:  # noqa: BLE001  the database is away, or another transaction is at the marks: they are not ours
            return False

    async def _commit(self) -> None:
        try:
            await self.commit()
        except Exception as error:
            self.leave(error)
            if ended_by_itself(error):
                raise TransactionEndedError(_ENDED_BY_HANDLER) from error
            if caused_by(error, asyncpg.InvalidSQLStatementNameError):
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
        """Returns what to send in front of COMMIT: it fails if the mark is not in this transaction, or the lease is lost."""
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

    async def was_ended(self) -> bool:
        """Whether the handler has ended the transaction, as far as that can be seen without asking the server."""
        return False

    async def mark_again(self, marking: Marking) -> frozenset[str]:  # noqa: ARG002  a bare transaction has no one to end it
        """Makes the marks in a transaction that it rolls back. Returns those that were not there."""
        return self.marked

    @abstractmethod
    async def close(self) -> None:
        """Gives back the connection, if there is one."""


class _BareTransaction(_HandlerTransaction):
    """For handlers that take no connection. It sends BEGIN and COMMIT itself; asyncpg's `Transaction` objects cost more."""

    connection: Any = None

    def leave(self, error: BaseException) -> bool:
        is_useless = self.connection is not None and caused_by(error, *USELESS_AFTER)
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
                self.marked = await _mark(connection, self.marking)
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
            raise asyncpg.InFailedSQLTransactionError(FAILED_EARLIER)

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
                    self.marked = await _mark(connection, self.marking)
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

    async def was_ended(self) -> bool:
        return not self.connection.is_closed() and not self.connection.is_in_transaction()

    async def mark_again(self, marking: Marking) -> frozenset[str]:
        await self.connection.execute("begin")
        try:
            return await _mark(self.connection, marking)
        finally:
            await self.connection.execute("rollback")

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
        self.handle = session = session_maker()(self.units.engine, closed=self.marking is not None)
        if self.marking is not None:
            self.marked = await (_begin_in_session if self.marking.only else _mark_in_session)(session, self.marking)
        elif "connection" in self.wanted:
            # SQLAlchemy sends BEGIN with its own first statement. Earlier statements on the bare connection would autocommit.
            await (await session.connection()).exec_driver_sql("select 1")
        self._begun = session.sync_session.get_transaction()
        if "connection" in self.wanted:
            return {"session": session, "connection": (await session.run_sync(_adapter_of)).driver_connection}
        return {"session": session}

    async def check(self) -> None:
        session = self.handle
        if await session.run_sync(self._flush_and_commit) or self.marking is None:
            return
        # The handler rolled back, and the marks with it. Make them again, so that they are committed with what it wrote since.
        try:
            marked = await _mark_in_session(session, self.marking)
        except Exception as error:
            _raise_unavailable(error)
            raise
        if marked != self.marked:
            raise MarkHeldError("after a rollback by the handler another worker had marked the message")
        self._begun = session.sync_session.get_transaction()
        if not await session.run_sync(self._flush_and_commit):
            raise RuntimeError("the session was rolled back while it was flushed")

    def _flush_and_commit(self, session: Any) -> bool:
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
            if (adapter := _adapter_of(session)).autocommit:
                self.ending = None  # it has committed each statement, and sends no COMMIT
            else:
                adapter.driver_connection.check_before_commit(before)
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

    async def was_ended(self) -> bool:
        try:
            adapter = await self.handle.run_sync(lambda session: _adapter_of(session) if session.in_transaction() else None)
        except Exception:  # noqa: BLE001  SQLAlchemy's errors about a connection whose transaction was ended, or that was lost
            return True
        return adapter is not None and not adapter.driver_connection.is_in_transaction()

    async def mark_again(self, marking: Marking) -> frozenset[str]:
        try:
            return await _mark_in_session(self.handle, marking)
        finally:
            await self.handle.rollback()

    async def close(self) -> None:
        session = self.handle.sync_session
        session.ended = True
        if session.in_transaction():
            try:
                await self.handle.close()
            except Exception:  # noqa: BLE001  a task of the handler uses it, as after `gather`; its connection is not to be lost
                self.units.close_later(self.handle)


_ENDED_BY_HANDLER = (
    "the handler ended its transaction itself, and with it the mark in the inbox: its writes before that stay, its later "
    "writes were rolled back. With inbox=True leave commit and rollback to the worker, and use savepoints"
)


# --- marks -------------------------------------------------------------------------------------------------------------


async def _mark(connection: Any, marking: Marking) -> frozenset[str]:
    """Makes the marks. Returns the ids of the messages that were not marked before."""
    if marking.only:
        # A statement without parameters, whose rows are not read, takes one round trip.
        return marking.all if _has_row(await connection.execute(marking.sql)) else frozenset()
    return marking.of(await connection.fetchval(marking.sql) or ())


async def _mark_in_session(session: "AsyncSession", marking: Marking) -> frozenset[str]:
    """Makes the marks through SQLAlchemy, as the first statement of its transaction."""
    row = (await (await session.connection()).exec_driver_sql(marking.sql)).first()
    if marking.only:
        return marking.all if row else frozenset()
    return marking.of(row[0] or ()) if row else frozenset()


def _has_row(status: str) -> bool:
    """Whether a command tag (`INSERT 0 1`) counts a row."""
    return not status.endswith(" 0")


async def _begin_in_session(session: "AsyncSession", marking: Marking) -> frozenset[str]:
    """Begins the transaction of a fresh session and makes its mark, in one round trip."""
    adapter = await session.run_sync(_adapter_of)
    try:
        # Left alone, SQLAlchemy would send BEGIN in a round trip of its own, and prepare the statement in another.
        status = await adapter.driver_connection.begin_with(marking.statement, adapter._start_transaction)  # noqa: SLF001
    except BaseException:
        await (await session.connection()).invalidate()
        raise
    return marking.all if _has_row(status) else frozenset()


def _adapter_of(session: Any) -> Any:
    """Returns SQLAlchemy's adapter of the driver's connection. The session checks out a connection if it has none."""
    return session.connection().connection.dbapi_connection


_LEASE_LOST = "outbox.lease_lost"
"""The setting that `Ending.statement` reads, and that nothing sets, where the delivery is not leased any more."""


_STALE = (asyncpg.InvalidCachedStatementError, asyncpg.OutdatedSchemaCacheError)
"""A table changed after the handler's statement was prepared. The driver prepares it again next time."""


def _raise_unavailable(error: BaseException) -> None:
    """Raises a database error from before the handler ran as one that spends no attempt of the message."""
    of_sqlalchemy = type(error).__module__.startswith("sqlalchemy.")
    if (not isinstance(error, DRIVER_ERRORS) and not of_sqlalchemy) or caused_by(error, *REFUSALS):
        return  # a mark that a trigger refuses fails its message only
    doing = "beginning a handler's transaction"
    if getattr(getattr(error, "orig", error), "sqlstate", None) in _HELD:  # SQLAlchemy's error wraps the driver's
        raise MarkHeldError(f"{doing}: {reason_of(error)}") from error
    raise unavailable_error(doing, error) from error


_HELD = frozenset({"55P03", "40P01", "40001"})
"""lock_not_available, deadlock_detected, serialization_failure: another worker is at the same mark."""
