"""Every case of the contract runs over each transport, on real servers."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from outbox.ports import Broker
from tests.contract.harness import Harness, MemoryHarness, PostgresHarness, RabbitHarness
from tests.contract.routes import Route, broker_route, kafka_route
from tests.servers.kafka import mock_kafka

TRANSPORTS = ["memory", "postgres", pytest.param("rabbitmq", marks=pytest.mark.rabbitmq)]


@pytest.fixture(params=TRANSPORTS)
def harness(request: pytest.FixtureRequest) -> Harness:
    """One transport, empty."""
    return _make_harness(request)


@pytest.fixture(params=[*TRANSPORTS, "kafka"])
async def route(request: pytest.FixtureRequest) -> AsyncIterator[Route]:
    """The way of `order.placed` through one transport, among them those that only send."""
    if request.param == "kafka":
        with mock_kafka(brokers=1) as cluster:
            cluster.create_topic("order.placed")
            async with kafka_route(cluster, "order.placed") as route:
                yield route
    else:
        async with broker_route(_make_harness(request).broker(), "order.placed") as route:
            yield route


def _make_harness(request: pytest.FixtureRequest) -> Harness:
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
