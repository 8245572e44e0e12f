"""Notes about groups of dead letters: what somebody wants the others to know."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from outbox.postgres.dead_letters.letters import GroupBy
from outbox.postgres.names import TableName
from outbox.postgres.pool import Connection
from outbox.postgres.queries import queries
from outbox.postgres.schema.objects import SATELLITES

LONGEST_GROUP = 2_000
"""Bytes of the longest id of a group that can be noted about: it is a key."""


@dataclass(frozen=True, slots=True)
class GroupNote:
    """A note, by whom and when."""

    text: str
    noted_by: str
    noted_at: datetime


class GroupNotes:
    """The notes beside one outbox table. Every method takes the connection whose transaction it is to be part of."""

    def __init__(self, table: TableName) -> None:
        self._sql = queries("notes.sql", group_note=TableName(SATELLITES["group_note"], table.schema).sql)

    async def of(self, connection: Connection, by: GroupBy, groups: Sequence[str]) -> Mapping[str, GroupNote]:
        """The notes about `groups`, by their ids."""
        rows = await connection.fetch(self._sql["notes"], by, list(groups))
        return {row["group_id"]: GroupNote(row["text"], row["noted_by"], row["noted_at"]) for row in rows}

    async def set(self, connection: Connection, by: GroupBy, group: str, text: str, noted_by: str) -> GroupNote:
        """Notes `text` about a group, in the place of what was noted before."""
        [row] = await connection.fetch(self._sql["set_note"], by, group, text, noted_by)
        return GroupNote(row["text"], row["noted_by"], row["noted_at"])

    async def clear(self, connection: Connection, by: GroupBy, group: str) -> None:
        """Forgets what was noted about a group."""
        await connection.execute(self._sql["clear_note"], by, group)
