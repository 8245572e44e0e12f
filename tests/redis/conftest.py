"""A Redis for each test, which it may configure, freeze and kill."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from outbox.transports.redis import RedisTransport
from tests.servers.redis import Redis, running_redis


@pytest.fixture
def redis(tmp_path: Path, servers_folder: Path) -> Iterator[Redis]:
    """An empty server that keeps what it confirms."""
    with running_redis(servers_folder / f"redis-{tmp_path.name}") as server:
        yield server


@pytest.fixture
async def transport(redis: Redis) -> AsyncIterator[RedisTransport]:
    """A transport to the server, whose streams are the routing keys."""
    transport = RedisTransport(redis.url)
    yield transport
    await transport.close()
