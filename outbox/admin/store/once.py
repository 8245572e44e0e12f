"""Stores confirmation tokens and idempotency keys."""

import hashlib
import json
import secrets
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from outbox.dead_letters.actions import Expected
from outbox.postgres.names import TableName
from outbox.postgres.pool import Connection
from outbox.postgres.queries import queries
from outbox.postgres.schema.objects import satellite_names

GOOD_FOR = timedelta(minutes=15)
"""How long a token may be used."""


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token, and until when it is good."""

    token: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class KnownToken:
    """What is known of a token: whose it is, for which request, what was shown, and whether it is over."""

    actor: str
    request_hash: bytes
    expected: Expected
    is_over: bool


class Confirmations:
    """The tokens next to one outbox table. Every method works in the transaction of the connection that it is given."""

    def __init__(self, table: TableName) -> None:
        self._sql = queries("confirmations.sql", **satellite_names(table.schema))

    async def issue_token(self, connection: Connection, *, actor: str, request_hash: bytes, expected: Expected) -> IssuedToken:
        """A new token for that request of that actor, which was found to mean what is `expected`.

        The digest is a part of the token. It cannot be exchanged there: the token is known by the hash of the whole.
        """
        token = f"{secrets.token_urlsafe(32)}.{expected.digest}"
        values = _hash(token), actor, request_hash, expected.count, GOOD_FOR
        expires_at = await connection.fetchval(self._sql["promise"], *values)
        return IssuedToken(token, expires_at)

    async def look(self, connection: Connection, token: str) -> KnownToken | None:
        """What is known of `token`; None for one that was used, was forgotten, or never was."""
        row = await connection.fetchrow(self._sql["look"], _hash(token))
        if row is None:
            return None
        expected = Expected(row["total"], token.partition(".")[2])
        return KnownToken(row["actor"], row["request_hash"], expected, row["is_over"])

    async def use(self, connection: Connection, token: str, *, actor: str, request_hash: bytes) -> bool:
        """Whether it was good until now. After the commit it is used."""
        return await connection.fetchval(self._sql["use"], _hash(token), actor, request_hash) is not None


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="replace")).digest()


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
    """This request was answered before."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class Reused:
    """The key belongs to another request."""


@dataclass(frozen=True, slots=True)
class Running:
    """This request is in progress."""


class Keys:
    """The keys next to one outbox table. Every method works in the transaction of the connection that it is given."""

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
