"""Metrics and health on a small port of their own, for processes that serve nothing else."""

import asyncio
import errno
import json
import logging
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from outbox.errors import ConfigurationError
from outbox.runtime.health import Health, HealthChecks

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

    Page = Callable[[WSGIEnvironment, StartResponse], Iterable[bytes]]

logger = logging.getLogger("outbox")

ANSWER_SECONDS = 10.0
"""Longest that a probe waits for the process to look at itself."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to serve. `port` None: `usual_port`, or a free one; 0: nowhere."""

    host: str
    port: int | None
    usual_port: int


@contextmanager
def monitored(address: Address, health: HealthChecks, *, metrics: bool) -> Iterator[None]:
    """Within the block `/outbox/health/live`, `/outbox/health/ready` and, if asked for, `/metrics` are served by a thread.

    Must be entered where the event loop runs. Raises `ConfigurationError` if the port that was asked for is taken.
    """
    if address.port == 0:
        yield
        return
    server = _listen(address, _pages(health, asyncio.get_running_loop(), metrics=metrics))
    thread = threading.Thread(target=server.serve_forever, name="outbox monitoring", daemon=True)
    thread.start()
    host = f"[{address.host}]" if ":" in address.host else address.host
    logger.info("Health and metrics: http://%s:%d/outbox/health/ready", host, server.server_port)
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


def _listen(address: Address, app: "Page") -> WSGIServer:
    asked = address.usual_port if address.port is None else address.port
    try:
        return _server(address.host, asked, app)
    except OSError as error:
        taken = error.errno in (errno.EADDRINUSE, errno.EACCES)
        if address.port is not None or not taken:
            raise ConfigurationError(
                f"cannot serve health and metrics on {address.host}:{asked}: {error.strerror}; "
                "choose another OUTBOX_MONITORING_PORT, or 0 for none"
            ) from error
    server = _server(address.host, 0, app)
    logger.warning("Port %d is taken: health and metrics are on port %d", asked, server.server_port)
    return server


def _server(host: str, port: int, app: "Page") -> WSGIServer:
    server_class = _IPv6Server if ":" in host else _Server
    return make_server(host, port, app, server_class=server_class, handler_class=_QuietHandler)


def _pages(health: HealthChecks, loop: asyncio.AbstractEventLoop, *, metrics: bool) -> "Page":
    def ready(_environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
        asked = asyncio.run_coroutine_threadsafe(health.report(), loop)
        try:
            report = asked.result(ANSWER_SECONDS)
        except TimeoutError:
            asked.cancel()
            report = Health({"event loop": "unavailable"})
        return _answer(start, "200 OK" if report.ready else "503 Service Unavailable", report.as_json())

    pages: dict[str, Page] = {
        "/outbox/health/live": lambda _, start: _answer(start, "200 OK", {"status": "alive"}),
        "/outbox/health/ready": ready,
    }
    if metrics and find_spec("prometheus_client") is not None:
        from prometheus_client import make_wsgi_app

        pages["/metrics"] = make_wsgi_app()

    def app(environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
        page = pages.get(environ.get("PATH_INFO", ""))
        if page is None:
            return _answer(start, "404 Not Found", {"detail": f"there are {', '.join(pages)}"})
        return page(environ, start)

    return app


def _answer(start: "StartResponse", status: str, content: dict[str, object]) -> Iterable[bytes]:
    body = json.dumps(content).encode() + b"\n"
    start(
        status,
        [
            ("content-type", "application/json"),
            ("cache-control", "no-store"),
            ("content-length", str(len(body))),
        ],
    )
    return [body]


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _IPv6Server(_Server):
    address_family = socket.AF_INET6


class _QuietHandler(WSGIRequestHandler):
    timeout = 10

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 — the name is the base class's
        """Probes come every few seconds, and are not worth a line."""
