"""A broker that is away for a minute: messages wait, spend no attempt, and are caught up within 10 s of its return."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from outbox.core.events import Dependency
from outbox.core.message import OutboxMessage
from outbox.engine import lifecycle
from outbox.engine import relay as engine
from outbox.engine.lifecycle import Outage, Pauses
from outbox.errors import BrokerUnavailableError, OutboxError
from outbox.transports import kafka, kafka_source, nats
from outbox.transports.redis import server as redis
from tests.relay.support import Recorder
from tests.servers.kafka import mock_kafka
from tests.servers.nats import Nats
from tests.servers.proxy import Proxy
from tests.servers.redis import running_redis
from tests.support import eventually
from tests.support.streams import collecting, is_empty, numbered, publish, relaying, working

LIMIT = timedelta(seconds=10)
"""How long after the return of a broker its messages may wait."""
KEY = "order.placed"


@dataclass(frozen=True, slots=True)
class AwayBroker:
    """A broker that can be away. A worker reads from `read_from`."""

    url: str
    read_from: str
    leave: Callable[[], None]
    come_back: Callable[[], None]


@pytest.fixture(
    params=[
        pytest.param("rabbitmq", marks=pytest.mark.rabbitmq),
        "kafka",
        pytest.param("nats", marks=pytest.mark.nats),
        pytest.param("redis", marks=pytest.mark.redis),
    ]
)
async def broker(
    request: pytest.FixtureRequest, proxied: Callable[[str], Proxy], tmp_path: Path, servers_folder: Path
) -> AsyncIterator[AwayBroker]:
    def behind(proxy: Proxy) -> AwayBroker:
        return AwayBroker(proxy.url, proxy.url, proxy.refuse, proxy.accept)

    match request.param:
        case "kafka":
            with mock_kafka(brokers=1) as cluster:
                cluster.create_topic(KEY)
                yield AwayBroker(cluster.url, cluster.consuming_url, cluster.set_down, cluster.set_up)
        case "nats":
            server: Nats = request.getfixturevalue("nats_server")
            word = f"test-{uuid4()}"
            await server.create_stream(word, f"{word}.>")
            yield behind(proxied(f"{server.url}/?subject={word}.{{routing_key}}"))
        case "redis":
            with running_redis(servers_folder / f"redis-{tmp_path.name}") as running:
                yield behind(proxied(running.url))
        case _:
            yield behind(proxied(request.getfixturevalue("broker_url")))


async def handle_some(
    database: str, connection: asyncpg.Connection, broker: AwayBroker, wait: Callable[[], Awaitable[object]]
) -> None:
    """Ten messages are handled; then the broker is away until `wait` returns, and meanwhile twenty are published."""
    found: list[bytes] = []
    async with (
        working(database, broker.read_from, collecting(found, KEY)),
        relaying(database, broker.url, publish_timeout=5),
    ):
        await publish(connection, *numbered(KEY, 10, keys=2))
        await eventually(lambda: len(set(found)) == 10)
        await eventually(lambda: is_empty(connection))
        broker.leave()
        more = [OutboxMessage(KEY, str(n).encode(), ordering_key=f"key {n % 2}") for n in range(10, 30)]
        await publish(connection, *more)
        await wait()
        waiting = "attempts = 0 and failed_at is null and held_at is null and last_error is null"
        assert await connection.fetchval(f"select count(*) from outbox_table where {waiting}") == 20
        broker.come_back()
        await eventually(lambda: len(set(found)) == 30, timeout=LIMIT.total_seconds())
        await eventually(lambda: is_empty(connection))


async def test_many_tries_spend_no_attempt(
    database: str,
    connection: asyncpg.Connection,
    broker: AwayBroker,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    pauses: list[timedelta] = []

    class Counting(Outage):
        def lost(self, error: OutboxError) -> timedelta:
            pauses.append(super().lost(error))
            return pauses[-1]

    # As many tries as in a minute, without its pauses.
    monkeypatch.setitem(lifecycle.LONGEST_PAUSE, Dependency.BROKER, timedelta(milliseconds=20))
    monkeypatch.setattr(engine, "Outage", Counting)
    monkeypatch.setattr(kafka, "CONNECT_TIMEOUT", timedelta(milliseconds=200))
    await handle_some(database, connection, broker, lambda: eventually(lambda: len(pauses) >= 20))
    assert "OUTBOX_BROKER_URL" not in caplog.text  # the worker takes from where the relay sends


def test_a_return_is_noticed_in_time() -> None:
    outage = Outage(Dependency.BROKER, Recorder())
    pauses = [outage.lost(BrokerUnavailableError("away")) for _ in range(1_000)]
    assert pauses[0] < timedelta(seconds=1)
    longest = max(*pauses, Pauses().longest, timedelta(milliseconds=kafka_source._PROPERTIES["reconnect.backoff.max.ms"]))
    # A try that began just before the return ends in vain, and the next one after the longest pause.
    for patience in (kafka.CONNECT_TIMEOUT, nats.CONNECT_TIMEOUT, redis.CONNECT_TIMEOUT):
        assert longest + patience <= LIMIT


@pytest.mark.chaos
async def test_after_a_minute_everything_is_caught_up_within_ten_seconds(
    database: str, connection: asyncpg.Connection, broker: AwayBroker
) -> None:
    await handle_some(database, connection, broker, lambda: asyncio.sleep(60))
