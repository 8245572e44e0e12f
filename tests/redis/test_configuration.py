"""Redis's URLs and options: what they mean, what is refused at once, and that no secret is shown."""

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
from outbox.core.urls import redacted, redis_host, redis_stream, server_address
from outbox.errors import ConfigurationError
from outbox.transports.redis import RedisTransport
from outbox.transports.redis.server import RedisOptions

DATABASE = "postgresql://h/d"
PAGE = Path(__file__).parent.parent.parent / "docs" / "redis.md"
REDIS = "redis://h:6379/0"


@consume("user.created", queue="letters")
async def welcome(user: dict[str, str]) -> None: ...


@pytest.mark.parametrize(
    ("url", "host", "stream", "address"),
    [
        ("redis://Redis", ("redis", 6379, 0), "{routing_key}", "Redis at redis:6379, database 0"),
        ("valkey://h:1/7?stream=events", ("h", 1, 7), "events", "Redis at h:1, database 7"),
        ("rediss://ada:s3cret@h/2?stream=e:{routing_key}", ("h", 6379, 2), "e:{routing_key}", "Redis at h:6379, database 2"),
        ("valkeys://[::1]:5/", ("::1", 5, 0), "{routing_key}", "Redis at [::1]:5, database 0"),
    ],
)
def test_a_url_names_the_server_and_the_stream(url: str, host: object, stream: str, address: str) -> None:
    assert (redis_host(url), redis_stream(url), server_address(url)) == (host, stream, address)


def test_a_url_has_options() -> None:
    options = RedisOptions.parse(
        "rediss://ada:p%40ss@h/1?stream=s&create=true&maxlen=9&wait=2&durability=lossy&claim_after=5&trim=true"
        "&ssl_cert_reqs=none&ssl_check_hostname=false"
    )
    assert (options.stream, options.create, options.maxlen, options.wait) == ("s", True, 9, 2)
    assert (options.lossy, options.claim_after, options.trim, options.tls) == (True, 5, True, True)
    assert options.connection == {
        "host": "h",
        "port": 6379,
        "db": 1,
        "username": "ada",
        "password": "p@ss",
        "ssl_cert_reqs": "none",
        "ssl_check_hostname": False,
    }
    assert "p@ss" not in repr(options)
    plain = RedisOptions.parse("redis://:geheim@h")
    assert (plain.connection["username"], plain.connection["password"]) == (None, "geheim")
    assert (plain.create, plain.maxlen, plain.wait, plain.lossy, plain.trim) == (False, None, 0, False, False)
    assert RedisOptions.parse("rediss://h").connection["ssl_check_hostname"] is True


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("redis://", "no host"),
        ("redis://ada:geheim@/", "no host"),
        ("redis://h,other/", "no host"),
        ("redis://ada:geheim@h:65536", "no host"),
        ("redis://ada:geheim@h/orders", "no host or no database"),
        ("redis://h?stream=", "must be the name of a stream"),
        ("redis://ada:geheim@h?nonsense=1", "'nonsense'"),
        ("redis://h?ssl_cert_reqs=none", "those of TLS need rediss://"),
        ("redis://h?create=perhaps", "neither true nor false"),
        ("redis://h?maxlen=0", "maxlen that is not a number from 1"),
        ("redis://h?wait=two", "wait that is not a number from 1"),
        ("redis://h?claim_after=-1", "claim_after that is not a number from 1"),
        ("redis://h?durability=full", "durability that is not lossy"),
        ("rediss://ada:geheim@h?ssl_ca_certs=/nope.pem", "cannot be used"),
        ("rediss://ada:geheim@h?ssl_cert_reqs=maybe", "cannot be used"),
        ("rediss://ada:geheim@h?ssl_keyfile=/nope.pem", "cannot be used"),
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


@pytest.mark.parametrize("stream", ["", 7])
def test_a_stream_without_a_name_is_refused(stream: Any) -> None:
    with pytest.raises(ConfigurationError, match="must be the name of a stream"):
        RedisTransport(REDIS, stream=stream)


def test_an_archiver_refuses_redis_because_workers_keep_dead_letters() -> None:
    with pytest.raises(ConfigurationError, match="an archiver needs RabbitMQ; with redis"):
        Archiver(DATABASE, broker=REDIS)


def test_the_admin_shows_the_queues_of_the_database_for_redis() -> None:
    view = BrokerView(Admin(DATABASE, broker=REDIS))
    assert (view.kind, view.rabbitmq) == (BrokerKind.POSTGRESQL, None)


def test_no_secret_of_a_url_is_shown() -> None:
    assert redacted("rediss://ada:geheim@h/0?stream=s&ssl_password=geheim") == "rediss://ada:***@h/0?stream=s&ssl_password=***"


def test_the_url_of_the_page_is_accepted() -> None:
    [url] = re.findall(r"^rediss://user:.*$", PAGE.read_text(), re.MULTILINE)
    MessageRelay(DATABASE, broker=url)
    Worker(broker=url, db_engine_url=DATABASE, consumers=[welcome])
    assert server_address(url) == "Redis at host:6379, database 0"


WITHOUT_REDIS = """
import sys
sys.modules["redis"] = None
from outbox import MessageRelay
from outbox.errors import MissingExtraError
try:
    MessageRelay("postgresql://h/d", broker="redis://h")
except MissingExtraError as error:
    print(error)
"""


def test_a_missing_extra_is_named() -> None:
    answer = subprocess.run([sys.executable, "-c", WITHOUT_REDIS], capture_output=True, text=True, timeout=60, check=True)
    assert answer.stdout == 'Redis needs an extra that is not installed: pip install "fastapi-outbox[redis]"\n'
