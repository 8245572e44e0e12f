"""A database with the schema, and a connection to it."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from tests.servers.postgres import with_every_table


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection to a database with the schema."""
    connection = await asyncpg.connect(with_every_table(database_url))
    yield connection
    await connection.close()
