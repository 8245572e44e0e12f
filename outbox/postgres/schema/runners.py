"""Running a plan on whatever connection there is: one transaction, one statement after another.

A connection in a transaction keeps it: the plan becomes part of it, and is committed or rolled back with it. Otherwise the
plan has a transaction of its own, committed at the end.
"""

import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import asyncpg

from outbox.core.urls import redacted
from outbox.errors import SchemaError, UnsupportedHandleError
from outbox.postgres.schema.ensure import Plan, Rows
from outbox.postgres.schema.versions import LOCK_TIMEOUT

_OWN_TRANSACTION = "set transaction isolation level read committed"


async def run(plan: Plan, connection: object) -> None:
    """Runs `plan` on an asyncpg, psycopg or SQLAlchemy connection, pool or engine, of the asynchronous kind.

    Raises `UnsupportedHandleError` for anything else, and `SchemaError` for what the server refused.
    """
    with _refusals():
        if isinstance(connection, asyncpg.Pool):
            async with connection.acquire() as borrowed:
                await _on_asyncpg(plan, borrowed)
        elif isinstance(connection, asyncpg.Connection | asyncpg.pool.PoolConnectionProxy):
            await _on_asyncpg(plan, connection)
        elif _is(connection, "sqlalchemy.ext.asyncio", "AsyncEngine"):
            async with connection.connect() as opened:  # type: ignore[attr-defined]
                await opened.run_sync(lambda sync: _on_sqlalchemy(plan, sync))
        elif _is(connection, "sqlalchemy.ext.asyncio", "AsyncConnection"):
            await connection.run_sync(lambda sync: _on_sqlalchemy(plan, sync))  # type: ignore[attr-defined]
        elif _is(connection, "psycopg", "AsyncConnection"):
            await _on_async_psycopg(plan, connection)
        else:
            raise _unsupported(
                connection,
                "an asyncpg connection or pool, a psycopg AsyncConnection, or SQLAlchemy's AsyncEngine or AsyncConnection",
                other="_sync",
            )


def run_sync(plan: Plan, connection: object) -> None:
    """Runs it on a synchronous connection of psycopg, psycopg2 or SQLAlchemy, or on an engine."""
    with _refusals():
        if _is(connection, "sqlalchemy", "Engine"):
            with connection.connect() as opened:  # type: ignore[attr-defined]
                _on_sqlalchemy(plan, opened)
        elif _is(connection, "sqlalchemy", "Connection"):
            _on_sqlalchemy(plan, connection)
        elif _is(connection, "psycopg", "Connection"):
            _on_psycopg(plan, connection)
        elif _is(connection, "psycopg2.extensions", "connection"):
            _on_psycopg2(plan, connection)
        else:
            raise _unsupported(
                connection, "a psycopg or psycopg2 connection, or SQLAlchemy's Engine or Connection", other="_async"
            )


async def _on_asyncpg(plan: Plan, connection: Any) -> None:
    if connection.is_in_transaction():
        await _drive(plan, connection.fetch)
        return
    async with connection.transaction():
        await connection.execute(_OWN_TRANSACTION)
        await _drive(plan, connection.fetch)


async def _on_async_psycopg(plan: Plan, connection: Any) -> None:
    import psycopg

    async def fetch(statement: str) -> Rows:
        async with connection.cursor(row_factory=psycopg.rows.tuple_row) as cursor:
            await cursor.execute(statement)
            return await cursor.fetchall() if cursor.description else ()

    idle = connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    async with connection.transaction():
        if idle:
            await fetch(_OWN_TRANSACTION)
        await _drive(plan, fetch)


def _on_psycopg(plan: Plan, connection: Any) -> None:
    import psycopg

    def fetch(statement: str) -> Rows:
        with connection.cursor(row_factory=psycopg.rows.tuple_row) as cursor:
            cursor.execute(statement)
            return cursor.fetchall() if cursor.description else ()

    idle = connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    with connection.transaction():
        if idle:
            fetch(_OWN_TRANSACTION)
        _drive_sync(plan, fetch)


def _on_psycopg2(plan: Plan, connection: Any) -> None:
    import psycopg2.extensions

    def fetch(statement: str) -> Rows:
        with connection.cursor(cursor_factory=psycopg2.extensions.cursor) as cursor:
            cursor.execute(statement)
            return cursor.fetchall() if cursor.description else ()

    if connection.info.transaction_status != psycopg2.extensions.TRANSACTION_STATUS_IDLE:
        _drive_sync(plan, fetch)
        return
    # In autocommit mode psycopg2 begins and ends nothing by itself; otherwise it must not miss what we begin and end.
    commit, rollback = (
        (lambda: fetch("commit"), lambda: fetch("rollback"))
        if connection.autocommit
        else (connection.commit, connection.rollback)
    )
    fetch("begin isolation level read committed" if connection.autocommit else _OWN_TRANSACTION)
    try:
        _drive_sync(plan, fetch)
        commit()
    except BaseException:
        rollback()
        raise


def _on_sqlalchemy(plan: Plan, connection: Any) -> None:
    from sqlalchemy import text

    def fetch(statement: str) -> Rows:
        result = connection.execute(text(statement))
        return result.fetchall() if result.returns_rows else ()

    if connection.in_transaction():
        _drive_sync(plan, fetch)
        return
    with connection.begin():
        fetch(_OWN_TRANSACTION)
        _drive_sync(plan, fetch)


async def _drive(plan: Plan, fetch: Callable[[str], Awaitable[Rows]]) -> None:
    try:
        statement = next(plan)
        while True:
            statement = plan.send(await fetch(statement))
    except StopIteration:
        return


def _drive_sync(plan: Plan, fetch: Callable[[str], Rows]) -> None:
    try:
        statement = next(plan)
        while True:
            statement = plan.send(fetch(statement))
    except StopIteration:
        return


def _is(value: object, module: str, name: str) -> bool:
    """Whether `value` is of a class that may not be installed: if its module was never imported, it is not."""
    cls = getattr(sys.modules.get(module), name, None)
    return cls is not None and isinstance(value, cls)


def _unsupported(connection: object, accepted: str, *, other: str) -> UnsupportedHandleError:
    return UnsupportedHandleError(
        f"{type(connection).__module__}.{type(connection).__qualname__} is not {accepted}, nor a URL; "
        f"for the other kind there is the function that ends with {other}"
    )


@contextmanager
def _refusals() -> Iterator[None]:
    """Says what to do about the errors of the server that people meet."""
    try:
        yield
    except _driver_errors() as error:
        driver_error = getattr(error, "orig", error)  # SQLAlchemy's wraps it
        sqlstate = getattr(driver_error, "sqlstate", None) or getattr(driver_error, "pgcode", None)
        if (advice := _ADVICE.get(sqlstate or "")) is None:
            raise
        first_line = redacted(str(driver_error).strip().splitlines()[0])
        raise SchemaError(f"{advice} ({first_line})") from error


def _driver_errors() -> tuple[type[Exception], ...]:
    """Of the drivers that are in use; the others cannot have raised anything."""
    optional = (("psycopg", "Error"), ("psycopg2", "Error"), ("sqlalchemy.exc", "DBAPIError"))
    found = (getattr(sys.modules.get(module), name, None) for module, name in optional)
    return (asyncpg.PostgresError, *(cls for cls in found if cls is not None))


_ADVICE = {
    "55P03": f"a transaction that did not end within {LOCK_TIMEOUT.total_seconds():.0f} seconds holds a table, so nothing was "
    "changed: end the long transaction and try again",
    "42501": "this role may not create or change the tables of Outbox: run `outbox migrate` as the owner of the schema, and "
    "grant this role its use",
    "3F000": "the tables have no schema to be in: create it, or name one that exists",
    "P0001": "the schema cannot be changed",
}
