"""`outbox relay`: one relay, until SIGTERM or Ctrl-C."""

from typing import Any

import click

from outbox.cli import options
from outbox.cli.command import Command
from outbox.cli.logs import configure_logging
from outbox.cli.monitoring import Place, monitored
from outbox.cli.options import setting
from outbox.cli.process import run_process
from outbox.errors import ConfigurationError
from outbox.relay import MessageRelay
from outbox.runtime.gc import freeze_gc
from outbox.runtime.health import HealthChecks, checking

USUAL_PORT = 9101


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
@options.monitoring_port(USUAL_PORT)
def relay(
    database_url: str | None,
    broker_url: str | None,
    monitoring_host: str,
    monitoring_port: int | None,
    log_level: str,
    **given: Any,
) -> None:
    """Moves committed events from the outbox to the broker.

    Any number of relays may share a table. SIGTERM and Ctrl-C let it finish what is in flight.
    """
    if database_url is None:
        raise ConfigurationError("say which database: --database-url, or OUTBOX_DATABASE_URL")
    configure_logging(log_level, given["log_format"])
    broker = broker_url or database_url
    made = _relay(database_url, broker, given)
    place = Place(monitoring_host, monitoring_port, USUAL_PORT)
    run_process(_run(made, place, given, database_url=database_url, broker=broker))


def _relay(database_url: str, broker: str, given: dict[str, Any]) -> MessageRelay:
    return MessageRelay(
        db_engine_url=database_url,
        broker=broker,
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


async def _run(made: MessageRelay, place: Place, given: dict[str, Any], *, database_url: str, broker: str) -> None:
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
