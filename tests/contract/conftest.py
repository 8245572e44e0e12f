"""Every case of the contract runs over each transport, on real servers."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import pytest

from outbox.ports import Broker
from tests.contract.harness import Harness, MemoryHarness, PostgresHarness, RabbitHarness
from tests.servers.postgres import PostgresServer, fresh_database, with_database


@pytest.fixture(params=["memory", "postgres", pytest.param("rabbitmq", marks=pytest.mark.rabbitmq)])
def harness(request: pytest.FixtureRequest) -> Iterator[Harness]:
    """One transport, empty."""
    match request.param:
        case "rabbitmq":
            yield RabbitHarness(request.getfixturevalue("broker_url"), request.getfixturevalue("broker_admin"))
        case "postgres":
            server: PostgresServer = request.getfixturevalue("postgres_server")
            with fresh_database(server.url, tables=True) as name:
                yield PostgresHarness(with_database(server.url, name))
        case _:
            yield MemoryHarness()


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
