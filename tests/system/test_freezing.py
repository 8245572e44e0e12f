"""SIGSTOP for longer than every timeout: others take over, and what resumes late changes nothing."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from tests.servers.proxy import Proxy, Towards
from tests.support import RabbitAdmin, eventually
from tests.system.handlers import Handler
from tests.system.harness import MakeSystem, System
from tests.system.support import depth_is

LEASE = 2.0


async def sent_at(system: System) -> list[datetime | None]:
    """When each row was settled, as the table says."""
    async with system.connection() as connection:
        return [row["sent_at"] for row in await connection.fetch("select sent_at from outbox_table order by id")]


async def test_a_relay_frozen_with_a_batch_loses_it_to_another_and_cannot_settle_late(
    database_url: str, broker_url: str, broker_admin: RabbitAdmin, make_system: MakeSystem, proxied: Callable[[str], Proxy]
) -> None:
    """Ten messages are with the broker and unconfirmed when their relay freezes; another settles them, and that stands."""
    proxy = proxied(broker_url)
    options = {"publish_timeout": 5.0, "clean_up_after": "NEVER"}
    system = await make_system(database_url, broker_url, relay_options=options)
    await broker_admin.declare_exchange("outbox")
    await broker_admin.declare_queue("mail")
    await broker_admin.bind("outbox", "mail", "order.*")
    frozen = system.relay(broker=proxy.url)
    await system.publish(range(1))
    await eventually(lambda: all_sent(system))

    proxy.pause(Towards.CLIENT)
    await system.publish(range(1, 11))
    await eventually(lambda: depth_is(broker_admin, 11))
    frozen.freeze()
    proxy.spare_new()
    successor = system.relay(broker=proxy.url)  # by the same address: all relays of a table send to one place
    await eventually(lambda: all_sent(system), timeout=60, interval=0.1)
    settled = await sent_at(system)
    assert await broker_admin.depth("mail") == 21

    proxy.resume()
    frozen.thaw()
    await eventually(lambda: "lost the database" in frozen.log, message=f"it notices\n{frozen.log}")
    assert await sent_at(system) == settled
    successor.terminate()
    assert await successor.ended() == 0
    await system.publish(range(11, 12))
    await eventually(lambda: all_sent(system))
    assert await broker_admin.depth("mail") == 22


async def all_sent(system: System) -> bool:
    return None not in await sent_at(system)


@pytest.fixture(params=[pytest.param("rabbitmq", marks=pytest.mark.rabbitmq), "postgres"])
def broker(request: pytest.FixtureRequest) -> str | None:
    """RabbitMQ's address; None for the database. Named before the system, it outlives it."""
    return str(request.getfixturevalue("broker_url")) if request.param == "rabbitmq" else None


async def test_a_worker_frozen_inside_a_handler_loses_the_message_to_another_and_cannot_settle_late(
    database_url: str, broker: str | None, make_system: MakeSystem
) -> None:
    """Its handler ends well after the other's has failed three times: the verdict that stands is the other's."""
    impatient: dict[str, Any]
    if broker is None:
        system, impatient = await make_system(database_url), {"lease": LEASE}
    else:
        system, impatient = await make_system(database_url, broker), {"broker": f"{broker}?heartbeat=1"}
    system.relay()
    frozen = system.worker(Handler(queue="mail", seconds=5), **impatient)
    await system.queue_is_consumed("mail")
    await system.publish(range(1))
    await eventually(system.journal.begun)
    frozen.freeze()
    system.worker(Handler(queue="mail", failures=9, retry_delays=("0", "0")))
    await eventually(lambda: dead_letters_are(system, 1), interval=0.1)
    assert [entry.attempt for entry in system.journal.of("mail", 0, "began")] == [1, 1, 2, 3]

    frozen.thaw()
    await eventually(lambda: system.journal.of("mail", 0))
    await eventually(lambda: " WARNING outbox " in frozen.log, message=f"it says so\n{frozen.log}")
    assert await system.dead_letters("mail") == 1
    await system.publish(range(1, 6))
    await eventually(lambda: {entry.number for entry in system.journal.entries} == set(range(6)))


async def dead_letters_are(system: System, count: int) -> bool:
    return await system.dead_letters("mail") == count
