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
from outbox.postgres.dead_letter_writer import recording_steps
from outbox.postgres.pool import Connection, Pool, give_back, roll_back_quietly, take_from, terminate
from outbox.postgres.queries import TableName, queries
from outbox.postgres.schema.objects import SATELLITES


@dataclass(frozen=True, slots=True)
class TransportTables:
    """Deliveries, subscriptions and dead letters of the outbox table `outbox`."""

    outbox: TableName

    @property
    def delivery(self) -> TableName:
        """One row per message and queue."""
        return TableName("outbox_delivery", self.outbox.schema)

    @property
    def subscription(self) -> TableName:
        """One row per binding."""
        return TableName("outbox_subscription", self.outbox.schema)

    @property
    def dead_letter(self) -> TableName:
        """One row per message that failed for good."""
        return TableName("outbox_dead_letter", self.outbox.schema)

    def queries(self, file: str, **values: str) -> Mapping[str, str]:
        """Returns the statements of `file`, with these tables' names and `values` substituted."""
        names = {
            "table": self.outbox.sql,
            "delivery": self.delivery.sql,
            "subscription": self.subscription.sql,
            "dead_letter": self.dead_letter.sql,
            "edition": TableName(SATELLITES["edition"], self.outbox.schema).sql,
            "operation": TableName(SATELLITES["operation"], self.outbox.schema).sql,
            "operation_item": TableName(SATELLITES["operation_item"], self.outbox.schema).sql,
            "relay": TableName(SATELLITES["relay"], self.outbox.schema).sql,
        }
        names["most_failures"] = str(MOST_FAILURES)
        names |= {"routes": queries("routing.sql", **names)["routes"], "recorded": recording_steps(self.outbox.schema)}
        return queries(file, **names, **values)


CANCEL_TIMEOUT = timedelta(seconds=5)
"""Longest wait for the server to confirm that it stopped a statement."""

Call = tuple[Any, ...]
"""A statement and its arguments."""


class Statements:
    """Runs statements on connections of `pool`. Raises the driver's errors."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._is_read_committed: bool | None = None

    async def fetch(self, statement: str, *arguments: Any, timeout: timedelta) -> Sequence[asyncpg.Record]:
        """Runs `statement`, commits, and returns its rows.

        Cancels a statement that takes longer than `timeout`. Raises `QueryCanceledError` if the server confirms that the
        statement stopped and can no longer commit. Raises `TimeoutError` if the server does not answer; the outcome is then
        unknown.
        """
        async with borrow(self._pool) as connection:
            if self._is_read_committed is None:
                self._is_read_committed = await connection.fetchval(
                    "select pg_catalog.current_setting('transaction_isolation') = 'read committed'"
                )
            async with cancel_on_timeout(connection):
                # Under repeatable read or serializable, locking a row that was changed meanwhile is an error. Databases with
                # such a default pay two more round trips; all others need one.
                if self._is_read_committed:
                    return await connection.fetch(statement, *arguments, timeout=timeout.total_seconds())
                async with connection.transaction(isolation="read_committed"):
                    return await connection.fetch(statement, *arguments, timeout=timeout.total_seconds())

    async def fetch_atomically(self, *calls: Call, timeout: timedelta) -> Sequence[Sequence[asyncpg.Record]]:
        """Runs several statements in one transaction, all or none, and returns the rows of each."""
        # The server ends the transaction of a process that was frozen, or whose host vanished, between the statements. Its
        # locks would keep other workers from the rows until TCP reports the loss, which may take hours.
        idle = f"set local idle_in_transaction_session_timeout = {timeout // timedelta(milliseconds=1)}"
        async with borrow(self._pool) as connection, asyncio.timeout(timeout.total_seconds()):
            try:
                await connection.execute(f"begin isolation level read committed; {idle}")
                rows = [await connection.fetch(statement, *arguments) for statement, *arguments in calls]
                await connection.execute("commit")
            except BaseException:
                await roll_back_quietly(connection)
                raise
            return rows


@asynccontextmanager
async def cancel_on_timeout(connection: Connection) -> AsyncIterator[None]:
    """Turns a statement's `TimeoutError` into `QueryCanceledError` once the server confirms that the statement stopped."""
    try:
        yield
    except TimeoutError as late:
        # The driver has already asked the server to cancel. This statement runs only after the server has answered that.
        async with asyncio.timeout(CANCEL_TIMEOUT.total_seconds()):
            await connection.execute("rollback")
        raise asyncpg.QueryCanceledError("the statement took too long and was cancelled") from late


@asynccontextmanager
async def borrow(pool: Pool) -> AsyncIterator[Connection]:
    """Borrows a connection of `pool` until the block ends. Closes it after a timeout, or if its server is read-only."""
    connection = await take_from(pool)
    try:
        yield connection
    except (asyncio.CancelledError, TimeoutError, asyncpg.ReadOnlySQLTransactionError):
        # Releasing it would first wait for the server to confirm that the statement stopped, and this server did not answer.
        # The next connection may lead to the primary; see `taken_from`.
        terminate(connection)
        raise
    finally:
        await give_back(pool, connection)


_SPECIAL = re.compile(r"[][.^$*+?(){}|\\]")


def pattern_of(binding_key: str) -> str | None:
    """Returns a PostgreSQL regular expression that matches as `outbox.core.topics.matches` does; None without wildcards."""
    if "*" not in binding_key and "#" not in binding_key:
        return None
    words = binding_key.split(".")
    # Several `#` in a row match what one matches, and make the expression slow.
    words = [word for word, before in zip(words, ["", *words], strict=False) if not word == before == "#"]
    # A leading `#` stands for words with a dot after each, a later one for words with a dot before each.
    leading = words[0] == "#"
    if leading and len(words) == 1:
        return "^"
    first, *rest = words[1:] if leading else words
    tail = "".join(r"(\.[^.]*)*" if word == "#" else rf"\.{_word_pattern(word)}" for word in rest)
    head = r"([^.]*\.)*" if leading else ""
    # An empty routing key has no words, so it matches no pattern that requires one.
    return f"^(?!$){head}{_word_pattern(first)}{tail}$"


def _word_pattern(word: str) -> str:
    return "[^.]*" if word == "*" else _SPECIAL.sub(r"\\\g<0>", word)
