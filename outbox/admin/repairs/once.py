"""Idempotency keys and confirmation tokens: they ensure that a change is applied once, and as its dry run showed it."""

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
"""Header of a response that is replayed for an idempotency key."""
JSON = "application/json"
TOKEN_LIFETIME = timedelta(minutes=15)
"""How long a confirmation token is valid."""


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A confirmation token, and when it expires."""

    token: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class StoredToken:
    """A confirmation token as stored: its actor, its request, what the dry run found, and whether it has expired."""

    actor: str
    request_hash: bytes
    expected: Expected
    is_expired: bool


class Confirmations:
    """The confirmation tokens of one outbox table. Every method works in the transaction of the given connection."""

    def __init__(self, table: TableName) -> None:
        self._sql = queries("confirmations.sql", **satellite_names(table.schema))

    async def issue_token(self, connection: Connection, *, actor: str, request_hash: bytes, expected: Expected) -> IssuedToken:
        """Issues a token for a request of an actor, whose dry run found `expected`."""
        # The digest travels in the token instead of the table. A client cannot replace it, because the table has the hash of
        # the whole token.
        token = f"{secrets.token_urlsafe(32)}.{expected.digest}"
        values = _hash(token), actor, request_hash, expected.count, TOKEN_LIFETIME
        expires_at = await connection.fetchval(self._sql["issue"], *values)
        return IssuedToken(token, expires_at)

    async def find(self, connection: Connection, token: str) -> StoredToken | None:
        """Looks a token up. Returns None if it was used or deleted, or never existed."""
        row = await connection.fetchrow(self._sql["find"], _hash(token))
        if row is None:
            return None
        expected = Expected(row["total"], token.partition(".")[2])
        return StoredToken(row["actor"], row["request_hash"], expected, row["is_expired"])

    async def use(self, connection: Connection, token: str, *, actor: str, request_hash: bytes) -> bool:
        """Deletes a token. Returns False if it is not valid, or not any more."""
        return await connection.fetchval(self._sql["use"], _hash(token), actor, request_hash) is not None


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="replace")).digest()


LOCK_TIMEOUT = timedelta(minutes=2)
"""After this time without a response, another request may take over an idempotency key: the process has probably crashed."""


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response that is stored with its idempotency key, to be replayed."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def to_response(stored: StoredResponse, *, replayed: bool = False) -> Response:
    """Converts to an HTTP response. `replayed`: marks it as returned before."""
    headers = {**stored.headers, **({REPLAYED: "true"} if replayed else {})}
    return Response(stored.body, stored.status, headers, JSON)


@dataclass(frozen=True, slots=True)
class Claimed:
    """The key is claimed by this request, as long as its row contains `token`."""

    token: uuid.UUID


@dataclass(frozen=True, slots=True)
class Completed:
    """This request was completed before, with this response."""

    response: StoredResponse


@dataclass(frozen=True, slots=True)
class Reused:
    """The key was used for a different request."""


@dataclass(frozen=True, slots=True)
class Running:
    """This request is in progress."""


class Keys:
    """The idempotency keys of one outbox table. Every method works in the transaction of the given connection."""

    def __init__(self, table: TableName) -> None:
        self._sql = queries("idempotency.sql", **satellite_names(table.schema))

    async def claim(
        self, connection: Connection, *, actor: str, key: str, request_hash: bytes
    ) -> Claimed | Completed | Reused | Running:
        """Claims the key for this request if it is new, or if its claim has timed out. Commit before the work begins."""
        token = uuid.uuid4()
        if await connection.fetchval(self._sql["claim"], actor, key, request_hash, token, LOCK_TIMEOUT) is not None:
            return Claimed(token)
        row = await connection.fetchrow(self._sql["known"], actor, key)
        # Another request released the key between the two statements. The client's retry will claim it.
        if row is None:
            return Running()
        if row["request_hash"] != request_hash:
            return Reused()
        if row["status"] is None:
            return Running()
        return Completed(StoredResponse(row["status"], json.loads(row["headers"]), row["body"]))

    async def store(self, connection: Connection, response: StoredResponse, *, actor: str, key: str, token: uuid.UUID) -> bool:
        """Stores the response in the transaction of the change. Returns False if the claim was lost: roll back then."""
        headers = json.dumps(dict(response.headers))
        stored = await connection.fetchval(self._sql["store"], actor, key, token, response.status, headers, response.body)
        return stored is not None

    async def release(self, connection: Connection, *, actor: str, key: str, token: uuid.UUID) -> None:
        """Releases a key whose request changed nothing."""
        await connection.execute(self._sql["release"], actor, key, token)


IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="A unique key for this change. Repeating the request with the same key within a day returns the first "
        "response and changes nothing.",
    ),
]
_RUNNING = "a request with this key is still running: repeat it in a moment to get its response"


@dataclass(frozen=True, slots=True)
class IdempotencyLock:
    """A claimed idempotency key, until the response of its change is stored."""

    context: RequestContext
    key: str
    token: uuid.UUID

    async def store(self, connection: Connection, response: StoredResponse) -> None:
        """Stores the response in the transaction of the change.

        Raises `request_running` if the change took so long that another request took over the key. The caller's transaction is
        then rolled back.
        """
        keys = Keys(self.context.admin.table)
        if not await keys.store(connection, response, actor=self.context.principal.name, key=self.key, token=self.token):
            raise Problem(Code.REQUEST_RUNNING, _RUNNING, headers={"retry-after": "1"})


class Repeatable(Protocol):
    """A request that is applied only once per idempotency key."""

    @property
    def action(self) -> str:
        """The action."""
        ...

    def model_dump(self, *, exclude_unset: bool) -> dict[str, Any]:
        """The fields of the request."""
        ...


@asynccontextmanager
async def idempotency_lock(
    context: RequestContext, key: str | None, change: Repeatable, *ids: int
) -> AsyncIterator[IdempotencyLock | StoredResponse | None]:
    """Claims an idempotency key for the block. `ids` are those in the request's path, which `change` lacks.

    Yields the lock, or the stored response if the request was completed before, or None without a key. If the block raises, the
    key is released, because nothing was changed. Raises `key_reused` and `request_running`.
    """
    if key is None:
        yield None
        return
    keys, actor = Keys(context.admin.table), context.principal.name
    # Of the parsed fields, so that whitespace and the order of fields do not matter.
    requested = json.dumps([change.action, change.model_dump(exclude_unset=True), *ids], sort_keys=True, default=str)
    request_hash = hashlib.sha256(requested.encode()).digest()
    # In a transaction of its own: a repeated request would wait for an uncommitted claim instead of getting an answer.
    async with context.admin.changing("claiming an idempotency key") as connection:
        found = await keys.claim(connection, actor=actor, key=key, request_hash=request_hash)
    match found:
        case Claimed(token):
            try:
                yield IdempotencyLock(context, key, token)
            # Not for a cancellation, which may have met the commit: the key keeps its response then, or its claim times out.
            except Exception:
                # If this fails, or the process is killed, the claim times out.
                async with context.admin.changing("releasing an idempotency key") as connection:
                    await keys.release(connection, actor=actor, key=key, token=token)
                raise
        case Completed(response):
            yield response
        case Reused():
            raise Problem(Code.KEY_REUSED, "this key was used for a request with another body: use a new key")
        case Running():
            raise Problem(Code.REQUEST_RUNNING, _RUNNING, headers={"retry-after": "1"})
        case _:
            assert_never(found)


_HOW_TO_CONFIRM = "send the request with dry_run, check the response, then send the same request with its confirm_token"
_REASONS: Mapping[str, str] = {
    "missing": "this request could change more than you expect",
    "used": "this confirm_token was already used, or does not exist",
    "other_actor": "this confirm_token was issued to another principal",
    "other_request": "this confirm_token was issued for another request",
    "expired": "this confirm_token has expired",
}


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A valid confirmation token, and what its dry run found."""

    token: str
    expected: Expected


async def issue_token(context: RequestContext, change: Change, expected: Expected) -> IssuedToken:
    """Issues a token for `change`, whose dry run found `expected`."""
    async with context.admin.changing("issuing a confirmation token") as connection:
        return await Confirmations(context.admin.table).issue_token(
            connection, actor=context.principal.name, request_hash=_scope_hash(change), expected=expected
        )


async def require_confirmation(context: RequestContext, change: Change) -> Confirmation | None:
    """Checks the request's confirmation token. Returns None if the change needs none. Raises `confirmation_required`."""
    if not change.needs_token:
        return None
    if change.confirm_token is None:
        raise _confirmation_required("missing")
    async with context.admin.reading("checking a confirmation token", for_change=True) as connection:
        stored = await Confirmations(context.admin.table).find(connection, change.confirm_token)
    if stored is None:
        raise _confirmation_required("used")
    if stored.actor != context.principal.name:
        raise _confirmation_required("other_actor")
    if stored.request_hash != _scope_hash(change):
        raise _confirmation_required("other_request")
    if stored.is_expired:
        raise _confirmation_required("expired")
    return Confirmation(change.confirm_token, stored.expected)


async def use_token(connection: Connection, context: RequestContext, change: Change, confirmation: Confirmation) -> None:
    """Uses the token up in the transaction of the change. Raises `confirmation_required` if another request used it first."""
    used = await Confirmations(context.admin.table).use(
        connection, confirmation.token, actor=context.principal.name, request_hash=_scope_hash(change)
    )
    if not used:
        raise _confirmation_required("used")


def _confirmation_required(reason: str) -> Problem:
    return Problem(Code.CONFIRMATION_REQUIRED, f"{_REASONS[reason]}: {_HOW_TO_CONFIRM}", reason=reason)


def _scope_hash(change: Change) -> bytes:
    return hashlib.sha256(json.dumps(change.scope(), sort_keys=True, default=str).encode()).digest()
