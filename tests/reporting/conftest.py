"""A database with the schema, and a connection to it."""

from collections.abc import AsyncIterator

import asyncpg
import pytest


@pytest.fixture
async def connection(database: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection to a database with the schema."""
    connection = await asyncpg.connect(database)
    yield connection
    await connection.close()
