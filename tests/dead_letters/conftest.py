"""A database with every table of Outbox, and connections of the test's own to it."""

from collections.abc import AsyncIterator

import pytest

from outbox.postgres.pool import Pool, open_pool
from tests.servers.postgres import with_every_table


@pytest.fixture
def database(database_url: str) -> str:
    """The address of a database with every table, and nothing in them."""
    return with_every_table(database_url)


@pytest.fixture
async def pool(database: str) -> AsyncIterator[Pool]:
    """Connections of the test's own to that database."""
    opened = await open_pool(database, size=10, application_name="tests")
    yield opened
    await opened.close()
