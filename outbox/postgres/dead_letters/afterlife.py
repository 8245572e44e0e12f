"""What became of a dead letter's message after it was requeued, and which operations had it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

import asyncpg

from outbox.postgres.dead_letters.selecting import Letters
from outbox.postgres.names import TableName
from outbox.postgres.pool import Connection


class Fate(StrEnum):
    """How a life ended; `UNDER_WAY`: not yet, as far as the history knows."""

    UNDER_WAY = "under way"
    PROCESSED = "processed"
    DIED_AGAIN = "died again"
    DUPLICATE = "duplicate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What came of one requeue. `queue` is where it was requeued to; None: wherever its routing key leads."""

    requeued_at: datetime
    requeued_by: str
    queue: str | None
    fate: Fate = Fate.UNDER_WAY
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationOn:
    """What an operation was to do with a dead letter, and what came of it."""

    id: str
    action: str
    outcome: str
    detail: str | None
    settled_at: datetime | None


class Afterlife:
    """Reads what came after a death, beside one outbox table."""

    def __init__(self, table: TableName) -> None:
        self._letters = Letters(table)

    async def lives(self, connection: Connection, message_id: str | None) -> Sequence[Life]:
        """What came of each requeue of a message, oldest first; none where there is no history of it."""
        if message_id is None:
            return []
        return _lives(await connection.fetch(self._letters.sql("lives"), message_id))

    async def operations(self, connection: Connection, letter: str) -> Sequence[OperationOn]:
        """The operations that have or had the dead letter of that id, the latest first."""
        rows = await connection.fetch(self._letters.sql("operations_of"), letter)
        return [OperationOn(**dict(row)) for row in rows]


_FATES = {"processed": Fate.PROCESSED, "died": Fate.DIED_AGAIN, "duplicate": Fate.DUPLICATE}


def _lives(facts: Iterable[asyncpg.Record]) -> list[Life]:
    """Each fact ends the oldest life that was to go to its queue; one that went anywhere is ended by the first."""
    lives: list[Life] = []
    for fact in facts:
        if fact["fact"] == "requeued":
            lives.append(Life(requeued_at=fact["at"], requeued_by=fact["component"], queue=fact["queue"]))
            continue
        for place, life in enumerate(lives):
            if life.fate is Fate.UNDER_WAY and life.queue in (None, fact["queue"]):
                lives[place] = replace(life, fate=_FATES[fact["fact"]], ended_at=fact["at"])
                break
    return lives
