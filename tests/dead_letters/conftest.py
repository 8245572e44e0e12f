"""A database with every table of Outbox, and connections of the test's own to it."""

from collections.abc import AsyncIterator

import pytest

from outbox.postgres.pool import Pool, open_pool


@pytest.fixture
async def pool(database: str) -> AsyncIterator[Pool]:
    """Connections of the test's own to that database."""
    opened = await open_pool(database, size=10, application_name="tests")
    yield opened
    await opened.close()
