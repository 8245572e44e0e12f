"""Every server can be reached over TLS, with a private authority and a client's certificate."""

import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from outbox import Consumer, MessageRelay, Publisher, Worker, ensure_outbox_schema_sync
from outbox.admin import Admin, OpenIDConnect, Role
from outbox.admin.alerts import AlertRules
from outbox.admin.alerts.monitor import Sender
from outbox.admin.oidc import LoginFailedError, Provider, State
from outbox.admin.principals import new_token
from outbox.errors import BrokerUnavailableError, ConfigurationError
from outbox.ports import CONFIRMED, Confirmed, Unroutable
from outbox.postgres.pool import connect_to
from outbox.postgres.queries import TableName
from outbox.transports.aws import AwsTransport
from outbox.transports.kafka import KafkaTransport
from outbox.transports.nats import NatsTransport
from outbox.transports.postgres import PostgresBroker
from outbox.transports.rabbitmq import RabbitBroker
from outbox.transports.rabbitmq.overview import Management
from outbox.transports.redis import RedisTransport
from tests.contract.harness import Recorder
from tests.contract.support import message
from tests.servers.certificates import Certificates, over_tls
from tests.servers.kafka import mock_kafka
from tests.servers.moto import REGION, Moto
from tests.servers.nats import Nats, running_nats
from tests.servers.pgbouncer import pooled
from tests.servers.rabbitmq import OwnRabbitMQ
from tests.servers.redis import DURABLE, Redis, running_redis
from tests.support import eventually
from tests.support.oidc import CLIENT, FakeProvider
from tests.support.processes import free_port
from tests.support.processes import running as run_process
from tests.support.serving import in_a_thread
from tests.support.webhooks import SECRET, receiving
from tests.worker.support import running

TIMEOUT = timedelta(seconds=30)


@pytest.fixture
def certificates(servers_folder: Path) -> Certificates:
    """Certificates of the test's own."""
    certificates = Certificates(servers_folder / f"certificates-{uuid4()}")
    certificates.renew()
    return certificates


@dataclass(frozen=True, slots=True)
class Stream:
    """A server of streams that takes clients over TLS only, and the transport that sends to it."""

    server: Nats | Redis
    transport: type[NatsTransport | RedisTransport]
    url: str


@contextmanager
def nats(folder: Path, certificates: Certificates) -> Iterator[Stream]:
    """NATS, which asks each client for a certificate."""
    files = f'cert_file: "{certificates.server}", key_file: "{certificates.server_key}", ca_file: "{certificates.authority}"'
    with running_nats(folder, f"tls {{ {files}, verify: true }}") as server:
        options = certificates.options("tls_ca", "tls_cert", "tls_key")
        yield Stream(server, NatsTransport, f"{server.url.replace('nats://', 'natss://')}?{options}")


@contextmanager
def redis(folder: Path, certificates: Certificates) -> Iterator[Stream]:
    """Redis, which asks each client of its port for TLS for a certificate."""
    port = free_port()
    settings = {
        **DURABLE,
        "tls-port": str(port),
        "tls-ca-cert-file": str(certificates.authority),
        "tls-cert-file": str(certificates.server),
        "tls-key-file": str(certificates.server_key),
    }
    with running_redis(folder, settings) as server:
        options = certificates.options("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
        yield Stream(server, RedisTransport, f"rediss://127.0.0.1:{port}/0?create=true&{options}")


@pytest.mark.pooler
async def test_an_event_goes_through_postgresql_and_rabbitmq_over_tls(
    database_url: str, own_rabbitmq: OwnRabbitMQ, servers_folder: Path, certificates: Certificates
) -> None:
    handled: list[str] = []

    async def greet(name: str, session: AsyncSession) -> None:
        handled.append(await session.scalar(text("select 'Hello, ' || cast(:name as text)"), {"name": name}) or "")

    with pooled(database_url, servers_folder / f"pgbouncer-{uuid4()}", certificates=certificates) as url:
        ensure_outbox_schema_sync(url)
        consumer = Consumer("person.*", greet, queue="greetings", inbox=True)
        worker = Worker(rmq_connection_url=own_rabbitmq.tls_url, db_engine_url=url, consumers=[consumer])
        async with running(worker), running(MessageRelay(db_engine_url=url, rmq_connection_url=own_rabbitmq.tls_url)):
            await eventually(lambda: own_rabbitmq.admin.queue("greetings"))
            async with connect_to(url, application_name="tests")() as connection, connection.transaction():
                await Publisher().publish(connection, "person.met", "Ada")
            await eventually(lambda: handled == ["Hello, Ada"])

            async def connections_of_both() -> Any:
                # The management API learns of a connection some time after it begins.
                found = await own_rabbitmq.admin.connections()
                return len(found) > 1 and found

            assert all(each["ssl"] for each in await eventually(connections_of_both))


@pytest.mark.parametrize("server", [pytest.param(nats, marks=pytest.mark.nats), pytest.param(redis, marks=pytest.mark.redis)])
async def test_a_connection_uses_the_certificates_that_its_files_contain_when_it_begins(
    server: Callable[[Path, Certificates], AbstractContextManager[Stream]], servers_folder: Path, certificates: Certificates
) -> None:
    with server(servers_folder / f"tls-{uuid4()}", certificates) as stream:
        transport = stream.transport(stream.url)
        try:
            await transport.open()
            certificates.renew()
            stream.server.kill()
            stream.server.start()

            async def reconnected() -> bool:
                try:
                    await transport.open()
                    (result,) = await transport.send([message("person.met")], timeout=TIMEOUT)
                except BrokerUnavailableError:
                    return False
                return isinstance(result, Confirmed | Unroutable)

            await eventually(reconnected)
        finally:
            await transport.close()


@pytest.mark.parametrize("server", [pytest.param(nats, marks=pytest.mark.nats), pytest.param(redis, marks=pytest.mark.redis)])
async def test_a_stream_server_with_a_foreign_certificate_gets_nothing(
    server: Callable[[Path, Certificates], AbstractContextManager[Stream]], servers_folder: Path, certificates: Certificates
) -> None:
    with server(servers_folder / f"tls-{uuid4()}", certificates) as stream:
        certificates.renew()
        transport = stream.transport(stream.url)
        with pytest.raises(BrokerUnavailableError, match="CERTIFICATE_VERIFY_FAILED"):
            await transport.open()
        await transport.close()


async def has_no_connection_to_kafka(url: str, reason: str) -> None:
    transport = KafkaTransport(url)
    with pytest.raises(BrokerUnavailableError, match=reason):
        await transport.open()
    await transport.close()


async def test_kafka_gets_messages_over_tls_from_clients_with_a_certificate(certificates: Certificates) -> None:
    with mock_kafka(brokers=1) as cluster:
        topic = cluster.new_topic()
        async with cluster.over_tls(certificates) as url:
            transport = KafkaTransport(url)
            try:
                assert await transport.send([message(topic, b"1")], timeout=TIMEOUT) == [CONFIRMED]
            finally:
                await transport.close()
            # Kafka's client only learns that the connection is closed.
            await has_no_connection_to_kafka(url.partition("&ssl.certificate")[0], "does not answer")
            certificates.renew()
            await has_no_connection_to_kafka(url, "certificate")
        [record] = await cluster.read(topic, 1)
        assert record.value() == b"1"


async def test_a_rabbitmq_with_a_foreign_certificate_gets_nothing(
    own_rabbitmq: OwnRabbitMQ, certificates: Certificates
) -> None:
    url = own_rabbitmq.tls_url.partition("?")[0] + "?" + certificates.options("cafile", "certfile", "keyfile")
    broker = RabbitBroker(url, exchange_name="shop", observer=Recorder())
    with pytest.raises(BrokerUnavailableError, match="CERTIFICATE_VERIFY_FAILED"):
        await broker.open()
    await broker.close()


@pytest.mark.parametrize("name", ["cafile", "certfile", "keyfile"])
async def test_rabbitmq_is_not_tried_with_a_file_that_cannot_be_read(name: str, certificates: Certificates) -> None:
    url = f"amqps://ada:geheim@127.0.0.1/?{certificates.options('cafile', 'certfile', 'keyfile')}"
    missing = re.sub(rf"{name}=[^&]*", f"{name}=/nope.pem", url)
    with pytest.raises(ConfigurationError, match=rf"{name} names /nope.pem, which cannot be read: No such file") as caught:
        RabbitBroker(missing, exchange_name="shop", observer=Recorder())
    assert "geheim" not in str(caught.value)


async def test_files_for_tls_are_refused_without_it(certificates: Certificates) -> None:
    url = f"amqp://127.0.0.1/?{certificates.options('cafile', 'certfile', 'keyfile')}"
    with pytest.raises(ConfigurationError, match="url has the option cafile, which needs amqps://"):
        RabbitBroker(url, exchange_name="shop", observer=Recorder())


@pytest.mark.parametrize("name", ["sslrootcert", "sslcert", "sslkey"])
async def test_postgresql_is_unavailable_with_a_file_that_cannot_be_read(name: str, certificates: Certificates) -> None:
    url = f"postgresql://127.0.0.1/?{certificates.options('sslrootcert', 'sslcert', 'sslkey')}&sslmode=verify-full"
    missing = re.sub(rf"{name}=[^&]*", f"{name}=/nope.pem", url)
    broker = PostgresBroker(missing, table=TableName.parse("outbox_table"), exchange_name="shop", observer=Recorder())
    with pytest.raises(BrokerUnavailableError, match=rf"{name} names /nope.pem, which cannot be read: No such file"):
        await broker.open()


async def test_aws_is_trusted_by_the_authorities_of_the_environment(
    moto: Moto, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    moto.create_queue("mail")

    async def send(url: str) -> object:
        transport = AwsTransport(url, queue="mail")
        try:
            await transport.open()
            return await transport.send([message("mail.sent", b"1")], timeout=TIMEOUT)
        finally:
            await transport.close()

    async with over_tls(moto.port, certificates) as port:
        url = f"sqs://{REGION}?endpoint_url=https://127.0.0.1:{port}"
        with pytest.raises(BrokerUnavailableError, match="CERTIFICATE_VERIFY_FAILED"):
            await send(url)
        monkeypatch.setenv("AWS_CA_BUNDLE", str(certificates.authority))
        assert await send(url) == [CONFIRMED]
    assert [each["Body"] for each in moto.receive("mail")] == ["1"]


async def refused_then_trusted(
    request: Callable[[], Awaitable[str]], certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`request` returns its problem, empty on success."""
    assert "CERTIFICATE_VERIFY_FAILED" in await request()
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    assert await request() == ""


async def test_a_webhook_is_trusted_by_the_authorities_of_the_environment(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with receiving() as webhook, over_tls(urlsplit(webhook.url).port or 0, certificates) as port:
        rules = AlertRules([f"https://127.0.0.1:{port}/hooks/secret-path"], secret=SECRET)

        async def request() -> str:
            sender = Sender(rules, None)
            async with sender.open():
                return (await sender.send(next(iter(rules.webhooks.values())), "1", "{}"))[0]

        await refused_then_trusted(request, certificates, monkeypatch)
        assert [body for _, body in webhook.requests] == [b"{}"]


async def test_a_login_provider_is_trusted_by_the_authorities_of_the_environment(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeProvider()
    with in_a_thread(fake.app) as url:
        async with over_tls(urlsplit(url).port or 0, certificates) as port:
            fake.issuer = f"https://127.0.0.1:{port}"
            settings = OpenIDConnect(issuer=fake.issuer, client_id=CLIENT, client_secret="s", roles={"sre": "admin"})

            async def request() -> str:
                try:
                    await Provider(Admin("postgresql://", oidc=settings)).authorization_url("https://host", State.new(""))
                except LoginFailedError as failure:
                    return str(failure)
                return ""

            await refused_then_trusted(request, certificates, monkeypatch)
            assert fake.requests == ["configuration"]


async def test_rabbitmqs_management_api_is_trusted_by_the_authorities_of_the_environment(
    own_rabbitmq: OwnRabbitMQ, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = urlsplit(own_rabbitmq.server.admin_url)
    async with over_tls(address.port or 0, certificates) as port:
        netloc = address.netloc.replace(f":{address.port}", f":{port}")

        async def request() -> str:
            # The exchange with this name is on every broker.
            management = Management(f"https://{netloc}", virtual_host="/")
            return await management.problem_with("amq.topic") or ""

        await refused_then_trusted(request, certificates, monkeypatch)


def test_commands_trust_a_service_by_the_authorities_of_the_environment(
    database_url: str, certificates: Certificates, tmp_path: Path
) -> None:
    ensure_outbox_schema_sync(database_url)
    token, entry = new_token("ada", Role.VIEWER)
    port = free_port()
    tls = ("--ssl-certfile", str(certificates.server), "--ssl-keyfile", str(certificates.server_key))
    serving = {"OUTBOX_DATABASE_URL": database_url, "OUTBOX_ADMIN_TOKENS": str(entry), "OUTBOX_RUN": "api"}
    with run_process(["-m", "uvicorn", "app:main", "--port", str(port), *tls], tmp_path, serving) as service:
        service.says("Uvicorn running on https://")
        backlog = ["-m", "outbox.cli", "backlog", "--url", f"https://127.0.0.1:{port}/outbox"]
        trusting = {"OUTBOX_TOKEN": token, "SSL_CERT_FILE": str(certificates.authority)}
        with run_process(backlog, tmp_path, trusting, name="trusting") as command:
            assert command.wait() == 0, command.output
        with run_process(backlog, tmp_path, {"OUTBOX_TOKEN": token}, name="not-trusting") as command:
            assert command.wait() != 0
            assert "CERTIFICATE_VERIFY_FAILED" in command.output
