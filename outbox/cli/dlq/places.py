"""The dead letters that the options name, opened for one command."""

import asyncio
import getpass
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar

from outbox.dead_letters import INBOX_RETENTION, DeadLetters
from outbox.errors import ConfigurationError
from outbox.masking import Masking

T = TypeVar("T")


def run(given: dict[str, Any], work: Callable[[DeadLetters], Awaitable[T]], *, retention: timedelta | None = None) -> T:
    """Does `work` with the dead letters of the database and the broker that the options in `given` name."""
    url = given["database_url"]
    if url is None:
        raise ConfigurationError("say which database: --database-url, or OUTBOX_DATABASE_URL")

    async def opened() -> T:
        async with DeadLetters(
            url,
            table_name=given["table_name"],
            broker=given["broker_url"],
            exchange_name=given["exchange_name"],
            inbox_retention=retention or INBOX_RETENTION,
            masking=masking_of(given),
        ) as dead_letters:
            return await work(dead_letters)

    return asyncio.run(opened())


def masking_of(given: dict[str, Any]) -> Masking:
    """What this installation hides."""
    return Masking().also(*given["mask_keys"] or ())


def somebody() -> str | None:
    """Who does it, for the record: the user of this process, if the machine knows one."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return None
