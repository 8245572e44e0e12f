"""Authenticates a request by its bearer token or its session cookie."""

import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Depends, Request, Security
from fastapi.security import APIKeyCookie, HTTPBearer

from outbox.admin.admin import Admin
from outbox.admin.principals import Principal
from outbox.admin.security.logins import FailedLogins
from outbox.admin.security.tokens import TokenEntry, hash_of
from outbox.admin.store.sessions import find_session

logger = logging.getLogger("outbox")

COOKIE = "outbox_session"
_COOKIE_FORM = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)

_token = HTTPBearer(
    scheme_name="OutboxToken",
    bearerFormat="outbox_…",
    description="A token of `OUTBOX_ADMIN_TOKENS`, which `outbox token` makes.",
    auto_error=False,
)
_cookie = APIKeyCookie(
    name=COOKIE, scheme_name="OutboxSession", description="Set by `POST /session`, for browsers.", auto_error=False
)


@dataclass(frozen=True, slots=True)
class TokenPrincipal(Principal):
    """Somebody of `OUTBOX_ADMIN_TOKENS`. `session_hash` and `until` are of the session that they came with, if it was one."""

    by: Literal["token", "session"] = "token"
    session_hash: bytes | None = None
    until: datetime | None = None


def own_authentication(find: Callable[..., Any]) -> Callable[..., Awaitable[Principal | None]]:
    """A dependency for `entrance`. A token in the header goes before a cookie, and is not made up for by one."""

    async def authenticate(
        request: Request,
        admin: Annotated[Admin, Depends(find)],
        header: Annotated[Any, Security(_token)],
        cookie: Annotated[str | None, Security(_cookie)],
    ) -> Principal | None:
        if not _anybody_may_come_in(admin):
            return None
        if header is not None:
            return _known(await entry_of(admin, header.credentials, request))
        return await principal_of_cookie(admin, cookie)

    return authenticate


async def entry_of(admin: Admin, token: str, request: Request) -> TokenEntry | None:
    """Whose token this is; None if it is wrong. Raises `too_many_logins` if too many were."""
    if not _anybody_may_come_in(admin):
        return None
    entry = admin.tokens.find(token)
    if entry is None:
        await admin.shared(FailedLogins).count(request.client.host if request.client else "")
    return entry


def _known(entry: TokenEntry | None) -> Principal | None:
    return None if entry is None else TokenPrincipal(entry.name, entry.role)


async def principal_of_cookie(admin: Admin, cookie: str | None) -> TokenPrincipal | None:
    """The principal of a session, with the role that its token has now; None when the token is no longer valid."""
    if cookie is None or not _COOKIE_FORM.fullmatch(cookie):
        return None
    session_hash = hash_of(cookie)
    async with admin.reading("looking for a session", for_change=True) as connection:
        session = await find_session(connection, admin.table, session_hash)
    entry = None if session is None else admin.tokens.with_hash(session.login_hash)
    if session is None or entry is None:
        return None
    return TokenPrincipal(entry.name, entry.role, "session", session_hash, session.expires_at)


def _anybody_may_come_in(admin: Admin) -> bool:
    if not admin.tokens.entries:
        admin.shared(_NoTokensWarning).tell()
        return False
    return True


class _NoTokensWarning:
    """Says once why everybody is turned away."""

    def __init__(self, _admin: Admin) -> None:
        self._told = False

    async def close(self) -> None:
        """There is nothing to close."""

    def tell(self) -> None:
        """Says it, the first time."""
        if not self._told:
            self._told = True
            logger.warning("nobody may use the admin: set OUTBOX_ADMIN_TOKENS to what `outbox token` prints")
