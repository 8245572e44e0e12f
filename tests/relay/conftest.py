"""An outbox table in a fresh database, and a relay's pieces on it."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from tests.servers.postgres import with_every_table


@pytest.fixture
def url(database_url: str) -> str:
    """A database with every table of Outbox."""
    return with_every_table(database_url)


@pytest.fixture
async def connection(url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection to it."""
    connection = await asyncpg.connect(url)
    yield connection
    await connection.close()
