"""`outbox worker package.module:consumers`: one worker, until SIGTERM or Ctrl-C."""

from typing import Any

import click

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
from outbox.runtime.loading import load_consumers
from outbox.worker import Worker

USUAL_PORT = 9102


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
@options.monitoring_port(USUAL_PORT)
def worker(
    consumers: str,
    database_url: str | None,
    broker_url: str | None,
    monitoring_host: str,
    monitoring_port: int | None,
    log_level: str,
    **given: Any,
) -> None:
    """Runs the handlers that CONSUMERS names, as package.module:name.

    The name is that of a consumer or of a list of them; package.module alone means all of its consumers. SIGTERM and Ctrl-C
    let running handlers finish; what was not begun returns to its queue.
    """
    broker = broker_url or database_url
    if broker is None:
        raise ConfigurationError("say where messages come from: OUTBOX_BROKER_URL for RabbitMQ, or OUTBOX_DATABASE_URL")
    configure_logging(log_level, given["log_format"])
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
    place = Place(monitoring_host, monitoring_port, USUAL_PORT)
    run_process(_run(made, place, given, database_url=database_url, broker=broker))


async def _run(made: Worker, place: Place, given: dict[str, Any], *, database_url: str | None, broker: str) -> None:
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
