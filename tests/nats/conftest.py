"""A NATS server for the session, with streams of each test's own, and one for each test that kills or freezes it."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from outbox.transports.nats import NatsTransport
from tests.servers.nats import Nats, running_nats


@pytest.fixture
def own_nats(servers_folder: Path) -> Iterator[Nats]:
    """A server of the test's own."""
    with running_nats(servers_folder / f"nats-{uuid4()}") as server:
        yield server


@pytest.fixture
def word() -> str:
    """The first word of the test's own subjects, and the name of its stream."""
    return f"test-{uuid4()}"


@pytest.fixture
async def stream(nats_server: Nats, word: str) -> str:
    """A stream of all subjects that begin with `word`, which is its name."""
    await nats_server.create_stream(word, f"{word}.>")
    return word


@pytest.fixture
async def transport(nats_server: Nats) -> AsyncIterator[NatsTransport]:
    """A transport whose subjects are the routing keys."""
    transport = NatsTransport(nats_server.url)
    yield transport
    await transport.close()
