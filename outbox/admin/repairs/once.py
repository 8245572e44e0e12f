"""Idempotency keys and confirmation tokens: a change happens once, and as its dry run showed it."""

import hashlib
import json
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, assert_never

from fastapi import Header

from outbox.admin.access import RequestContext
from outbox.admin.problems import Code, Problem
from outbox.admin.repairs.requests import Change
from outbox.admin.store.once import Answer, Answered, Claimed, Confirmations, IssuedToken, Keys, Reused, Running
from outbox.dead_letters import Expected
from outbox.postgres.pool import Connection

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
        so long that somebody else has taken the key over."""
        keys = Keys(self.context.admin.table)
        if not await keys.store(connection, answer, actor=self.context.principal.name, key=self.key, token=self.token):
            raise Problem(Code.REQUEST_RUNNING, _BUSY, headers={"retry-after": "1"})


@asynccontextmanager
async def idempotency_lock(
    context: RequestContext, key: str | None, change: Change
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
    "other_actor": "this confirm_token was made for somebody else",
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
    """Uses the token up in the transaction of the change. Raises `confirmation_required` if somebody else was faster."""
    used = await Confirmations(context.admin.table).use(
        connection, confirmation.token, actor=context.principal.name, request_hash=_scope_hash(change)
    )
    if not used:
        raise _required("used")


def _required(reason: str) -> Problem:
    return Problem(Code.CONFIRMATION_REQUIRED, f"{_REASONS[reason]}: {_AGAIN}", reason=reason)


def _scope_hash(change: Change) -> bytes:
    return hashlib.sha256(json.dumps(change.scope(), sort_keys=True, default=str).encode()).digest()
