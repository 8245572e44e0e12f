"""A connection, and every way to create the tables."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from tests.schema.support import Alembic


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection to the database of the test."""
    opened = await asyncpg.connect(database_url)
    yield opened
    await opened.close()


@pytest.fixture
def alembic(database_url: str) -> Alembic:
    return Alembic(database_url)
