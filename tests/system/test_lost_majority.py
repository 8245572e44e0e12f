"""A cluster of two nodes, of which one dies: the queue that had members on both takes nothing, and hurts no other."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Iterator
from pathlib import Path

import pytest

from tests.servers.rabbitmq import PrivateRabbitMQ
from tests.support import eventually
from tests.system.harness import MakeSystem

SICK = 1_000
SEVERAL = "insert into outbox_table (routing_key, body) select $1, convert_to(i::text, 'utf8') from generate_series(1, $2) i"


@pytest.fixture
def two_nodes(servers_folder: Path) -> Iterator[tuple[PrivateRabbitMQ, PrivateRabbitMQ]]:
    """A cluster of two, of which the first stays."""
    first = PrivateRabbitMQ(servers_folder / "cluster-1")
    second = PrivateRabbitMQ(servers_folder / "cluster-2", first=first)
    try:
        first.start()
        second.start()
        yield first, second
    finally:
        second.close()
        first.close()


@pytest.mark.rabbitmq
@pytest.mark.timeout(600)
async def test_a_queue_without_a_majority_blocks_no_other_and_the_others_of_its_route_get_few_copies(
    two_nodes: tuple[PrivateRabbitMQ, PrivateRabbitMQ], database_url: str, make_system: MakeSystem
) -> None:
    first, second = two_nodes
    admin = first.admin
    await admin.declare_exchange("outbox")
    for queue, members, key in (("torn", 2, "sick"), ("sibling", 1, "sick"), ("other", 1, "well")):
        await admin.declare_queue(queue, arguments={"x-quorum-initial-group-size": members})
        await admin.bind("outbox", queue, key)
    await asyncio.to_thread(second.kill)
    system = await make_system(database_url, first.url, relay_options={"publish_timeout": 4.0})
    async with system.connection() as connection:
        for routing_key, count in (("sick", SICK), ("well", 75)):
            await connection.execute(SEVERAL, routing_key, count)
    relay = system.relay()
    await eventually(lambda: depth_is(first, "other", 75), interval=0.2)
    stalled = "last_error = 'stalled' and attempts = 0"
    await eventually(lambda: count_is(system.count(stalled), SICK), timeout=60, interval=0.2)
    assert "routing key 'sick' of exchange outbox accepts no messages" in relay.log
    assert "lost the broker" not in relay.log

    # While it is stalled, others flow at full speed, and a sibling queue gets one message a probe.
    before = await admin.depth("sibling")
    async with system.connection() as connection:
        await connection.execute("insert into outbox_table (routing_key, body) values ('well', '')")
    await eventually(lambda: depth_is(first, "other", 76))
    assert before <= 2 * 200 + 5

    await asyncio.to_thread(second.start)
    await eventually(lambda: count_is(system.count(), 0), timeout=90, interval=0.2)
    copies = Counter(message["body"] for message in await admin.get("sibling", count=3 * SICK))
    assert len(copies) == SICK
    assert sum(copies.values()) <= SICK + 2 * 200 + 20
    assert len([body for body, count in copies.items() if count > 2]) <= 1, "the one that probes"


async def depth_is(node: PrivateRabbitMQ, queue: str, depth: int) -> bool:
    return await node.admin.depth(queue) == depth


async def count_is(count: Awaitable[int], wanted: int) -> bool:
    return await count == wanted
