"""The inbox: marks of messages that a queue's consumer has processed, made in the transaction of what its handler wrote."""

import hashlib
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from outbox.ports import Marks, Statement
from outbox.postgres.pool import Connect, unavailable_errors
from outbox.postgres.queries import TableName, queries, render
from outbox.postgres.schema.objects import SATELLITES

RETENTION = timedelta(days=30)
"""How long marks are kept by default: a message that comes again later than that is handled again."""
LONGEST_ID = 255
"""Longest message id that is a mark as it is; what AMQP can carry. Others are marked by a digest."""

_PLAIN = re.compile(rf"[ !#-&(-\[\]-~]{{1,{LONGEST_ID}}}")
"""Printable ASCII without quotes and backslashes: safe in an SQL literal, whatever the server's settings and encoding."""
_DIGEST = "sha256:"


def mark_of(message_id: str) -> str:
    """Returns the mark of a message: its id, or a digest of an id that is long or that not every database can store."""
    if _PLAIN.fullmatch(message_id) and not message_id.startswith(_DIGEST):
        return message_id
    # An id that looks like a digest is digested as well, because it might be the mark of another message.
    return _DIGEST + hashlib.sha256(message_id.encode(errors="surrogatepass")).hexdigest()


def inbox_table_of(table: TableName) -> TableName:
    """Returns the inbox that belongs to an outbox table."""
    return TableName(SATELLITES["inbox"], table.schema)


@dataclass(frozen=True, slots=True)
class Marking:
    """The statement that makes some marks.

    It returns a row for one mark that was made; for several, an array of those that were.
    """

    statement: Statement
    ids: dict[str, str]
    """The message ids, by their marks."""

    @property
    def sql(self) -> str:
        """The statement as text without parameters, which takes one round trip."""
        return self.statement.text

    @property
    def only(self) -> bool:
        """Whether there is one mark to make."""
        return len(self.ids) == 1

    def of(self, made: Iterable[str]) -> frozenset[str]:
        """Returns the message ids of the marks that were made."""
        return frozenset(self.ids[mark] for mark in made)

    @property
    def all(self) -> frozenset[str]:
        """All message ids."""
        return frozenset(self.ids.values())


def ended_by_itself(error: BaseException) -> bool:
    """Whether `same_transaction` found itself in another transaction than the one that marked."""
    return "outbox.no_such_transaction" in str(error)


class Inbox:
    """Writes the statements about one inbox table."""

    def __init__(self, table: TableName) -> None:
        self.table = table
        names = {name: f"{{{name}}}" for name in ("queue", "message_ids", "patience")}
        self._statements = queries("inbox.sql", inbox=table.sql, **names)
        self.same_transaction = Statement(self._statements["same_transaction"])
        """Fails in every transaction but the one that marked, and there too if a statement failed; see `ended_by_itself`."""

    def marking(self, marks: Marks) -> Marking:
        """Returns the statement that makes these marks, each at most once."""
        ids = {mark_of(message_id): message_id for message_id in marks.message_ids}
        # Literals, which `_PLAIN` makes safe: a statement without parameters can share a round trip with BEGIN.
        literals = [f"'{mark}'" for mark in ids]
        # At least one millisecond: to PostgreSQL, zero means no limit.
        patience = max(1, math.ceil(marks.max_wait / timedelta(milliseconds=1)))
        plain = _PLAIN.fullmatch(marks.queue)
        queue = f"'{marks.queue}'" if plain else f"convert_from(decode('{marks.queue.encode().hex()}', 'hex'), 'UTF8')"
        if len(ids) == 1:
            parameters = (queue, *literals, f"'{patience}'")
            return Marking(Statement(self._statements["mark_one"], "text, text, text", parameters), ids)
        arguments = {"queue": queue, "patience": str(patience), "message_ids": ", ".join(literals)}
        return Marking(Statement(render(self._statements["mark_all"], **arguments)), ids)

    @property
    def pruning(self) -> str:
        """Deletes marks older than the first parameter, as many as the second."""
        return self._statements["prune"]


class PostgresInbox:
    """The inbox as maintenance sees it."""

    def __init__(self, connect: Connect, table: TableName) -> None:
        self._connect = connect
        self._statement = Inbox(table).pruning

    async def prune(self, older_than: timedelta, limit: int) -> int:
        """Deletes up to `limit` marks that are older than `older_than`, oldest first. Returns how many it has deleted.

        Waits for no lock. Raises `DatabaseUnavailableError`.
        """
        with unavailable_errors("pruning the inbox"):
            async with self._connect() as connection:
                status = await connection.execute(self._statement, older_than, limit)
        return int(status.rpartition(" ")[2])
