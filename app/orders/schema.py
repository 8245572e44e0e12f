"""Creates the example's tables, which are not part of the outbox's schema (docs/decisions/0060-example-tables.md)."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from app.orders.model import Table
from outbox.core.urls import postgres_url

_ONE_AT_A_TIME = text("select pg_advisory_xact_lock(hashtextextended('outbox example tables', 0))")


async def ensure_order_tables(database_url: str) -> None:
    """Creates missing tables. Several processes may call it at the same time."""
    engine = create_async_engine("postgresql+asyncpg://", connect_args={"dsn": postgres_url(database_url)}, poolclass=NullPool)
    try:
        async with engine.begin() as connection:
            # "create table if not exists" fails if two sessions run it at the same time, hence the lock.
            await connection.execute(_ONE_AT_A_TIME)
            await connection.run_sync(Table.metadata.create_all)
    finally:
        await engine.dispose()
