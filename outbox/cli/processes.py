"""`outbox relay`, `worker`, `archiver` and `maintain`: the processes that run until SIGTERM or Ctrl-C."""

import asyncio
import logging
import os
import sys
import threading
from collections.abc import Coroutine, Mapping
from datetime import timedelta
from typing import Any, Protocol

import click

from outbox.cli import options
from outbox.cli.command import Command
from outbox.cli.logs import configure_logging
from outbox.cli.monitoring import Address, monitored
from outbox.cli.options import masking_of, setting
from outbox.errors import ConfigurationError, HandlersAbandonedError
from outbox.runtime.gc import freeze_gc
from outbox.runtime.health import HealthChecks, checking

RELAY_PORT, WORKER_PORT, ARCHIVER_PORT, MAINTENANCE_PORT = 9101, 9102, 9103, 9104
"""Ports of metrics and health, unless one is asked for or another process has it."""
EXIT_ABANDONED = 70
"""The exit code of a process that ended while handlers, or threads that they started, still ran. It is `EX_SOFTWARE`."""
LAST_WAIT = timedelta(seconds=5)
"""How long tasks and threads that handlers left behind may take, before the process ends without them."""

_logger = logging.getLogger("outbox")


class Component(Protocol):
    """A relay, a worker, an archiver, or maintenance."""

    async def run(self) -> None:
        """Works until it is told to end."""
        ...


@click.command(cls=Command)
@options.database
@options.broker
@setting("listen_url")
@setting("batch_size")
@setting("lanes")
@setting("publish_timeout")
@setting("max_attempts")
@setting("on_unroutable")
@setting("ordering_policy")
@setting("clean_up_after")
@setting("expiration")
@setting("notification_timeout")
@setting("poll_interval")
@setting("max_batch_bytes")
@setting("max_body_bytes")
@options.reports
@setting("history")
@options.process
@options.monitoring_port(RELAY_PORT)
def relay(*, database_url: str | None, broker_url: str | None, **given: Any) -> None:
    """Moves committed events from the outbox to the broker.

    Any number of relays may share a table. SIGTERM and Ctrl-C let it finish what is in flight.
    """
    from outbox.relay import MessageRelay

    database_url = _required_database(database_url)
    configure_logging(given["log_level"], given["log_format"])
    made = MessageRelay(
        db_engine_url=database_url,
        broker=broker_url or database_url,
        exchange_name=given["exchange_name"],
        table_name=given["table_name"],
        listen_url=given["listen_url"],
        batch_size=given["batch_size"],
        lanes=given["lanes"],
        publish_timeout=given["publish_timeout"].total_seconds(),
        max_attempts=given["max_attempts"],
        on_unroutable=given["on_unroutable"],
        ordering_policy=given["ordering_policy"],
        clean_up_after=given["clean_up_after"],
        expiration=given["expiration"],
        notification_timeout=given["notification_timeout"].total_seconds(),
        poll_interval=given["poll_interval"].total_seconds(),
        max_batch_bytes=given["max_batch_bytes"],
        max_body_bytes=given["max_body_bytes"],
        enable_metrics=given["metrics"],
        grace_period=given["grace_period"].total_seconds(),
        name=given["name"],
        reporting=given["reporting"],
        history=given["history"],
        heartbeat_interval=given["heartbeat_interval"].total_seconds(),
    )
    run_process(_serve(made, RELAY_PORT, given, database_url=database_url, broker_url=broker_url or database_url))


@click.command(cls=Command)
@click.argument("consumers", envvar="OUTBOX_CONSUMERS")
@options.database
@options.broker
@setting("prefetch_count")
@setting("retry_delays")
@setting("max_batch_bytes")
@setting("max_body_bytes")
@options.masking
@options.reports
@setting("history")
@options.process
@options.monitoring_port(WORKER_PORT)
def worker(*, consumers: str, database_url: str | None, broker_url: str | None, **given: Any) -> None:
    """Runs the handlers that CONSUMERS names, as package.module:name.

    The name is that of a consumer or of a list of them; package.module alone means all of its consumers. SIGTERM and Ctrl-C
    let running handlers finish; what was not begun returns to its queue.
    """
    from outbox.runtime.consumers import load_consumers
    from outbox.worker import Worker

    broker = broker_url or database_url
    if broker is None:
        raise ConfigurationError("say where messages come from: OUTBOX_BROKER_URL for RabbitMQ, or OUTBOX_DATABASE_URL")
    configure_logging(given["log_level"], given["log_format"])
    made = Worker(
        broker=broker,
        db_engine_url=database_url,
        table_name=given["table_name"],
        consumers=load_consumers(consumers),
        exchange_name=given["exchange_name"],
        retry_delays=given["retry_delays"],
        prefetch_count=given["prefetch_count"],
        max_batch_bytes=given["max_batch_bytes"],
        max_body_bytes=given["max_body_bytes"],
        masking=masking_of(given),
        enable_metrics=given["metrics"],
        grace_period=given["grace_period"].total_seconds(),
        name=given["name"],
        reporting=given["reporting"],
        history=given["history"],
        heartbeat_interval=given["heartbeat_interval"].total_seconds(),
    )
    run_process(_serve(made, WORKER_PORT, given, database_url=database_url, broker_url=broker))


@click.command(cls=Command)
@options.database
@options.broker
@setting("archive_queues")
@setting("archive_discover_every")
@setting("max_batch_bytes")
@options.masking
@options.reports
@options.process
@options.monitoring_port(ARCHIVER_PORT)
def archiver(*, database_url: str | None, broker_url: str | None, **given: Any) -> None:
    """Moves dead letters from RabbitMQ into the database, where they can be listed, searched and requeued.

    Any number of archivers may share the queues. SIGTERM and Ctrl-C let it finish what it is recording.
    """
    from outbox.archiver import Archiver

    database_url = _required_database(database_url)
    if broker_url is None:
        raise ConfigurationError("without RabbitMQ there is nothing to archive: dead letters are in the database already")
    configure_logging(given["log_level"], given["log_format"])
    made = Archiver(
        db_engine_url=database_url,
        broker=broker_url,
        queues=given["archive_queues"] or (),
        discover_every=given["archive_discover_every"].total_seconds(),
        max_batch_bytes=given["max_batch_bytes"],
        table_name=given["table_name"],
        masking=masking_of(given),
        enable_metrics=given["metrics"],
        grace_period=given["grace_period"].total_seconds(),
        name=given["name"],
        reporting=given["reporting"],
        heartbeat_interval=given["heartbeat_interval"].total_seconds(),
    )
    run_process(_serve(made, ARCHIVER_PORT, given, database_url=database_url, broker_url=broker_url))


@click.command(cls=Command)
@options.database
@options.broker
@setting("inbox_retention")
@setting("history_retention")
@setting("dead_letter_retention")
@setting("audit_retention")
@options.process
@options.monitoring_port(MAINTENANCE_PORT)
def maintain(*, database_url: str | None, broker_url: str | None, **given: Any) -> None:
    """Prunes the tables, and runs the operations that operators asked for.

    Any number may run: one works, the others stand by. SIGTERM and Ctrl-C let it finish the batch in hand.
    """
    from outbox.maintenance import Maintenance

    database_url = _required_database(database_url)
    configure_logging(given["log_level"], given["log_format"])
    kept, known = given["dead_letter_retention"], given["audit_retention"]
    made = Maintenance(
        db_engine_url=database_url,
        broker=broker_url,
        exchange_name=given["exchange_name"],
        table_name=given["table_name"],
        inbox_retention=given["inbox_retention"],
        history_retention=given["history_retention"],
        dead_letter_retention=None if kept == "NEVER" else kept,
        audit_retention=None if known == "NEVER" else known,
        enable_metrics=given["metrics"],
        grace_period=given["grace_period"].total_seconds(),
    )
    run_process(_serve(made, MAINTENANCE_PORT, given, database_url=database_url, broker_url=None))


def _required_database(url: str | None) -> str:
    if url is None:
        raise ConfigurationError("say which database: --database-url, or OUTBOX_DATABASE_URL")
    return url


async def _serve(
    component: Component, usual_port: int, given: Mapping[str, Any], *, database_url: str | None, broker_url: str | None
) -> None:
    """Runs the component, with its metrics and health on a port of their own."""
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
    """Runs `main` as `asyncio.run` does, and ends the process with `EXIT_ABANDONED` if something does not end after it.

    `asyncio.run`, and the interpreter after it, wait without a limit for tasks and threads that handlers have started.
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
        if not _remaining_threads():
            watch.cancel()


def _remaining_threads() -> list[threading.Thread]:
    """The threads that the interpreter waits for before it ends."""
    return [thread for thread in threading.enumerate() if not thread.daemon and thread is not threading.main_thread()]


def _exit_now(reason: str) -> None:
    _logger.error("the process ends with exit code %d: %s", EXIT_ABANDONED, reason)
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(EXIT_ABANDONED)
