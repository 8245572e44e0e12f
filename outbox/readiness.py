"""What a process of Outbox needs in order to work, as health checks: the database, the schema, the broker."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from outbox.health import Check, HealthChecks

if TYPE_CHECKING:
    from outbox.postgres.pool import Pool


@asynccontextmanager
async def checking(
    health: HealthChecks,
    *,
    database_url: str | None = None,
    broker_url: str | None = None,
    exchange_name: str = "outbox",
    table_name: str = "outbox_table",
) -> AsyncIterator[None]:
    """Within the block `health` looks at what is named here, over one connection of its own to each server."""
    async with AsyncExitStack() as stack:
        checks: dict[str, Check] = {}
        if database_url is not None:
            pool = await _open_pool(database_url)
            stack.callback(pool.terminate)
            checks["database"] = _answers(pool)
            checks["schema"] = _has_tables(pool, table_name)
        if broker_url is not None:
            checks["broker"] = await stack.enter_async_context(_broker(broker_url, exchange_name, table_name))
        with health.including(checks):
            yield


async def _open_pool(url: str) -> "Pool":
    from outbox.postgres.pool import open_pool

    # Two, so that a check that was given up does not stand in the way of the next.
    return await open_pool(url, size=2, application_name="outbox health")


def _answers(pool: "Pool") -> Check:
    async def answers() -> None:
        async with pool.acquire() as connection:
            await connection.execute("select 1")

    return answers


def _has_tables(pool: "Pool", table_name: str) -> Check:
    from outbox.postgres.names import TableName
    from outbox.postgres.schema import check_outbox_table

    table = TableName.parse(table_name)

    async def has_tables() -> None:
        async with pool.acquire() as connection:
            await check_outbox_table(connection, table)

    return has_tables


@asynccontextmanager
async def _broker(url: str, exchange_name: str, table_name: str) -> AsyncIterator[Check]:
    """`open` is the check: it returns at once while the connection stands, and tries anew when it does not."""
    from outbox.brokers import open_broker
    from outbox.observing import build_observer
    from outbox.postgres.names import TableName

    transport = open_broker(
        url,
        exchange_name=exchange_name,
        table=TableName.parse(table_name),
        observer=build_observer(enable_metrics=False),
    )
    try:
        yield transport.open
    finally:
        await transport.close()
