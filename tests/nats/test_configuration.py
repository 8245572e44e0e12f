"""The URLs and options of NATS: what they mean, what is refused at once, and that no secret is shown."""

import re
import ssl
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
from outbox.core.urls import nats_hosts, nats_subject, redacted, server_address
from outbox.errors import ConfigurationError
from outbox.transports.nats import NatsTransport, connect_options
from outbox.transports.nats_source import NatsSource

DATABASE = "postgresql://h/d"
PAGE = Path(__file__).parent.parent.parent / "docs" / "nats.md"
NATS = "nats://h:4222/"


@consume("user.created", queue="letters")
async def welcome(user: dict[str, str]) -> None: ...


@pytest.mark.parametrize(
    ("url", "hosts", "subject", "address"),
    [
        ("nats://Nats", "nats:4222", "{routing_key}", "NATS at nats:4222"),
        ("nats://b:1,a/?subject=events", "b:1,a:4222", "events", "NATS at a:4222,b:1"),
        ("natss://ada:s3cret@h:9093?subject=e.{routing_key}", "h:9093", "e.{routing_key}", "NATS at h:9093"),
        ("nats://[::2]:9094,[::1]", "[::2]:9094,[::1]:4222", "{routing_key}", "NATS at [::1]:4222,[::2]:9094"),
    ],
)
def test_a_url_names_servers_and_subject(url: str, hosts: str, subject: str, address: str) -> None:
    assert (nats_hosts(url), nats_subject(url), server_address(url)) == (hosts, subject, address)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("nats://h,g:1", {"servers": ["nats://h:4222", "nats://g:1"]}),
        ("nats://ada:p%40ss%2Fw@h", {"user": "ada", "password": "p@ss/w"}),
        ("nats://t%40ken@h", {"token": "t@ken"}),
        ("nats://h?credentials=/run/ada.creds", {"user_credentials": "/run/ada.creds"}),
    ],
)
def test_a_url_gives_the_options_of_the_client(url: str, expected: dict[str, Any]) -> None:
    options = connect_options(url)
    assert {name: options.get(name) for name in expected} == expected
    assert "tls" not in options


def test_a_url_with_tls_verifies_the_server() -> None:
    context = connect_options("natss://h")["tls"]
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("nats://", "no hosts"),
        ("nats://ada:geheim@/", "no hosts"),
        ("nats://h:port/", "no hosts"),
        ("nats://ada:geheim@h/orders", r"name the subject in \?subject="),
        ("nats://h?subject=", "must be the name of a subject"),
        ("nats://h?subject=a..b", "must be the name of a subject"),
        ("nats://h?subject=a.*", "must be the name of a subject"),
        ("nats://h?subject=a.>", "must be the name of a subject"),
        ("nats://h?subject=a%20b", "must be the name of a subject"),
        ("nats://h?subject=$JS.API.{routing_key}", "must be the name of a subject"),
        ("nats://ada:geheim@h?nonsense=1", "nonsense"),
        ("nats://ada:geheim@h?stream=", "is empty: 'stream'"),
        ("nats://ada:geheim@h?credentials=", "is empty: 'credentials'"),
        ("nats://ada:geheim@h?tls_ca=/ca.pem", "'tls_ca', which needs natss://"),
        ("natss://ada:geheim@h?tls_key=/key.pem", "tls_key without tls_cert"),
        ("nats://h:0", "no hosts"),
        ("natss://ada:geheim@h?tls_ca=/nope.pem", "files for TLS that cannot be read"),
        ("tls://h", "has the scheme 'tls'"),
    ],
)
def test_a_bad_url_is_refused_when_the_relay_is_created(url: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint) as refused:
        MessageRelay(DATABASE, broker=url)
    assert "geheim" not in str(refused.value)


@pytest.mark.parametrize("option", ["nonsense", "servers", "allow_reconnect", "error_cb"])
def test_options_that_do_not_exist_or_that_guarantees_depend_on_are_refused(option: str) -> None:
    with pytest.raises(ConfigurationError, match=option):
        NatsTransport(NATS, options={option: 1})


@pytest.mark.parametrize(
    ("create", "complaint"),
    [
        (lambda: Archiver(DATABASE, broker=NATS), "an archiver needs RabbitMQ"),
        (lambda: Worker(broker=NATS, consumers=[welcome]), "stores the messages of nats in its database"),
        (lambda: NatsSource(NATS, subject=str.upper), "needs the subject as text"),  # type: ignore[arg-type]
        (lambda: Worker(broker=NatsTransport(NATS), consumers=[welcome], db_engine_url=DATABASE), "cannot be consumed from"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_work_is_refused_at_once(create: Callable[[], Any], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        create()


def test_a_service_on_nats_needs_no_archiver() -> None:
    settings = read_settings(
        database_url=DATABASE,
        broker_url=NATS,
        run="api,relay,worker,archiver,maintain",
        consumers="tests.nats.test_configuration:consumers",
    )
    factories = component_factories(Installation(settings=settings, database=SecretStr(DATABASE)))
    assert isinstance(factories["relay"](), MessageRelay)
    assert isinstance(factories["worker"](), Worker)
    assert factories["archiver"]() is None
    assert factories["maintain"]() is not None


consumers = [welcome]


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("natss://ada:geheim@a:4222,b/?subject=x", "natss://ada:***@a:4222,b/?subject=x"),
        ("connecting to nats://geheim@a,b failed", "connecting to nats://***@a,b failed"),
        ("nats://a,b/?subject=x@y", "nats://a,b/?subject=x@y"),
    ],
)
def test_no_secret_of_a_url_is_shown(text: str, safe: str) -> None:
    assert redacted(text) == safe


def test_the_url_of_the_page_is_accepted() -> None:
    [url] = re.findall(r"^nats://user:.*$", PAGE.read_text(), re.MULTILINE)
    MessageRelay(DATABASE, broker=url)
    assert server_address(url) == "NATS at host2:4222,host:4222"


WITHOUT_NATS = """
import sys
sys.modules["nats"] = None
from outbox import MessageRelay
from outbox.errors import MissingExtraError
try:
    MessageRelay("postgresql://h/d", broker="nats://h")
except MissingExtraError as error:
    print(error)
"""


def test_a_missing_extra_is_named() -> None:
    answer = subprocess.run([sys.executable, "-c", WITHOUT_NATS], capture_output=True, text=True, timeout=60, check=True)
    assert answer.stdout == 'NATS needs an extra that is not installed: pip install "fastapi-outbox[nats]"\n'
