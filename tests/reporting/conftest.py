"""A database with the schema, and a connection to it."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from outbox import ensure_outbox_schema_async


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection to a database with the schema."""
    await ensure_outbox_schema_async(database_url)
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()
