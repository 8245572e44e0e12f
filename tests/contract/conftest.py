"""Every case of the contract runs over each transport, on real servers."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from uuid import uuid4

import pytest

from outbox.ports import Broker
from tests.contract.harness import Harness, MemoryHarness, PostgresHarness, RabbitHarness
from tests.contract.routes import Route, broker_route, kafka_route, nats_route, redis_route
from tests.contract.stored import Log, StoredHarness
from tests.servers.kafka import MockKafka, mock_kafka
from tests.servers.nats import Nats
from tests.servers.redis import Redis, running_redis

TRANSPORTS = ["memory", "postgres", pytest.param("rabbitmq", marks=pytest.mark.rabbitmq)]
DIFFERENCES = {
    "test_our_brokers_measure_the_depth_of_a_queue": "counts what is stored, and without a worker nothing is",
}
"""Cases that brokers whose messages are stored do not pass, and why."""
STORED_MODULES = frozenset({"test_broker", "test_coming_back"})
"""Cases of the port. Those of whole workers run on the Postgres transport, which delivers what is stored."""
SOURCES = ["kafka", pytest.param("nats", marks=pytest.mark.nats), pytest.param("redis", marks=pytest.mark.redis)]
SOURCE_CASES = frozenset(
    {
        "test_a_message_arrives_as_it_was_sent",
        "test_bindings_follow_the_rules_of_topics",
        "test_every_bound_queue_gets_the_message_and_settles_its_own",
        "test_a_message_for_one_queue_reaches_that_queue_alone",
        "test_a_queue_is_known_as_soon_as_messages_for_it_have_somewhere_to_go",
        "test_messages_wait_for_their_worker",
        "test_a_done_message_is_not_redelivered",
        "test_a_message_that_expires_in_the_queue_becomes_a_dead_letter",
        "test_workers_share_a_queue_and_each_message_goes_to_one",
    }
)
"""Cases in which a real source could differ. All others begin with a message that is stored, and run on a log in memory."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs the cases of the port on stored messages, too."""
    chosen = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    if "harness" not in metafunc.fixturenames or "harness" in chosen:
        return
    name, stored = metafunc.function.__name__, []
    if metafunc.module.__name__.rpartition(".")[2] in STORED_MODULES and name not in DIFFERENCES:
        stored = ["log", *(SOURCES if name in SOURCE_CASES else ())]
    metafunc.parametrize("harness", [*TRANSPORTS, *stored], indirect=True)


@pytest.fixture
def kafka_cluster() -> Iterator[MockKafka]:
    """A cluster of the test's own."""
    with mock_kafka(brokers=1) as cluster:
        yield cluster


@pytest.fixture
async def nats_url(nats_server: Nats) -> str:
    """A URL with subjects of the test's own, and a stream of them."""
    word = f"test-{uuid4()}"
    await nats_server.create_stream(word, f"{word}.>")
    return f"{nats_server.url}?subject={word}.{{routing_key}}"


@pytest.fixture
def redis_server(tmp_path: Path, servers_folder: Path) -> Iterator[Redis]:
    """A Redis of the test's own."""
    with running_redis(servers_folder / f"redis-{tmp_path.name}") as server:
        yield server


@pytest.fixture
def harness(request: pytest.FixtureRequest) -> Harness:
    """One transport, empty."""
    return _make_harness(request)


@pytest.fixture(params=[*TRANSPORTS, *SOURCES])
async def route(request: pytest.FixtureRequest) -> AsyncIterator[Route]:
    """The way of `order.placed` through one transport, among them those that only send."""
    if request.param == "kafka":
        with mock_kafka(brokers=1) as cluster:
            cluster.create_topic("order.placed")
            async with kafka_route(cluster, "order.placed") as route:
                yield route
    elif request.param == "nats":
        async with nats_route(request.getfixturevalue("nats_server"), "order.placed") as route:
            yield route
    elif request.param == "redis":
        server = request.getfixturevalue("redis_server")
        server.create_stream("order.placed")
        async with redis_route(server, "order.placed") as route:
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
        case "kafka":
            from outbox.transports.kafka import KafkaTransport
            from outbox.transports.kafka_source import KafkaSource

            cluster = request.getfixturevalue("kafka_cluster")
            for topic in ("order", "order.placed", "order.placed.eu", "invoice.placed"):
                cluster.create_topic(topic, partitions=1)
            return StoredHarness(
                request.getfixturevalue("database_url"),
                "kafka",
                lambda: (KafkaSource(cluster.consuming_url), KafkaTransport(cluster.url)),
            )
        case "nats":
            from outbox.transports.nats import NatsTransport
            from outbox.transports.nats_source import NatsSource

            url, database = request.getfixturevalue("nats_url"), request.getfixturevalue("database_url")
            return StoredHarness(database, "nats", lambda: (NatsSource(url), NatsTransport(url)))
        case "redis":
            from outbox.transports.redis import RedisSource, RedisTransport

            # One stream, in which bindings may have wildcards.
            url = f"{request.getfixturevalue('redis_server').url}?stream=events"
            database = request.getfixturevalue("database_url")
            return StoredHarness(database, "redis", lambda: (RedisSource(url), RedisTransport(url)))
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
