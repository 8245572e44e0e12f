"""Fixtures for pytest: `pytest_plugins = ["outbox.testing.plugin"]` in the top `conftest.py` makes them available."""

from collections.abc import Iterator

import pytest

from outbox.postgres.handles.shapes import SyncHandle
from outbox.testing.recorder import RecordingPublisher
from outbox.transports.memory import MemoryBroker


@pytest.fixture
def outbox_publisher() -> Iterator[RecordingPublisher]:
    """A publisher that records, for `app.dependency_overrides[get_publisher] = lambda: outbox_publisher`; awaited.

    A test in which a call of it was not awaited fails at its end.
    """
    publisher = RecordingPublisher()
    yield publisher
    publisher.assert_awaited()


@pytest.fixture
def outbox_publisher_sync() -> RecordingPublisher[SyncHandle]:
    """A recording publisher for synchronous code."""
    return RecordingPublisher(sync=True)


@pytest.fixture
def outbox_broker() -> MemoryBroker:
    """A broker in memory, empty."""
    return MemoryBroker()
