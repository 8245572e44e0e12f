"""Logging in through an OpenID Connect provider: `GET /session/methods`, `GET /session/oidc` and its callback."""

import asyncio
import base64
import hashlib
import json
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
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
"""Timeout of requests to the provider."""
METADATA_AGE = timedelta(hours=1)
"""How long the provider's endpoints and keys are cached. An unknown key makes the admin fetch the keys again."""
STATE_COOKIE = "outbox_oidc"
STATE_AGE = timedelta(minutes=10)
"""How long a login at the provider may take."""
LEEWAY_SECONDS = 60
"""Maximum difference to the provider's clock."""
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
"""Accepted signature algorithms: only asymmetric ones, with the provider's public keys."""
ANY_VALUE = "*"
_MIN_KEY_AGE = timedelta(seconds=10)
_log = logging.getLogger("outbox")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenIDConnect:
    """An OpenID Connect provider where users log in, and the roles they get.

    `roles` maps values of the claim `roles_claim`, a string or a list, to roles; `*` applies to all users. The highest role
    that applies counts; without one, the login is refused. `name_claim` has the user's name for the audit log; if it is
    missing, the subject is used. `redirect_url` is the callback of the login, `https://host/outbox/session/oidc/callback`;
    None: derived from the request. Raises `ConfigurationError`, and `MissingExtraError` without the extra `oidc`.
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
                raise ConfigurationError(f"{name} of the login provider must be an https:// URL, not {url!r}")
        if not self.client_id:
            raise ConfigurationError("the login provider needs a client_id")
        if not self.roles:
            raise ConfigurationError("the login provider needs roles such as {'sre': 'admin'}: without them no user can log in")
        for value, role in self.roles.items():
            if not value or role not in tuple(Role):
                raise ConfigurationError(f"roles must map each value to one of {', '.join(Role)}, not {value!r} to {role!r}")
        if "openid" not in self.scopes.split():
            raise ConfigurationError(f"scopes must contain openid, not only {self.scopes!r}")
        for module in ("joserfc", "httpx"):
            if find_spec(module) is None:
                raise MissingExtraError(purpose="Logging in through a provider", extra="oidc")

    def role_of(self, claims: Mapping[str, Any]) -> Role | None:
        """Returns the highest role that the claims give, or None."""
        given = claims.get(self.roles_claim)
        listed = given if isinstance(given, list) else [given]
        values = [each for each in listed if isinstance(each, str)]
        roles = [Role(self.roles[value]) for value in (*values, ANY_VALUE) if value in self.roles]
        return max(roles, key=list(Role).index, default=None)

    def name_of(self, claims: Mapping[str, Any]) -> str:
        """Returns the user's name for the audit log, on one line."""
        name = claims.get(self.name_claim)
        text = name if isinstance(name, str) and name.strip() else str(claims["sub"])
        return "".join(char if char.isprintable() else "?" for char in text.strip())[:LONGEST_NAME]


class LoginFailedError(Exception):
    """A login failed. The dashboard explains `reason`."""

    def __init__(self, reason: "Reason", detail: str) -> None:
        super().__init__(detail)
        self.reason: Reason = reason


Reason = Literal["expired", "refused", "unavailable", "invalid", "no_role"]


class Provider:
    """Client of an admin's provider. Caches the provider's metadata and keys."""

    def __init__(self, admin: Admin) -> None:
        if admin.oidc is None:
            raise ConfigurationError("no login provider is configured")
        self.settings = admin.oidc
        self._metadata: Mapping[str, Any] = {}
        self._keys: Mapping[str, Any] = {}
        self._read_at = self._keys_at = -METADATA_AGE.total_seconds()
        self._reading = asyncio.Lock()

    async def close(self) -> None:
        """Does nothing: there is no open connection."""

    async def authorization_url(self, redirect_url: str, state: "State") -> str:
        """Returns the URL where the browser logs in. Raises `LoginFailedError`."""
        endpoint = await self._endpoint("authorization_endpoint")
        challenge = _base64(hashlib.sha256(state.verifier.encode()).digest())
        parameters = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": redirect_url,
            "scope": self.settings.scopes,
            "state": state.state,
            # Nonce and challenge bind the token and the code to this browser's cookie: stolen ones are of no use without it.
            "nonce": state.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(parameters)}"

    async def claims(self, code: str, redirect_url: str, state: "State") -> Mapping[str, Any]:
        """Exchanges the code for the verified claims of the user. Raises `LoginFailedError`."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_url,
            "client_id": self.settings.client_id,
            "code_verifier": state.verifier,
        }
        endpoint = await self._endpoint("token_endpoint")
        secret = self.settings.client_secret
        async with self._client() as client:
            # RFC 6749, 2.3.1: both are form-encoded before they are used as user name and password.
            auth = None if secret is None else (quote(self.settings.client_id, safe=""), quote(secret, safe=""))
            content = await self._request(client, "POST", endpoint, data=form, auth=auth)
        token = content.get("id_token")
        if not isinstance(token, str):
            raise LoginFailedError("invalid", f"the provider's response has no id_token, only {sorted(content)}")
        return await self._verify(token, state.nonce)

    async def _verify(self, token: str, nonce: str) -> Mapping[str, Any]:
        from joserfc import jwt
        from joserfc.errors import JoseError
        from joserfc.jwk import JWKRegistry, KeySet

        rules = jwt.JWTClaimsRegistry(
            leeway=LEEWAY_SECONDS,
            iss={"essential": True, "value": self.settings.issuer},
            aud={"essential": True, "value": self.settings.client_id},
            sub={"essential": True},
            exp={"essential": True},
            iat={"essential": True},
            nonce={"essential": True, "value": nonce},
        )
        # An unknown key may be new: providers rotate their keys. So the second attempt fetches the keys again.
        for newest in (False, True):
            keys = await self._provider_keys(newest=newest)
            try:
                usable = []
                for key in keys["keys"]:
                    # RFC 7517, 5: a key that is not supported, such as one on an unknown curve, must not spoil the others.
                    with suppress(JoseError, ValueError, KeyError, TypeError):
                        usable.append(JWKRegistry.import_key(key))
                claims = jwt.decode(token, KeySet(usable), algorithms=ALGORITHMS).claims
                rules.validate(claims)
            except (JoseError, ValueError, KeyError, TypeError) as error:
                if newest or "claim" in type(error).__name__.lower():
                    raise LoginFailedError("invalid", f"the id token is invalid: {error}") from error
            else:
                return claims
        raise AssertionError

    async def _endpoint(self, name: str) -> str:
        """Returns a URL from the provider's metadata, which are fetched again when they are old."""
        async with self._reading:
            if monotonic() - self._read_at > METADATA_AGE.total_seconds():
                issuer = self.settings.issuer
                async with self._client() as client:
                    found = await self._request(client, "GET", f"{issuer.rstrip('/')}/.well-known/openid-configuration")
                # OpenID Connect Discovery requires it: otherwise one provider could sign tokens in the name of another.
                if found.get("issuer") != issuer:
                    raise LoginFailedError("unavailable", f"the provider's issuer is {found.get('issuer')!r}, not {issuer!r}")
                self._metadata, self._read_at = found, monotonic()
        url = self._metadata.get(name)
        if not isinstance(url, str) or urlsplit(url).scheme not in ("https", "http"):
            raise LoginFailedError("unavailable", f"the provider publishes no {name}")
        return url

    async def _provider_keys(self, *, newest: bool) -> Any:
        """Returns the provider's public keys. `newest`: fetches them again."""
        url = await self._endpoint("jwks_uri")
        async with self._reading:
            age = monotonic() - self._keys_at
            # A minimum age even for `newest`, so that failing logins do not cause many requests to the provider.
            if age > (_MIN_KEY_AGE if newest else METADATA_AGE).total_seconds():
                async with self._client() as client:
                    self._keys = await self._request(client, "GET", url)
                self._keys_at = monotonic()
        return self._keys

    def _client(self) -> "httpx.AsyncClient":
        import httpx

        return httpx.AsyncClient(timeout=TIMEOUT.total_seconds(), headers={"accept": "application/json"})

    async def _request(self, client: "httpx.AsyncClient", method: str, url: str, **options: Any) -> Mapping[str, Any]:
        import httpx

        try:
            async with asyncio.timeout(TIMEOUT.total_seconds()):
                response = await client.request(method, url, **options)
            content = response.json()
        except (httpx.HTTPError, TimeoutError, ValueError) as error:
            raise LoginFailedError("unavailable", f"{url} does not respond: {str(error) or type(error).__name__}") from error
        if not response.is_success or not isinstance(content, dict):
            reason = content.get("error") if isinstance(content, dict) else None
            raise LoginFailedError("refused", f"{url} returned status {response.status_code}: {reason}")
        return content


@dataclass(frozen=True, slots=True)
class State:
    """State of a login at the provider, in a cookie: only the browser that began the login can complete it."""

    state: str
    nonce: str
    verifier: str
    page: str

    @classmethod
    def new(cls, page: str) -> "State":
        """Creates a state with random values. `page` is the page of the dashboard to open after the login."""
        return cls(secrets.token_urlsafe(32), secrets.token_urlsafe(32), secrets.token_urlsafe(64), page)

    @classmethod
    def of(cls, cookie: str | None) -> "State | None":
        """Decodes the state of a cookie. Returns None if it is missing or malformed."""
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
    """Available login methods."""

    token: bool = Field(description="Whether users can log in with a token, with `POST /session`.")
    provider: bool = Field(description="Whether users can log in at a provider, with `GET /session/oidc` in a browser.")


class BeginParameters(RequestModel):
    """Query parameters of `GET /session/oidc`."""

    page: Annotated[str, Field(max_length=1_000, description="Dashboard page to open afterwards: its path below `/ui/`.")] = ""


class CallbackParameters(BaseModel):
    """Query parameters of the callback. Providers may add others."""

    code: Annotated[str | None, Field(max_length=4_000)] = None
    state: Annotated[str | None, Field(max_length=500)] = None
    error: Annotated[str | None, Field(max_length=500)] = None
    iss: Annotated[str | None, Field(max_length=1_000, description="Issuer (RFC 9207).")] = None


Enter = Callable[[Request, Response, Admin, str, Role, str], Awaitable[None]]
"""Logs a user in, given the name, the role, and the subject at the issuer; and sets the session cookie."""


def oidc_routes(find: Callable[..., Any], router: APIRouter, enter: Enter) -> None:
    """Adds the endpoints, which are public, to `router`. `find` is a dependency that returns the `Admin`."""

    @router.get("/session/methods", operation_id="outbox_session_methods", summary="Show How To Log In")
    async def show_methods(admin: Annotated[Admin, Depends(find)]) -> LoginMethods:
        """Shows the available login methods: token, provider, or both. This endpoint is public."""
        return LoginMethods(token=bool(admin.tokens.entries), provider=admin.oidc is not None)

    @router.get("/session/oidc", include_in_schema=False)
    async def begin(
        request: Request, admin: Annotated[Admin, Depends(find)], wanted: Annotated[BeginParameters, Query()]
    ) -> Response:
        """Redirects the browser to the provider."""
        base = seen_path(request).removesuffix("/session/oidc")
        state = State.new(wanted.page.lstrip("/"))
        try:
            provider = _provider(admin)
            url = await provider.authorization_url(_redirect_url(provider.settings, request, base), state)
        except LoginFailedError as error:
            return _redirect_with_error(base, state.page, error)
        response = _redirect(url)
        _set_state_cookie(response, request, base, str(state), STATE_AGE)
        return response

    @router.get("/session/oidc/callback", include_in_schema=False)
    async def end(
        request: Request, admin: Annotated[Admin, Depends(find)], given: Annotated[CallbackParameters, Query()]
    ) -> Response:
        """Logs the user in, and redirects to the dashboard."""
        base = seen_path(request).removesuffix("/session/oidc/callback")
        state = State.of(request.cookies.get(STATE_COOKIE))
        try:
            user = await _authenticated_user(admin, state, given, lambda settings: _redirect_url(settings, request, base))
        except LoginFailedError as error:
            response = _redirect_with_error(base, "" if state is None else state.page, error)
        else:
            response = _redirect(f"{base}/ui/{'' if state is None else state.page}")
            await enter(request, response, admin, user.name, user.role, user.subject)
        _set_state_cookie(response, request, base, "", timedelta(0))
        return response


@dataclass(frozen=True, slots=True)
class _User:
    """A user whom the provider has authenticated."""

    name: str
    role: Role
    subject: str


async def _authenticated_user(
    admin: Admin, state: State | None, given: CallbackParameters, redirect_url: Callable[[OpenIDConnect], str]
) -> _User:
    """Verifies a callback, and returns its user. Raises `LoginFailedError`."""
    # Otherwise another site could complete a login of its own in this browser.
    if state is None or not secrets.compare_digest(state.state.encode(), (given.state or "").encode()):
        raise LoginFailedError("expired", "the login was begun in another browser, or too long ago")
    if given.code is None:
        raise LoginFailedError("refused", f"the provider returned the error {given.error!r}")
    provider = _provider(admin)
    settings = provider.settings
    if given.iss not in (None, settings.issuer):
        raise LoginFailedError("invalid", f"the response is from the issuer {given.iss!r}")
    claims = await provider.claims(given.code, redirect_url(settings), state)
    role, name = settings.role_of(claims), settings.name_of(claims)
    if role is None:
        raise LoginFailedError("no_role", f"no role is configured for the claims of {name}")
    return _User(name, role, f"{settings.issuer} {claims['sub']}")


def _provider(admin: Admin) -> Provider:
    if admin.oidc is None:
        raise LoginFailedError("unavailable", "no login provider is configured")
    return admin.shared(Provider)


def seen_path(request: Request) -> str:
    """Returns the path of the request as the browser sees it, with the root path."""
    path, root = str(request.scope["path"]), str(request.scope.get("root_path", "")).rstrip("/")
    return path if path.startswith(f"{root}/") else root + path


def _redirect_url(settings: OpenIDConnect, request: Request, base: str) -> str:
    return settings.redirect_url or f"{request.url.scheme}://{request.url.netloc}{quote(base)}/session/oidc/callback"


def _redirect_with_error(base: str, page: str, error: LoginFailedError) -> Response:
    """Redirects to the dashboard's login page, which shows the reason."""
    _log.warning("a login through the provider failed: %s", error)
    path, _, query = page.partition("?")
    return _redirect(f"{base}/ui/{path}?{query}{'&' if query else ''}login={error.reason}")


def _redirect(url: str) -> Response:
    headers = {"Location": quote(url, safe=":/?#[]@!$&'()*+,;=%-._~"), "Cache-Control": "no-store"}
    return Response(status_code=303, headers=headers)


def _set_state_cookie(response: Response, request: Request, base: str, value: str, age: timedelta) -> None:
    # Not `strict`: the provider, which is another site, redirects the browser to the callback.
    response.set_cookie(
        STATE_COOKIE,
        value,
        max_age=int(age.total_seconds()),
        path=f"{quote(base)}/session/oidc",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )
