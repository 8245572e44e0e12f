"""Fixtures of the Postgres transport's tests: a database with all tables, and brokers that are closed afterwards."""

from collections.abc import AsyncIterator

import pytest

from outbox.postgres.pool import Pool, open_pool
from outbox.transports.postgres import PostgresBroker
from tests.postgres_transport.support import new_broker


@pytest.fixture
async def pool(database: str) -> AsyncIterator[Pool]:
    """A pool of connections to that database."""
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
    """A second broker, as in another process."""
    made = new_broker(database)
    yield made
    await made.close()
