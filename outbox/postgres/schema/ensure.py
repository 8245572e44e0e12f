"""Brings a database to the newest version of the schema, from any earlier state.

A plan is a generator that yields one statement at a time and is sent its rows. It does not depend on a driver, so sync and
async connections of all drivers run the same plan, in one transaction, or as part of one that is open already.
"""

import logging
import sys
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import asyncpg

from outbox.core.urls import redacted
from outbox.errors import ConfigurationError, SchemaError, UnsupportedHandleError
from outbox.postgres.queries import TableName
from outbox.postgres.schema.check import Difference, outbox_differences, satellite_differences
from outbox.postgres.schema.objects import destination_table
from outbox.postgres.schema.versions import (
    BEGIN_EXCLUSIVE,
    END_EXCLUSIVE,
    HEAD,
    IDLE_TIMEOUT,
    IN_TRANSACTION,
    LOCK_TIMEOUT,
    VERSIONS,
    WAIT_FOR_OTHERS,
    create_destination,
    destinations_of,
    is_known,
    stamp,
    stamped_version,
    versions_after,
)

Rows = Sequence[Sequence[Any]]
Plan = Generator[str, Rows, None]

logger = logging.getLogger("outbox")

OLDEST_SERVER = 150000
"""PostgreSQL 15, as a `server_version_num`."""


def ensure_table(table: TableName) -> Plan:
    """Creates, repairs or upgrades one outbox table with its doorbell.

    Changes nothing if it is complete, or if its schema is of a newer release.
    """
    yield from _require_new_server()
    if not _is_newer((yield from stamped_version(table.schema))) and (yield from _differences([outbox_differences(table)])):
        yield from _exclusively(lambda: _change_table(table))


def ensure_schema(table: TableName, destinations: Sequence[str] = ()) -> Plan:
    """Creates, repairs or upgrades all tables: the outbox table and those next to it. Equals `alembic upgrade head`.

    Also those of `destinations`, and of destinations that exist. A schema of a newer release stays as it is.
    """
    yield from _require_new_server()
    stamped = yield from stamped_version(table.schema)
    known = [name for (name,) in (yield destinations_of(table))]
    if _is_newer(stamped):
        if missing := sorted({*destinations} - {*known}):
            raise SchemaError(
                f"the schema has version {stamped}, of a newer release: create the table of {', '.join(missing)} with that"
            )
        return
    if (yield from _is_incomplete(table, stamped)):
        yield from _exclusively(lambda: _change_schema(table))
    for child in dict.fromkeys(destination_table(table, name) for name in (*known, *destinations)):
        if child != table and (yield from _differences([outbox_differences(child)])):
            yield from _exclusively(lambda child=child: _change_destination(table, child))  # type: ignore[misc]


def _change_table(table: TableName) -> Plan:
    # Looked at again under the lock: another process may have made the changes while this one waited for it.
    if not is_known((yield from stamped_version(table.schema))) or not (yield from _differences([outbox_differences(table)])):
        return
    for version in VERSIONS:
        yield from _yield_each(version.outbox_table(table))
    _require_complete((yield from _differences([outbox_differences(table)])))


def _change_destination(table: TableName, child: TableName) -> Plan:
    if is_known((yield from stamped_version(table.schema))):
        yield create_destination(table, child)
        yield from _change_table(child)


def _change_schema(table: TableName) -> Plan:
    stamped = yield from stamped_version(table.schema)
    if not is_known(stamped) or not (yield from _is_incomplete(table, stamped)):
        return
    # If the version is the newest but something is missing, all versions run again: every statement may be repeated.
    for version in versions_after(stamped) or VERSIONS:
        yield from _yield_each(version.upgrade(table))
    yield from _yield_each(stamp(table.schema, HEAD))
    _require_complete((yield from _differences(_every_table(table))))


def _exclusively(change: Callable[[], Plan]) -> Plan:
    """Runs `change` while no other process changes a schema, with time limits for locks and for standing still."""
    yield BEGIN_EXCLUSIVE
    if not (yield IN_TRANSACTION):
        raise ConfigurationError(
            "the connection is in autocommit mode: begin a transaction first, so that all changes are made or none"
        )
    yield from _yield_each(WAIT_FOR_OTHERS)
    yield from change()
    yield END_EXCLUSIVE


def _require_new_server() -> Plan:
    ((version, name),) = yield "select current_setting('server_version_num')::integer, current_setting('server_version')"
    if version < OLDEST_SERVER:
        raise SchemaError(f"PostgreSQL 15 or newer is needed; this server is {name}")


def _is_newer(stamped: str | None) -> bool:
    """Whether a newer release has upgraded the schema, which is logged. Its functions must not become those of this one."""
    if is_known(stamped):
        return False
    logger.warning("the schema has version %s, and this release knows versions up to %s: nothing was changed", stamped, HEAD)
    return True


def _is_incomplete(table: TableName, stamped: str | None) -> Generator[str, Rows, bool]:
    return stamped != HEAD or bool((yield from _differences(_every_table(table))))


def _every_table(table: TableName) -> list[str]:
    return [outbox_differences(table), *satellite_differences(table.schema)]


def _differences(queries: Sequence[str]) -> Generator[str, Rows, list[Difference]]:
    found: list[Difference] = []
    for query in queries:
        found += [Difference(*row) for row in (yield query)]
    return found


def _require_complete(differences: Sequence[Difference]) -> None:
    if differences:
        raise SchemaError(f"the schema could not be repaired: {'; '.join(map(str, differences))}")


def _yield_each(statements: Sequence[str]) -> Plan:
    # Not `yield from`: a tuple cannot receive the rows that the plan is sent.
    for statement in statements:  # noqa: UP028
        yield statement


# Under a stricter level, every look would have the snapshot from before the wait for the lock, and miss what others changed.
_OWN_TRANSACTION = "set transaction isolation level read committed"


async def run(plan: Plan, connection: object) -> None:
    """Runs `plan` on an async connection, pool or engine of asyncpg, psycopg or SQLAlchemy.

    Raises `UnsupportedHandleError` for anything else, and `SchemaError` if the server refuses a change.
    """
    with _explain_errors():
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
    """Runs `plan` on a sync connection of psycopg, psycopg2 or SQLAlchemy, or on an engine. Raises as `run` does."""
    with _explain_errors():
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
    try:
        async with connection.transaction():
            await connection.execute(_OWN_TRANSACTION)
            await _drive(plan, connection.fetch)
    except asyncpg.InterfaceError as error:
        # After a lost connection, the end of the block raises, and hides what the server said.
        raise (error.__context__ if isinstance(error.__context__, asyncpg.PostgresError) else error) from None


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
    # In autocommit mode psycopg2 sends no BEGIN and COMMIT. Otherwise they must go through it, so that it knows its state.
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
    """Whether `value` is an instance of a class that may not be installed. If its module was not imported, it is not."""
    cls = getattr(sys.modules.get(module), name, None)
    return cls is not None and isinstance(value, cls)


def _unsupported(connection: object, accepted: str, *, other: str) -> UnsupportedHandleError:
    return UnsupportedHandleError(
        f"{type(connection).__module__}.{type(connection).__qualname__} is not {accepted}, nor a URL; "
        f"for other connections use the function that ends with {other}"
    )


@contextmanager
def _explain_errors() -> Iterator[None]:
    """Turns refusals of the server into `SchemaError`, the common ones with advice."""
    try:
        yield
    except _driver_errors() as error:
        driver_error = getattr(error, "orig", error)  # SQLAlchemy wraps the driver's error
        sqlstate = getattr(driver_error, "sqlstate", None) or getattr(driver_error, "pgcode", None)
        if not sqlstate or sqlstate.startswith(_ELSEWHERE):
            raise
        advice = _ADVICE.get(sqlstate, "the schema cannot be changed")
        first_line = redacted(str(driver_error).strip().splitlines()[0])
        raise SchemaError(f"{advice} ({first_line})") from error


def _driver_errors() -> tuple[type[Exception], ...]:
    # Only imported drivers can have raised an error.
    optional = (("psycopg", "Error"), ("psycopg2", "Error"), ("sqlalchemy.exc", "DBAPIError"))
    found = (getattr(sys.modules.get(module), name, None) for module, name in optional)
    return (asyncpg.PostgresError, *(cls for cls in found if cls is not None))


_ELSEWHERE = ("08", "28", "40", "53", "57P")
"""What is wrong is not the schema: the connection, the login, a conflict, the server's resources, its start or its end."""
_ADVICE = {
    "55P03": f"a transaction has held a lock on a table for {LOCK_TIMEOUT.total_seconds():.0f} seconds, so nothing was "
    "changed: end the long transaction and try again",
    "25P03": f"this process sent no statement for {IDLE_TIMEOUT.total_seconds():.0f} seconds while it changed the schema, so "
    "nothing was changed: try again",
    "57014": "a statement was cancelled, by statement_timeout or by an operator, so nothing was changed: set a longer "
    "timeout for this role, and try again",
    "42501": "this role may not create or change the tables of Outbox: run `outbox migrate` as the owner of the schema, and "
    "grant this role usage on it",
    "3F000": "the schema for the tables does not exist: create it, or name one that exists",
}
