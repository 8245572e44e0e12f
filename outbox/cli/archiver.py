"""`outbox archiver`: takes dead letters from RabbitMQ into the database, until SIGTERM or Ctrl-C."""

from typing import Any

import click

from outbox.archiver import Archiver
from outbox.cli import options
from outbox.cli.command import Command
from outbox.cli.logs import configure_logging
from outbox.cli.masks import masking_of
from outbox.cli.monitoring import Place, monitored
from outbox.cli.options import setting
from outbox.cli.process import run_process
from outbox.errors import ConfigurationError
from outbox.runtime.gc import freeze_gc
from outbox.runtime.health import HealthChecks, checking

USUAL_PORT = 9103


@click.command(cls=Command)
@options.database
@options.broker
@setting("archive_queues")
@setting("archive_discover_every")
@setting("max_batch_bytes")
@options.masking
@options.reports
@options.process
@options.monitoring_port(USUAL_PORT)
def archiver(
    database_url: str | None,
    broker_url: str | None,
    monitoring_host: str,
    monitoring_port: int | None,
    log_level: str,
    **given: Any,
) -> None:
    """Takes dead letters from RabbitMQ into the database, where they can be listed, searched and sent again.

    Any number of archivers may share the queues. SIGTERM and Ctrl-C let it finish what it is recording.
    """
    if database_url is None:
        raise ConfigurationError("say which database: --database-url, or OUTBOX_DATABASE_URL")
    if broker_url is None:
        raise ConfigurationError("without RabbitMQ there is nothing to archive: dead letters are in the database already")
    configure_logging(log_level, given["log_format"])
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
    place = Place(monitoring_host, monitoring_port, USUAL_PORT)
    run_process(_run(made, place, given, database_url=database_url, broker=broker_url))


async def _run(made: Archiver, place: Place, given: dict[str, Any], *, database_url: str, broker: str) -> None:
    health = HealthChecks()
    async with checking(
        health,
        database_url=database_url,
        broker_url=broker,
        exchange_name=given["exchange_name"],
        table_name=given["table_name"],
    ):
        with monitored(place, health, metrics=given["metrics"]), freeze_gc():
            await made.run()
