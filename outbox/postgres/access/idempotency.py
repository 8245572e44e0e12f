"""Idempotency keys: a change that is asked for twice under one key is made once, and answered twice alike."""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from outbox.postgres.names import TableName
from outbox.postgres.pool import Connection
from outbox.postgres.queries import queries
from outbox.postgres.schema.objects import satellite_names

HELD_FOR = timedelta(minutes=2)
"""After so long a key whose request was never answered may be taken over: its process has died."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Claimed:
    """The key is ours while `token` stands in its row."""

    token: uuid.UUID


@dataclass(frozen=True, slots=True)
class Answered:
    """The same request was answered before."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class Reused:
    """The key belongs to another request."""


@dataclass(frozen=True, slots=True)
class Running:
    """The same request is being worked on."""


class Keys:
    """The keys beside one outbox table. Every method works in the transaction of the connection that it is given."""

    def __init__(self, table: TableName) -> None:
        self._sql = queries("idempotency.sql", **satellite_names(table.schema))

    async def claim(
        self, connection: Connection, *, actor: str, key: str, request_hash: bytes
    ) -> Claimed | Answered | Reused | Running:
        """Takes the key for this request, if it is new, or if who held it has died; to be committed before the work begins."""
        token = uuid.uuid4()
        if await connection.fetchval(self._sql["claim"], actor, key, request_hash, token, HELD_FOR) is not None:
            return Claimed(token)
        row = await connection.fetchrow(self._sql["known"], actor, key)
        if row is None:
            return Running()  # it was let go of in between: the next try will have it
        if row["request_hash"] != request_hash:
            return Reused()
        if row["status"] is None:
            return Running()
        return Answered(Answer(row["status"], json.loads(row["headers"]), row["body"]))

    async def store(self, connection: Connection, answer: Answer, *, actor: str, key: str, token: uuid.UUID) -> bool:
        """Keeps the answer, in the transaction of what it tells of; False if the key is not ours any more: roll it back."""
        headers = json.dumps(dict(answer.headers))
        stored = await connection.fetchval(self._sql["store"], actor, key, token, answer.status, headers, answer.body)
        return stored is not None

    async def release(self, connection: Connection, *, actor: str, key: str, token: uuid.UUID) -> None:
        """Gives back a key under which nothing was done."""
        await connection.execute(self._sql["release"], actor, key, token)
