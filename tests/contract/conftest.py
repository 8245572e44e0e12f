"""Every case of the contract runs over each transport, on real servers."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from outbox.ports import Broker
from tests.contract.harness import Harness, MemoryHarness, PostgresHarness, RabbitHarness
from tests.contract.routes import Route, broker_route, kafka_route
from tests.contract.stored import Log, StoredHarness
from tests.servers.kafka import mock_kafka

TRANSPORTS = ["memory", "postgres", pytest.param("rabbitmq", marks=pytest.mark.rabbitmq)]
DIFFERENCES = {
    "test_our_brokers_measure_the_depth_of_a_queue": "counts what is stored, and without a worker nothing is",
}
"""Cases that brokers whose messages are stored do not pass, and why."""
STORED_MODULES = frozenset({"test_broker", "test_coming_back"})
"""Cases of the port. Those of whole workers run on the Postgres transport, which delivers what is stored."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs the cases of the port on stored messages, too."""
    if "harness" in metafunc.fixturenames and not any(
        mark.args[0] == "harness" for mark in metafunc.definition.iter_markers("parametrize")
    ):
        module = metafunc.module.__name__.rpartition(".")[2]
        stored = ["log"] if module in STORED_MODULES and metafunc.function.__name__ not in DIFFERENCES else []
        metafunc.parametrize("harness", [*TRANSPORTS, *stored], indirect=True)


@pytest.fixture
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
        case "log":
            log = Log()
            return StoredHarness(request.getfixturevalue("database_url"), "log", lambda: (log, log))
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
