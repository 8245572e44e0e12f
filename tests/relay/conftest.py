"""An outbox table in a fresh database, and a relay's pieces on it."""

from collections.abc import AsyncIterator

import asyncpg
import pytest


@pytest.fixture
def url(database: str) -> str:
    """A database with every table of Outbox."""
    return database


@pytest.fixture
async def connection(url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection to it."""
    connection = await asyncpg.connect(url)
    yield connection
    await connection.close()
