"""What brokers declare to guarantee: the page agrees, and consumers that need more are refused."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from outbox import Consumer, Worker
from outbox.errors import ConfigurationError
from outbox.ports import Guarantees
from outbox.runtime.brokers import keeps_dead_letters, stored_label, unkept
from outbox.transports.aws import AwsSource, AwsTransport
from outbox.transports.kafka import KafkaTransport
from outbox.transports.kafka_source import KafkaSource
from outbox.transports.memory import MemoryBroker
from outbox.transports.nats import NatsTransport
from outbox.transports.nats_source import NatsSource
from outbox.transports.postgres import PostgresBroker
from outbox.transports.rabbitmq import RabbitBroker
from outbox.transports.redis import RedisSource, RedisTransport

PAGE = Path(__file__).parents[2] / "docs" / "brokers.md"
REDIS = "redis://h:6379/0"
COLUMNS = {
    "RabbitMQ": RabbitBroker.guarantees,
    "PostgreSQL": PostgresBroker.guarantees,
    "Kafka": KafkaSource.guarantees,
    "NATS": NatsSource.guarantees,
    "Redis": RedisSource(REDIS).guarantees,
    "SQS, SNS": AwsSource("sqs://eu-central-1").guarantees,
    "memory, for tests": MemoryBroker.guarantees,
}
ROWS: dict[str, tuple[str, Callable[[Guarantees], bool]]] = {
    "a message that nothing would receive": ("held", lambda kept: kept.unroutable),
    "order per ordering key, while relaying": ("yes", lambda kept: kept.ordered),
    "order per ordering key, in handlers with `ordered=True`": ("yes", lambda kept: kept.ordered),
    "binding keys with `*` and `#`": ("yes", lambda kept: kept.patterns),
    "a worker needs a database": ("yes", lambda kept: not kept.keeps_state),
    "depth of queues": ("what is stored", lambda kept: not kept.keeps_state),
    "dead letters": ("in RabbitMQ, until the archiver", lambda kept: kept.dead_letter_queues),
}


def test_the_table_of_the_page_says_what_brokers_declare() -> None:
    [table] = re.findall(r"^## What works where\n\n((?:\|.*\n)+)", PAGE.read_text(), re.MULTILINE)
    header, _, *lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    assert header[1:] == list(COLUMNS)
    cells = {name: dict(zip(header[1:], values, strict=True)) for name, *values in lines}
    for name, (beginning, is_kept) in ROWS.items():
        said = {column: cell.startswith(beginning) for column, cell in cells[name].items()}
        assert said == {column: is_kept(kept) for column, kept in COLUMNS.items()}, name


def test_senders_and_readers_of_a_broker_declare_the_same() -> None:
    assert KafkaTransport.guarantees == KafkaSource.guarantees
    assert NatsTransport.guarantees == NatsSource.guarantees
    for url in (
        "sqs://eu-central-1",
        "sqs://eu-central-1?queue=all.fifo",
        "sns://eu-central-1/shop",
        "sns://eu-central-1/shop.fifo",
    ):
        assert AwsTransport(url).guarantees == AwsSource(url).guarantees
        assert AwsSource(url).guarantees.ordered == url.endswith(".fifo")
    for options in ("", "?stream=events", "?create=true"):
        assert RedisTransport(REDIS + options).guarantees == RedisSource(REDIS + options).guarantees
    assert RedisTransport(f"{REDIS}?create=true").guarantees == Guarantees(unroutable=False, keeps_state=False)


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("amqp://h", RabbitBroker.guarantees),
        ("postgresql://h/d", PostgresBroker.guarantees),
        ("kafka://h", KafkaSource.guarantees),
        ("nats://h", NatsSource.guarantees),
        (REDIS, RedisSource(REDIS).guarantees),
    ],
)
def test_what_urls_say_agrees_with_it(url: str, kept: Guarantees) -> None:
    assert keeps_dead_letters(url) == kept.dead_letter_queues
    assert (stored_label(url) is None) == kept.keeps_state


class Source:
    """A source that guarantees no order and matches no wildcards."""

    guarantees: Any = Guarantees(ordered=False, patterns=False, keeps_state=False)
    destination = "the log"

    def read(self, subscription: object) -> Any: ...

    async def close(self) -> None: ...


def consumer(binding_key: str, **options: Any) -> Consumer:
    async def handle(body: bytes) -> None: ...

    return Consumer(binding_key, handle, queue="mail", **options)


@pytest.mark.parametrize(
    ("broker", "refused", "reason"),
    [
        (Source(), consumer("order.placed", ordered=True), "'mail' is ordered, and the log guarantees no order"),
        (Source(), consumer("order.*"), r"'order\.\*' of the queue 'mail' has wildcards, which the log cannot match"),
        (REDIS, consumer("order.#"), r"has wildcards, which Redis at h:6379, .*\?stream=events"),
    ],
)
def test_a_worker_refuses_consumers_that_need_more(broker: Any, refused: Consumer, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        Worker(broker=broker, db_engine_url="postgresql://h/d", consumers=[refused])
    assert unkept(broker, [consumer("order.placed"), refused]) != []


def test_a_worker_accepts_consumers_that_need_what_is_guaranteed() -> None:
    wanted = [consumer("order.*", ordered=True)]
    for url in ("kafka://h", "nats://h", f"{REDIS}?stream=events", f"{REDIS}?create=true", "postgresql://h/d", "amqp://h"):
        assert unkept(url, wanted) == []
    assert unkept(type("Plain", (Source,), {"guarantees": Guarantees()})(), wanted) == []
