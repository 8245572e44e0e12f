"""Records where each running relay of an outbox table sends, so that all of them use the same broker and exchange."""

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import uuid4

import asyncpg

from outbox.core.destinations import DEFAULT
from outbox.errors import DatabaseUnavailableError
from outbox.postgres.pool import Connection, Pool, optional_tables, taken_from, unavailable_errors
from outbox.postgres.queries import TableName, queries, query
from outbox.postgres.schema.objects import destination_table, outbox_names, satellite_names, table_names

HELD_FOR = timedelta(seconds=20)
"""A relay counts as running for this long after each `hold`."""
REFUSED_FOR = timedelta(minutes=5)
"""How long the record of a refused relay is kept."""
MOST_UNSENT_COUNTED = 100_000
"""Unsent messages of a destination that are counted exactly; see `backlog` in relay.sql."""
_TIMEOUT = timedelta(seconds=5)
_INACCESSIBLE = (asyncpg.UndefinedTableError, asyncpg.InsufficientPrivilegeError)
_log = logging.getLogger("outbox")


@dataclass(frozen=True, slots=True)
class OtherRelay:
    """A relay of the same table that sends elsewhere. It counts until `held_until`, unless it renews that."""

    name: str
    destination: str
    held_until: datetime


@dataclass(frozen=True, slots=True)
class KnownRelay:
    """A relay that runs; or, if `refused`, one that did not start because others send elsewhere."""

    name: str
    destination: str
    refused: bool


@dataclass(frozen=True, slots=True)
class DestinationBacklog:
    """What waits for one destination, and which relays serve it; None: this role may not see that.

    `oldest_seconds`: for how long the first message has been due. None: nothing is due.
    """

    name: str
    unsent: int
    oldest_seconds: float | None
    relays: Sequence[KnownRelay] | None

    @property
    def served(self) -> bool:
        """Whether a relay runs for it, as far as known."""
        return self.relays is None or any(not relay.refused for relay in self.relays)


class RelayDestination:
    """Records where one relay sends, as long as it runs. `hold` raises `DatabaseUnavailableError`.

    If the table of relays is missing or the user lacks privileges on it, logs a warning once and knows of no other relays.
    """

    def __init__(self, pool: Pool, table: TableName, *, destination: str, name: str) -> None:
        self.destination = destination
        self.name = name
        self._pool = pool
        self._id = uuid4()
        self._sql = queries(
            "relays.sql",
            **satellite_names(table.schema),
            table=table.sql,
            id=str(self._id),
            held_seconds=f"{HELD_FOR.total_seconds():g}",
            spare_seconds=f"{_SECONDS:g}",
        )
        self._is_held = False
        self._warned = False

    async def hold(self) -> OtherRelay | None:
        """Records for `HELD_FOR` where this relay sends. If another running relay sends elsewhere, returns that one instead."""
        with unavailable_errors("looking at the destinations of relays", limit=_TIMEOUT):
            async with taken_from(self._pool) as connection:
                try:
                    if self._is_held and await connection.execute(self._sql["extend"], timeout=_SECONDS) == "UPDATE 1":
                        return None
                    async with connection.transaction():
                        # Under a lock: two relays that start together must not both find no other one.
                        await self._execute(connection, "serialize")
                        row = await connection.fetchrow(self._sql["other"], self.destination, timeout=_SECONDS)
                        if row is not None:
                            return OtherRelay(**dict(row))
                        await self._execute(connection, "forget", self.name)
                        await self._execute(connection, "hold", self._id, self.destination, self.name, HELD_FOR)
                    self._is_held = True
                except _INACCESSIBLE as error:
                    if not self._warned:
                        self._warned = True
                        _log.warning(
                            "another relay with another broker would go unnoticed: the table outbox_relay is inaccessible: %s",
                            error,
                        )
        return None

    async def refuse(self) -> None:
        """Records that this relay does not start, for the doctor and the dashboard."""
        with suppress(DatabaseUnavailableError), unavailable_errors("recording a refused relay", limit=_TIMEOUT):
            async with taken_from(self._pool) as connection:
                with suppress(*_INACCESSIBLE):
                    async with connection.transaction():
                        await self._execute(connection, "forget", self.name)
                        await self._execute(connection, "refuse", self._id, self.destination, self.name, REFUSED_FOR)

    async def release(self) -> None:
        """Removes the record of `hold`."""
        with suppress(DatabaseUnavailableError), unavailable_errors("releasing a relay's destination", limit=_TIMEOUT):
            async with taken_from(self._pool) as connection:
                with suppress(*_INACCESSIBLE):
                    await self._execute(connection, "release", self._id)

    async def _execute(self, connection: Connection, name: str, *arguments: object) -> None:
        await connection.execute(self._sql[name], *arguments, timeout=_SECONDS)


_SECONDS = _TIMEOUT.total_seconds()
_MOST_NAMED = 10
AGREE = "give all relays of the table the same OUTBOX_BROKER_URL and OUTBOX_EXCHANGE_NAME"
"""The hint for a disagreement."""


async def known_relays(connection: Connection, table: TableName) -> Sequence[KnownRelay]:
    """Returns the running and recently refused relays of `table`; none if their table is missing or not accessible."""
    sql = query("relays.sql", "list", **satellite_names(table.schema), table=table.sql)
    async with optional_tables(connection):
        return [KnownRelay(**dict(row)) for row in await connection.fetch(sql)]
    return ()


async def destination_backlogs(connection: Connection, table: TableName) -> Sequence[DestinationBacklog]:
    """Returns the backlog of each destination, the default one first; none if there is only that one."""
    names = {**table_names(table), "target": f"to_regclass('{table.sql}')", "relay": satellite_names(table.schema)["relay"]}
    others = [row[0] for row in await connection.fetch(query("destinations.sql", "list", **names))]
    if not others:
        return ()
    knows_relays = await connection.fetchval(query("destinations.sql", "knows_relays", **names))
    found = []
    for name in (DEFAULT, *others):
        own = destination_table(table, name)
        row = await connection.fetchrow(query("relay.sql", "backlog", **outbox_names(own)))
        assert row is not None  # noqa: S101  the statement always returns one row
        relays = await known_relays(connection, own) if knows_relays else None
        found.append(DestinationBacklog(name, row["unsent"], row["oldest_due"], relays))
    return found


def no_table(destination: str) -> str:
    """Says that a destination has no table, and how to create it."""
    return f"the destination {destination} has no table: `outbox migrate --destination {destination}` creates it"


def disagreement(relays: Sequence[KnownRelay]) -> str | None:
    """Describes that relays of one table send to different destinations; None if they agree."""
    if len({relay.destination for relay in relays}) < 2:
        return None
    parts = [
        f"{relay.name} {'was refused, as it would send' if relay.refused else 'sends'} to {relay.destination}"
        for relay in relays
    ]
    return f"relays of one outbox table disagree about where its messages go: {'; '.join(parts[:_MOST_NAMED])}"
