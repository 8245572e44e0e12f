"""Making the tables: one call at deployment or at start, safe to repeat and safe from several processes at once.

`ensure_outbox_schema_*`, `migrate`, `alembic upgrade head` in this repository, `upgrade` in a revision of a host's own, and the
text of `schema_sql` are ways to the same tables and the same recorded version (docs/decisions/0020-one-schema.md).
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import asyncpg

from outbox.core.urls import postgres_url
from outbox.postgres.pool import CONNECT_TIMEOUT, close_quietly, unavailable_errors
from outbox.postgres.queries import TableName
from outbox.postgres.schema.ensure import Plan, ensure_schema, ensure_table, run, run_sync
from outbox.postgres.schema.hosts import downgrade, include_name, include_name_beside, upgrade
from outbox.postgres.schema.objects import OUTBOX_TABLE, outbox_table
from outbox.postgres.schema.versions import script

__all__ = [
    "STATEMENT_TIMEOUT",
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
"""Longest wait for one statement over a connection of our own; rewriting a large table takes its time."""


async def ensure_outbox_table_async(db: object, table_name: str = OUTBOX_TABLE) -> None:
    """Afterwards the outbox table is there, with indexes and doorbell, and of the shape that this release works with.

    `db` is a `postgresql://` URL, an asyncpg connection or pool, a psycopg `AsyncConnection`, or SQLAlchemy's `AsyncEngine` or
    `AsyncConnection`. Inside a transaction of the caller's it becomes part of that; otherwise it is committed. `table_name`
    may be `schema.table`; without a schema the table is where `create table` would make it.

    A table that is complete is only looked at, which needs no rights and takes no locks. One that the predecessor made is
    upgraded in place, under an `access exclusive` lock for as long as that takes: some seconds for each million rows, some ten
    where an `integer` id or a JSON column makes a rewrite necessary. No program waits for a lock on it longer than ten seconds:
    then all is undone, and `SchemaError` says so, as it does for missing rights and for a table that is none of ours.
    """
    await _run(ensure_table(outbox_table(table_name)), db)


def ensure_outbox_table_sync(db: object, table_name: str = OUTBOX_TABLE) -> None:
    """As `ensure_outbox_table_async`, for a URL, a psycopg or psycopg2 connection, or SQLAlchemy's `Engine` or `Connection`.

    A URL needs no driver beyond asyncpg, and may be used where an event loop is running.
    """
    _run_sync(ensure_table(outbox_table(table_name)), db)


async def ensure_outbox_schema_async(db: object, *, schema: str | None = None) -> None:
    """Afterwards every table of Outbox is there, as after `alembic upgrade head`: the same objects, the same version recorded.

    `db` as in `ensure_outbox_table_async`, promises too. `schema` is where the tables belong; without it they are where
    `create table` would make them. A schema that a newer release has changed is left as it is.
    """
    await _run(ensure_schema(TableName(OUTBOX_TABLE, schema)), db)


def ensure_outbox_schema_sync(db: object, *, schema: str | None = None) -> None:
    """As `ensure_outbox_schema_async`, for what `ensure_outbox_table_sync` takes."""
    _run_sync(ensure_schema(TableName(OUTBOX_TABLE, schema)), db)


async def migrate(url: str, table_name: str = OUTBOX_TABLE) -> None:
    """Afterwards the outbox table `table_name`, and every other table next to it, are as this release needs them."""
    await _run(ensure_schema(outbox_table(table_name)), url)


def schema_sql(table_name: str = OUTBOX_TABLE) -> str:
    """What `migrate` does, as SQL to be read and run by hand (`psql --set ON_ERROR_STOP=1`); it may be run more than once."""
    return script(outbox_table(table_name))


async def _run(plan: Plan, db: object) -> None:
    if not isinstance(db, str):
        await run(plan, db)
        return
    with unavailable_errors("connecting to the database"):
        connection = await asyncpg.connect(
            postgres_url(db, argument="db"),
            statement_cache_size=0,
            timeout=CONNECT_TIMEOUT.total_seconds(),
            command_timeout=STATEMENT_TIMEOUT.total_seconds(),
            server_settings={"application_name": "outbox schema"},
        )
    try:
        await run(plan, connection)
    finally:
        await close_quietly(connection)


def _run_sync(plan: Plan, db: object) -> None:
    if not isinstance(db, str):
        run_sync(plan, db)
        return
    # A thread of its own: this one may have an event loop running, and would lose the one that it has set.
    with ThreadPoolExecutor(1, thread_name_prefix="outbox-schema") as thread:
        thread.submit(asyncio.run, _run(plan, db)).result()
