"""URLs of AWS and their options: what they mean, what is refused at once, and which queue a consumer has."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from outbox import Archiver, MessageRelay, Worker, consume
from outbox.admin import Admin
from outbox.admin.brokers import BrokerKind, BrokerView
from outbox.core.urls import aws_names, redacted, server_address
from outbox.errors import ConfigurationError, TopologyError
from outbox.transports.aws import AwsSource, AwsTransport
from outbox.transports.aws.client import AwsOptions
from outbox.transports.aws.source import filter_policy, queue_name

DATABASE = "postgresql://h/d"
PAGE = Path(__file__).parent.parent.parent / "docs" / "aws.md"


@consume("user.created", queue="user.created")
async def welcome(user: dict[str, str]) -> None: ...


@pytest.mark.parametrize(
    ("url", "names", "address"),
    [
        ("sqs://eu-west-1", ("sqs", "eu-west-1", "{routing_key}"), "SQS in eu-west-1"),
        (
            "SQS://us-gov-east-1/?queue=shop-{routing_key}",
            ("sqs", "us-gov-east-1", "shop-{routing_key}"),
            "SQS in us-gov-east-1",
        ),
        ("sns://cn-north-1/orders.fifo", ("sns", "cn-north-1", "orders.fifo"), "SNS in cn-north-1, topic orders.fifo"),
    ],
)
def test_a_url_names_the_region_and_the_queues_or_the_topic(url: str, names: object, address: str) -> None:
    assert (aws_names(url), server_address(url)) == (names, address)


def test_a_url_has_options() -> None:
    options = AwsOptions.parse(
        "sns://eu-west-1/orders.fifo?endpoint_url=http://localhost:5000&account=123456789012&create=false"
        "&visibility_timeout=60&wait_time=20"
    )
    assert (options.endpoint_url, options.account, options.create) == ("http://localhost:5000", "123456789012", False)
    assert (options.visibility_timeout, options.wait_time, options.is_fifo) == (60, 20, True)
    plain = AwsOptions.parse("sqs://eu-west-1")
    assert (plain.endpoint_url, plain.account, plain.create) == (None, None, True)
    assert (plain.visibility_timeout, plain.wait_time, plain.is_fifo) == (30, 1, False)


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("sqs://", "no region"),
        ("sqs://localhost:9324", "no region"),
        ("sqs://key:geheim@eu-west-1", "has credentials, which AWS takes from its environment"),
        ("sns://key:geheim@eu-west-1/orders", "has credentials, which AWS takes from its environment"),
        ("sqs://eu-west-1/orders", r"name the queue in \?queue="),
        ("sns://eu-west-1", "no topic"),
        ("sns://eu-west-1/orders/eu", "no topic"),
        ("sns://eu-west-1/orders?queue=mail", "'queue'"),
        ("sqs://eu-west-1?secret=geheim", "'secret'"),
        ("sqs://eu-west-1?queue=", "must be the name of a queue"),
        ("sqs://eu-west-1?queue=a/b", "must be the name of a queue"),
        ("sqs://eu-west-1?account=7", "number of 12 digits"),
        ("sqs://eu-west-1?create=perhaps", "neither true nor false"),
        ("sqs://eu-west-1?endpoint_url=geheim", "no address"),
        ("sqs://eu-west-1?endpoint_url=http://user:geheim@h:1", "no address"),
        ("sqs://eu-west-1?endpoint_url=http://h:65536/", "no address"),
        ("sqs://eu-west-1?endpoint_url=http://:80", "no address"),
        ("sqs://eu-west-1?wait_time=21", "wait_time that is not a number from 1 to 20"),
        ("sqs://eu-west-1?visibility_timeout=0", "visibility_timeout that is not a number from 1 to 43,200"),
    ],
)
@pytest.mark.parametrize(
    "create",
    [
        lambda url: MessageRelay(DATABASE, broker=url),
        lambda url: Worker(broker=url, db_engine_url=DATABASE, consumers=[welcome]),
    ],
)
def test_a_bad_url_is_refused_at_once(url: str, complaint: str, create: Callable[[str], Any]) -> None:
    with pytest.raises(ConfigurationError, match=complaint) as refused:
        create(url)
    assert "geheim" not in str(refused.value)
    assert redacted(str(refused.value)) == str(refused.value)  # as commands print it


def test_a_queue_of_a_topic_or_without_a_name_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="queue is for sqs"):
        AwsTransport("sns://eu-west-1/orders", queue="mail")
    for queue in ("", 7, "a b"):
        with pytest.raises(ConfigurationError, match="must be the name of a queue"):
            AwsTransport("sqs://eu-west-1", queue=queue)  # type: ignore[arg-type]


def test_destinations_differ_by_queue_topic_account_and_endpoint() -> None:
    assert AwsTransport("sqs://eu-west-1").destination == "SQS in eu-west-1, queue {routing_key}"
    assert AwsTransport("sqs://eu-west-1", queue=first_word).destination.endswith("test_configuration.first_word")
    url = "sns://eu-west-1/orders?account=123456789012&endpoint_url=http://h:1"
    expected = "SNS in eu-west-1, topic orders, account 123456789012, at http://h:1"
    assert (AwsTransport(url).destination, AwsSource(url).destination) == (expected, expected)


def first_word(routing_key: str) -> str:
    return routing_key.partition(".")[0]


@pytest.mark.parametrize(
    ("url", "queue", "key", "name"),
    [
        ("sns://eu-west-1/orders", "shop.mail", "order.#", "shop-mail"),
        ("sns://eu-west-1/orders.fifo", "shop.mail", "order.#", "shop-mail.fifo"),
        ("sns://eu-west-1/orders.fifo", "mail.fifo", "#", "mail.fifo"),
        ("sqs://eu-west-1", "order.placed", "order.placed", "order-placed"),
        ("sqs://eu-west-1?queue=shop-{routing_key}.fifo", "shop.order.placed", "order.placed", "shop-order-placed.fifo"),
        ("sqs://eu-west-1?queue=events", "events", "#", "events"),
    ],
)
def test_a_consumer_has_the_queue_of_its_name(url: str, queue: str, key: str, name: str) -> None:
    assert queue_name(AwsOptions.parse(url), queue=queue, binding_key=key, ordered=False) == name


@pytest.mark.parametrize(
    ("url", "queue", "key", "ordered", "complaint"),
    [
        ("sqs://eu-west-1", "mail", "order.placed", False, "are sent to 'order-placed', which is not the queue 'mail': write"),
        ("sqs://eu-west-1", "mail", "order.*", False, "has wildcards.*send by a topic"),
        ("sqs://eu-west-1?queue=mail", "mail", "order.*", False, "bind it with '#'"),
        ("sqs://eu-west-1?queue=mail", "stock", "#", False, "are sent to 'mail', which is not the queue 'stock'"),
        ("sns://eu-west-1/orders", "mail", "order.*", True, "is ordered, and 'mail' of SQS is not"),
        ("sns://eu-west-1/orders", "mail/receipts", "order.*", False, "cannot be the name of a queue in SQS"),
        ("sns://eu-west-1/orders", "m" * 76, "order.*", False, "cannot be the name of a queue in SQS"),
    ],
)
def test_a_queue_that_would_miss_messages_is_refused(url: str, queue: str, key: str, ordered: bool, complaint: str) -> None:
    with pytest.raises(TopologyError, match=complaint):
        queue_name(AwsOptions.parse(url), queue=queue, binding_key=key, ordered=ordered)


@pytest.mark.parametrize(
    ("key", "policy"),
    [
        ("order.placed", {"routing_key": ["order.placed"]}),
        ("order.*", {"routing_key": [{"prefix": "order."}]}),
        ("order.#", {"routing_key": ["order", {"prefix": "order."}]}),
        ("order.*.eu", {"routing_key": [{"prefix": "order."}]}),
        ("*.placed", {}),
        ("#", {}),
    ],
)
def test_a_filter_has_all_that_the_binding_key_matches(key: str, policy: object) -> None:
    assert filter_policy(key) == policy


def test_an_archiver_refuses_aws_because_workers_keep_dead_letters() -> None:
    with pytest.raises(ConfigurationError, match="an archiver needs RabbitMQ; with aws"):
        Archiver(DATABASE, broker="sqs://eu-west-1")


def test_the_admin_shows_the_queues_of_the_database_for_aws() -> None:
    view = BrokerView(Admin(DATABASE, broker="sns://eu-west-1/orders"))
    assert (view.kind, view.rabbitmq) == (BrokerKind.POSTGRESQL, None)


def test_the_url_of_the_page_is_accepted() -> None:
    [url] = re.findall(r"^sns://eu-west-1/orders\.fifo.*$", PAGE.read_text(), re.MULTILINE)
    MessageRelay(DATABASE, broker=url)
    Worker(broker=url, db_engine_url=DATABASE, consumers=[welcome])
    assert server_address(url) == "SNS in eu-west-1, topic orders.fifo"


WITHOUT_AWS = """
import sys
sys.modules["aiobotocore"] = None
from outbox import MessageRelay
from outbox.errors import MissingExtraError
try:
    MessageRelay("postgresql://h/d", broker="sqs://eu-west-1")
except MissingExtraError as error:
    print(error)
"""


def test_a_missing_extra_is_named() -> None:
    answer = subprocess.run([sys.executable, "-c", WITHOUT_AWS], capture_output=True, text=True, timeout=60, check=True)
    assert answer.stdout == 'AWS needs an extra that is not installed: pip install "fastapi-outbox[aws]"\n'
