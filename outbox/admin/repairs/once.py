"""Idempotency keys and confirmation tokens: a change happens once, and as its dry run showed it."""

import hashlib
import json
import secrets
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Protocol, assert_never

from fastapi import Header, Response

from outbox.admin.access import RequestContext
from outbox.admin.problems import Code, Problem
from outbox.admin.repairs.requests import Change
from outbox.dead_letters import Expected
from outbox.postgres.pool import Connection
from outbox.postgres.queries import TableName, queries
from outbox.postgres.schema.objects import satellite_names

REPLAYED = "idempotency-replayed"
"""Header of an answer that was given before."""
JSON = "application/json"
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


def respond(answer: Answer, *, replayed: bool = False) -> Response:
    """`answer` as it is sent; `replayed`: it was given before."""
    headers = {**answer.headers, **({REPLAYED: "true"} if replayed else {})}
    return Response(answer.body, answer.status, headers, JSON)


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
        """Keeps the answer, in the transaction of the change; False if the key is not ours any more: roll it back."""
        headers = json.dumps(dict(answer.headers))
        stored = await connection.fetchval(self._sql["store"], actor, key, token, answer.status, headers, answer.body)
        return stored is not None

    async def release(self, connection: Connection, *, actor: str, key: str, token: uuid.UUID) -> None:
        """Gives back a key under which nothing was done."""
        await connection.execute(self._sql["release"], actor, key, token)


IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="Your name for this change: asked for again within a day, it is answered again and not done again.",
    ),
]
_BUSY = "the request of this key is still running: ask again in a moment for its answer"


@dataclass(frozen=True, slots=True)
class IdempotencyLock:
    """A key that is ours until the answer of its change is stored."""

    context: RequestContext
    key: str
    token: uuid.UUID

    async def store(self, connection: Connection, answer: Answer) -> None:
        """Keeps the answer in the transaction of the change. Raises `request_running`, so that it is rolled back, if this took
        so long that another request has taken the key over."""
        keys = Keys(self.context.admin.table)
        if not await keys.store(connection, answer, actor=self.context.principal.name, key=self.key, token=self.token):
            raise Problem(Code.REQUEST_RUNNING, _BUSY, headers={"retry-after": "1"})


class Repeatable(Protocol):
    """A request that is done once, however often it comes."""

    @property
    def action(self) -> str:
        """What is asked for."""
        ...

    def model_dump(self, *, exclude_unset: bool) -> dict[str, Any]:
        """All that was said of it."""
        ...


@asynccontextmanager
async def idempotency_lock(
    context: RequestContext, key: str | None, change: Repeatable
) -> AsyncIterator[IdempotencyLock | Answer | None]:
    """The key, held for the block; the answer, if there is one already; None without a key.

    Raises `key_reused` and `request_running`. A block that raises gives the key back: nothing was done under it.
    """
    if key is None:
        yield None
        return
    keys, actor = Keys(context.admin.table), context.principal.name
    # Of everything that was asked for, however it was written.
    asked_for = json.dumps([change.action, change.model_dump(exclude_unset=True)], sort_keys=True, default=str)
    request_hash = hashlib.sha256(asked_for.encode()).digest()
    async with context.admin.changing("taking an idempotency key") as connection:
        found = await keys.claim(connection, actor=actor, key=key, request_hash=request_hash)
    match found:
        case Claimed(token):
            try:
                yield IdempotencyLock(context, key, token)
            except Exception:
                async with context.admin.changing("giving an idempotency key back") as connection:
                    await keys.release(connection, actor=actor, key=key, token=token)  # what cannot be released runs out
                raise
        case Answered(answer):
            yield answer
        case Reused():
            raise Problem(Code.KEY_REUSED, "this key was used for a request with another body: take a new one")
        case Running():
            raise Problem(Code.REQUEST_RUNNING, _BUSY, headers={"retry-after": "1"})
        case _:
            assert_never(found)


_AGAIN = "ask with dry_run, look at the answer, and send the same request with its confirm_token"
_REASONS: Mapping[str, str] = {
    "missing": "this could mean more than you think",
    "used": "this confirm_token was used already, or never was one",
    "other_actor": "this confirm_token was made for another actor",
    "other_request": "this confirm_token was made for another request",
    "expired": "this confirm_token is too old",
}


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A token that was good when it was looked at, and which dead letters it is about."""

    token: str
    expected: Expected


async def issue_token(context: RequestContext, change: Change, expected: Expected) -> IssuedToken:
    """A token for `change`, which was found to mean the dead letters that are `expected`."""
    async with context.admin.changing("remembering a dry run") as connection:
        return await Confirmations(context.admin.table).issue_token(
            connection, actor=context.principal.name, request_hash=_scope_hash(change), expected=expected
        )


async def require_confirmation(context: RequestContext, change: Change) -> Confirmation | None:
    """What the request's token allows; None where none is needed. Raises `confirmation_required`, and says why."""
    if not change.needs_token:
        return None
    if change.confirm_token is None:
        raise _required("missing")
    async with context.admin.reading("looking at a dry run", for_change=True) as connection:
        known = await Confirmations(context.admin.table).look(connection, change.confirm_token)
    if known is None:
        raise _required("used")
    if known.actor != context.principal.name:
        raise _required("other_actor")
    if known.request_hash != _scope_hash(change):
        raise _required("other_request")
    if known.is_over:
        raise _required("expired")
    return Confirmation(change.confirm_token, known.expected)


async def use(connection: Connection, context: RequestContext, change: Change, confirmation: Confirmation) -> None:
    """Uses the token up in the transaction of the change. Raises `confirmation_required` if another request was faster."""
    used = await Confirmations(context.admin.table).use(
        connection, confirmation.token, actor=context.principal.name, request_hash=_scope_hash(change)
    )
    if not used:
        raise _required("used")


def _required(reason: str) -> Problem:
    return Problem(Code.CONFIRMATION_REQUIRED, f"{_REASONS[reason]}: {_AGAIN}", reason=reason)


def _scope_hash(change: Change) -> bytes:
    return hashlib.sha256(json.dumps(change.scope(), sort_keys=True, default=str).encode()).digest()
