"""Creates and upgrades the tables, in one call at deployment or at start. Safe to repeat, and in several processes at once.

`ensure_outbox_schema_*`, `migrate`, `alembic upgrade head` in this repository, `upgrade` in the host's own revision, and the
text of `schema_sql` all create the same tables and record the same version (docs/decisions/0020-one-schema.md).
"""

import asyncio
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from outbox.core.urls import postgres_url
from outbox.postgres.pool import CONNECT_TIMEOUT, close_quietly, open_connection, unavailable_errors
from outbox.postgres.queries import TableName
from outbox.postgres.schema.ensure import Plan, ensure_schema, ensure_table, run, run_sync
from outbox.postgres.schema.hosts import create_destination, downgrade, include_name, include_name_beside, upgrade
from outbox.postgres.schema.objects import OUTBOX_TABLE, destination_table, outbox_table
from outbox.postgres.schema.versions import script

__all__ = [
    "STATEMENT_TIMEOUT",
    "create_destination",
    "downgrade",
    "ensure_outbox_schema_async",
    "ensure_outbox_schema_sync",
    "ensure_outbox_table_async",
    "ensure_outbox_table_sync",
    "include_name",
    "include_name_beside",
    "migrate",
    "schema_sql",
    "upgrade",
]

STATEMENT_TIMEOUT = timedelta(hours=1)
"""Time limit of one statement on a connection opened here. Rewriting a large table takes long."""


async def ensure_outbox_table_async(db: object, table_name: str = OUTBOX_TABLE) -> None:
    """Creates or upgrades the outbox table, with its indexes and triggers, for this release.

    `db` is a `postgresql://` URL, an asyncpg connection or pool, a psycopg `AsyncConnection`, or SQLAlchemy's `AsyncEngine` or
    `AsyncConnection`. If the caller's transaction is open, the changes become part of it; otherwise they are committed.
    `table_name` may be `schema.table`; without a schema, the table is where `create table` would create it.

    A table that is up to date is only read, which needs no permissions and takes no locks. A table of the predecessor is
    upgraded in place, under an `access exclusive` lock: a few seconds for each million rows, or about ten if an `integer` id or
    a JSON column requires a rewrite. If a lock takes longer than ten seconds, everything is rolled back and `SchemaError` is
    raised. It is also raised for missing permissions, and for a table that is not an outbox table.
    """
    await _run(ensure_table(outbox_table(table_name)), db)


def ensure_outbox_table_sync(db: object, table_name: str = OUTBOX_TABLE) -> None:
    """Sync version of `ensure_outbox_table_async`.

    `db` is a URL, a psycopg or psycopg2 connection, or SQLAlchemy's `Engine` or `Connection`. A URL needs no other driver than
    asyncpg, and works while an event loop is running.
    """
    _run_sync(ensure_table(outbox_table(table_name)), db)


async def ensure_outbox_schema_async(db: object, *, schema: str | None = None, destinations: Iterable[str] = ()) -> None:
    """Creates or upgrades all tables of Outbox, with the same result as `alembic upgrade head`, including the recorded version.

    `db` and guarantees are those of `ensure_outbox_table_async`. `schema` is the schema of the tables; without it, they are
    where `create table` would create them. A schema that was upgraded by a newer release is left unchanged. `destinations`
    names further destinations to create tables for, such as "kafka"; those that exist are upgraded in any case.
    """
    await _run(ensure_schema(TableName(OUTBOX_TABLE, schema), _names(destinations)), db)


def ensure_outbox_schema_sync(db: object, *, schema: str | None = None, destinations: Iterable[str] = ()) -> None:
    """Sync version of `ensure_outbox_schema_async`; `db` is that of `ensure_outbox_table_sync`."""
    _run_sync(ensure_schema(TableName(OUTBOX_TABLE, schema), _names(destinations)), db)


async def migrate(url: str, table_name: str = OUTBOX_TABLE, destinations: Iterable[str] = ()) -> None:
    """Creates or upgrades the outbox table `table_name`, those of its `destinations`, and all other tables next to it."""
    await _run(ensure_schema(outbox_table(table_name), _names(destinations)), url)


def schema_sql(table_name: str = OUTBOX_TABLE, destinations: Iterable[str] = ()) -> str:
    """Returns the SQL of `migrate`, to review and run by hand (`psql --set ON_ERROR_STOP=1`). It may be run more than once."""
    table = outbox_table(table_name)
    children = (destination_table(table, name) for name in _names(destinations))
    return script(table, [child for child in dict.fromkeys(children) if child != table])


def _names(destinations: Iterable[str]) -> tuple[str, ...]:
    # A single name is also an iterable of names, its letters.
    return (destinations,) if isinstance(destinations, str) else tuple(destinations)


async def _run(plan: Plan, db: object) -> None:
    if not isinstance(db, str):
        await run(plan, db)
        return
    with unavailable_errors("connecting to the database"):
        connection = await open_connection(
            postgres_url(db, argument="db"),
            statement_cache_size=0,
            timeout=CONNECT_TIMEOUT.total_seconds(),
            command_timeout=STATEMENT_TIMEOUT.total_seconds(),
            server_settings={"application_name": "outbox schema"},
        )
    try:
        with unavailable_errors("changing the schema", limit=STATEMENT_TIMEOUT):
            await run(plan, connection)
    finally:
        await close_quietly(connection)


def _run_sync(plan: Plan, db: object) -> None:
    if not isinstance(db, str):
        run_sync(plan, db)
        return
    # In a new thread: an event loop may be running in this one, and `asyncio.run` would reset the loop that is set.
    with ThreadPoolExecutor(1, thread_name_prefix="outbox-schema") as thread:
        thread.submit(asyncio.run, _run(plan, db)).result()
