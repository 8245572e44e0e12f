"""`POST /session`, `DELETE /session`, and who is logged in."""

import logging
import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Body, Depends, Request, Response, status
from pydantic import Field

from outbox.admin import models
from outbox.admin.access import LOGOUT, RequestContext, Viewer, address_of, read_body, unauthenticated
from outbox.admin.admin import Admin
from outbox.admin.audit_log import record
from outbox.admin.principals import Principal, Role
from outbox.admin.problems import Code, Problem
from outbox.admin.routing import area
from outbox.admin.security.authentication import COOKIE, TokenPrincipal, entry_of, principal_of_cookie
from outbox.admin.security.origin import cross_site
from outbox.admin.security.tokens import TokenEntry, hash_of, text_of
from outbox.admin.store.sessions import Session, close_session, open_session

identity = area("session")


class Permissions(models.Model):
    """What the current principal may do, by role and by whether the installation is read-only."""

    repair: Annotated[bool, Field(description="Requeue, discard, restore, run operations, set notes.")]
    pause: Annotated[bool, Field(description="Pause and resume relays, workers and queues.")]
    purge: Annotated[bool, Field(description="Delete dead letters for good.")]
    reveal: Annotated[bool, Field(description="See what is masked.")]
    read_audit: Annotated[bool, Field(description="See who did what.")]


class Identity(models.Model):
    """The current principal."""

    name: str
    role: Role
    authenticated_by: Annotated[
        Literal["token", "session", "host"],
        Field(description="A token in the header, a session's cookie, or the application that the admin is part of."),
    ]
    expires_at: Annotated[models.Moment | None, Field(description="When the session ends; null without one.")]
    read_only: Annotated[bool, Field(description="Whether changes are refused here for every role.")]
    permissions: Permissions


@identity.get("/session", operation_id="outbox_session_show", summary="Show The Current Principal")
async def show_identity(context: Viewer) -> Identity:
    """Shows the current principal, how it is authenticated, and its permissions."""
    return identity_of(context.admin, context.principal)


def identity_of(admin: Admin, principal: Principal) -> Identity:
    """The answer about `principal`."""
    known = principal if isinstance(principal, TokenPrincipal) else None
    return Identity(
        name=principal.name,
        role=principal.role,
        authenticated_by="host" if known is None else known.by,
        expires_at=None if known is None else known.until,
        read_only=admin.read_only,
        permissions=_permissions(principal.role, read_only=admin.read_only),
    )


def _permissions(role: Role, *, read_only: bool) -> Permissions:
    operates = role.includes(Role.OPERATOR)
    return Permissions(
        repair=operates and not read_only,
        pause=operates and not read_only,
        purge=role.includes(Role.ADMIN) and not read_only,
        reveal=operates,
        read_audit=operates,
    )


logger = logging.getLogger("outbox")

LOGIN_LIMIT = 4_096
"""Bytes of the body of a login that are read."""
_PATH = "/session"


class Login(models.Request):
    """A login."""

    token: Annotated[str, Field(min_length=1, max_length=1_000, description="A token that `outbox token` has shown.")]


def login_routes(find: Callable[..., Any]) -> APIRouter:
    """`POST /session`, which is behind no entrance. `find` is a dependency that finds the `Admin`."""
    router = area("session")

    async def checked_admin(request: Request, admin: Annotated[Admin, Depends(find)]) -> Admin:
        if (reason := cross_site(request)) is not None:
            raise Problem(Code.CROSS_SITE, reason)
        await read_body(request, LOGIN_LIMIT)
        return admin

    @router.post(_PATH, operation_id="outbox_session_begin", status_code=status.HTTP_201_CREATED)
    async def log_in(
        request: Request, response: Response, login: Annotated[Login, Body()], admin: Annotated[Admin, Depends(checked_admin)]
    ) -> Identity:
        """Logs in with a token, for browsers: the answer sets a cookie that scripts cannot read and other sites cannot use.

        A session that the browser had before ends.

        Public, and limited: after some wrong tokens, further wrong ones are answered `too_many_logins` for a while.
        """
        entry = await entry_of(admin, login.token, request)
        if entry is None:
            raise unauthenticated("the token is not known here")
        before = await principal_of_cookie(admin, request.cookies.get(COOKIE))
        context = RequestContext(
            admin,
            TokenPrincipal(entry.name, entry.role),
            request.state.request_id,
            address_of(request),
            request.state.client_request_id,
        )
        cookie = text_of(secrets.token_bytes(32))
        session = await _begin(context, entry, cookie, before)
        _set_cookie(request, response, cookie, max_age=int(admin.session_lifetime.total_seconds()))
        return identity_of(admin, TokenPrincipal(entry.name, entry.role, "session", hash_of(cookie), session.expires_at))

    return router


logout = area("session")


@logout.delete(_PATH, operation_id=LOGOUT, status_code=status.HTTP_204_NO_CONTENT)
async def log_out(request: Request, response: Response, context: Viewer) -> None:
    """Logs out: ends the session in every process and deletes the cookie. A token in the header has no session to end."""
    if isinstance(context.principal, TokenPrincipal) and context.principal.session_hash is not None:
        async with context.admin.changing("logging out") as connection:
            await close_session(connection, context.admin.table, context.principal.session_hash)
            await record(connection, context, action="session.end")
    _set_cookie(request, response, "", max_age=0)


async def _begin(context: RequestContext, entry: TokenEntry, cookie: str, before: TokenPrincipal | None) -> Session:
    """Begins a session, and ends the one that the browser had, whose cookie goes."""
    admin = context.admin
    async with admin.changing("logging in") as connection:
        if before is not None and before.session_hash is not None:
            await close_session(connection, admin.table, before.session_hash)
            await record(connection, replace(context, principal=before), action="session.end")
        session = await open_session(
            connection,
            admin.table,
            token_hash=hash_of(cookie),
            login_hash=entry.token_hash,
            name=entry.name,
            lifetime=admin.session_lifetime,
        )
        await record(connection, context, action="session.begin")
    return session


def _set_cookie(request: Request, response: Response, value: str, *, max_age: int) -> None:
    response.set_cookie(
        COOKIE,
        value,
        max_age=max_age,
        path=_mounted_at(request),
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )


def _mounted_at(request: Request) -> str:
    """Where the browser sees the router, so that the cookie goes nowhere else: with the prefix of a proxy that strips it.

    As it stands in addresses: a prefix may have letters that no header takes, or, with a parameter in it, anything.
    """
    path, root = request.scope["path"], request.scope.get("root_path", "").rstrip("/")
    seen = path if path.startswith(f"{root}/") else root + path
    return quote(seen.removesuffix(_PATH)) or "/"
