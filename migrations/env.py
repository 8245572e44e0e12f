"""Alembic's environment: database, version table, and a lock for concurrent migrations.

The database is OUTBOX_DATABASE_URL or `alembic -x url=…`. asyncpg is the driver, so Alembic is the only additional dependency.
Offline mode (`--sql`) needs no database.
"""

import asyncio

import asyncpg
from alembic import context
from sqlalchemy import Connection, pool, text
from sqlalchemy.ext.asyncio import create_async_engine

from outbox.core.urls import postgres_url
from outbox.errors import ConfigurationError
from outbox.postgres.schema import VERSION_TABLE
from outbox.postgres.schema.versions import WAIT_FOR_OTHERS
from outbox.runtime.environment import secret


def run_offline() -> None:
    context.configure(dialect_name="postgresql", dialect_opts={"paramstyle": "named"}, version_table=VERSION_TABLE)
    with context.begin_transaction():
        context.run_migrations()


async def run_online() -> None:
    # The URL is passed to asyncpg unchanged, because SQLAlchemy would parse it differently.
    url = _database_url()
    engine = create_async_engine(
        "postgresql+asyncpg://", poolclass=pool.NullPool, async_creator=lambda: asyncpg.connect(url, timeout=10)
    )
    try:
        async with engine.begin() as connection:
            await connection.run_sync(run_on)
    finally:
        await engine.dispose()


def run_on(connection: Connection) -> None:
    # Alembic reads the version after this lock. With read committed, a process that waited for the lock sees the version
    # that the previous process recorded.
    connection.execute(text("set transaction isolation level read committed"))
    for statement in WAIT_FOR_OTHERS:
        connection.execute(text(statement))
    context.configure(connection=connection, version_table=VERSION_TABLE)
    with context.begin_transaction():
        context.run_migrations()


def _database_url() -> str:
    url = context.get_x_argument(as_dictionary=True).get("url") or secret("OUTBOX_DATABASE_URL")
    if not url:
        raise ConfigurationError(
            "no database configured: set OUTBOX_DATABASE_URL to postgresql://user:password@host:5432/database"
        )
    return postgres_url(url, argument="OUTBOX_DATABASE_URL")


if context.is_offline_mode():
    run_offline()
else:
    asyncio.run(run_online())
