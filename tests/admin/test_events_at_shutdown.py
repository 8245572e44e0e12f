"""Real signals to `uvicorn app:main` with open streams: they end at once, and nothing is held up by them."""

import asyncio
import contextlib
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic

import httpx
import pytest

from outbox import ensure_outbox_schema_async
from outbox.admin import Role
from outbox.admin.security.tokens import new_token
from tests.support import eventually_sync
from tests.support.processes import OurProcess, free_port, running

STREAMS = 5


@contextmanager
def reading(url: str, token: str) -> Iterator[None]:
    """A client that reads a stream for as long as it goes on."""
    begun = threading.Event()

    def read() -> None:
        with (
            contextlib.suppress(httpx.TransportError),
            httpx.stream("GET", url, headers={"authorization": f"Bearer {token}"}, timeout=60) as response,
        ):
            assert response.status_code == 200
            for line in response.iter_lines():
                if line.startswith("event: reset"):
                    begun.set()

    thread = threading.Thread(target=read)
    thread.start()
    try:
        assert begun.wait(30)
        yield
    finally:
        thread.join(30)
        assert not thread.is_alive()


@contextmanager
def serving(folder: Path, database_url: str, token_entry: str, *more: str) -> Iterator[tuple[OurProcess, str]]:
    """`uvicorn app:main` as anybody starts it, and its address."""
    port = free_port()
    settings = {"OUTBOX_DATABASE_URL": database_url, "OUTBOX_ADMIN_TOKENS": token_entry, "OUTBOX_RUN": "api,relay"}
    with running(["-m", "uvicorn", "app:main", "--port", str(port), *more], folder, settings) as process:
        url = f"http://127.0.0.1:{port}/outbox"
        eventually_sync(lambda: _ready(url), timeout=60, interval=0.1)
        yield process, url


def _ready(url: str) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(f"{url}/health/ready", timeout=10).is_success
    return False


@pytest.mark.parametrize("more", [(), ("--workers", "2")], ids=["one process", "two workers"])
def test_a_server_with_open_streams_ends_within_five_seconds_and_its_relay_drains(
    more: tuple[str, ...], database_url: str, tmp_path: Path
) -> None:
    asyncio.run(ensure_outbox_schema_async(database_url))
    token, entry = new_token("anna", Role.VIEWER)
    with serving(tmp_path, database_url, str(entry), *more) as (process, url), ExitStack() as streams:
        for _ in range(STREAMS):
            streams.enter_context(reading(f"{url}/events", token))
        began = monotonic()
        process.send(signal.SIGTERM)
        process.wait(10)
        assert monotonic() - began < 5
        assert "Traceback" not in process.output
        assert len(re.findall("Application shutdown complete", process.output)) == (2 if more else 1)
