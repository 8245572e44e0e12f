"""Where the relays of an outbox table send its messages: one row for each that runs, so that all of them send to one place."""

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import uuid4

import asyncpg

from outbox.errors import DatabaseUnavailableError
from outbox.postgres.pool import Connection, Pool, taken_from, unavailable_errors
from outbox.postgres.queries import TableName, queries
from outbox.postgres.schema.objects import satellite_names

HELD_FOR = timedelta(seconds=20)
"""How long a relay counts as running after it last said so."""
REFUSED_FOR = timedelta(minutes=5)
"""How long it is known that a relay was refused."""
_TIMEOUT = timedelta(seconds=5)
_CLOSED = (asyncpg.UndefinedTableError, asyncpg.InsufficientPrivilegeError)
_log = logging.getLogger("outbox")


@dataclass(frozen=True, slots=True)
class OtherRelay:
    """A relay of the same table that sends elsewhere, and until when it counts unless it says so again."""

    name: str
    destination: str
    held_until: datetime


@dataclass(frozen=True, slots=True)
class KnownRelay:
    """A relay that runs, or `refused`: that did not start, because others send elsewhere."""

    name: str
    destination: str
    refused: bool


class RelayDestination:
    """Where one relay sends, written next to `table` as long as it runs. Everything raises `DatabaseUnavailableError`.

    Where the table of relays is missing or closed to the user, a warning says so once, and nothing is known of others.
    """

    def __init__(self, pool: Pool, table: TableName, *, destination: str, name: str) -> None:
        self.destination = destination
        self.name = name
        self._pool = pool
        self._id = uuid4()
        self._sql = relay_queries(table)
        self._warned = False

    async def hold(self) -> OtherRelay | None:
        """Says for `HELD_FOR` where this relay sends, unless another one that runs sends elsewhere, which is returned."""
        with unavailable_errors("looking at the destinations of relays", limit=_TIMEOUT):
            async with taken_from(self._pool) as connection:
                try:
                    async with connection.transaction():
                        await self._execute(connection, "serialize")
                        row = await connection.fetchrow(self._sql["other"], self.destination, timeout=_SECONDS)
                        if row is not None:
                            return OtherRelay(**dict(row))
                        await self._execute(connection, "forget", self.name)
                        await self._execute(connection, "hold", self._id, self.destination, self.name, HELD_FOR)
                except _CLOSED as error:
                    if not self._warned:
                        self._warned = True
                        _log.warning(
                            "another relay with another broker would go unnoticed, as the table outbox_relay is closed: %s",
                            error,
                        )
        return None

    async def refuse(self) -> None:
        """Writes down that this relay does not start, for the doctor and the dashboard."""
        with suppress(DatabaseUnavailableError), unavailable_errors("telling of a refused relay", limit=_TIMEOUT):
            async with taken_from(self._pool) as connection:
                with suppress(*_CLOSED):
                    async with connection.transaction():
                        await self._execute(connection, "forget", self.name)
                        await self._execute(connection, "refuse", self._id, self.destination, self.name, REFUSED_FOR)

    async def release(self) -> None:
        """Takes back what `hold` said."""
        with suppress(DatabaseUnavailableError), unavailable_errors("releasing a relay's destination", limit=_TIMEOUT):
            async with taken_from(self._pool) as connection:
                with suppress(*_CLOSED):
                    await self._execute(connection, "release", self._id)

    async def _execute(self, connection: Connection, name: str, *arguments: object) -> None:
        await connection.execute(self._sql[name], *arguments, timeout=_SECONDS)


_SECONDS = _TIMEOUT.total_seconds()
_MOST_NAMED = 10
AGREE = "give all relays of the table the same OUTBOX_BROKER_URL and OUTBOX_EXCHANGE_NAME"
"""What to do about a disagreement."""


async def known_relays(connection: Connection, table: TableName) -> Sequence[KnownRelay]:
    """The relays of `table` that run, and those that were refused lately; none if their table is missing or closed."""
    try:
        async with connection.transaction():
            return [KnownRelay(**dict(row)) for row in await connection.fetch(relay_queries(table)["list"])]
    except _CLOSED:
        return ()


def disagreement(relays: Sequence[KnownRelay]) -> str | None:
    """That relays of one table would send to several places, in words; None if they agree."""
    if len({relay.destination for relay in relays}) < 2:
        return None
    said = [
        f"{relay.name} {'was refused, as it would send' if relay.refused else 'sends'} to {relay.destination}"
        for relay in relays
    ]
    return f"relays of one outbox table disagree about where its messages go: {'; '.join(said[:_MOST_NAMED])}"


def relay_queries(table: TableName) -> "dict[str, str]":
    """The statements of `relays.sql`."""
    return dict(queries("relays.sql", **{**satellite_names(table.schema), "table": table.sql}))
