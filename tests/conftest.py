"""Fixtures of every test: real servers, started when the first test asks for one.

    database_url     an empty database of the test's own            on the session's PostgreSQL
    database         the same, with every table of Outbox
    broker_url       an empty virtual host of the test's own        on the session's RabbitMQ
    broker_admin     the management API of that virtual host
    own_postgres     a PostgreSQL that the test may stop, kill and restart; `.url` is an empty database on it
    own_rabbitmq     a RabbitMQ that the test may stop, kill, freeze; `.url` is an empty virtual host, `.admin` its API
    proxied(url)     a proxy in front of either, to cut, pause or swallow traffic
    postgres_server, rabbitmq_server, nats_server   the session's servers themselves; never stop them, neighbours use them

Tests that use RabbitMQ get the marker `rabbitmq` by themselves; a test that asks for the broker only while it runs
(`request.getfixturevalue`) carries the marker explicitly.
"""

import asyncio
import gc
import os
import signal
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import asyncpg
import certifi
import pytest
from hypothesis import settings

from outbox.embedded import EmbeddedPostgres
from outbox.postgres.pool import Pool, open_pool
from outbox.runtime.settings import VARIABLES
from tests.servers.chromium import ensure_chromium
from tests.servers.kafka import HAS_CLIENT as HAS_KAFKA_CLIENT
from tests.servers.moto import CREDENTIALS, Moto, running_moto
from tests.servers.nats import Nats, ensure_nats, running_nats
from tests.servers.pgbouncer import ensure_pgbouncer
from tests.servers.postgres import (
    NamedPostgres,
    OwnPostgres,
    PostgresServer,
    drop_templates,
    fresh_database,
    private_postgres,
    session_postgres,
    with_database,
)
from tests.servers.prometheus import ensure_prometheus
from tests.servers.proxy import Proxy
from tests.servers.rabbitmq import (
    NamedRabbitMQ,
    OwnRabbitMQ,
    PrivateRabbitMQ,
    fresh_vhost,
    private_rabbitmq,
    session_rabbitmq,
    with_vhost,
)
from tests.servers.rabbitmq_installation import ensure_rabbitmq
from tests.servers.redis import ensure_redis
from tests.servers.session_folder import session_folder
from tests.support.rabbit_admin import RabbitAdmin

# The same examples everywhere, however slow the machine: a failure must be about the change that it stands at.
settings.register_profile("repeatable", deadline=None, derandomize=True, database=None)
settings.load_profile("repeatable")

collect_ignore_glob = (
    [] if HAS_KAFKA_CLIENT else ["kafka", "relay/test_broker_away.py", "system/test_tls.py", "unit/test_guarantees.py"]
)

_RABBITMQ_FIXTURES = {"rabbitmq_server", "broker_url", "broker_admin", "own_rabbitmq"}


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker that `make test-fast` leaves out with `rabbitmq` and `chaos`; let tests interrupt processes."""
    # A shell starts background jobs with SIGINT ignored, and everything that they start would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    _share_certificate_authorities()
    config.addinivalue_line("markers", "slow: takes more than a few seconds; left out of `make test-fast`")


def pytest_report_header() -> str | None:
    """Say which tests are left out."""
    return None if HAS_KAFKA_CLIENT else "without confluent-kafka: tests of Kafka are left out"


def _share_certificate_authorities() -> None:
    """Let httpx read the certificate authorities once, not for every client: that takes 40 ms, of thousands of clients."""
    create = ssl.create_default_context
    shared = cache(create)
    usual = (certifi.where(), os.environ.get("SSL_CERT_FILE"))

    def create_default_context(*arguments: Any, **options: Any) -> ssl.SSLContext:
        is_usual = not arguments and options.keys() == {"cafile"} and options["cafile"] in usual
        return (shared if is_usual else create)(*arguments, **options)

    ssl.create_default_context = create_default_context


# First of all plugins, so that `-m` sees the markers.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use RabbitMQ or NATS."""
    for item in items:
        if _RABBITMQ_FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.rabbitmq)
        if not {"nats_server", "own_nats"}.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.nats)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Import modules and create tests without garbage collection, which would find none."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Install what the tests need before the first one where that is possible, outside of any test's time limit."""
    if session.config.option.collectonly:
        return
    # All modules and tests stay until the end. Each full collection would visit millions of objects, for up to a second.
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    needs = {
        "rabbitmq": ensure_rabbitmq,
        "browser": ensure_chromium,
        "pooler": ensure_pgbouncer,
        "prometheus": ensure_prometheus,
        "nats": ensure_nats,
        "redis": ensure_redis,
    }
    capture = session.config.pluginmanager.getplugin("capturemanager")
    for marker, ensure in needs.items():
        if any(item.get_closest_marker(marker) for item in session.items):
            with capture.global_and_fixture_disabled() if capture else ExitStack():
                ensure()


@pytest.fixture(scope="session")
def servers_folder() -> Iterator[Path]:
    """Where the session's private servers keep their data."""
    with session_folder(in_memory=True) as folder:
        yield folder


@pytest.fixture(scope="session")
def postgres_server(servers_folder: Path) -> Iterator[PostgresServer]:
    """The session's PostgreSQL."""
    with session_postgres(servers_folder / "postgres") as server:
        yield server
        if isinstance(server, NamedPostgres):
            drop_templates()


@pytest.fixture(scope="session")
def nats_server(servers_folder: Path) -> Iterator[Nats]:
    """The session's NATS server."""
    with running_nats(servers_folder / "nats") as server:
        yield server


@pytest.fixture(scope="session")
def moto_server(servers_folder: Path) -> Iterator[Moto]:
    """The session's simulation of SQS and SNS."""
    with running_moto(servers_folder / "moto") as server:
        yield server


@pytest.fixture
def moto(moto_server: Moto, monkeypatch: pytest.MonkeyPatch) -> Moto:
    """That simulation, running and empty, with credentials for it in the environment."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    moto_server.reset()
    return moto_server


@pytest.fixture
def database_url(request: pytest.FixtureRequest, postgres_server: PostgresServer) -> Iterator[str]:
    """A database of the test's own, as `postgresql://…`, by a superuser: empty, or with the tables that a fixture needs."""
    with_tables = not {"database", "harness", "route"}.isdisjoint(request.fixturenames)
    with fresh_database(postgres_server.url, tables=with_tables) as name:
        yield with_database(postgres_server.url, name)


@pytest.fixture
def database(database_url: str) -> str:
    """The test's own database, with every table of Outbox, and nothing in them."""
    return database_url


@pytest.fixture
def on(database: str) -> Callable[[Callable[[Pool], Awaitable[Any]]], Any]:
    """`on(work)` runs a coroutine function with a pool of that database, for tests that are not async."""

    async def run(work: Callable[[Pool], Awaitable[Any]]) -> Any:
        pool = await open_pool(database, size=2, application_name="tests")
        try:
            return await work(pool)
        finally:
            await pool.close()

    return lambda work: asyncio.run(run(work))


@pytest.fixture
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs the test without the settings of the machine."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
async def connection(database: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection to that database."""
    opened = await asyncpg.connect(database)
    yield opened
    await opened.close()


@pytest.fixture(scope="session")
def _spare_postgres(servers_folder: Path) -> Iterator[EmbeddedPostgres]:
    """One server for all tests that want their own: they run one after another, and it restarts at once."""
    server = private_postgres(servers_folder / "own-postgres")
    yield server
    server.stop()


@pytest.fixture
def own_postgres(_spare_postgres: EmbeddedPostgres) -> Iterator[OwnPostgres]:
    """A private PostgreSQL with an empty database, which the test may leave in any state."""
    _spare_postgres.start()
    with fresh_database(_spare_postgres.url) as name:
        yield OwnPostgres(_spare_postgres, name)
        _spare_postgres.start()


@pytest.fixture(scope="session")
def rabbitmq_server(servers_folder: Path) -> Iterator[PrivateRabbitMQ | NamedRabbitMQ]:
    """The session's RabbitMQ."""
    server = session_rabbitmq(servers_folder / "rabbitmq")
    server.start()
    yield server
    server.close()


@pytest.fixture
def broker_url(rabbitmq_server: PrivateRabbitMQ | NamedRabbitMQ) -> Iterator[str]:
    """An empty virtual host of the test's own, as `amqp://…`, by an administrator."""
    with fresh_vhost(rabbitmq_server) as vhost:
        yield with_vhost(rabbitmq_server.url, vhost)


@pytest.fixture
def broker_admin(rabbitmq_server: PrivateRabbitMQ | NamedRabbitMQ, broker_url: str) -> RabbitAdmin:
    """The management API of the virtual host that `broker_url` names."""
    return RabbitAdmin(rabbitmq_server.admin_url, broker_url)


@pytest.fixture(scope="session")
def _spare_rabbitmq(servers_folder: Path) -> Iterator[PrivateRabbitMQ]:
    """One broker for all tests that want their own: they run one after another."""
    server = private_rabbitmq(servers_folder / "own-rabbitmq")
    yield server
    server.close()


@pytest.fixture
def own_rabbitmq(_spare_rabbitmq: PrivateRabbitMQ) -> Iterator[OwnRabbitMQ]:
    """A private RabbitMQ with an empty virtual host, which the test may leave in any state."""
    _spare_rabbitmq.thaw()
    _spare_rabbitmq.start()
    with fresh_vhost(_spare_rabbitmq) as vhost:
        yield OwnRabbitMQ(_spare_rabbitmq, vhost)
        _spare_rabbitmq.thaw()


@pytest.fixture
def proxied() -> Iterator[Callable[[str], Proxy]]:
    """A function that puts a proxy in front of the server a URL names; its `.url` goes through it."""
    with ExitStack() as proxies:
        yield lambda url: proxies.enter_context(Proxy(url))
