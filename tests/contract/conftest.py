"""Every case of the contract runs over each transport, on real servers."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from uuid import uuid4

import pytest

from outbox.ports import Broker, Guarantees
from outbox.transports.aws.client import AwsOptions
from outbox.transports.memory import MemoryBroker
from outbox.transports.nats_source import NatsSource
from outbox.transports.postgres import PostgresBroker
from outbox.transports.rabbitmq import RabbitBroker
from outbox.transports.redis.server import RedisOptions
from tests.contract.harness import Harness, MemoryHarness, PostgresHarness, RabbitHarness
from tests.contract.routes import Route, broker_route, kafka_route, nats_route, redis_route, sqs_route
from tests.contract.stored import Log, StoredHarness
from tests.servers.kafka import HAS_CLIENT, MockKafka, mock_kafka
from tests.servers.nats import Nats
from tests.servers.redis import Redis, running_redis

ONE_STREAM = "?stream=events"
"""Of Redis, so that bindings may have wildcards."""
TRANSPORTS = ["memory", "postgres", "rabbitmq"]
GUARANTEES: dict[str, Guarantees] = {
    "memory": MemoryBroker.guarantees,
    "postgres": PostgresBroker.guarantees,
    "rabbitmq": RabbitBroker.guarantees,
    "log": Log.guarantees,
    "nats": NatsSource.guarantees,
    "redis": RedisOptions.parse(f"redis://localhost{ONE_STREAM}").guarantees,
    "aws": AwsOptions.parse("sns://eu-central-1/shop").guarantees,
}
"""What each transport declares."""
SOURCES = ["nats", "redis", "aws"]
if HAS_CLIENT:
    from outbox.transports.kafka_source import KafkaSource

    GUARANTEES["kafka"] = KafkaSource.guarantees
    SOURCES.insert(0, "kafka")
NEEDS: dict[str, Callable[[Guarantees], bool]] = {
    "test_bindings_follow_the_rules_of_topics": lambda kept: kept.patterns,
    "test_a_message_without_a_route_is_unroutable_and_others_are_not": lambda kept: kept.unroutable,
    "test_an_ordered_queue_gives_each_key_in_its_order": lambda kept: kept.ordered,
    "test_deliveries_left_by_an_ordered_consumer_go_to_the_next_one_in_order": lambda kept: kept.ordered,
    # Of what is stored, which is nothing without a worker.
    "test_our_brokers_measure_the_depth_of_a_queue": lambda kept: kept.keeps_state,
}
"""Cases that not every transport passes, and what it has to guarantee for them."""
STORED_MODULES = frozenset({"test_broker", "test_redelivery"})
"""Cases of the port. Those of whole workers run on the Postgres transport, which delivers what is stored."""
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
    """Runs each case on the transports that guarantee what it needs; those of the port also on stored messages."""
    chosen = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    fixture = next((each for each in ("harness", "route") if each in metafunc.fixturenames), None)
    if fixture is None or fixture in chosen:
        return
    name, stored = metafunc.function.__name__, []
    if fixture == "route":
        stored = SOURCES
    elif metafunc.module.__name__.rpartition(".")[2] in STORED_MODULES:
        stored = ["log", *(SOURCES if name in SOURCE_CASES else ())]
    is_kept = NEEDS.get(name)
    transports = [each for each in (*TRANSPORTS, *stored) if is_kept is None or is_kept(GUARANTEES[each])]
    marked = [
        pytest.param(each, marks=getattr(pytest.mark, each)) if each in ("rabbitmq", "nats", "redis") else each
        for each in transports
    ]
    metafunc.parametrize(fixture, marked, indirect=True)


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


@pytest.fixture
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
    elif request.param == "aws":
        server = request.getfixturevalue("moto")
        server.create_queue("order-placed")
        async with sqs_route(server, "order-placed") as route:
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

            url, database = request.getfixturevalue("nats_url"), request.getfixturevalue("database_url")
            return StoredHarness(database, "nats", lambda: (NatsSource(url), NatsTransport(url)))
        case "redis":
            from outbox.transports.redis import RedisSource, RedisTransport

            url = f"{request.getfixturevalue('redis_server').url}{ONE_STREAM}"
            database = request.getfixturevalue("database_url")
            return StoredHarness(database, "redis", lambda: (RedisSource(url), RedisTransport(url)))
        case "aws":
            from outbox.transports.aws import AwsSource, AwsTransport

            # A topic, which sends to several queues, and whose bindings may have wildcards.
            url, database = request.getfixturevalue("moto").sns("shop"), request.getfixturevalue("database_url")
            return StoredHarness(database, "aws", lambda: (AwsSource(url), AwsTransport(url)))
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
