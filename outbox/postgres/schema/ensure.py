"""Bringing a database to the newest version of the schema, whatever it was before.

A plan is a generator: it yields one statement at a time and is sent the rows. It knows nothing of drivers, so sync and async
connections of any kind run the same one, always within one transaction. One that is open already is kept: the plan is
committed or rolled back with it.
"""

import sys
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import asyncpg

from outbox.core.urls import redacted
from outbox.errors import ConfigurationError, SchemaError, UnsupportedHandleError
from outbox.postgres.queries import TableName
from outbox.postgres.schema.check import Difference, outbox_differences, satellite_differences
from outbox.postgres.schema.versions import (
    BEGIN_ALONE,
    END_ALONE,
    HEAD,
    IN_TRANSACTION,
    LOCK_TIMEOUT,
    VERSIONS,
    WAIT_FOR_OTHERS,
    is_known,
    stamp,
    stamped_version,
    versions_after,
)

Rows = Sequence[Sequence[Any]]
Plan = Generator[str, Rows, None]

OLDEST_SERVER = 150000
"""PostgreSQL 15, as `server_version_num` counts."""


def ensure_table(table: TableName) -> Plan:
    """One outbox table with its doorbell, made, repaired, or upgraded from the predecessor's. Does nothing if all is there."""
    yield from _server_is_new_enough()
    if (yield from _differences([outbox_differences(table)])):
        yield from _alone(lambda: _change_table(table))


def ensure_schema(table: TableName) -> Plan:
    """Every table: the outbox table, and the others next to it. The same as `alembic upgrade head`."""
    yield from _server_is_new_enough()
    if (yield from _schema_lacks(table)):
        yield from _alone(lambda: _change_schema(table))


def _change_table(table: TableName) -> Plan:
    if not (yield from _differences([outbox_differences(table)])):
        return
    for version in VERSIONS:
        yield from _each(version.outbox_table(table))
    _all_is_there((yield from _differences([outbox_differences(table)])))


def _change_schema(table: TableName) -> Plan:
    if not (yield from _schema_lacks(table)):
        return
    stamped = yield from stamped_version(table.schema)
    # At the newest version already, and yet something is missing: every statement can be executed again.
    for version in versions_after(stamped) or VERSIONS:
        yield from _each(version.upgrade(table))
    yield from _each(stamp(table.schema, HEAD))
    _all_is_there((yield from _differences(_every_table(table))))


def _alone(change: Callable[[], Plan]) -> Plan:
    """Runs `change` while no other process changes any schema, and no lock is waited for without end."""
    yield BEGIN_ALONE
    if not (yield IN_TRANSACTION):
        raise ConfigurationError(
            "the connection is in autocommit mode: begin a transaction first, so that all or nothing is made"
        )
    yield from _each(WAIT_FOR_OTHERS)
    yield from change()
    yield END_ALONE


def _server_is_new_enough() -> Plan:
    ((version, name),) = yield "select current_setting('server_version_num')::integer, current_setting('server_version')"
    if version < OLDEST_SERVER:
        raise SchemaError(f"PostgreSQL 15 or newer is needed; this server is {name}")


def _schema_lacks(table: TableName) -> Generator[str, Rows, bool]:
    stamped = yield from stamped_version(table.schema)
    if not is_known(stamped):
        return False  # a newer release was here; what it keeps compatible is not ours to judge, and never ours to change
    return stamped != HEAD or bool((yield from _differences(_every_table(table))))


def _every_table(table: TableName) -> list[str]:
    return [outbox_differences(table), *satellite_differences(table.schema)]


def _differences(queries: Sequence[str]) -> Generator[str, Rows, list[Difference]]:
    found: list[Difference] = []
    for query in queries:
        found += [Difference(*row) for row in (yield query)]
    return found


def _all_is_there(differences: Sequence[Difference]) -> None:
    if differences:
        raise SchemaError(f"the schema could not be repaired: {'; '.join(map(str, differences))}")


def _each(statements: Sequence[str]) -> Plan:
    # Not `yield from`: the rows that a plan is sent would go to the tuple.
    for statement in statements:  # noqa: UP028
        yield statement


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
