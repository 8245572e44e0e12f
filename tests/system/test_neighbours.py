"""Several outbox tables, and tables that others made: each relay serves its own."""

import asyncpg
import pytest

from outbox import Publisher, ensure_outbox_schema_async, ensure_outbox_table_async
from tests.schema.predecessors import SHAPES, make
from tests.support import eventually
from tests.system.handlers import Handler
from tests.system.harness import MakeSystem, System

TABLES = ["outbox_table", "shop.outbox_table", "warehouse.outbox_table", f"shop.{'t' * 63}"]
"""Two tables in one database, one name in three schemas, and a name as long as names can be."""


@pytest.mark.rabbitmq
async def test_each_relay_serves_its_own_table_and_wakes_for_it_alone(
    database_url: str, broker_url: str, make_system: MakeSystem
) -> None:
    system = await make_system(database_url, broker_url)
    async with system.connection() as connection:
        await connection.execute("create schema shop; create schema warehouse")
    for table in TABLES[1:]:
        await ensure_outbox_table_async(database_url, table)
    for number, table in enumerate(TABLES):
        system.worker(Handler(queue=f"queue-{number}"), exchange_name=f"exchange-{number}")
        await system.queue_is_consumed(f"queue-{number}")
        system.relay(table_name=table, exchange_name=f"exchange-{number}", notification_timeout=600.0, poll_interval=600.0)
    for turn in range(5):
        async with system.connection() as connection:
            for number, table in enumerate(TABLES):
                async with connection.transaction():
                    body = {"number": number * 100 + turn}
                    await Publisher(table_name=table).publish(connection, "order.placed", body)
        expected = {(f"queue-{number}", number * 100 + past) for number in range(len(TABLES)) for past in range(turn + 1)}
        await eventually(lambda: set(system.journal.ended()) == expected)  # noqa: B023  awaited here
    assert set(system.journal.ended().values()) == {1}


async def test_one_name_in_two_schemas_has_two_sets_of_queues_in_postgresql(database_url: str, make_system: MakeSystem) -> None:
    system = await make_system(database_url)
    async with system.connection() as connection:
        await connection.execute("create schema shop")
    await ensure_outbox_schema_async(database_url, schema="shop")
    for number, table in enumerate(TABLES[:2]):
        system.worker(Handler(queue=f"queue-{number}"), table_name=table)
        system.relay(table_name=table)
    await eventually(lambda: both_bound(system))
    async with system.connection() as connection:
        for number, table in enumerate(TABLES[:2]):
            async with connection.transaction():
                await Publisher(table_name=table).publish(connection, "order.placed", {"number": number})
    await eventually(lambda: set(system.journal.ended()) == {("queue-0", 0), ("queue-1", 1)})
    await eventually(lambda: nothing_waits(system))
    assert set(system.journal.ended().values()) == {1}


async def nothing_waits(system: System) -> bool:
    return await system.count(table="outbox_delivery") == await system.count(table="shop.outbox_delivery") == 0


async def both_bound(system: System) -> bool:
    counts = [await system.count(table=table) for table in ("outbox_subscription", "shop.outbox_subscription")]
    return counts == [1, 1]


@pytest.mark.parametrize("shape", list(SHAPES))
@pytest.mark.rabbitmq
async def test_a_predecessors_table_is_upgraded_in_place_and_its_pending_rows_are_drained(
    database_url: str, broker_url: str, make_system: MakeSystem, shape: str
) -> None:
    connection = await asyncpg.connect(database_url)
    await make(connection, shape)
    pending = {row["routing_key"] for row in await connection.fetch("select * from outbox_table where sent_at is null")}
    system = await make_system(database_url, broker_url)
    seen = system.worker(Handler(queue="old", binding_key="order.#", number_key="n"))
    await system.queue_is_consumed("old")
    system.relay()
    await eventually(lambda: {f"order.{number}" for number in system.journal.numbers("old")} == pending)
    assert set(system.journal.ended().values()) == {1}
    assert seen.alive
    await connection.close()
