"""Prepares the database and its tables before the service starts."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from app.orders.schema import ensure_order_tables
from app.settings import Settings
from outbox.core.urls import ServerKind, redacted, server_kind
from outbox.errors import MissingExtraError
from outbox.schema import migrate as migrate_database

logger = logging.getLogger("app")

PROJECT = Path(__file__).resolve().parent.parent
DATA_DIR = PROJECT / ".data" / "postgres"

StepReporter = Callable[[str, str], None]
"""Reports a startup step: its topic and a text."""


def log_step(topic: str, text: str) -> None:
    """Logs a startup step."""
    logger.info("%s: %s", topic, text)


@dataclass(frozen=True, slots=True)
class Installation:
    """The settings, with the addresses of the servers to use."""

    settings: Settings
    database: SecretStr

    @property
    def database_url(self) -> str:
        """Address of the database, with the password."""
        return self.database.get_secret_value()

    @property
    def broker_url(self) -> str:
        """Address of RabbitMQ; without RabbitMQ, that of the database."""
        broker = self.settings.broker_url
        return self.database_url if broker is None else broker.get_secret_value()


@asynccontextmanager
async def prepared(settings: Settings, report: StepReporter = log_step) -> AsyncIterator[Installation]:
    """Provides the database during the block, with its tables if the settings say so.

    Without a database in the settings, starts an embedded server and stops it at the end.
    """
    if settings.database_url is not None:
        installation = Installation(settings, settings.database_url)
        report("Database", redacted(installation.database_url))
        if settings.migrate:
            await migrate(installation, report)
        yield installation
        return
    async with _embedded(settings.data_dir or DATA_DIR, report) as url:
        installation = Installation(settings, SecretStr(url))
        await migrate(installation, report)
        yield installation


async def migrate(installation: Installation, report: StepReporter = log_step) -> None:
    """Creates or upgrades the tables of the outbox and, if it runs, of the example."""
    url = installation.database_url
    await migrate_database(url, installation.settings.table_name)
    if installation.settings.runs_example:
        await ensure_order_tables(url)
    report("Tables", "up to date")


def report_broker(installation: Installation, report: StepReporter) -> None:
    """Reports where events are sent."""
    if server_kind(installation.broker_url) is ServerKind.POSTGRES:
        report("Broker", "none, PostgreSQL delivers the events")
    else:
        report("Broker", redacted(installation.broker_url))


@asynccontextmanager
async def _embedded(data_dir: Path, report: StepReporter) -> AsyncIterator[str]:
    from outbox.embedded import DataFolderInUseError, EmbeddedPostgres

    report("Database", "embedded PostgreSQL, because OUTBOX_DATABASE_URL is not set")
    report("Data", f"{_short(data_dir)}, kept between runs")
    server = EmbeddedPostgres(data_dir)
    try:
        yield await asyncio.to_thread(server.start)
    except MissingExtraError as error:
        raise MissingExtraError(purpose="Running without OUTBOX_DATABASE_URL", extra=error.extra) from error
    except DataFolderInUseError as error:
        raise DataFolderInUseError(f"{error} with OUTBOX_DATA_DIR") from error
    finally:
        await asyncio.to_thread(server.stop)


def _short(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
