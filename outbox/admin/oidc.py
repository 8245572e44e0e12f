"""Logging in through an OpenID Connect provider: `GET /session/methods`, `GET /session/oidc` and its callback."""

import asyncio
import base64
import hashlib
import json
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from importlib.util import find_spec
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import quote, urlencode, urlsplit

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, Field

from outbox.admin.admin import Admin
from outbox.admin.models import Model
from outbox.admin.models import Request as RequestModel
from outbox.admin.principals import LONGEST_NAME, Role
from outbox.errors import ConfigurationError, MissingExtraError

if TYPE_CHECKING:
    import httpx

TIMEOUT = timedelta(seconds=10)
"""Longest that an answer of the provider may take."""
METADATA_AGE = timedelta(hours=1)
"""How long the provider's addresses and keys are remembered; of a key that is not known they are asked for again."""
STATE_COOKIE = "outbox_oidc"
STATE_AGE = timedelta(minutes=10)
"""How long a login at the provider may take."""
LEEWAY_SECONDS = 60
"""How far the provider's clock may be off."""
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
"""Signatures that are accepted: those that take a key of the provider's own."""
ANYBODY = "*"
_REST_BETWEEN_KEYS = timedelta(seconds=10)
_log = logging.getLogger("outbox")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenIDConnect:
    """A provider that people log in at, and which role they get.

    `roles` names a role for values of the claim `roles_claim`, a text or a list, and for `*` one for everybody who has an
    account; the highest that applies counts, and without one the login is refused. `name_claim` is what the audit calls them,
    or the subject where it is missing. `redirect_url` is where the provider sends browsers back to, `https://host/outbox/session/
    oidc/callback`; None: as the browser addressed the admin. Raises `ConfigurationError`, and `MissingExtraError` without the
    extra `oidc`.
    """

    issuer: str
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    roles: Mapping[str, Role | str] = field(default_factory=dict)
    roles_claim: str = "groups"
    name_claim: str = "email"
    scopes: str = "openid email profile"
    redirect_url: str | None = None

    def __post_init__(self) -> None:
        for name, url in (("issuer", self.issuer), ("redirect_url", self.redirect_url)):
            parts = urlsplit(url or "https://none")
            local = parts.hostname in ("localhost", "127.0.0.1", "::1")
            if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and local)):
                raise ConfigurationError(f"{name} of the login provider is an address https://…, not {url!r}")
        if not self.client_id:
            raise ConfigurationError("the login provider knows the admin by a client_id: give it")
        if not self.roles:
            raise ConfigurationError("say who gets in through the login provider: roles such as {'sre': 'admin'}")
        for value, role in self.roles.items():
            if not value or role not in tuple(Role):
                raise ConfigurationError(f"roles names one of {', '.join(Role)} for each value, not {role!r} for {value!r}")
        if "openid" not in self.scopes.split():
            raise ConfigurationError(f"scopes contain openid, unlike {self.scopes!r}")
        for module in ("joserfc", "httpx"):
            if find_spec(module) is None:
                raise MissingExtraError(purpose="Logging in through a provider", extra="oidc")

    def role_of(self, claims: Mapping[str, Any]) -> Role | None:
        """The highest role that the claims give; None: none."""
        given = claims.get(self.roles_claim)
        listed = given if isinstance(given, list) else [given]
        values = [each for each in listed if isinstance(each, str)]
        roles = [Role(self.roles[value]) for value in (*values, ANYBODY) if value in self.roles]
        return max(roles, key=list(Role).index, default=None)

    def name_of(self, claims: Mapping[str, Any]) -> str:
        """What the audit calls them: one line of text."""
        name = claims.get(self.name_claim)
        text = name if isinstance(name, str) and name.strip() else str(claims["sub"])
        return "".join(char if char.isprintable() else "?" for char in text.strip())[:LONGEST_NAME]


class LoginFailedError(Exception):
    """A login is refused; `reason` is one of the words that the dashboard knows."""

    def __init__(self, reason: "Reason", detail: str) -> None:
        super().__init__(detail)
        self.reason: Reason = reason


Reason = Literal["expired", "refused", "unavailable", "invalid", "no_role"]


class Provider:
    """Asks the provider of an admin. What it publishes about itself is remembered."""

    def __init__(self, admin: Admin) -> None:
        if admin.oidc is None:
            raise ConfigurationError("no login provider is configured")
        self.settings = admin.oidc
        self._metadata: Mapping[str, Any] = {}
        self._keys: Mapping[str, Any] = {}
        self._read_at = self._keys_at = -METADATA_AGE.total_seconds()
        self._reading = asyncio.Lock()

    async def close(self) -> None:
        """There is nothing to close."""

    async def authorization_url(self, redirect_url: str, state: "State") -> str:
        """Where the browser goes to log in. Raises `LoginFailedError`."""
        endpoint = await self._endpoint("authorization_endpoint")
        challenge = _base64(hashlib.sha256(state.verifier.encode()).digest())
        wanted = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": redirect_url,
            "scope": self.settings.scopes,
            "state": state.state,
            "nonce": state.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(wanted)}"

    async def claims(self, code: str, redirect_url: str, state: "State") -> Mapping[str, Any]:
        """What the provider says of whom the code stands for, its signature checked. Raises `LoginFailedError`."""
        given = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_url,
            "client_id": self.settings.client_id,
            "code_verifier": state.verifier,
        }
        endpoint = await self._endpoint("token_endpoint")
        secret = self.settings.client_secret
        async with self._client() as client:
            # RFC 6749, 2.3.1: both are form-encoded before they become a name and a password.
            auth = None if secret is None else (quote(self.settings.client_id, safe=""), quote(secret, safe=""))
            answer = await self._ask(client, "POST", endpoint, data=given, auth=auth)
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise LoginFailedError("invalid", f"the provider's answer has no id_token: {sorted(answer)}")
        return await self._verified(token, state.nonce)

    async def _verified(self, token: str, nonce: str) -> Mapping[str, Any]:
        from joserfc import jwt
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        rules = jwt.JWTClaimsRegistry(
            leeway=LEEWAY_SECONDS,
            iss={"essential": True, "value": self.settings.issuer},
            aud={"essential": True, "value": self.settings.client_id},
            sub={"essential": True},
            exp={"essential": True},
            iat={"essential": True},
            nonce={"essential": True, "value": nonce},
        )
        for newest in (False, True):
            keys = await self._provider_keys(newest=newest)
            try:
                claims = jwt.decode(token, KeySet.import_key_set(keys), algorithms=ALGORITHMS).claims
                rules.validate(claims)
            except (JoseError, ValueError, KeyError, TypeError) as error:
                if newest or "claim" in type(error).__name__.lower():
                    raise LoginFailedError("invalid", f"the id token is not accepted: {error}") from error
            else:
                return claims
        raise AssertionError

    async def _endpoint(self, name: str) -> str:
        metadata = await self._provider_metadata()
        url = metadata.get(name)
        if not isinstance(url, str) or urlsplit(url).scheme not in ("https", "http"):
            raise LoginFailedError("unavailable", f"the provider publishes no {name}")
        return url

    async def _provider_metadata(self) -> Mapping[str, Any]:
        async with self._reading:
            if monotonic() - self._read_at > METADATA_AGE.total_seconds():
                issuer = self.settings.issuer
                async with self._client() as client:
                    found = await self._ask(client, "GET", f"{issuer.rstrip('/')}/.well-known/openid-configuration")
                if found.get("issuer") != issuer:
                    raise LoginFailedError("unavailable", f"the provider calls itself {found.get('issuer')!r}, not {issuer!r}")
                self._metadata, self._read_at = found, monotonic()
        return self._metadata

    async def _provider_keys(self, *, newest: bool) -> Any:
        """Its public keys; `newest`: not those of before, unless they were read just now."""
        url = await self._endpoint("jwks_uri")
        async with self._reading:
            age = monotonic() - self._keys_at
            if age > (_REST_BETWEEN_KEYS if newest else METADATA_AGE).total_seconds():
                async with self._client() as client:
                    self._keys = await self._ask(client, "GET", url)
                self._keys_at = monotonic()
        return self._keys

    def _client(self) -> "httpx.AsyncClient":
        import httpx

        return httpx.AsyncClient(timeout=TIMEOUT.total_seconds(), headers={"accept": "application/json"})

    async def _ask(self, client: "httpx.AsyncClient", method: str, url: str, **options: Any) -> Mapping[str, Any]:
        import httpx

        try:
            async with asyncio.timeout(TIMEOUT.total_seconds()):
                response = await client.request(method, url, **options)
            answer = response.json()
        except (httpx.HTTPError, TimeoutError, ValueError) as error:
            raise LoginFailedError("unavailable", f"{url} does not answer: {str(error) or type(error).__name__}") from error
        if not response.is_success or not isinstance(answer, dict):
            said = answer.get("error") if isinstance(answer, dict) else None
            raise LoginFailedError("refused", f"{url} answered {response.status_code}: {said}")
        return answer


@dataclass(frozen=True, slots=True)
class State:
    """What a browser keeps during a login at the provider: only the browser that began it can end it."""

    state: str
    nonce: str
    verifier: str
    page: str

    @classmethod
    def new(cls, page: str) -> "State":
        """One that cannot be guessed. `page` is where the dashboard goes on."""
        return cls(secrets.token_urlsafe(32), secrets.token_urlsafe(32), secrets.token_urlsafe(64), page)

    @classmethod
    def of(cls, cookie: str | None) -> "State | None":
        """The one that a cookie holds; None if it holds none."""
        try:
            values = json.loads(base64.urlsafe_b64decode(f"{cookie or ''}=="))
        except (ValueError, RecursionError):
            return None
        if not isinstance(values, list) or len(values) != 4 or not all(isinstance(value, str) for value in values):
            return None
        return cls(*values)

    def __str__(self) -> str:
        return _base64(json.dumps([self.state, self.nonce, self.verifier, self.page]).encode())


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class LoginMethods(Model):
    """How one can log in here."""

    token: bool = Field(description="With a token, by `POST /session`.")
    provider: bool = Field(description="At an OpenID Connect provider, by `GET /session/oidc` in a browser.")


class BeginParameters(RequestModel):
    """What `GET /session/oidc` takes."""

    page: Annotated[str, Field(max_length=1_000, description="Where the dashboard goes on: the address below `/ui/`.")] = ""


class CallbackParameters(BaseModel):
    """What the provider says in the address that it sends a browser back to; it may say more."""

    code: Annotated[str | None, Field(max_length=4_000)] = None
    state: Annotated[str | None, Field(max_length=500)] = None
    error: Annotated[str | None, Field(max_length=500)] = None
    iss: Annotated[str | None, Field(max_length=1_000, description="RFC 9207: who says so.")] = None


Enter = Callable[[Request, Response, Admin, str, Role, str], Awaitable[None]]
"""Logs in who is called so, with that role, as the subject at the issuer, and sets the cookie of the session."""


def oidc_routes(find: Callable[..., Any], router: APIRouter, enter: Enter) -> None:
    """Adds the endpoints, which require no authentication, to `router`. `find` is a dependency that finds the `Admin`."""

    @router.get("/session/methods", operation_id="outbox_session_methods", summary="Show How To Log In")
    async def show_methods(admin: Annotated[Admin, Depends(find)]) -> LoginMethods:
        """Shows how one can log in: with a token, or at a provider. Public."""
        return LoginMethods(token=bool(admin.tokens.entries), provider=admin.oidc is not None)

    @router.get("/session/oidc", include_in_schema=False)
    async def begin(
        request: Request, admin: Annotated[Admin, Depends(find)], wanted: Annotated[BeginParameters, Query()]
    ) -> Response:
        """Sends the browser to the provider."""
        base = seen_path(request).removesuffix("/session/oidc")
        state = State.new(wanted.page.lstrip("/"))
        try:
            provider = _provider(admin)
            url = await provider.authorization_url(_redirect_url(provider.settings, request, base), state)
        except LoginFailedError as error:
            return _back(base, state.page, error)
        response = _to(url)
        _keep(response, request, base, str(state), STATE_AGE)
        return response

    @router.get("/session/oidc/callback", include_in_schema=False)
    async def end(
        request: Request, admin: Annotated[Admin, Depends(find)], given: Annotated[CallbackParameters, Query()]
    ) -> Response:
        """Logs in whom the provider vouches for, and leads to the dashboard."""
        base = seen_path(request).removesuffix("/session/oidc/callback")
        state = State.of(request.cookies.get(STATE_COOKIE))
        try:
            person = await _person(admin, state, given, lambda settings: _redirect_url(settings, request, base))
        except LoginFailedError as error:
            response = _back(base, "" if state is None else state.page, error)
        else:
            response = _to(f"{base}/ui/{'' if state is None else state.page}")
            await enter(request, response, admin, person.name, person.role, person.subject)
        _keep(response, request, base, "", timedelta(0))
        return response


@dataclass(frozen=True, slots=True)
class _Person:
    """Whom the provider vouches for."""

    name: str
    role: Role
    subject: str


async def _person(
    admin: Admin, state: State | None, given: CallbackParameters, redirect_url: Callable[[OpenIDConnect], str]
) -> _Person:
    """Raises `LoginFailedError`."""
    if state is None or not secrets.compare_digest(state.state.encode(), (given.state or "").encode()):
        raise LoginFailedError("expired", "this browser has not begun this login, or too long ago")
    if given.code is None:
        raise LoginFailedError("refused", f"the provider says {given.error!r}")
    provider = _provider(admin)
    settings = provider.settings
    if given.iss not in (None, settings.issuer):
        raise LoginFailedError("invalid", f"the answer is that of {given.iss!r}")
    claims = await provider.claims(given.code, redirect_url(settings), state)
    role, name = settings.role_of(claims), settings.name_of(claims)
    if role is None:
        raise LoginFailedError("no_role", f"{name} has none of the values that a role is for")
    return _Person(name, role, f"{settings.issuer} {claims['sub']}")


def _provider(admin: Admin) -> Provider:
    if admin.oidc is None:
        raise LoginFailedError("unavailable", "no login provider is configured")
    return admin.shared(Provider)


def seen_path(request: Request) -> str:
    """The path of the request as the browser sees it."""
    path, root = str(request.scope["path"]), str(request.scope.get("root_path", "")).rstrip("/")
    return path if path.startswith(f"{root}/") else root + path


def _redirect_url(settings: OpenIDConnect, request: Request, base: str) -> str:
    return settings.redirect_url or f"{request.url.scheme}://{request.url.netloc}{quote(base)}/session/oidc/callback"


def _back(base: str, page: str, error: LoginFailedError) -> Response:
    """Back to the login page of the dashboard, which says why."""
    _log.warning("a login through the provider failed: %s", error)
    path, _, query = page.partition("?")
    return _to(f"{base}/ui/{path}?{query}{'&' if query else ''}login={error.reason}")


def _to(url: str) -> Response:
    headers = {"Location": quote(url, safe=":/?#[]@!$&'()*+,;=%-._~"), "Cache-Control": "no-store"}
    return Response(status_code=303, headers=headers)


def _keep(response: Response, request: Request, base: str, value: str, age: timedelta) -> None:
    response.set_cookie(
        STATE_COOKIE,
        value,
        max_age=int(age.total_seconds()),
        path=f"{quote(base)}/session/oidc",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",  # the provider, another site, sends the browser back
    )
