"""The dead letters that the options name, opened for one command."""

import asyncio
import getpass
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, TypeVar

from outbox.cli.api.opening import over_http
from outbox.cli.api.places import NOWHERE, remote
from outbox.cli.dlq.directly import DirectLetters
from outbox.cli.dlq.port import Letters
from outbox.cli.dlq.remotely import RemoteLetters
from outbox.cli.masks import masking_of
from outbox.dead_letters import INBOX_RETENTION
from outbox.errors import ConfigurationError

T = TypeVar("T")


def run(given: dict[str, Any], work: Callable[[Letters], Awaitable[T]], *, retention: timedelta | None = None) -> T:
    """Does `work` with the dead letters that the options in `given` name: of a service, or of a database and a broker."""

    async def opened() -> T:
        async with _letters(given, retention) as letters:
            return await work(letters)

    return asyncio.run(opened())


@asynccontextmanager
async def _letters(given: dict[str, Any], retention: timedelta | None) -> AsyncIterator[Letters]:
    service = remote(given)
    if service is not None:
        async with over_http(service) as api:
            yield RemoteLetters(api)
        return
    if not given["database_url"]:
        raise ConfigurationError(NOWHERE)
    async with DirectLetters(
        given["database_url"],
        table_name=given["table_name"],
        broker=given["broker_url"],
        exchange_name=given["exchange_name"],
        inbox_retention=retention or INBOX_RETENTION,
        masking=masking_of(given),
    ) as letters:
        yield letters


def somebody() -> str | None:
    """Who does it, for the record: the user of this process, if the machine knows one."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return None
