"""A database with all tables of Outbox, and a pool of connections to it."""

from collections.abc import AsyncIterator

import pytest

from outbox.postgres.pool import Pool, open_pool


@pytest.fixture
async def pool(database: str) -> AsyncIterator[Pool]:
    """A pool of connections to that database."""
    opened = await open_pool(database, size=10, application_name="tests")
    yield opened
    await opened.close()
