"""Fixtures for pytest: `pytest_plugins = ["outbox.testing.plugin"]` in the top `conftest.py` makes them available."""

import pytest

from outbox.testing.recording import RecordingPublisher
from outbox.transports.memory import MemoryBroker


@pytest.fixture
def outbox_publisher() -> RecordingPublisher:
    """A publisher that records, for `app.dependency_overrides[get_publisher] = lambda: outbox_publisher`; awaited."""
    return RecordingPublisher()


@pytest.fixture
def outbox_publisher_sync() -> RecordingPublisher:
    """The same for code that does not await."""
    return RecordingPublisher(sync=True)


@pytest.fixture
def outbox_broker() -> MemoryBroker:
    """A broker in memory, empty."""
    return MemoryBroker()
