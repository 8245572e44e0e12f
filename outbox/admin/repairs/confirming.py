"""That a dry run came first: tokens that say what somebody has seen, and are good for doing just that, once."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from outbox.admin.access import Asked
from outbox.admin.problems import Code, Problem
from outbox.admin.repairs.requests import Change
from outbox.admin.store.once import Confirmations, Promise
from outbox.dead_letters import Expected
from outbox.postgres.pool import Connection

_AGAIN = "ask with dry_run, look at the answer, and send the same request with its confirm_token"
_REASONS: Mapping[str, str] = {
    "missing": "this could mean more than you think",
    "used": "this confirm_token was used already, or never was one",
    "other-actor": "this confirm_token was made for somebody else",
    "other-request": "this confirm_token was made for another request",
    "expired": "this confirm_token is too old",
}


@dataclass(frozen=True, slots=True)
class Consent:
    """A token that was good when it was looked at, and which dead letters it is about."""

    token: str
    expected: Expected


async def promise(asked: Asked, change: Change, expected: Expected) -> Promise:
    """A token for `change`, which was found to mean the dead letters that are `expected`."""
    async with asked.admin.changing("remembering a dry run") as connection:
        return await Confirmations(asked.admin.table).promise(
            connection, actor=asked.principal.name, request_hash=_hash(change), expected=expected
        )


async def consent_to(asked: Asked, change: Change) -> Consent | None:
    """What the request's token allows; None where none is needed. Raises `confirmation-required`, and says why."""
    if not change.needs_token:
        return None
    if change.confirm_token is None:
        raise _required("missing")
    async with asked.admin.reading("looking at a dry run", for_change=True) as connection:
        known = await Confirmations(asked.admin.table).look(connection, change.confirm_token)
    if known is None:
        raise _required("used")
    if known.actor != asked.principal.name:
        raise _required("other-actor")
    if known.request_hash != _hash(change):
        raise _required("other-request")
    if known.is_over:
        raise _required("expired")
    return Consent(change.confirm_token, known.expected)


async def use(connection: Connection, asked: Asked, change: Change, consent: Consent) -> None:
    """Uses the token up in the transaction of the change. Raises `confirmation-required` if somebody else was faster."""
    used = await Confirmations(asked.admin.table).use(
        connection, consent.token, actor=asked.principal.name, request_hash=_hash(change)
    )
    if not used:
        raise _required("used")


def _required(reason: str) -> Problem:
    return Problem(Code.CONFIRMATION_REQUIRED, f"{_REASONS[reason]}: {_AGAIN}", reason=reason)


def _hash(change: Change) -> bytes:
    return hashlib.sha256(json.dumps(change.scope(), sort_keys=True, default=str).encode()).digest()
