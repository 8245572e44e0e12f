"""Serves an application with uvicorn in a thread of the test process."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from tests.support.eventually import eventually_sync
from tests.support.processes import free_port


@contextmanager
def in_a_thread(app: Any, **config: Any) -> Iterator[str]:
    """Yields the address of the running application, and stops it at the end of the block."""
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error", ws="none", **config))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        eventually_sync(lambda: server.started, message="the application did not start")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(60)
