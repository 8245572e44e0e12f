"""What the tests of publishing share: a database with an outbox table, and an onlooker who sees what was committed."""

from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest

from outbox import ensure_outbox_table_sync
from tests.publisher.onlooker import Onlooker
from tests.publisher.ways import ASYNC_WAYS, SYNC_WAYS, WAYS, Way
from tests.servers.postgres import PostgresServer, fresh_database, with_database


@pytest.fixture(scope="package")
def _shared_url(postgres_server: PostgresServer) -> Iterator[str]:
    """One database for the whole folder: making one for each kind of handle and each test would take minutes."""
    with fresh_database(postgres_server.url) as name:
        url = with_database(postgres_server.url, name)
        ensure_outbox_table_sync(url)
        yield url


@pytest.fixture
async def onlooker(_shared_url: str) -> AsyncIterator[Onlooker]:
    connection = await asyncpg.connect(_shared_url)
    await connection.execute("truncate outbox_table restart identity; drop table if exists orders")
    yield Onlooker(connection)
    await connection.close()


@pytest.fixture
def outbox_url(_shared_url: str, onlooker: Onlooker) -> str:
    """The address of a database with an empty `outbox_table`."""
    return _shared_url


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Way:
    """Each kind of handle in turn."""
    return WAYS[request.param]


@pytest.fixture(params=ASYNC_WAYS)
def async_way(request: pytest.FixtureRequest) -> Way:
    """Each kind of async handle in turn."""
    return ASYNC_WAYS[request.param]


@pytest.fixture(params=SYNC_WAYS)
def sync_way(request: pytest.FixtureRequest) -> Way:
    """Each kind of sync handle in turn."""
    return SYNC_WAYS[request.param]
