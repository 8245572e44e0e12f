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

from outbox.admin import models
from outbox.admin.access import LOGOUT, RequestContext, Viewer, address_of, area, cross_site, read_body, record, unauthenticated
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
    """One that has not ended. `login_hash` is that of the token, or of the provider's subject, that was logged in with.

    `role` is what a provider's claims gave; None: that of the token.
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
    """Adds one, and deletes some that have ended."""
    sql = _sql(table)
    await connection.execute(sql["forget_expired"])
    expires_at = await connection.fetchval(sql["open_session"], token_hash, login_hash, name, lifetime, role)
    return Session(login_hash, expires_at, name, role)


async def find_session(connection: Connection, table: TableName, token_hash: bytes) -> Session | None:
    """The one whose cookie has that hash, unless it has ended."""
    row = await connection.fetchrow(_sql(table)["find_session"], token_hash)
    if row is None:
        return None
    role = None if row["role"] is None else Role(row["role"])
    return Session(bytes(row["login_hash"]), row["expires_at"], row["name"], role)


async def close_session(connection: Connection, table: TableName, token_hash: bytes) -> None:
    """Ends it."""
    await connection.execute(_sql(table)["close_session"], token_hash)


def _sql(table: TableName) -> Mapping[str, str]:
    return queries("access.sql", **satellite_names(table.schema))


@dataclass(frozen=True, slots=True)
class Failures:
    """How many there have been in the present window, this one included, and how long it still lasts."""

    count: int
    rest: timedelta


async def count_failure(connection: Connection, table: TableName, bucket: str, window: timedelta) -> Failures:
    """One more. The row stays locked until the transaction ends, so that the count is exact."""
    sql = query("access.sql", "count_failure", **satellite_names(table.schema))
    row = await connection.fetchrow(sql, bucket, window)
    assert row is not None  # noqa: S101 — it returns one always
    return Failures(row["failures"], row["rest"])


logger = logging.getLogger("outbox")

EVERYBODY = "everybody"
"""The bucket of all addresses together."""
MOST_REMEMBERED = 1_000
"""Addresses that a process remembers to refuse without asking the database."""


@dataclass(frozen=True, slots=True)
class LoginLimits:
    """How many wrong tokens are answered within `window`; those beyond are refused until it ends."""

    window: timedelta = timedelta(minutes=5)
    per_address: int = 10
    for_everybody: int = 200


class FailedLogins:
    """Counts them, for one admin. Each process learns from the database who is to be refused, and then does so by itself."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._limits = LoginLimits()
        self._refused: dict[str, float] = {}

    async def close(self) -> None:
        """There is nothing to close."""

    async def count(self, address: str) -> None:
        """Takes note of a wrong token from `address`. Raises `too_many_logins` if there were more than are answered.

        While the database is away, nothing is counted.
        """
        bucket = _bucket(address)
        self._refuse_known(EVERYBODY, bucket)
        try:
            # All addresses together have a limit too: an attacker may have many of them.
            await self._count(EVERYBODY, self._limits.for_everybody)
            await self._count(bucket, self._limits.per_address)
        except DatabaseUnavailableError as error:
            logger.warning("a failed login from %s was not counted: %s", address, error)

    async def _count(self, bucket: str, limit: int) -> None:
        async with self._admin.changing("counting failed logins") as connection:
            failures = await count_failure(connection, self._admin.table, bucket, self._limits.window)
        if failures.count > limit:
            # Bounded: new addresses cost an attacker little, and what is not remembered is counted in the database again.
            if len(self._refused) >= MOST_REMEMBERED:
                self._refused = {known: end for known, end in self._refused.items() if end > _now()}
            if len(self._refused) < MOST_REMEMBERED:
                self._refused[bucket] = _now() + failures.rest.total_seconds()
            logger.warning("more than %d failed logins from %s: refusing more for %s", limit, bucket, failures.rest)
            self._refuse_known(bucket)

    def _refuse_known(self, *buckets: str) -> None:
        rest = max(self._refused.get(bucket, 0.0) for bucket in buckets) - _now()
        if rest > 0:
            seconds = math.ceil(rest)
            raise Problem(
                Code.TOO_MANY_LOGINS,
                f"try again in {seconds} seconds, or with a token that is right",
                headers={"retry-after": str(seconds)},
            )


def _bucket(address: str) -> str:
    """Whom `address` stands for; a client with IPv6 has a whole network of them."""
    try:
        known = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return "no address"
    if known.version == 6 and known.ipv4_mapped is None:
        return str(ipaddress.ip_network(f"{known}/64", strict=False))
    return str(known)


def _now() -> float:
    return asyncio.get_running_loop().time()


_REVOKED_AGE = timedelta(seconds=2)
_REVOKED_TIMEOUT = timedelta(seconds=2)
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
    """A principal of `OUTBOX_ADMIN_TOKENS`. `session_hash` and `until` are those of its session, if it came with one."""

    by: Literal["token", "session"] = "token"
    session_hash: bytes | None = None
    until: datetime | None = None


def own_authentication(find: Callable[..., Any]) -> Callable[..., Awaitable[Principal | None]]:
    """A dependency for `require_authentication`. A token in the header goes before a cookie, and is not made up for by one."""

    async def authenticate(
        request: Request,
        admin: Annotated[Admin, Depends(find)],
        header: Annotated[Any, Security(_token)],
        cookie: Annotated[str | None, Security(_cookie)],
    ) -> Principal | None:
        if not _anybody_may_come_in(admin):
            return None
        if header is not None:
            entry = await entry_of(admin, header.credentials, request)
            if entry is not None and entry.expired:
                raise _expired(entry)
            return None if entry is None else TokenPrincipal(entry.name, entry.role)
        return await principal_of_cookie(admin, cookie)

    return authenticate


async def entry_of(admin: Admin, token: str, request: Request) -> TokenEntry | None:
    """Whose token this is; None if it is wrong. Raises `too_many_logins` if too many were."""
    if not _anybody_may_come_in(admin):
        return None
    entry = admin.tokens.find(token)
    if entry is not None and await admin.shared(RevokedTokens).has(entry.token_hash):
        raise unauthenticated(f"the token of {entry.name} was revoked: ask for a new one")
    if entry is None:
        await admin.shared(FailedLogins).count(request.client.host if request.client else "")
    return entry


async def principal_of_cookie(admin: Admin, cookie: str | None) -> TokenPrincipal | None:
    """The principal of a session, with the role that its token has now; None when the token is no longer valid."""
    if cookie is None or not _COOKIE_FORM.fullmatch(cookie):
        return None
    session_hash = hash_of(cookie)
    # On the connections of changes: slow reads must not keep an operator from being recognised.
    async with admin.reading("looking for a session", for_change=True) as connection:
        session = await find_session(connection, admin.table, session_hash)
    if session is None:
        return None
    if session.role is not None:  # as long as there is a provider that has said so
        known = TokenPrincipal(session.name, session.role, "session", session_hash, session.expires_at)
        return None if admin.oidc is None else known
    entry = admin.tokens.with_hash(session.login_hash)
    if entry is None or entry.expired:
        return None
    return TokenPrincipal(entry.name, entry.role, "session", session_hash, session.expires_at)


class RevokedTokens:
    """Which tokens were revoked, as the database said a moment ago; while it is away, as it said last."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._here: set[bytes] = set()
        self._known = SingleFlightCache(
            self._read, max_age=_REVOKED_AGE, timeout=_REVOKED_TIMEOUT, usable_for=timedelta(days=1)
        )

    async def has(self, token_hash: bytes) -> bool:
        """Whether the token with that hash was revoked."""
        if token_hash in self._here:
            return True
        try:
            known = await self._known.get(patience=timedelta(0) if self._known.has_usable else None)
        except (TimeoutError, DatabaseUnavailableError):
            return False
        return token_hash in known.value

    def add(self, token_hash: bytes) -> None:
        """It was, just now, in this process."""
        self._here.add(token_hash)

    async def close(self) -> None:
        """Ends what is being read."""
        await self._known.close()

    async def _read(self) -> frozenset[bytes]:
        try:
            async with self._admin.reading("reading revoked tokens", for_change=True) as connection:
                rows = await connection.fetch(_sql(self._admin.table)["revoked_tokens"])
        except (asyncpg.UndefinedTableError, asyncpg.InsufficientPrivilegeError):
            return frozenset()
        return frozenset(bytes(row["token_hash"]) for row in rows)


def _expired(entry: TokenEntry) -> Problem:
    return unauthenticated(f"the token of {entry.name} expired after {entry.last_day}: ask for a new one")


def _anybody_may_come_in(admin: Admin) -> bool:
    if not admin.tokens.entries and admin.oidc is None:
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
            logger.warning("no token is accepted: set OUTBOX_ADMIN_TOKENS to what `outbox token` prints")


identity = area("session")


class Permissions(models.Model):
    """What the current principal may do, by role and by whether the installation is read-only."""

    repair: Annotated[bool, Field(description="Requeue, discard, restore, run operations, set notes, change what waits.")]
    pause: Annotated[bool, Field(description="Pause and resume relays, workers and queues.")]
    purge: Annotated[bool, Field(description="Delete dead letters for good.")]
    reveal: Annotated[bool, Field(description="See what is masked.")]
    read_audit: Annotated[bool, Field(description="See who did what.")]


class EnvironmentResponse(models.Model):
    """The installation, as its operators call it."""

    name: str
    colour: Colour


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
    environment: Annotated[EnvironmentResponse | None, Field(description="What `OUTBOX_ENVIRONMENT` says; null: nothing.")]
    permissions: Permissions


@identity.get("/session", operation_id="outbox_session_show", summary="Show The Current Principal")
async def show_identity(context: Viewer) -> Identity:
    """Shows the current principal, how it is authenticated, and its permissions."""
    return identity_of(context.admin, context.principal)


def identity_of(admin: Admin, principal: Principal) -> Identity:
    """The answer about `principal`."""
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
"""Bytes of the body of a login that are read."""
_PATH = "/session"


class Login(models.Request):
    """A login."""

    token: Annotated[str, Field(min_length=1, max_length=1_000, description="A token that `outbox token` has shown.")]


def login_routes(find: Callable[..., Any]) -> APIRouter:
    """`POST /session`, which requires no authentication. `find` is a dependency that finds the `Admin`."""
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
        if entry.expired:
            raise _expired(entry)
        principal = TokenPrincipal(entry.name, entry.role)
        return identity_of(admin, await _enter(request, response, admin, principal, login_hash=entry.token_hash))

    async def enter(request: Request, response: Response, admin: Admin, name: str, role: Role, subject: str) -> None:
        principal = TokenPrincipal(name, role)
        await _enter(request, response, admin, principal, login_hash=hash_of(subject), role=role)

    oidc_routes(find, router, enter)
    return router


async def _enter(
    request: Request,
    response: Response,
    admin: Admin,
    principal: TokenPrincipal,
    *,
    login_hash: bytes,
    role: Role | None = None,
) -> TokenPrincipal:
    """Begins a session in place of the one that the browser had; `role` is that of a provider's claims."""
    before = await principal_of_cookie(admin, request.cookies.get(COOKIE))
    context = RequestContext(admin, principal, request.state.request_id, address_of(request), request.state.client_request_id)
    cookie = text_of(secrets.token_bytes(32))
    async with admin.changing("logging in") as connection:
        if before is not None and before.session_hash is not None:  # its cookie goes
            await close_session(connection, admin.table, before.session_hash)
            await record(connection, replace(context, principal=before), action="session.end")
        session = await open_session(
            connection,
            admin.table,
            token_hash=hash_of(cookie),
            login_hash=login_hash,
            name=principal.name,
            lifetime=admin.session_lifetime,
            role=role,
        )
        details = {} if role is None else {"provider": True, "role": role.value}
        await record(connection, context, action="session.begin", details=details)
    _set_cookie(request, response, cookie, max_age=int(admin.session_lifetime.total_seconds()))
    return TokenPrincipal(principal.name, principal.role, "session", hash_of(cookie), session.expires_at)


logout = area("session")


@logout.delete(_PATH, operation_id=LOGOUT, status_code=status.HTTP_204_NO_CONTENT)
async def log_out(request: Request, response: Response, context: Viewer) -> None:
    """Logs out: ends the session in every process and deletes the cookie. A token in the header has no session to end."""
    if isinstance(context.principal, TokenPrincipal) and context.principal.session_hash is not None:
        async with context.admin.changing("logging out") as connection:
            await close_session(connection, context.admin.table, context.principal.session_hash)
            await record(connection, context, action="session.end")
    _set_cookie(request, response, "", max_age=0)


def _set_cookie(request: Request, response: Response, value: str, *, max_age: int) -> None:
    """Sets it where the browser sees the router, so that it goes nowhere else: with the prefix of a proxy that strips it.

    The path stands there as in addresses: a prefix may have letters that no header takes, or, with a parameter, anything.
    """
    seen = seen_path(request).removesuffix("/oidc/callback")
    response.set_cookie(
        COOKIE,
        value,
        max_age=max_age,
        path=quote(seen.removesuffix(_PATH)) or "/",
        secure=request.url.scheme == "https",
        httponly=True,
        # No page of another site makes a browser send it.
        samesite="strict",
    )
