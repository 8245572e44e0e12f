"""The statements that change dead letters, and the transactions that they run in."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta

import asyncpg

from outbox.errors import SchemaError
from outbox.postgres.names import TableName
from outbox.postgres.pool import COMMAND_TIMEOUT, Connection, Pool, roll_back_quietly, taken_from, unavailable_errors
from outbox.postgres.queries import queries, query
from outbox.postgres.schema.objects import satellite_names

LOCK_TIMEOUT = timedelta(seconds=5)
"""Longest wait for a row that somebody else is changing."""
IDLE_TIMEOUT = timedelta(seconds=15)
"""How long the server lets a transaction of ours idle: one that froze gives back its rows."""
TIMEOUT = COMMAND_TIMEOUT.total_seconds()
"""Said with every statement, because a given pool may have no limit of its own."""

SELECTION = "{selection}"
"""Stands in a statement for the letters that are meant, which differ from call to call."""
_TOO_OLD = "older than inboxes remember, so a consumer with an inbox could process it twice: force it where that does no harm"
_BEGIN = f"""
begin isolation level read committed;
set local lock_timeout = {LOCK_TIMEOUT // timedelta(milliseconds=1)};
set local idle_in_transaction_session_timeout = {IDLE_TIMEOUT // timedelta(milliseconds=1)}
"""


class Statements:
    """The statements of `file`, about one outbox table and what lies beside it, over connections of `pool`."""

    def __init__(self, pool: Pool, table: TableName, file: str) -> None:
        self._pool = pool
        names = {"table": table.sql, "too_old": _TOO_OLD, "selection": SELECTION, **satellite_names(table.schema)}
        names |= {part: query("letters.sql", part) for part in ("parked_type", "parked_fingerprint", "parked_search")}
        self._sql = queries(file, **names, **queries("repair_parts.sql", **names))

    def __getitem__(self, name: str) -> str:
        return self._sql[name]

    @asynccontextmanager
    async def transaction(self, doing: str) -> AsyncIterator[Connection]:
        """A transaction, read committed, whose waits end. Raises `DatabaseUnavailableError`, saying what was being done."""
        with unavailable_errors(doing), _missing_tables():
            async with taken_from(self._pool) as connection:
                try:
                    await connection.execute(_BEGIN, timeout=TIMEOUT)
                    yield connection
                    await connection.execute("commit", timeout=TIMEOUT)
                except BaseException:
                    await roll_back_quietly(connection)
                    raise


@contextmanager
def _missing_tables() -> Iterator[None]:
    try:
        yield
    except (asyncpg.UndefinedTableError, asyncpg.UndefinedColumnError) as error:
        raise SchemaError(
            f"the tables are not those of this release ({error}): create or upgrade them with `outbox migrate`"
        ) from error
