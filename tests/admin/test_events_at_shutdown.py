"""Real signals to `uvicorn app:main` with open streams: streams end at once, and the relay hands over its messages."""

import asyncio
import contextlib
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import LiteralString

import httpx
import psycopg
import pytest
from psycopg.sql import SQL

from outbox import ensure_outbox_schema_async
from outbox.admin import Role
from outbox.admin.principals import new_token
from tests.support import eventually_sync
from tests.support.processes import OurProcess, free_port, running

STREAMS = 5
MESSAGES = 20


@contextmanager
def reading(url: str, token: str) -> Iterator[None]:
    """A client that reads a stream until it ends."""
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
        assert begun.wait(60)
        yield
    finally:
        thread.join(30)
        assert not thread.is_alive()


@contextmanager
def serving(folder: Path, database_url: str, token_entry: str, *more: str) -> Iterator[tuple[OurProcess, str]]:
    """Starts `uvicorn app:main`, and returns the process and its address."""
    port = free_port()
    settings = {"OUTBOX_DATABASE_URL": database_url, "OUTBOX_ADMIN_TOKENS": token_entry, "OUTBOX_RUN": "api,relay"}
    with running(["-m", "uvicorn", "app:main", "--port", str(port), *more], folder, settings) as process:
        url = f"http://127.0.0.1:{port}/outbox"
        process.is_ready(f"{url}/health/ready")
        yield process, url


class InFlightMessages:
    """Messages that a relay has in flight while a lock prevents the hand-over.

    They are published before the relay starts: one that looked just before would wait for the lock without having seen them.
    """

    def __init__(self, database_url: str) -> None:
        self._holder, self._other = (psycopg.connect(database_url, autocommit=True) for _ in range(2))
        self._other.execute(
            "insert into outbox_subscription (exchange, queue, binding_key) values ('outbox', 'mail', 'placed')"
        )
        self._holder.execute("begin; lock table outbox_delivery in share mode")
        self._other.execute(
            "insert into outbox_table (routing_key, body) select 'placed', '' from generate_series(1, %s)", [MESSAGES]
        )

    def are_taken(self) -> None:
        """Waits until the relay blocks on the lock."""
        eventually_sync(lambda: self._count("pg_locks where not granted and relation = 'outbox_delivery'::regclass"))

    def release(self) -> None:
        """Releases the lock."""
        assert self._count("outbox_delivery") == 0
        self._holder.execute("commit")

    def left(self) -> tuple[int, int]:
        """Returns how many are still in the outbox, and how many in the queue."""
        return self._count("outbox_table where sent_at is null"), self._count("outbox_delivery")

    def close(self) -> None:
        """Closes the connections."""
        self._holder.close()
        self._other.close()

    def _count(self, what: LiteralString) -> int:
        [count] = self._other.execute(SQL("select count(*) from " + what)).fetchone() or (0,)
        return int(count)


@pytest.mark.parametrize("more", [(), ("--workers", "2")], ids=["one process", "two workers"])
def test_a_server_ends_its_open_streams_at_once_and_its_relay_drains(
    more: tuple[str, ...], database_url: str, tmp_path: Path
) -> None:
    asyncio.run(ensure_outbox_schema_async(database_url))
    token, entry = new_token("anna", Role.VIEWER)
    with (
        closing(InFlightMessages(database_url)) as in_hand,
        serving(tmp_path, database_url, str(entry), *more) as (process, url),
        ExitStack() as streams,
    ):
        for _ in range(STREAMS):
            streams.enter_context(reading(f"{url}/events", token))
        in_hand.are_taken()
        process.send(signal.SIGTERM)
        streams.close()  # they end though a relay is still at work
        in_hand.release()
        process.wait(60)
        assert in_hand.left() == (0, MESSAGES)
        assert "Traceback" not in process.output
        assert len(re.findall("Application shutdown complete", process.output)) == (2 if more else 1)
