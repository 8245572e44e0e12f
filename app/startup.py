"""Brings up what the service stands on before it serves: a database with its tables."""

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
from outbox.schema import migrate as bring_up_to_date

logger = logging.getLogger("app")

PROJECT = Path(__file__).resolve().parent.parent
DATA_DIR = PROJECT / ".data" / "postgres"

Tell = Callable[[str, str], None]
"""Takes note of one step: what it is about, and what was done."""


def tell_log(topic: str, text: str) -> None:
    """Steps as log lines."""
    logger.info("%s: %s", topic, text)


@dataclass(frozen=True, slots=True)
class Installation:
    """The settings, and the servers that follow from them."""

    settings: Settings
    database: SecretStr

    @property
    def database_url(self) -> str:
        """The database, with its password."""
        return self.database.get_secret_value()

    @property
    def broker_url(self) -> str:
        """RabbitMQ, or the database that does its work."""
        broker = self.settings.broker_url
        return self.database_url if broker is None else broker.get_secret_value()


@asynccontextmanager
async def prepared(settings: Settings, tell: Tell = tell_log) -> AsyncIterator[Installation]:
    """Within the block the database runs, and has its tables if the settings ask for that.

    Without a database in the settings an embedded one is started, and stopped at the end.
    """
    if settings.database_url is not None:
        installation = Installation(settings, settings.database_url)
        tell("Database", redacted(installation.database_url))
        if settings.migrate:
            await migrate(installation, tell)
        yield installation
        return
    async with _embedded(settings.data_dir or DATA_DIR, tell) as url:
        installation = Installation(settings, SecretStr(url))
        await migrate(installation, tell)
        yield installation


async def migrate(installation: Installation, tell: Tell = tell_log) -> None:
    """Creates or upgrades the tables of the outbox, and of the example where it runs, unless they are as they should be."""
    url = installation.database_url
    await bring_up_to_date(url, installation.settings.table_name)
    if installation.settings.runs_example:
        await ensure_order_tables(url)
    tell("Tables", "are there and up to date")


def tell_broker(installation: Installation, tell: Tell) -> None:
    """Says where events go."""
    if server_kind(installation.broker_url) is ServerKind.AMQP:
        tell("Broker", redacted(installation.broker_url))
    else:
        tell("Broker", "none needed: events are handed over inside PostgreSQL")


@asynccontextmanager
async def _embedded(data_dir: Path, tell: Tell) -> AsyncIterator[str]:
    from outbox.embedded import DataFolderInUseError, EmbeddedPostgres

    tell("Database", "an embedded PostgreSQL, since OUTBOX_DATABASE_URL is not set")
    tell("Data", f"in {_short(data_dir)}, kept between runs")
    server = EmbeddedPostgres(data_dir)
    try:
        yield await asyncio.to_thread(server.start)
    except MissingExtraError as error:
        raise MissingExtraError(purpose="Running without OUTBOX_DATABASE_URL", extra=error.extra) from error
    except DataFolderInUseError as error:
        raise DataFolderInUseError(f"{error}: OUTBOX_DATA_DIR") from error
    finally:
        await asyncio.to_thread(server.stop)


def _short(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
