"""SQL of reports: what the reporter writes in short transactions on its connection, and the merging of old statistics."""

import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from datetime import timedelta
from typing import Any

import asyncpg

from outbox.core.clock import DatabaseClock
from outbox.postgres.pool import Connection, roll_back_quietly
from outbox.postgres.queries import BellName, TableName, queries, render
from outbox.postgres.schema.objects import SATELLITES, satellite_names
from outbox.reporting.facts import Fact
from outbox.reporting.statistics import Counts, Key

STATEMENT_TIMEOUT = timedelta(seconds=3)
LOCK_TIMEOUT = timedelta(seconds=1)
_TIMEOUT = STATEMENT_TIMEOUT.total_seconds() + 1
"""Timeout in the client, longer than the server's: it counts only if the server does not answer."""
UNSTORABLE = (asyncpg.DataError, asyncpg.UntranslatableCharacterError, asyncpg.CharacterNotInRepertoireError, UnicodeError)
"""Errors for text that the database cannot store."""

_OFTEN_EQUAL = frozenset({"fact", "routing_key", "queue", "attempt"})
"""Columns of the history that are never null, and in most batches have one value."""
_RIGHTS = {
    "history": "insert",
    "stats": "select insert update",
    "component": "select insert update",
    "control": "select",
}


def reporting_queries(schema: str | None) -> Mapping[str, str]:
    """Returns the statements of `reporting.sql`."""
    values = {name: f"{{{name}}}" for name in ("activity", "applied", "stopped", "id")}
    return queries(
        "reporting.sql",
        statement_timeout=f"{STATEMENT_TIMEOUT / timedelta(milliseconds=1):.0f}",
        lock_timeout=f"{LOCK_TIMEOUT / timedelta(milliseconds=1):.0f}",
        **satellite_names(schema),
        **values,
    )


class ReportingTables:
    """Tables of reports next to an outbox table. Every method raises the driver's errors."""

    def __init__(self, table: TableName) -> None:
        self._names = {kind: TableName(SATELLITES[kind], table.schema).sql for kind in _RIGHTS}
        self._sql = reporting_queries(table.schema)

    async def usable(self, connection: Connection) -> frozenset[str]:
        """Returns which of `history`, `stats`, `component` and `control` exist and may be used by the user."""
        kinds = list(self._names)
        names, rights = [self._names[kind] for kind in kinds], [_RIGHTS[kind] for kind in kinds]
        async with self._transaction(connection):
            rows = await connection.fetch(self._sql["usable"], kinds, names, rights, timeout=_TIMEOUT)
        return frozenset(row[0] for row in rows)

    async def write_history(self, connection: Connection, facts: Sequence[Fact], *, component: str, clock: float) -> None:
        """Writes facts. `clock` is the current time of the monotonic clock that their times refer to."""
        if not facts:
            return
        columns: dict[str, Any] = dict(zip(Fact._fields, zip(*facts, strict=True), strict=True))
        columns["at"] = [clock - then for then in columns["at"]]
        # asyncpg inspects each element of an array, None too, which takes longer than to encode it. So an empty column, and the
        # roots of messages that are roots themselves, are passed as null, and one value for all rows as an array of one.
        for name, column in columns.items():
            if name in _OFTEN_EQUAL and column.count(column[0]) == len(column):
                columns[name] = column[:1]
            elif (name == "root_id" and column == columns["message_id"]) or column.count(None) == len(column):
                columns[name] = None
        await self._write(connection, "write_history", component, *columns.values())

    async def add_stats(self, connection: Connection, rows: Sequence[tuple[Key, Counts]]) -> None:
        """Adds counts to the rows of their keys, in one transaction."""
        if not rows:
            return
        values = [
            (
                *key,
                *(counts.created, counts.sent, counts.processed, counts.failed, counts.retried, counts.dead),
                *(counts.duplicates, counts.backlog, counts.oldest_age),
                None if counts.latency is None else "{" + ",".join(map(str, counts.latency)) + "}",
            )
            for key, counts in rows
        ]
        await self._write(connection, "add_stats", *zip(*values, strict=True))

    async def _write(self, connection: Connection, name: str, *arguments: Any) -> None:
        """Runs a statement. Text that the database cannot store is escaped."""
        # Escape only after a failure: almost all text can be stored, and checking each value would cost every time.
        try:
            async with self._transaction(connection):
                await connection.execute(self._sql[name], *arguments, timeout=_TIMEOUT)
        except UNSTORABLE:
            async with self._transaction(connection):
                await connection.execute(self._sql[name], *map(_storable, arguments), timeout=_TIMEOUT)

    async def beat(self, connection: Connection, *values: object) -> None:
        """Writes a heartbeat, the component's first. What the database cannot store is replaced."""
        try:
            async with self._transaction(connection):
                await connection.execute(self._sql["beat"], *values, timeout=_TIMEOUT)
        except UNSTORABLE:
            storable = [_storable_json(value) if isinstance(value, str) else value for value in map(_storable, values)]
            async with self._transaction(connection):
                await connection.execute(self._sql["beat"], *storable, timeout=_TIMEOUT)

    async def beat_again(self, connection: Connection, id_: str, *, activity: str, applied: str, stopped: bool) -> bool:
        """Writes a heartbeat in one round trip, with JSON of `as_json`; False if the component's row does not exist.

        What the database cannot store is replaced.
        """
        try:
            return await self._beat_again(connection, id_, activity, applied, stopped=stopped)
        except UNSTORABLE:
            return await self._beat_again(connection, id_, _storable_json(activity), _storable_json(applied), stopped=stopped)

    async def _beat_again(self, connection: Connection, id_: str, activity: str, applied: str, *, stopped: bool) -> bool:
        values = {"id": _literal(id_), "activity": _literal(activity), "applied": _literal(applied)}
        statement = render(self._sql["beat_again"], stopped=str(stopped), **values)
        return await connection.execute(statement, timeout=_TIMEOUT) == "UPDATE 1"

    async def pauses(self, connection: Connection, *, is_direct: bool) -> tuple[float, Mapping[tuple[str, str], float | None]]:
        """Returns the database's time in seconds since 1970, and the current pauses with their remaining seconds.

        `is_direct`: there is no transaction pooler, so no transaction is needed; see `_transaction`.
        """
        async with nullcontext() if is_direct else self._transaction(connection):
            rows = await connection.fetch(self._sql["pauses"], timeout=_TIMEOUT)
        wanted = {(row["scope"], row["name"]): row["seconds_left"] for row in rows if row["scope"] is not None}
        return rows[0]["now"], wanted

    async def channel(self, connection: Connection) -> str | None:
        """Returns the channel that notifies changes of pauses; None if the table's trigger is missing."""
        async with self._transaction(connection):
            row = await connection.fetchrow(self._sql["channel"], self._names["control"], timeout=_TIMEOUT)
        return None if row is None else BellName.of(row["schema"], row["name"]).channel

    @asynccontextmanager
    async def _transaction(self, connection: Connection) -> AsyncIterator[None]:
        # Reads need a transaction, too: outside of one, a transaction pooler may route a prepared statement to a server
        # connection that has not prepared it.
        try:
            await connection.execute(self._sql["begin"], timeout=_TIMEOUT)
            yield
            await connection.execute("commit", timeout=_TIMEOUT)
        except BaseException:
            await roll_back_quietly(connection)
            raise


MINUTES_KEPT = timedelta(days=2)
HOURS_KEPT = timedelta(days=60)
BATCH = 1_000
_HOUR, _DAY = 3_600, 86_400


async def thin_stats(
    connection: Connection,
    *,
    schema: str | None = None,
    minutes_kept: timedelta = MINUTES_KEPT,
    hours_kept: timedelta = HOURS_KEPT,
    batch: int = BATCH,
) -> int:
    """Merges up to `batch` old rows into hours or days (UTC); returns the number of merged rows, 0 when nothing is left.

    Sums counts and latencies exactly, even while other processes add to them, and keeps the maximum of backlog and age. Raises
    the driver's errors.
    """
    sql = reporting_queries(schema)["thin_stats"]
    for seconds, kept in ((_HOUR, minutes_kept), (_DAY, hours_kept)):
        async with connection.transaction():
            thinned: int = await connection.fetchval(sql, seconds, kept, batch)
        if thinned:
            return thinned
    return 0


async def measure(clock: DatabaseClock, connection: Connection) -> None:
    """Sets `clock` to the database's current time."""
    asked = clock.steady_clock()
    seconds = await connection.fetchval("select extract(epoch from clock_timestamp())::float8", timeout=_TIMEOUT)
    clock.measured(seconds, asked=asked)


def _literal(text: str) -> str:
    """Returns ASCII text as a literal of SQL, which means the same whatever the server's settings."""
    return "E'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def as_json(value: object) -> str:
    """Encodes `value` for a jsonb column, which cannot hold NUL."""
    return json.dumps(value).replace("\\u0000", "\\ufffd")


_ESCAPE = re.compile(r"\\(?:u([0-9a-f]{4})|.)")


def _storable_json(text: str) -> str:
    """Replaces NUL, surrogates and all characters beyond ASCII in JSON of `json.dumps`, for a jsonb column of any encoding."""
    return _ESCAPE.sub(lambda found: "?" if found[1] and not "0001" <= found[1] <= "007f" else found[0], text)


def _storable(value: Any) -> Any:
    """Escapes text for any database encoding: replaces NUL, and escapes non-ASCII characters. Works on lists, too."""
    if isinstance(value, list | tuple):
        return [_storable(one) for one in value]
    if not isinstance(value, str) or (value.isascii() and "\0" not in value):
        return value
    return value.replace("\0", "\N{SYMBOL FOR NULL}").encode("ascii", "backslashreplace").decode("ascii")
