"""Stores browser sessions and failed logins, by hashes only."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from outbox.postgres.names import TableName
from outbox.postgres.pool import Connection
from outbox.postgres.queries import queries, query
from outbox.postgres.schema.objects import satellite_names


@dataclass(frozen=True, slots=True)
class Session:
    """One that has not ended. `login_hash` is that of the token that was logged in with."""

    login_hash: bytes
    expires_at: datetime


async def open_session(
    connection: Connection, table: TableName, *, token_hash: bytes, login_hash: bytes, name: str, lifetime: timedelta
) -> Session:
    """Adds one, and deletes some that have ended."""
    sql = _sql(table)
    await connection.execute(sql["forget_expired"])
    expires_at = await connection.fetchval(sql["open_session"], token_hash, login_hash, name, lifetime)
    return Session(login_hash, expires_at)


async def find_session(connection: Connection, table: TableName, token_hash: bytes) -> Session | None:
    """The one whose cookie has that hash, unless it has ended."""
    row = await connection.fetchrow(_sql(table)["find_session"], token_hash)
    return None if row is None else Session(bytes(row["login_hash"]), row["expires_at"])


async def close_session(connection: Connection, table: TableName, token_hash: bytes) -> None:
    """Ends it."""
    await connection.execute(_sql(table)["close_session"], token_hash)


def _sql(table: TableName) -> Mapping[str, str]:
    return queries("access.sql", **satellite_names(table.schema))


@dataclass(frozen=True, slots=True)
class Failures:
    """How many there have been in the present window, this one included, and how long it still lasts."""

    count: int
    rest: timedelta


async def count_failure(connection: Connection, table: TableName, bucket: str, window: timedelta) -> Failures:
    """One more. The row stays locked until the transaction ends, so that the count is exact."""
    sql = query("access.sql", "count_failure", **satellite_names(table.schema))
    row = await connection.fetchrow(sql, bucket, window)
    assert row is not None  # noqa: S101 — it returns one always
    return Failures(row["failures"], row["rest"])
