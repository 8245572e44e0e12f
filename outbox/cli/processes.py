"""`outbox relay`, `worker`, `archiver` and `maintain`: the processes that run until SIGTERM or Ctrl-C.

Each serves metrics and health on its own port.
"""

import asyncio
import errno
import json
import logging
import os
import socket
import sys
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib.util import find_spec
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any, Protocol
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import click

from outbox.cli import options
from outbox.cli.command import Command
from outbox.cli.logs import configure_logging
from outbox.errors import ConfigurationError, HandlersAbandonedError
from outbox.runtime.gc import freeze_gc
from outbox.runtime.health import Health, HealthChecks, checking
from outbox.runtime.settings import Reader, arguments_of

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

    Page = Callable[[WSGIEnvironment, StartResponse], Iterable[bytes]]


RELAY_PORT, WORKER_PORT, ARCHIVER_PORT, MAINTENANCE_PORT = 9101, 9102, 9103, 9104
"""Default ports of metrics and health. A free port is used if another process has it."""
EXIT_ABANDONED = 70
"""Exit code of a process that ended while handlers, or threads that they started, still ran (`EX_SOFTWARE`)."""
LAST_WAIT = timedelta(seconds=5)
"""Grace period for tasks and threads that handlers left behind. After it the process exits without them."""
ANSWER_SECONDS = 10.0
"""Maximum wait of a readiness probe for the event loop, in seconds."""

_logger = logging.getLogger("outbox")


class Component(Protocol):
    """A relay, a worker, an archiver, or maintenance."""

    async def run(self) -> None:
        """Runs until it is asked to stop."""
        ...


@click.command(cls=Command)
@options.process(Reader.RELAY, port=RELAY_PORT)
def relay(*, database_url: str | None, broker_url: str | None, **given: Any) -> None:
    """Moves committed events from the outbox to the broker.

    Several relays may share a table. On SIGTERM or Ctrl-C it finishes the batches in flight.
    """
    from outbox.relay import MessageRelay

    database_url = _required_database(database_url)
    configure_logging(given["log_level"], given["log_format"])
    broker = broker_url or database_url
    component = MessageRelay(db_engine_url=database_url, broker=broker, **arguments_of(MessageRelay, given))
    run_process(_serve(component, RELAY_PORT, given, database_url=database_url, broker_url=broker))


@click.command(cls=Command)
@click.argument("consumers", envvar="OUTBOX_CONSUMERS")
@options.process(Reader.WORKER, port=WORKER_PORT)
def worker(*, consumers: str, database_url: str | None, broker_url: str | None, **given: Any) -> None:
    """Runs message handlers; CONSUMERS is package.module:name.

    The name is a consumer or a list of consumers; package.module alone means all consumers of the module. On SIGTERM or Ctrl-C
    running handlers finish, and messages that were not started return to their queues.
    """
    from outbox.runtime.consumers import load_consumers
    from outbox.worker import Worker

    broker = broker_url or database_url
    if broker is None:
        raise ConfigurationError("no broker configured: set OUTBOX_BROKER_URL for RabbitMQ, or OUTBOX_DATABASE_URL")
    configure_logging(given["log_level"], given["log_format"])
    given["consumers"] = load_consumers(consumers)
    component = Worker(db_engine_url=database_url, broker=broker, **arguments_of(Worker, given))
    run_process(_serve(component, WORKER_PORT, given, database_url=database_url, broker_url=broker))


@click.command(cls=Command)
@options.process(Reader.ARCHIVER, port=ARCHIVER_PORT)
def archiver(*, database_url: str | None, broker_url: str | None, **given: Any) -> None:
    """Moves dead letters from RabbitMQ into the database, where they can be listed, searched and requeued.

    Several archivers may share the queues. On SIGTERM or Ctrl-C it finishes the batch in flight.
    """
    from outbox.archiver import Archiver

    database_url = _required_database(database_url)
    if broker_url is None:
        raise ConfigurationError(
            "no RabbitMQ configured: set OUTBOX_BROKER_URL. On PostgreSQL and with Kafka dead letters need no archiver"
        )
    configure_logging(given["log_level"], given["log_format"])
    component = Archiver(db_engine_url=database_url, broker=broker_url, **arguments_of(Archiver, given))
    run_process(_serve(component, ARCHIVER_PORT, given, database_url=database_url, broker_url=broker_url))


@click.command(cls=Command)
@options.process(Reader.MAINTAIN, port=MAINTENANCE_PORT)
def maintain(*, database_url: str | None, broker_url: str | None, **given: Any) -> None:
    """Deletes expired rows, and runs the bulk operations that operators start.

    Several may run: one is active, the others stand by. On SIGTERM or Ctrl-C it finishes the batch in flight.
    """
    from outbox.maintenance import Maintenance

    database_url = _required_database(database_url)
    configure_logging(given["log_level"], given["log_format"])
    component = Maintenance(db_engine_url=database_url, broker=broker_url, **arguments_of(Maintenance, given))
    run_process(_serve(component, MAINTENANCE_PORT, given, database_url=database_url, broker_url=None))


def _required_database(url: str | None) -> str:
    if url is None:
        raise ConfigurationError("no database configured: set OUTBOX_DATABASE_URL, or give --database-url")
    return url


async def _serve(
    component: Component, usual_port: int, given: Mapping[str, Any], *, database_url: str | None, broker_url: str | None
) -> None:
    """Runs the component and serves its metrics and health."""
    health = HealthChecks()
    address = Address(given["monitoring_host"], given["monitoring_port"], usual_port)
    async with checking(
        health,
        database_url=database_url,
        broker_url=broker_url,
        exchange_name=given["exchange_name"],
        table_name=given["table_name"],
    ):
        with monitored(address, health, metrics=given["metrics"]), freeze_gc():
            await component.run()


def run_process(main: Coroutine[Any, Any, None]) -> None:
    """Runs `main` like `asyncio.run`, and exits with `EXIT_ABANDONED` if tasks or threads still run `LAST_WAIT` after it.

    `asyncio.run` and the interpreter would wait for tasks and threads that handlers started without a time limit.
    """
    runner = asyncio.Runner()
    watch = threading.Timer(LAST_WAIT.total_seconds(), _exit_now, ("tasks or threads that handlers started are still running",))
    watch.daemon = True
    try:
        runner.run(main)
    except HandlersAbandonedError as error:
        _exit_now(str(error))
    finally:
        watch.start()
        runner.close()
        # Before it exits, the interpreter joins non-daemon threads. The timer must fire if one of them does not end.
        if all(thread.daemon or thread is threading.main_thread() for thread in threading.enumerate()):
            watch.cancel()


def _exit_now(reason: str) -> None:
    _logger.error("exiting with code %d: %s", EXIT_ABANDONED, reason)
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(EXIT_ABANDONED)


# --- metrics and health -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Address:
    """Where to serve metrics and health. Port None: `usual_port`, or a free port; 0: not served."""

    host: str
    port: int | None
    usual_port: int


@contextmanager
def monitored(address: Address, health: HealthChecks, *, metrics: bool) -> Iterator[None]:
    """Serves `/outbox/health/live`, `/outbox/health/ready` and, with `metrics`, `/metrics` from a thread during the block.

    Must be entered in the running event loop. Raises `ConfigurationError` if a configured port is taken.
    """
    if address.port == 0:
        yield
        return
    server = _listen(address, _pages(health, asyncio.get_running_loop(), metrics=metrics))
    thread = threading.Thread(target=server.serve_forever, name="outbox monitoring", daemon=True)
    thread.start()
    host = f"[{address.host}]" if ":" in address.host else address.host
    _logger.info("Health and metrics: http://%s:%d/outbox/health/ready", host, server.server_port)
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


def _listen(address: Address, app: "Page") -> WSGIServer:
    port = address.usual_port if address.port is None else address.port
    try:
        return _server(address.host, port, app)
    except OSError as error:
        taken = error.errno in (errno.EADDRINUSE, errno.EACCES)
        if address.port is not None or not taken:
            raise ConfigurationError(
                f"cannot serve health and metrics on {address.host}:{port}: {error.strerror}; "
                "set OUTBOX_MONITORING_PORT to another port, or to 0 to serve neither"
            ) from error
    server = _server(address.host, 0, app)
    _logger.warning("Port %d is taken, serving health and metrics on port %d", port, server.server_port)
    return server


def _server(host: str, port: int, app: "Page") -> WSGIServer:
    server_class = _IPv6Server if ":" in host else _Server
    return make_server(host, port, app, server_class=server_class, handler_class=_QuietHandler)


def _pages(health: HealthChecks, loop: asyncio.AbstractEventLoop, *, metrics: bool) -> "Page":
    def ready(_environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
        report_future = asyncio.run_coroutine_threadsafe(health.report(), loop)
        try:
            report = report_future.result(ANSWER_SECONDS)
        except TimeoutError:
            report_future.cancel()
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
            return _answer(start, "404 Not Found", {"detail": f"the paths are {', '.join(pages)}"})
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
        """Logs nothing: probes come every few seconds."""
