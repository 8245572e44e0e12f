"""Every case of the contract runs over each transport, on real servers."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from outbox.ports import Broker
from tests.contract.harness import Harness, MemoryHarness, PostgresHarness, RabbitHarness


@pytest.fixture(params=["memory", "postgres", pytest.param("rabbitmq", marks=pytest.mark.rabbitmq)])
def harness(request: pytest.FixtureRequest) -> Harness:
    """One transport, empty."""
    match request.param:
        case "rabbitmq":
            return RabbitHarness(request.getfixturevalue("broker_url"), request.getfixturevalue("broker_admin"))
        case "postgres":
            return PostgresHarness(request.getfixturevalue("database_url"))
        case _:
            return MemoryHarness()


@pytest.fixture
async def broker(harness: Harness) -> AsyncIterator[Broker]:
    """An adapter of the transport."""
    async with AsyncExitStack() as stack:
        broker = harness.broker()
        stack.push_async_callback(broker.close)
        yield broker


@pytest.fixture
async def other_broker(harness: Harness) -> AsyncIterator[Broker]:
    """Another adapter of the same transport, as another process would have it."""
    async with AsyncExitStack() as stack:
        broker = harness.broker()
        stack.push_async_callback(broker.close)
        yield broker
