"""The transport's tables and statements, in the schema of the outbox table."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import asyncpg

from outbox.core.failures import MOST_FAILURES
from outbox.postgres.deaths import recorded
from outbox.postgres.pool import Connection, Pool, take_from
from outbox.postgres.queries import TableName, queries
from outbox.postgres.schema.objects import SATELLITES


@dataclass(frozen=True, slots=True)
class TransportTables:
    """Deliveries, subscriptions and dead letters of the outbox table `outbox`."""

    outbox: TableName

    @property
    def delivery(self) -> TableName:
        """One row is one message for one queue."""
        return TableName("outbox_delivery", self.outbox.schema)

    @property
    def subscription(self) -> TableName:
        """One row is one binding."""
        return TableName("outbox_subscription", self.outbox.schema)

    @property
    def dead_letter(self) -> TableName:
        """One row is a message that failed for good."""
        return TableName("outbox_dead_letter", self.outbox.schema)

    def queries(self, file: str, **values: str) -> Mapping[str, str]:
        """The SQL of `file`, with these tables' names and any other values that it has places for."""
        names = {
            "table": self.outbox.sql,
            "delivery": self.delivery.sql,
            "subscription": self.subscription.sql,
            "dead_letter": self.dead_letter.sql,
            "edition": TableName(SATELLITES["edition"], self.outbox.schema).sql,
            "operation": TableName(SATELLITES["operation"], self.outbox.schema).sql,
            "operation_item": TableName(SATELLITES["operation_item"], self.outbox.schema).sql,
        }
        names["most_failures"] = str(MOST_FAILURES)
        names |= {"id": "{id}", "token": "{token}"}  # of `done_in_transaction`, filled in for each delivery
        names |= {"routes": queries("routing.sql", **names)["routes"], "recorded": recorded(self.outbox.schema)}
        return queries(file, **names, **values)


CANCEL_TIMEOUT = timedelta(seconds=5)
"""Longest wait for the server to confirm that a statement has stopped."""

Call = tuple[Any, ...]
"""A statement, and its arguments."""


class Statements:
    """What the connections of `pool` are used for. Raises the driver's errors."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._by_default: bool | None = None

    async def fetch(self, statement: str, *arguments: Any, timeout: timedelta) -> Sequence[asyncpg.Record]:
        """The rows of `statement`; by then it is committed.

        If it takes too long it is cancelled: raises `QueryCanceledError` where the server says that it has stopped, so that it
        cannot commit behind our back; a server that says nothing raises `TimeoutError`, and whether it happened is unknown.

        In one round trip, unless the database has another isolation level as its default: then locking what others have changed
        would be an error there.
        """
        async with borrowed(self._pool) as connection:
            if self._by_default is None:
                self._by_default = await connection.fetchval(
                    "select pg_catalog.current_setting('transaction_isolation') = 'read committed'"
                )
            async with cancelling(connection):
                if self._by_default:
                    return await connection.fetch(statement, *arguments, timeout=timeout.total_seconds())
                async with connection.transaction(isolation="read_committed"):
                    return await connection.fetch(statement, *arguments, timeout=timeout.total_seconds())

    async def fetch_in_turn(self, *calls: Call, timeout: timedelta) -> Sequence[Sequence[asyncpg.Record]]:
        """The rows of several statements, each with its arguments, in one transaction: all of them happen, or none."""
        async with (
            borrowed(self._pool) as connection,
            asyncio.timeout(timeout.total_seconds()),
            connection.transaction(isolation="read_committed"),
        ):
            return [await connection.fetch(statement, *arguments) for statement, *arguments in calls]


@asynccontextmanager
async def cancelling(connection: Connection) -> AsyncIterator[None]:
    """Turns a statement's `TimeoutError` into `QueryCanceledError`, once the server has confirmed that it has stopped.

    The driver has asked the server to cancel it by then, and every further statement waits for the answer.
    """
    try:
        yield
    except TimeoutError as late:
        async with asyncio.timeout(CANCEL_TIMEOUT.total_seconds()):
            await connection.execute("rollback")
        raise asyncpg.QueryCanceledError("it took too long, and was cancelled") from late


@asynccontextmanager
async def borrowed(pool: Pool) -> AsyncIterator[Connection]:
    """A connection of `pool` until the block ends.

    When a statement was cancelled or timed out the connection is cut: putting it back would first wait for the server to
    confirm that it stopped, which is the server that we have just given up on.
    """
    connection = await take_from(pool)
    try:
        yield connection
    except (asyncio.CancelledError, TimeoutError):
        connection.terminate()
        raise
    finally:
        await pool.release(connection)


_SPECIAL = re.compile(r"[][.^$*+?(){}|\\]")


def pattern_of(binding_key: str) -> str | None:
    """The PostgreSQL regular expression for what `outbox.core.topics.matches` does; None for a key without wildcards.

    A `#` in front of the first other word stands for words with a dot behind each, any later one for words with a dot in front.
    """
    if "*" not in binding_key and "#" not in binding_key:
        return None
    words = binding_key.split(".")
    # Of several `#` in a row one says as much, and more would make the expression slow.
    words = [word for word, before in zip(words, ["", *words], strict=False) if not word == before == "#"]
    leading = words[0] == "#"
    if leading and len(words) == 1:
        return "^"
    first, *rest = words[1:] if leading else words
    tail = "".join(r"(\.[^.]*)*" if word == "#" else rf"\.{_one(word)}" for word in rest)
    head = r"([^.]*\.)*" if leading else ""
    # A routing key without any character has no words, so nothing that demands one matches it.
    return f"^(?!$){head}{_one(first)}{tail}$"


def _one(word: str) -> str:
    return "[^.]*" if word == "*" else _SPECIAL.sub(r"\\\g<0>", word)
