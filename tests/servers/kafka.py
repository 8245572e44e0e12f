"""Kafka for tests: librdkafka's mock brokers in the test process, which other processes reach by TCP, or a named cluster."""

import asyncio
import ctypes
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from enum import IntEnum
from functools import cache
from importlib.metadata import files
from importlib.util import find_spec
from typing import Any
from uuid import uuid4

from outbox.core.urls import kafka_hosts
from tests.servers.certificates import Certificates, over_tls
from tests.support import eventually

HAS_CLIENT = find_spec("confluent_kafka") is not None
"""If not, tests/conftest.py leaves tests of Kafka out: `scripts/setup.py` says for which Pythons."""
PRODUCE = 0
"""Kafka's number of the request that carries records."""
OFFSET_COMMIT = 8
OFFSET_FETCH = 9
HEARTBEAT = 12
_PRODUCER = 0


class KafkaError(IntEnum):
    """Errors that a mock broker can answer with, by Kafka's numbers."""

    UNKNOWN_TOPIC_OR_PARTITION = 3
    REQUEST_TIMED_OUT = 7
    MSG_SIZE_TOO_LARGE = 10
    NOT_COORDINATOR = 16
    NOT_ENOUGH_REPLICAS = 19
    TOPIC_AUTHORIZATION_FAILED = 29
    CLUSTER_AUTHORIZATION_FAILED = 31
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    INVALID_RECORD = 87


@cache
def _library() -> ctypes.CDLL:
    """The librdkafka of the installed wheel, which is loaded with confluent_kafka."""
    import confluent_kafka  # noqa: F401  loads the libraries that librdkafka needs

    [path] = [
        path for path in files("confluent-kafka") or () if path.name.startswith("librdkafka") and ".libs" in path.parts[0]
    ]
    library = ctypes.CDLL(str(path.locate()))
    pointer, number, text = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
    for name, result, arguments in (
        ("rd_kafka_conf_new", pointer, []),
        ("rd_kafka_conf_set", number, [pointer, text, text, pointer, ctypes.c_size_t]),
        ("rd_kafka_new", pointer, [number, pointer, pointer, ctypes.c_size_t]),
        ("rd_kafka_destroy", None, [pointer]),
        ("rd_kafka_mock_cluster_new", pointer, [pointer, number]),
        ("rd_kafka_mock_cluster_destroy", None, [pointer]),
        ("rd_kafka_mock_cluster_bootstraps", text, [pointer]),
        ("rd_kafka_mock_topic_create", number, [pointer, text, number, number]),
        ("rd_kafka_mock_topic_delete", number, [pointer, text]),
        ("rd_kafka_mock_topic_set_error", None, [pointer, text, number]),
        ("rd_kafka_mock_push_request_errors_array", None, [pointer, ctypes.c_int16, ctypes.c_size_t, pointer]),
        ("rd_kafka_mock_clear_request_errors", None, [pointer, ctypes.c_int16]),
        ("rd_kafka_mock_partition_set_leader", number, [pointer, text, ctypes.c_int32, ctypes.c_int32]),
        ("rd_kafka_mock_start_request_tracking", None, [pointer]),
        ("rd_kafka_mock_get_requests", ctypes.POINTER(pointer), [pointer, ctypes.POINTER(ctypes.c_size_t)]),
        ("rd_kafka_mock_request_api_key", ctypes.c_int16, [pointer]),
        ("rd_kafka_mock_request_destroy_array", None, [ctypes.POINTER(pointer), ctypes.c_size_t]),
        ("rd_kafka_mock_broker_set_down", number, [pointer, ctypes.c_int32]),
        ("rd_kafka_mock_broker_set_up", number, [pointer, ctypes.c_int32]),
        ("rd_kafka_mock_broker_set_rtt", number, [pointer, ctypes.c_int32, number]),
        ("rd_kafka_mock_group_initial_rebalance_delay_ms", None, [pointer, ctypes.c_int32]),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class Kafka(ABC):
    """A cluster with topics that a test creates and reads."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.hosts = kafka_hosts(url)

    @abstractmethod
    def create_topic(self, topic: str, *, partitions: int = 4) -> None:
        """Creates a topic; no client creates any."""

    def new_topic(self, *, partitions: int = 4) -> str:
        """Creates a topic of the test's own, and returns its name."""
        topic = f"test.{uuid4()}"
        self.create_topic(topic, partitions=partitions)
        return topic

    async def read(self, topic: str, count: int) -> Sequence[Any]:
        """Returns the records of a topic, in the order of each partition, once there are at least so many."""
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({"bootstrap.servers": self.hosts, "group.id": "tests", "enable.auto.commit": False, "log_level": 2})
        try:
            partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
            consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
            found: list[Any] = []

            def enough() -> bool:
                found.extend(record for record in consumer.consume(1_000, timeout=0.05) if record.error() is None)
                return len(found) >= count

            await eventually(enough)
            # What is there beyond that has arrived by now, or comes with one more look.
            enough()
        finally:
            consumer.close()
        return found

    def produce(self, topic: str, *records: Any) -> None:
        """Stores records as another producer would: each is a value, or the arguments of `Producer.produce` by name."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.hosts, "log_level": 2})
        for record in records:
            producer.produce(topic, **(record if isinstance(record, dict) else {"value": record}))
        assert producer.flush(30) == 0

    def committed(self, group: str, topic: str, *, partitions: int = 4) -> int:
        """How many records of a topic a group has acknowledged, with those before them."""
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({"bootstrap.servers": self.hosts, "group.id": group, "log_level": 2})
        try:
            found = consumer.committed([TopicPartition(topic, each) for each in range(partitions)], timeout=10)
            return sum(max(each.offset, 0) for each in found)
        finally:
            consumer.close()


class NamedKafka(Kafka):
    """A cluster that runs outside of the tests, whose user may create topics."""

    def create_topic(self, topic: str, *, partitions: int = 4) -> None:
        """Creates a topic with one replica."""
        from confluent_kafka.admin import AdminClient
        from confluent_kafka.cimpl import NewTopic

        admin = AdminClient({"bootstrap.servers": self.hosts})
        for created in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
            created.result(timeout=30)


class MockKafka(Kafka):
    """Brokers with the ids 1 to `brokers`. Each topic is created with `create_topic`; clients cannot create any."""

    def __init__(self, cluster: int, *, brokers: int) -> None:
        self._cluster = cluster
        self._brokers = range(1, brokers + 1)
        _library().rd_kafka_mock_start_request_tracking(cluster)
        # Kafka waits three seconds for further members of a new group.
        _library().rd_kafka_mock_group_initial_rebalance_delay_ms(cluster, 0)
        super().__init__(f"kafka://{_library().rd_kafka_mock_cluster_bootstraps(cluster).decode()}/")

    def create_topic(self, topic: str, *, partitions: int = 4) -> None:
        """Creates a topic with one replica for each broker."""
        assert _library().rd_kafka_mock_topic_create(self._cluster, topic.encode(), partitions, len(self._brokers)) == 0

    def delete_topic(self, topic: str) -> None:
        """Deletes a topic with its records, and with the offsets of its groups."""
        assert _library().rd_kafka_mock_topic_delete(self._cluster, topic.encode()) == 0

    def fail_topic(self, topic: str, error: int) -> None:
        """Answers requests for the topic with an error; 0 ends it."""
        _library().rd_kafka_mock_topic_set_error(self._cluster, topic.encode(), error)

    def fail_produce(self, *errors: int) -> None:
        """Makes the next produce requests fail, one with each error; 0 lets one succeed."""
        numbers = (ctypes.c_int * len(errors))(*errors)
        _library().rd_kafka_mock_push_request_errors_array(self._cluster, PRODUCE, len(errors), numbers)

    def fail_commits(self, *errors: int) -> None:
        """Makes the next commits of offsets fail, one with each error."""
        numbers = (ctypes.c_int * len(errors))(*errors)
        _library().rd_kafka_mock_push_request_errors_array(self._cluster, OFFSET_COMMIT, len(errors), numbers)

    def fail_offset_fetches(self, *errors: int) -> None:
        """Makes the next requests for committed offsets fail, one with each error."""
        numbers = (ctypes.c_int * len(errors))(*errors)
        _library().rd_kafka_mock_push_request_errors_array(self._cluster, OFFSET_FETCH, len(errors), numbers)

    def stop_failing(self) -> None:
        """Lets all further produce requests succeed."""
        _library().rd_kafka_mock_clear_request_errors(self._cluster, PRODUCE)

    def requests(self, kind: int) -> int:
        """How many requests of a kind have arrived."""
        count = ctypes.c_size_t()
        requests = _library().rd_kafka_mock_get_requests(self._cluster, ctypes.byref(count))
        keys = [_library().rd_kafka_mock_request_api_key(requests[index]) for index in range(count.value)]
        _library().rd_kafka_mock_request_destroy_array(requests, count.value)
        return keys.count(kind)

    def remove_leader(self, topic: str) -> None:
        """Takes the leader of a topic's only partition away: the cluster answers, and stores nothing there.

        Only while the topic is empty: a mock broker crashes if a producer that knows the leader sends to it.
        """
        assert _library().rd_kafka_mock_partition_set_leader(self._cluster, topic.encode(), 0, -1) == 0

    @property
    def consuming_url(self) -> str:
        """The URL for workers: their groups notice within a second that a member is gone, and find new topics."""
        return f"{self.url}?session.timeout.ms=1000&heartbeat.interval.ms=100&topic.metadata.refresh.interval.ms=200"

    def set_down(self) -> None:
        """Closes all connections, and refuses new ones."""
        for broker in self._brokers:
            assert _library().rd_kafka_mock_broker_set_down(self._cluster, broker) == 0

    def set_up(self) -> None:
        """Accepts connections again."""
        for broker in self._brokers:
            assert _library().rd_kafka_mock_broker_set_up(self._cluster, broker) == 0

    def delay(self, milliseconds: int) -> None:
        """Makes every broker answer that much later."""
        for broker in self._brokers:
            assert _library().rd_kafka_mock_broker_set_rtt(self._cluster, broker, milliseconds) == 0

    @asynccontextmanager
    async def over_tls(self, certificates: Certificates) -> AsyncIterator[str]:
        """Yields a URL at which the only broker asks for a certificate. Its answers name that address for the broker's own."""
        assert len(self._brokers) == 1
        port = int(self.hosts.rpartition(":")[2])

        async def read(reader: asyncio.StreamReader) -> bytes:
            size = await reader.readexactly(4)
            answer = await reader.readexactly(int.from_bytes(size))
            return size + answer.replace(b"127.0.0.1" + port.to_bytes(4), b"127.0.0.1" + encrypted.to_bytes(4))

        async with over_tls(port, certificates, ask=True, read=read) as encrypted:
            files = certificates.options("ssl.ca.location", "ssl.certificate.location", "ssl.key.location")
            yield f"kafkas://127.0.0.1:{encrypted}/?{files}"


@contextmanager
def mock_kafka(*, brokers: int) -> Iterator[MockKafka]:
    """Runs a cluster within the block."""
    library = _library()
    conf = library.rd_kafka_conf_new()
    library.rd_kafka_conf_set(conf, b"log_level", b"2", None, 0)  # not that it has no servers of its own
    owner = library.rd_kafka_new(_PRODUCER, conf, None, 0)
    cluster = library.rd_kafka_mock_cluster_new(owner, brokers)
    try:
        yield MockKafka(cluster, brokers=brokers)
    finally:
        library.rd_kafka_mock_cluster_destroy(cluster)
        library.rd_kafka_destroy(owner)
