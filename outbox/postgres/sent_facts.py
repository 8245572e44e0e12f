"""What the history is told of sent messages: one row each, in the transaction that settles them."""

import logging
from collections.abc import Sequence
from datetime import timedelta
from time import monotonic

from outbox.core.events import HistoryLost
from outbox.core.message import Message
from outbox.ports import Observer
from outbox.postgres.names import TableName
from outbox.postgres.pool import COMMAND_TIMEOUT, Connection, reason_of
from outbox.postgres.queries import queries

PAUSE = timedelta(minutes=1)
"""How long nothing is told after that failed once."""
_log = logging.getLogger("outbox")


class SentFacts:
    """Tells the history beside the outbox table `table` what was sent, on behalf of `component`.

    Where it is not there, or closed to the user, nothing is told. When telling fails the messages are settled without, and it
    is tried again a minute later.
    """

    def __init__(self, table: TableName, component: str, observer: Observer) -> None:
        self.history = TableName("outbox_history", table.schema).sql
        self.component = component
        self.sql = queries("sent_facts.sql", table=table.sql, history=self.history)
        self._observer = observer
        self._there = False
        self._since = 0.0

    @property
    def wanted(self) -> bool:
        """Whether facts are to be told now."""
        return self._there and monotonic() >= self._since

    async def look(self, connection: Connection) -> None:
        """Finds out whether the history is there."""
        self._there = bool(await connection.fetchval(self.sql["writable"], timeout=COMMAND_TIMEOUT.total_seconds()))
        if not self._there:
            _log.info("no history of sent messages is written: the table %s is not there, or closed", self.history)

    def lost(self, count: int, error: BaseException) -> None:
        """Notes that `count` facts could not be told."""
        self._since = monotonic() + PAUSE.total_seconds()
        self._observer.notify(HistoryLost(count=count, reason=reason_of(error)))


def identities(messages: Sequence[Message]) -> tuple[list[str], list[str], list[str | None]]:
    """Ids, roots and parents of `messages`."""
    chains = [message.tracking_ids for message in messages]
    parents = [chain[-2] if len(chain) > 1 else None for chain in chains]
    return [chain[-1] for chain in chains], [chain[0] for chain in chains], parents
