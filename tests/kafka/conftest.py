"""A Kafka cluster for each test: mock brokers in this process, or topics of the test's own on `OUTBOX_TEST_KAFKA_URL`."""

import os
from collections.abc import AsyncIterator, Iterator

import pytest

from outbox.transports.kafka import KafkaTransport
from tests.servers.kafka import Kafka, MockKafka, NamedKafka, mock_kafka


@pytest.fixture
def mock() -> Iterator[MockKafka]:
    """Brokers that fail as the test configures them."""
    with mock_kafka(brokers=2) as cluster:
        yield cluster


@pytest.fixture
def kafka(request: pytest.FixtureRequest) -> Kafka:
    """A cluster that the test only sends to and reads from."""
    named = os.environ.get("OUTBOX_TEST_KAFKA_URL")
    return request.getfixturevalue("mock") if named is None else NamedKafka(named)


@pytest.fixture
async def transport(kafka: Kafka) -> AsyncIterator[KafkaTransport]:
    """A transport to the cluster, whose topics are the routing keys."""
    transport = KafkaTransport(kafka.url)
    yield transport
    await transport.close()
