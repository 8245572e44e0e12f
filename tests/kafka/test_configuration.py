"""Kafka's URLs and options: what they mean, what is refused at once, and that no secret is shown."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from app.parts import component_factories
from app.settings import read_settings
from app.startup import Installation
from outbox import Archiver, MessageRelay, Worker, consume
from outbox.admin import Admin
from outbox.admin.brokers import BrokerKind, BrokerView
from outbox.core.urls import kafka_hosts, kafka_topic, redacted, server_address
from outbox.dead_letters import DeadLetters
from outbox.errors import ConfigurationError
from outbox.transports.kafka import KafkaTransport

DATABASE = "postgresql://h/d"
PAGE = Path(__file__).parent.parent.parent / "docs" / "kafka.md"
KAFKA = "kafka://h:9092/"


@consume("user.created", queue="letters")
async def welcome(user: dict[str, str]) -> None: ...


@pytest.mark.parametrize(
    ("url", "hosts", "topic", "address"),
    [
        ("kafka://Kafka", "kafka:9092", "{routing_key}", "Kafka at kafka:9092"),
        ("kafka://b:1,a/?topic=events", "b:1,a:9092", "events", "Kafka at a:9092,b:1"),
        ("kafkas://ada:s3cret@h:9093?topic=e.{routing_key}&linger.ms=5", "h:9093", "e.{routing_key}", "Kafka at h:9093"),
        ("kafka://[::2]:9094,[::1]", "[::2]:9094,[::1]:9092", "{routing_key}", "Kafka at [::1]:9092,[::2]:9094"),
    ],
)
def test_a_url_names_servers_and_topic(url: str, hosts: str, topic: str, address: str) -> None:
    assert (kafka_hosts(url), kafka_topic(url), server_address(url)) == (hosts, topic, address)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("kafka://h", {"security.protocol": "PLAINTEXT", "bootstrap.servers": "h:9092"}),
        ("kafkas://h", {"security.protocol": "SSL"}),
        (
            "kafka://ada:p%40ss%2Fw@h",
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.username": "ada",
                "sasl.password": "p@ss/w",
                "sasl.mechanisms": "PLAIN",
            },
        ),
        ("kafkas://ada:geheim@h?sasl.mechanism=SCRAM-SHA-512", {"security.protocol": "SASL_SSL"}),
        ("kafka://h?linger.ms=7&compression.type=lz4", {"linger.ms": "7", "compression.type": "lz4"}),
    ],
)
def test_a_url_gives_the_properties_of_the_producer(url: str, expected: dict[str, str]) -> None:
    properties = KafkaTransport(url)._properties
    assert {name: properties.get(name) for name in expected} == expected
    assert (properties["enable.idempotence"], properties["acks"]) == (True, "all")
    assert properties["allow.auto.create.topics"] is False
    assert "sasl.mechanism" not in properties or "sasl.mechanisms" not in properties


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("kafka://", "no hosts"),
        ("kafka://ada:geheim@/", "no hosts"),
        ("kafka://h:port/", "no hosts"),
        ("kafka://h,/", "no hosts"),
        ("kafka://h:1,g:65536", "no hosts"),
        ("kafka://ada:geheim@h/orders", r"name the topic in \?topic="),
        ("kafka://h?topic=", "must be the name of a topic"),
        ("kafka://h?topic=a/{routing_key}", "must be the name of a topic"),
        ("kafka://h?topic={key}", "must be the name of a topic"),
        ("kafka://h?topic=..", "must be the name of a topic"),
        (f"kafka://h?topic={'x' * 250}", "must be the name of a topic"),
        ("kafka://ada:geheim@h?nonsense=1", "nonsense"),
        ("kafka://ada:geheim@h?linger.ms=soon", "Invalid value"),
        ("kafka://ada@h", "sasl.password must be set"),
        ("kafkas://ada:geheim@h?ssl.ca.location=/nope.pem", "ssl.ca.location"),
        ("kafka://h?acks=1", "acks cannot be set"),
        ("kafka://h?enable.idempotence=false", "enable.idempotence cannot be set"),
        ("kafka://h?bootstrap.servers=other", "bootstrap.servers cannot be set"),
    ],
)
def test_a_bad_url_is_refused_when_the_relay_is_created(url: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint) as refused:
        MessageRelay(DATABASE, broker=url)
    assert "geheim" not in str(refused.value)


@pytest.mark.parametrize(
    "create",
    [
        lambda: Worker(broker=KAFKA, consumers=[welcome]),
        lambda: Worker(broker=KafkaTransport(KAFKA), consumers=[welcome]),  # type: ignore[arg-type]
        lambda: Worker(rmq_connection_url=KAFKA, consumers=[welcome]),
        lambda: Worker(broker="kafka://h?group.id=mine", db_engine_url=DATABASE, consumers=[welcome]),
        lambda: Archiver(DATABASE, broker=KAFKA),
    ],
)
def test_what_cannot_work_on_kafka_is_refused_at_once(create: Callable[[], Any]) -> None:
    with pytest.raises(ConfigurationError, match=r"(?i)kafka"):
        create()


consumers = [welcome]


def test_a_service_on_kafka_needs_no_archiver() -> None:
    settings = read_settings(
        database_url=DATABASE,
        broker_url=KAFKA,
        run="api,relay,worker,archiver,maintain",
        consumers="tests.kafka.test_configuration:consumers",
    )
    factories = component_factories(Installation(settings=settings, database=SecretStr(DATABASE)))
    assert isinstance(factories["relay"](), MessageRelay)
    assert isinstance(factories["worker"](), Worker)
    assert factories["archiver"]() is None
    assert factories["maintain"]() is not None


async def test_the_queues_of_workers_on_kafka_are_in_the_database(database: str) -> None:
    view = BrokerView(Admin(DATABASE, broker=KAFKA))
    assert (view.kind, view.rabbitmq) == (BrokerKind.POSTGRESQL, None)
    async with DeadLetters(database, broker=KAFKA) as letters:
        assert letters._parts is not None
        assert not await letters._parts.changes._has_queue("mail")


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("kafkas://ada:geheim@a:9092,b:9092/?topic=x", "kafkas://ada:***@a:9092,b:9092/?topic=x"),
        ("kafka://a,b/?sasl.password=geheim&topic=x", "kafka://a,b/?sasl.password=***&topic=x"),
        ("kafkas://a/?ssl.key.password=geheim", "kafkas://a/?ssl.key.password=***"),
        ("kafkas://a/?ssl.key.pem=geheim&topic=x", "kafkas://a/?ssl.key.pem=***&topic=x"),
        ("kafkas://a/?sasl.oauthbearer.client.secret=geheim", "kafkas://a/?sasl.oauthbearer.client.secret=***"),
        ("sasl.oauthbearer.assertion.private.key.passphrase=geheim", "sasl.oauthbearer.assertion.private.key.passphrase=***"),
    ],
)
def test_no_secret_of_a_url_is_shown(text: str, safe: str) -> None:
    assert redacted(text) == safe


def test_the_url_of_the_page_is_accepted() -> None:
    [url] = re.findall(r"^kafka://user:.*$", PAGE.read_text(), re.MULTILINE)
    MessageRelay(DATABASE, broker=url)
    assert server_address(url) == "Kafka at host2:9092,host:9092"


WITHOUT_KAFKA = """
import sys
sys.modules["confluent_kafka"] = None
from outbox import MessageRelay
from outbox.errors import MissingExtraError
try:
    MessageRelay("postgresql://h/d", broker="kafka://h")
except MissingExtraError as error:
    print(error)
"""


def test_a_missing_extra_is_named() -> None:
    answer = subprocess.run([sys.executable, "-c", WITHOUT_KAFKA], capture_output=True, text=True, timeout=60, check=True)
    assert answer.stdout == 'Kafka needs an extra that is not installed: pip install "fastapi-outbox[kafka]"\n'
