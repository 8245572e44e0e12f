"""`outbox maintain`: maintenance, until SIGTERM or Ctrl-C."""

from typing import Any

import click

from outbox.cli import options
from outbox.cli.command import Command
from outbox.cli.logs import configure_logging
from outbox.cli.monitoring import Place, monitored
from outbox.cli.options import setting
from outbox.cli.process import run_process
from outbox.errors import ConfigurationError
from outbox.maintenance import Maintenance
from outbox.runtime.gc import freeze_gc
from outbox.runtime.health import HealthChecks, checking

USUAL_PORT = 9104


@click.command(cls=Command)
@options.database
@options.broker
@setting("inbox_retention")
@setting("history_retention")
@setting("dead_letter_retention")
@setting("audit_retention")
@options.process
@options.monitoring_port(USUAL_PORT)
def maintain(
    database_url: str | None,
    broker_url: str | None,
    monitoring_host: str,
    monitoring_port: int | None,
    log_level: str,
    **given: Any,
) -> None:
    """Keeps the tables small, and does the operations that operators asked for.

    Any number may run: one works, the others stand by. SIGTERM and Ctrl-C let it finish the batch in hand.
    """
    if database_url is None:
        raise ConfigurationError("say which database: --database-url, or OUTBOX_DATABASE_URL")
    configure_logging(log_level, given["log_format"])
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
    place = Place(monitoring_host, monitoring_port, USUAL_PORT)
    run_process(_run(made, place, given, database_url=database_url))


async def _run(made: Maintenance, place: Place, given: dict[str, Any], *, database_url: str) -> None:
    health = HealthChecks()
    async with checking(health, database_url=database_url, table_name=given["table_name"]):
        with monitored(place, health, metrics=given["metrics"]), freeze_gc():
            await made.run()
