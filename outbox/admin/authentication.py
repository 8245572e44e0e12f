"""Authentication by token or session cookie: `POST`, `GET` and `DELETE /session`."""

import asyncio
import ipaddress
import logging
import math
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal
from urllib.parse import quote

import asyncpg
from fastapi import APIRouter, Body, Depends, Request, Response, Security, status
from fastapi.security import APIKeyCookie, HTTPBearer
from pydantic import Field
from starlette.requests import HTTPConnection

from outbox.admin import models
from outbox.admin.access import (
    LOGOUT,
    RequestContext,
    Viewer,
    address_of,
    area,
    cross_site,
    outbox_of,
    read_body,
    record,
    unauthenticated,
)
from outbox.admin.admin import Admin, Colour
from outbox.admin.cache import SingleFlightCache
from outbox.admin.oidc import oidc_routes, seen_path
from outbox.admin.principals import Principal, Role, TokenEntry, hash_of, text_of
from outbox.admin.problems import Code, Problem
from outbox.errors import DatabaseUnavailableError
from outbox.postgres.pool import Connection
from outbox.postgres.queries import TableName, queries, query
from outbox.postgres.schema.objects import satellite_names


@dataclass(frozen=True, slots=True)
class Session:
    """An active session. `login_hash` is the hash of the token, or of the provider's subject, that logged in.

    `role` comes from the provider's claims; None: the token's role applies.
    """

    login_hash: bytes
    expires_at: datetime
    name: str
    role: Role | None


async def open_session(
    connection: Connection,
    table: TableName,
    *,
    token_hash: bytes,
    login_hash: bytes,
    name: str,
    lifetime: timedelta,
    role: Role | None = None,
) -> Session:
    """Adds a session, and deletes some expired ones."""
    sql = _sql(table)
    await connection.execute(sql["forget_expired"])
    expires_at = await connection.fetchval(sql["open_session"], token_hash, login_hash, name, lifetime, role)
    return Session(login_hash, expires_at, name, role)


async def find_session(connection: Connection, table: TableName, token_hash: bytes) -> Session | None:
    """Finds the active session whose cookie has this hash."""
    row = await connection.fetchrow(_sql(table)["find_session"], token_hash)
    if row is None:
        return None
    role = None if row["role"] is None else Role(row["role"])
    return Session(bytes(row["login_hash"]), row["expires_at"], row["name"], role)


async def close_session(connection: Connection, table: TableName, token_hash: bytes) -> None:
    """Deletes the session whose cookie has this hash."""
    await connection.execute(_sql(table)["close_session"], token_hash)


def _sql(table: TableName) -> Mapping[str, str]:
    return queries("access.sql", **satellite_names(table.schema))


@dataclass(frozen=True, slots=True)
class Failures:
    """Failed logins in the current window, including this one, and the time until the window ends."""

    count: int
    remaining: timedelta


async def count_failure(connection: Connection, table: TableName, bucket: str, window: timedelta) -> Failures:
    """Counts one more failure. The row stays locked until the transaction ends, so concurrent counts are exact."""
    sql = query("access.sql", "count_failure", **satellite_names(table.schema))
    row = await connection.fetchrow(sql, bucket, window)
    assert row is not None  # noqa: S101 — the upsert always returns a row
    return Failures(row["failures"], row["rest"])


logger = logging.getLogger("outbox")

ALL_ADDRESSES = "everybody"
"""The bucket that counts all addresses together."""
MOST_REMEMBERED = 1_000
"""Buckets that a process refuses without querying the database."""


@dataclass(frozen=True, slots=True)
class LoginLimits:
    """Wrong tokens allowed per `window`. Further ones are refused until it ends."""

    window: timedelta = timedelta(minutes=5)
    per_address: int = 10
    for_all_addresses: int = 200


class FailedLogins:
    """Counts failed logins in the database, for one admin. Remembers refused buckets in this process."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._limits = LoginLimits()
        self._refused: dict[str, float] = {}

    async def close(self) -> None:
        """There is nothing to close."""

    async def count(self, address: str) -> None:
        """Counts a wrong token from `address`. Raises `too_many_logins` above the limit.

        Counts nothing while the database is unavailable.
        """
        bucket = _bucket(address)
        self._raise_if_refused(ALL_ADDRESSES, bucket)
        try:
            # An attacker may use many addresses, so all of them together have a limit too.
            await self._count(ALL_ADDRESSES, self._limits.for_all_addresses)
            await self._count(bucket, self._limits.per_address)
        except DatabaseUnavailableError as error:
            logger.warning("a failed login from %s was not counted: %s", address, error)

    async def _count(self, bucket: str, limit: int) -> None:
        # One transaction for each bucket: every wrong login locks the row for all addresses, which must not wait for another.
        async with self._admin.changing("counting failed logins") as connection:
            failures = await count_failure(connection, self._admin.table, bucket, self._limits.window)
        if failures.count > limit:
            # Bounded, since an attacker can use any number of addresses. The database still counts those that do not fit.
            if len(self._refused) >= MOST_REMEMBERED:
                self._refused = {known: end for known, end in self._refused.items() if end > _now()}
            if len(self._refused) < MOST_REMEMBERED:
                self._refused[bucket] = _now() + failures.remaining.total_seconds()
            logger.warning("more than %d failed logins from %s: refusing more for %s", limit, bucket, failures.remaining)
            self._raise_if_refused(bucket)

    def _raise_if_refused(self, *buckets: str) -> None:
        remaining = max(self._refused.get(bucket, 0.0) for bucket in buckets) - _now()
        if remaining > 0:
            seconds = math.ceil(remaining)
            raise Problem(
                Code.TOO_MANY_LOGINS,
                f"try again in {seconds} seconds, or use a valid token",
                headers={"retry-after": str(seconds)},
            )


def _bucket(address: str) -> str:
    """Returns the bucket of an address: the address itself, or its IPv6 network."""
    try:
        known = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return "no address"
    # An IPv6 client usually owns a /64, so one address would be no limit.
    if isinstance(known, ipaddress.IPv6Address) and known.ipv4_mapped is None:
        return str(ipaddress.ip_network(f"{known}/64", strict=False))
    return str(known)


def _now() -> float:
    return asyncio.get_running_loop().time()


_REVOKED_AGE = timedelta(seconds=2)
_REVOKED_TIMEOUT = timedelta(seconds=2)
COOKIE = "outbox_session"
_COOKIE_FORM = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)

bearer_token = HTTPBearer(
    scheme_name="OutboxToken",
    bearerFormat="outbox_…",
    description="A token whose hash is in `OUTBOX_ADMIN_TOKENS`. `outbox token` creates one.",
    auto_error=False,
)


class _SessionCookie(APIKeyCookie):
    """Reads the cookie of the outbox that the path names; the document has the name of a single one."""

    async def __call__(self, request: HTTPConnection) -> str | None:
        return request.cookies.get(_cookie_name(outbox_of(request)))


session_cookie = _SessionCookie(
    name=COOKIE, scheme_name="OutboxSession", description="A browser session, set by `POST /session`.", auto_error=False
)


def _cookie_name(outbox: str | None) -> str:
    return COOKIE if outbox is None else f"{COOKIE}_{outbox}"


def _hash_of_cookie(cookie: str, outbox: str | None) -> bytes:
    # With the name, so that a session of one outbox opens no other one, even if both are in one schema.
    return hash_of(cookie if outbox is None else f"{outbox} {cookie}")


@dataclass(frozen=True, slots=True)
class TokenPrincipal(Principal):
    """A principal that logged in with a token or a session. `session_hash` and `until` describe the session, if any."""

    by: Literal["token", "session"] = "token"
    session_hash: bytes | None = None
    until: datetime | None = None


def own_authentication(find: Callable[..., Any]) -> Callable[..., Awaitable[Principal | None]]:
    """Returns a dependency for `require_authentication`. A token in the header overrides the cookie, even if it is wrong."""

    async def authenticate(
        request: Request,
        admin: Annotated[Admin, Depends(find)],
        header: Annotated[Any, Security(bearer_token)],
        _: Annotated[str | None, Security(session_cookie)],
    ) -> Principal | None:
        if not _has_login(admin):
            return None
        if header is not None:
            entry = await entry_of(admin, header.credentials, request)
            if entry is not None and entry.expired:
                raise _expired(entry)
            return None if entry is None else TokenPrincipal(entry.name, entry.role)
        return await principal_of_cookie(admin, request, outbox_of(request))

    return authenticate


async def entry_of(admin: Admin, token: str, request: Request) -> TokenEntry | None:
    """Finds the entry of a token; None if it is wrong. Raises `too_many_logins` after too many wrong ones."""
    if not _has_login(admin):
        return None
    entry = admin.tokens.find(token)
    if entry is not None and await admin.shared(RevokedTokens).has(entry.token_hash):
        raise unauthenticated(f"the token of {entry.name} was revoked: request a new one")
    if entry is None:
        await admin.shared(FailedLogins).count(request.client.host if request.client else "")
    return entry


async def principal_of_cookie(admin: Admin, request: Request, outbox: str | None) -> TokenPrincipal | None:
    """Returns the principal of a session, with its token's current role; None if the token is no longer valid."""
    cookie = request.cookies.get(_cookie_name(outbox))
    # Anything of another form is no cookie of ours, and costs no query.
    if cookie is None or not _COOKIE_FORM.fullmatch(cookie):
        return None
    session_hash = _hash_of_cookie(cookie, outbox)
    # On the connections for changes: slow reads must not delay an operator's authentication.
    async with admin.reading("looking for a session", for_change=True) as connection:
        session = await find_session(connection, admin.table, session_hash)
    if session is None:
        return None
    # A role from a provider is valid only while a provider is configured.
    if session.role is not None:
        known = TokenPrincipal(session.name, session.role, "session", session_hash, session.expires_at)
        return None if admin.oidc is None else known
    entry = admin.tokens.with_hash(session.login_hash)
    if entry is None or entry.expired:
        return None
    return TokenPrincipal(entry.name, entry.role, "session", session_hash, session.expires_at)


class RevokedTokens:
    """Revoked tokens, read from the database every two seconds. Keeps the last result while it is unavailable."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._revoked_here: set[bytes] = set()
        self._known = SingleFlightCache(
            self._read, max_age=_REVOKED_AGE, timeout=_REVOKED_TIMEOUT, usable_for=timedelta(days=1)
        )

    async def has(self, token_hash: bytes) -> bool:
        """Whether the token with this hash was revoked."""
        # Revoked by this process: takes effect before the next read.
        if token_hash in self._revoked_here:
            return True
        try:
            known = await self._known.get(patience=timedelta(0) if self._known.has_usable else None)
        except (TimeoutError, DatabaseUnavailableError):
            # The token itself was checked in this process: an outage of the database locks out no operator.
            return False
        return token_hash in known.value

    def add(self, token_hash: bytes) -> None:
        """Notes a token that this process has just revoked."""
        self._revoked_here.add(token_hash)

    async def close(self) -> None:
        """Cancels a running read."""
        await self._known.close()

    async def _read(self) -> frozenset[bytes]:
        try:
            async with self._admin.reading("reading revoked tokens", for_change=True) as connection:
                rows = await connection.fetch(_sql(self._admin.table)["revoked_tokens"])
        except (asyncpg.UndefinedTableError, asyncpg.InsufficientPrivilegeError):
            return frozenset()
        return frozenset(bytes(row["token_hash"]) for row in rows)


def _expired(entry: TokenEntry) -> Problem:
    return unauthenticated(f"the token of {entry.name} expired after {entry.last_day}: request a new one")


def _has_login(admin: Admin) -> bool:
    if not admin.tokens.entries and admin.oidc is None:
        admin.shared(_NoTokensWarning).log_once()
        return False
    return True


class _NoTokensWarning:
    """Logs once why every request is refused."""

    def __init__(self, _admin: Admin) -> None:
        self._logged = False

    async def close(self) -> None:
        """There is nothing to close."""

    def log_once(self) -> None:
        """Logs the warning, the first time."""
        if not self._logged:
            self._logged = True
            logger.warning("no token is configured: set OUTBOX_ADMIN_TOKENS to the output of `outbox token`")


identity = area("session")


class Permissions(models.Model):
    """Permissions of the current principal, from its role and the installation's read-only mode."""

    repair: Annotated[bool, Field(description="Repair dead letters, run operations, set notes, change waiting messages.")]
    pause: Annotated[bool, Field(description="Pause and resume relays, workers and queues.")]
    purge: Annotated[bool, Field(description="Delete dead letters permanently.")]
    reveal: Annotated[bool, Field(description="Reveal masked values.")]
    read_audit: Annotated[bool, Field(description="Read the audit log.")]


class EnvironmentResponse(models.Model):
    """Name and colour of the installation, from `OUTBOX_ENVIRONMENT`."""

    name: str
    colour: Colour


class Identity(models.Model):
    """The current principal."""

    name: str
    role: Role
    authenticated_by: Annotated[
        Literal["token", "session", "host"],
        Field(description="`token`: token in the header; `session`: session cookie; `host`: the host application."),
    ]
    expires_at: Annotated[models.Moment | None, Field(description="When the session ends; null without one.")]
    read_only: Annotated[bool, Field(description="Whether the installation refuses all changes, for every role.")]
    environment: Annotated[EnvironmentResponse | None, Field(description="Null: `OUTBOX_ENVIRONMENT` is not set.")]
    permissions: Permissions


@identity.get("/session", operation_id="outbox_session_show", summary="Show The Current Principal")
async def show_identity(context: Viewer) -> Identity:
    """Shows the current principal, how it is authenticated, and its permissions."""
    return identity_of(context.admin, context.principal)


def identity_of(admin: Admin, principal: Principal) -> Identity:
    """Describes `principal` and its permissions."""
    known = principal if isinstance(principal, TokenPrincipal) else None
    operates, read_only = principal.role.includes(Role.OPERATOR), admin.read_only
    return Identity(
        name=principal.name,
        role=principal.role,
        authenticated_by="host" if known is None else known.by,
        expires_at=None if known is None else known.until,
        read_only=read_only,
        environment=None if admin.environment is None else EnvironmentResponse.model_validate(admin.environment),
        permissions=Permissions(
            repair=operates and not read_only,
            pause=operates and not read_only,
            purge=principal.role.includes(Role.ADMIN) and not read_only,
            reveal=operates,
            read_audit=operates,
        ),
    )


LOGIN_LIMIT = 4_096
"""Bytes of the largest accepted login body."""
_PATH = "/session"


class Login(models.Request):
    """A login."""

    token: Annotated[str, Field(min_length=1, max_length=1_000, description="A token that `outbox token` created.")]


def login_routes(find: Callable[..., Any]) -> APIRouter:
    """The login routes, which need no authentication. `find` is a dependency that returns the `Admin`."""
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
        """Logs a browser in with a token. Sets a session cookie that scripts cannot read and other sites cannot use.

        Ends the browser's previous session. Needs no authentication. After too many wrong tokens, further wrong ones get
        `too_many_logins` for a while.
        """
        entry = await entry_of(admin, login.token, request)
        if entry is None:
            raise unauthenticated("the token is wrong")
        if entry.expired:
            raise _expired(entry)
        principal = TokenPrincipal(entry.name, entry.role)
        return identity_of(admin, await _start_session(request, response, admin, principal, login_hash=entry.token_hash))

    async def start(request: Request, response: Response, admin: Admin, name: str, role: Role, subject: str) -> None:
        principal = TokenPrincipal(name, role)
        await _start_session(request, response, admin, principal, login_hash=hash_of(subject), role=role)

    oidc_routes(find, router, start)
    return router


async def _start_session(
    request: Request,
    response: Response,
    admin: Admin,
    principal: TokenPrincipal,
    *,
    login_hash: bytes,
    role: Role | None = None,
) -> TokenPrincipal:
    """Starts a session and ends the browser's previous one. `role` comes from a provider's claims."""
    before = await principal_of_cookie(admin, request, outbox_of(request))
    context = RequestContext(admin, principal, request.state.request_id, address_of(request), request.state.client_request_id)
    cookie = text_of(secrets.token_bytes(32))
    cookie_hash = _hash_of_cookie(cookie, outbox_of(request))
    async with admin.changing("logging in") as connection:
        # With the new session in one transaction: a browser never has two, nor loses its old one if the login fails.
        if before is not None and before.session_hash is not None:
            await close_session(connection, admin.table, before.session_hash)
            await record(connection, replace(context, principal=before), action="session.end")
        session = await open_session(
            connection,
            admin.table,
            token_hash=cookie_hash,
            login_hash=login_hash,
            name=principal.name,
            lifetime=admin.session_lifetime,
            role=role,
        )
        details = {} if role is None else {"provider": True, "role": role.value}
        await record(connection, context, action="session.begin", details=details)
    _set_cookie(request, response, cookie, max_age=int(admin.session_lifetime.total_seconds()))
    return TokenPrincipal(principal.name, principal.role, "session", cookie_hash, session.expires_at)


logout = area("session")


@logout.delete(_PATH, operation_id=LOGOUT, status_code=status.HTTP_204_NO_CONTENT)
async def log_out(request: Request, response: Response, context: Viewer) -> None:
    """Logs out: ends the session and deletes its cookie. Has no effect on a token in the header."""
    if isinstance(context.principal, TokenPrincipal) and context.principal.session_hash is not None:
        async with context.admin.changing("logging out") as connection:
            await close_session(connection, context.admin.table, context.principal.session_hash)
            await record(connection, context, action="session.end")
    _set_cookie(request, response, "", max_age=0)


def _set_cookie(request: Request, response: Response, value: str, *, max_age: int) -> None:
    """Sets the session cookie for the router's path only, including the prefix that a proxy strips.

    With several outboxes all their cookies have this path, so that `GET /outboxes` sees them, and each has a name of its own.
    """
    outbox = outbox_of(request)
    path = seen_path(request).removesuffix("/oidc/callback").removesuffix(_PATH)
    response.set_cookie(
        _cookie_name(outbox),
        value,
        max_age=max_age,
        # Quoted, since a prefix may contain characters that a header cannot carry.
        path=quote(path if outbox is None else path.removesuffix(f"/{outbox}")) or "/",
        secure=request.url.scheme == "https",
        httponly=True,
        # Browsers do not send it with requests from other sites.
        samesite="strict",
    )
