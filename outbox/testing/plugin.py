"""Fixtures for pytest. Add `pytest_plugins = ["outbox.testing.plugin"]` to the top-level `conftest.py`."""

from collections.abc import Iterator

import pytest

from outbox.postgres.handles.shapes import SyncHandle
from outbox.testing.recorder import RecordingPublisher
from outbox.transports.memory import MemoryBroker


@pytest.fixture
def outbox_publisher() -> Iterator[RecordingPublisher]:
    """A recording publisher for async code: `app.dependency_overrides[get_publisher] = lambda: outbox_publisher`.

    The test fails at its end if a call was not awaited.
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
    """An empty broker in memory."""
    return MemoryBroker()
