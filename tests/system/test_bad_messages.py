"""Messages that the broker never accepts affect no others; messages without a bound queue wait for one."""

from datetime import datetime

import asyncpg
import pytest

from outbox import OutboxMessage, Publisher
from tests.servers.rabbitmq import MAX_MESSAGE_SIZE
from tests.support import eventually
from tests.system.handlers import Handler
from tests.system.harness import MakeSystem, System
from tests.system.support import is_empty

MOST_HALVINGS = 9
"""How often a batch of 500 can be cut in half until each message stands alone."""
PENDING = "failed_at is null and sent_at is null"
HELD = f"{PENDING} and last_error = 'unroutable' and attempts = 0"


def unacceptable() -> list[OutboxMessage]:
    """120 messages: keys too long for AMQP, headers too large for a frame, bodies over the broker's limit."""
    long_key = OutboxMessage("order." + "x" * 300, {"number": -1})
    large_headers = OutboxMessage("order.placed", {"number": -2}, headers={"notes": "x" * 140_000})
    large_body = OutboxMessage("order.placed", b"x" * (MAX_MESSAGE_SIZE + 1))
    return [long_key] * 70 + [large_headers] * 42 + [large_body] * 8


@pytest.mark.parametrize("batch_size", [None, 10])
async def test_a_hundred_and_twenty_bad_rows_at_the_head_are_parked_and_the_ordinary_ones_flow_at_once(
    database_url: str, broker_url: str, make_system: MakeSystem, batch_size: int | None
) -> None:
    # Six attempts take about half a minute, in which also a slow machine sends 200 messages.
    options = {"max_attempts": 6, "batch_size": batch_size, "clean_up_after": "NEVER"}
    system = await make_system(database_url, broker_url, relay_options=options)
    system.worker(Handler(queue="mail"))
    await system.queue_is_consumed("mail")
    async with system.connection() as connection, connection.transaction():
        await Publisher().bulk_publish(connection, unacceptable())
    await system.publish(range(200))
    system.relay()
    await eventually(lambda: system.journal.numbers("mail") == set(range(200)), timeout=60)
    await eventually(lambda: rows_are(system, 120, "failed_at is not null and attempts = 6"), timeout=120)
    assert await system.count("sent_at is not null and attempts = 0") == 200
    async with system.connection() as connection:
        in_time = "select max(sent_at) < min(failed_at) from outbox_table"
        assert await connection.fetchval(in_time), "they wait for no attempt of a bad one but the first"
        parked = await connection.fetch("""
            select count(last_error)
            from outbox_table
            where failed_at is not null
            group by length(routing_key) > 255, headers is null
        """)
    assert sorted(row["count"] for row in parked) == [8, 42, 70]
    # The broker answers a bad message by closing the channel, and confirms that are still to come are lost with it: what was
    # sent at the same time is sent again by halves, the more of it the slower the machine is.
    assert max(system.journal.ended().values()) <= 1 + MOST_HALVINGS
    assert {entry.attempt for entry in system.journal.entries} == {1}, "no handler has failed"


async def test_an_event_published_before_any_queue_exists_is_held_and_arrives_soon_after_its_consumer_appears(
    system: System,
) -> None:
    system.relay()
    await system.publish(range(30))
    await eventually(lambda: rows_are(system, 30, HELD))
    system.worker(Handler(queue="mail"))
    await system.queue_is_consumed("mail")
    await eventually(lambda: system.journal.numbers("mail") == set(range(30)))
    await eventually(lambda: is_empty(system))


async def test_a_held_event_shows_since_when_until_a_queue_is_bound(system: System) -> None:
    system.relay(clean_up_after="NEVER")
    await system.publish(range(3))
    await eventually(lambda: rows_are(system, 3, HELD))
    async with system.connection() as connection:
        first = await connection.fetch("select id, held_at from outbox_table order by id")
        assert await system.count("held_at between created_at and clock_timestamp()") == 3
        probe = "select min(send_after) from outbox_table"
        due = await connection.fetchval(probe)
        await eventually(lambda: later(connection, probe, due))
        assert await connection.fetch("select id, held_at from outbox_table order by id") == first
    system.worker(Handler(queue="mail"))
    await eventually(lambda: rows_are(system, 3, "sent_at is not null and held_at is null"))


async def later(connection: asyncpg.Connection, query: str, than: datetime) -> bool:
    return bool(await connection.fetchval(query) > than)


async def test_a_fan_out_retries_only_where_it_failed(system: System) -> None:
    """Two queues want each event; one fails each twice, the other is not bothered again."""
    system.worker(Handler(queue="payment", failures=2, retry_delays=("0", "1s")), Handler(queue="mail"))
    await system.queue_is_consumed("payment")
    await system.queue_is_consumed("mail")
    system.relay()
    await system.publish(range(20))
    await system.everything_is_handled("payment")
    await system.everything_is_handled("mail")
    await system.stop()
    assert all([entry.attempt for entry in system.journal.of("payment", number, "began")] == [1, 2, 3] for number in range(20))
    assert all([entry.attempt for entry in system.journal.of("mail", number, "began")] == [1] for number in range(20))


async def rows_are(system: System, count: int, where: str) -> bool:
    return await system.count(where) == count
