"""Fixtures of the Postgres transport's tests: a database with all its tables, and brokers that are closed again."""

from collections.abc import AsyncIterator

import pytest

from outbox.postgres.pool import Pool, open_pool
from outbox.transports.postgres import PostgresBroker
from tests.postgres_transport.support import new_broker


@pytest.fixture
async def pool(database: str) -> AsyncIterator[Pool]:
    """Connections of the test's own to that database."""
    opened = await open_pool(database, size=10, application_name="tests")
    yield opened
    await opened.close()


@pytest.fixture
async def broker(database: str) -> AsyncIterator[PostgresBroker]:
    """A broker in that database."""
    made = new_broker(database)
    yield made
    await made.close()


@pytest.fixture
async def other_broker(database: str) -> AsyncIterator[PostgresBroker]:
    """Another one, as another process would have it."""
    made = new_broker(database)
    yield made
    await made.close()
