"""Idle relays and workers are woken, and never wait for a poll."""

import random

from outbox import Publisher
from tests.support import eventually
from tests.system.handlers import Handler
from tests.system.harness import System
from tests.system.parts import write_orders
from tests.system.support import some_time

SLEEPY = {"notification_timeout": 600.0, "poll_interval": 600.0}
"""Longer than any of these tests: what arrives in time was rung for."""


async def test_three_hundred_messages_one_by_one_while_all_components_idle_and_wake(system: System) -> None:
    system.worker(Handler(queue="mail"))
    await system.queue_is_consumed("mail")
    system.relay(**SLEEPY)
    chance = random.Random(300)
    async with system.connection() as connection:
        for number in range(300):
            await write_orders(connection, range(number, number + 1))
            if chance.random() < 0.2:
                await eventually(lambda: system.journal.numbers("mail") >= {number})  # noqa: B023  awaited here
            await some_time(0.02)
    await system.everything_is_handled("mail")
    assert set(system.journal.ended().values()) == {1}


async def test_a_row_of_plain_sql_and_one_due_in_two_seconds_wake_a_relay_that_sleeps_for_sixty(system: System) -> None:
    system.worker(Handler(queue="mail"))
    await system.queue_is_consumed("mail")
    system.relay(**SLEEPY)
    await system.publish(range(1))
    await eventually(lambda: system.journal.numbers("mail") == {0})
    async with system.connection() as connection:
        insert = "insert into outbox_table (routing_key, body{}) values ('order.placed', $1::text::bytea{})"
        await connection.execute(insert.format("", ""), '{"number": 1}')
        await eventually(lambda: system.journal.numbers("mail") == {0, 1})
        later = insert.format(", send_after", ", now() + interval '2 seconds'")
        await connection.execute(later, '{"number": 2}')
        await eventually(lambda: system.journal.numbers("mail") == {0, 1, 2})


async def test_a_message_of_a_transaction_that_began_seconds_earlier_is_handled_at_once(system: System) -> None:
    system.worker(Handler(queue="mail"))
    await system.queue_is_consumed("mail")
    system.relay(**SLEEPY)
    async with system.connection() as connection:
        async with connection.transaction():
            await connection.execute("select pg_sleep(2)")
            await system.publish(range(1))
            await eventually(lambda: system.journal.numbers("mail") == {0})
            await Publisher().publish(connection, "order.placed", {"number": 1})
        await eventually(lambda: system.journal.numbers("mail") == {0, 1})
