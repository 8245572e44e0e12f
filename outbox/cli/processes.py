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
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from importlib.util import find_spec
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import click

from outbox.cli import options
from outbox.cli.command import Command
from outbox.cli.logs import configure_logging
from outbox.databases import Databases, parse_databases
from outbox.errors import ConfigurationError, HandlersAbandonedError
from outbox.runtime.gc import freeze_gc
from outbox.runtime.health import Health, HealthChecks, checking
from outbox.runtime.settings import Reader, arguments_of
from outbox.runtime.supervision import Part

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

    Page = Callable[[WSGIEnvironment, StartResponse], Iterable[bytes]]


RELAY_PORT, WORKER_PORT, ARCHIVER_PORT, MAINTENANCE_PORT = 9101, 9102, 9103, 9104
"""Default ports of metrics and health. A free port is used if another process has it."""
EXIT_ABANDONED = 70
"""Exit code of a process that ended while handlers, or threads that they started, still ran (`EX_SOFTWARE`)."""
LAST_WAIT = timedelta(seconds=5)
"""Grace period for tasks and threads that handlers left behind. After it the process exits without them."""
OF_DATABASE = "{database}"
"""Stands for the name of each of several databases in the broker's URL."""
ANSWER_SECONDS = 10.0
"""Maximum wait of a readiness probe for the event loop, in seconds."""

_logger = logging.getLogger("outbox")


@click.command(cls=Command)
@options.process(Reader.RELAY, port=RELAY_PORT)
def relay(**given: Any) -> None:
    """Moves committed events from the outbox to the broker.

    Several relays may share a table. On SIGTERM or Ctrl-C it finishes the batches in flight.
    """
    from outbox.relay import MessageRelay

    def make(database_url: str | None, broker_url: str | None) -> MessageRelay:
        database_url = _required_database(database_url)
        return MessageRelay(db_engine_url=database_url, broker=broker_url or database_url, **arguments_of(MessageRelay, given))

    _run(make, RELAY_PORT, given)


@click.command(cls=Command)
@click.argument("consumers", envvar="OUTBOX_CONSUMERS")
@options.process(Reader.WORKER, port=WORKER_PORT)
def worker(*, consumers: str, **given: Any) -> None:
    """Runs message handlers; CONSUMERS is package.module:name.

    The name is a consumer or a list of consumers; package.module alone means all consumers of the module. On SIGTERM or Ctrl-C
    running handlers finish, and messages that were not started return to their queues.
    """
    from outbox.runtime.consumers import load_consumers
    from outbox.worker import Worker

    def make(database_url: str | None, broker_url: str | None) -> Worker:
        broker = broker_url or database_url
        if broker is None:
            raise ConfigurationError("no broker configured: set OUTBOX_BROKER_URL for RabbitMQ, or OUTBOX_DATABASE_URL")
        given["consumers"] = load_consumers(consumers)
        return Worker(db_engine_url=database_url, broker=broker, **arguments_of(Worker, given))

    _run(make, WORKER_PORT, given, reads_broker=True)


@click.command(cls=Command)
@options.process(Reader.ARCHIVER, port=ARCHIVER_PORT)
def archiver(**given: Any) -> None:
    """Moves dead letters from RabbitMQ into the database, where they can be listed, searched and requeued.

    Several archivers may share the queues. On SIGTERM or Ctrl-C it finishes the batch in flight.
    """
    from outbox.archiver import Archiver

    def make(database_url: str | None, broker_url: str | None) -> Archiver:
        database_url = _required_database(database_url)
        if broker_url is None:
            raise ConfigurationError(
                "no RabbitMQ configured: set OUTBOX_BROKER_URL. On PostgreSQL and with Kafka dead letters need no archiver"
            )
        return Archiver(db_engine_url=database_url, broker=broker_url, **arguments_of(Archiver, given))

    _run(make, ARCHIVER_PORT, given, reads_broker=True)


@click.command(cls=Command)
@options.process(Reader.MAINTAIN, port=MAINTENANCE_PORT)
def maintain(**given: Any) -> None:
    """Deletes expired rows, and runs the bulk operations that operators start.

    Several may run: one is active, the others stand by. On SIGTERM or Ctrl-C it finishes the batch in flight.
    """
    from outbox.maintenance import Maintenance

    def make(database_url: str | None, broker_url: str | None) -> Maintenance:
        database_url = _required_database(database_url)
        return Maintenance(db_engine_url=database_url, broker=broker_url, **arguments_of(Maintenance, given))

    _run(make, MAINTENANCE_PORT, given, checks_broker=False)


def _required_database(url: str | None) -> str:
    if url is None:
        raise ConfigurationError("no database configured: set OUTBOX_DATABASE_URL, or give --database-url")
    return url


def _run(
    make: Callable[[str | None, str | None], Part],
    usual_port: int,
    given: Mapping[str, Any],
    *,
    reads_broker: bool = False,
    checks_broker: bool = True,
) -> None:
    """Runs the component that `make` returns for a database and a broker, or one for each of several databases.

    `reads_broker`: it takes messages from the broker, and so needs one for each database. `checks_broker`: the broker is a part
    of the process's health.
    """
    configure_logging(given["log_level"], given["log_format"])
    source: str | dict[str, str] | None = given["databases_file"] or parse_databases(given["database"]) or None
    database_url, broker_url = given["database_url"], given["broker_url"]
    if source is None:
        component: Part = make(database_url, broker_url)
        health = HealthChecks()
        checks: AbstractAsyncContextManager[None] = checking(
            health,
            database_url=database_url,
            broker_url=broker_url if checks_broker else None,
            exchange_name=given["exchange_name"],
            table_name=given["table_name"],
        )
    else:
        _refuse_conflicts(given, reads_broker=reads_broker)
        component = Databases(
            source,
            lambda name, url: make(url, broker_url and broker_url.replace(OF_DATABASE, name)),
            refresh=given["databases_refresh"],
            longest_pause=given["databases_longest_pause"],
            grace_period=given["grace_period"].total_seconds(),
        )
        # No checks over connections: that would be two more for each database.
        health = HealthChecks({"databases": component.check}, databases=component.states)
        checks = nullcontext()
    address = Address(given["monitoring_host"], given["monitoring_port"], usual_port)

    async def serve() -> None:
        async with checks:
            with monitored(address, health, metrics=given["metrics"]), freeze_gc():
                await component.run()

    run_process(serve())


def _refuse_conflicts(given: Mapping[str, Any], *, reads_broker: bool) -> None:
    if given["databases_file"] and given["database"]:
        raise ConfigurationError("give either --database or --databases (OUTBOX_DATABASES_FILE), not both")
    for name in ("database_url", "listen_url"):
        if given.get(name) is not None:
            raise ConfigurationError(
                f"OUTBOX_{name.upper()} or --{name.replace('_', '-')} is an address of one database: unset it to serve several"
            )
    if reads_broker and given["broker_url"] is not None and OF_DATABASE not in given["broker_url"]:
        raise ConfigurationError(
            "with one broker for several databases, messages of one would be handled in another: "
            f"give each its own, as amqp://user:password@host/{OF_DATABASE}, where {OF_DATABASE} stands for its name"
        )


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
            other = (
                "OUTBOX_MONITORING_PORT to another port" if taken else "OUTBOX_MONITORING_HOST to an address of this machine"
            )
            nothing = "or to 0" if taken else "or OUTBOX_MONITORING_PORT to 0"
            raise ConfigurationError(
                f"cannot serve health and metrics on {address.host}:{port}: {error.strerror}; "
                f"set {other}, {nothing} to serve neither"
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
