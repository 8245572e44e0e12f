"""An outbox table in a fresh database, and a relay's pieces on it."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from outbox import ensure_outbox_schema_async


@pytest.fixture
async def url(database_url: str) -> str:
    """A database with every table of Outbox."""
    await ensure_outbox_schema_async(database_url)
    return database_url


@pytest.fixture
async def connection(url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection to it."""
    connection = await asyncpg.connect(url)
    yield connection
    await connection.close()
