"""Logging in at an OpenID Connect provider: a real one on a port, whose answers are right, or wrong in every way."""

from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from fastapi import FastAPI
from joserfc.jwk import RSAKey

from outbox.admin import Admin, OpenIDConnect, Role, admin_router
from outbox.admin.oidc import State
from outbox.errors import ConfigurationError
from tests.support.oidc import CLIENT, FakeProvider
from tests.support.serving import in_a_thread

SECRET = "s3cret/:"
ROLES = {"sre": "admin", "support": "operator"}


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    fake = FakeProvider()
    with in_a_thread(fake.app) as url:
        fake.issuer = url
        yield fake


@pytest.fixture
async def browser(database: str, provider: FakeProvider) -> AsyncIterator[httpx.AsyncClient]:
    settings = OpenIDConnect(issuer=provider.issuer, client_id=CLIENT, client_secret=SECRET, roles=ROLES)
    async with Admin(database, oidc=settings) as admin:
        app = FastAPI()
        app.include_router(admin_router(admin), prefix="/outbox")
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="https://host", timeout=30) as client:
            yield client


async def begun(browser: httpx.AsyncClient, provider: FakeProvider, page: str = "") -> dict[str, str]:
    answer = await browser.get("/outbox/session/oidc", params={"page": page})
    assert answer.status_code == 303, answer.text
    where = answer.headers["location"]
    assert where.startswith(f"{provider.issuer}/authorize?"), where
    provider.asked = {name: values[0] for name, values in parse_qs(urlsplit(where).query).items()}
    return provider.asked


async def returned(browser: httpx.AsyncClient, **said: str) -> str:
    answer = await browser.get("/outbox/session/oidc/callback", params=said)
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


async def test_a_user_gets_the_role_of_a_claim(browser: httpx.AsyncClient, provider: FakeProvider) -> None:
    assert (await browser.get("/outbox/session/methods")).json() == {"token": False, "provider": True}
    assert (await browser.get("/outbox/session")).status_code == 401
    asked = await begun(browser, provider, "dead-letters?q=mail&status=open")
    assert (asked["client_id"], asked["response_type"], asked["code_challenge_method"]) == (CLIENT, "code", "S256")
    assert asked["redirect_uri"] == "https://host/outbox/session/oidc/callback"
    assert asked["scope"] == "openid email profile"
    where = await returned(browser, code="c-1", state=asked["state"], session_state="more", iss=provider.issuer)
    assert where == "/outbox/ui/dead-letters?q=mail&status=open"
    assert provider.token["redirect_uri"] == asked["redirect_uri"]
    assert (provider.token["grant_type"], provider.token["code"]) == ("authorization_code", "c-1")
    challenge = urlsafe_b64encode(sha256(provider.token["code_verifier"].encode()).digest()).decode().rstrip("=")
    assert challenge == asked["code_challenge"]
    assert httpx.BasicAuth(CLIENT, "s3cret%2F%3A")._auth_header == provider.token["authorization"]
    known = (await browser.get("/outbox/session")).json()
    assert (known["name"], known["role"], known["authenticated_by"]) == ("ada@shop.example", "admin", "session")
    [session] = (await browser.get("/outbox/access")).json()["sessions"]
    assert (session["name"], session["role"], session["by_provider"]) == ("ada@shop.example", "admin", True)
    [entry] = (await browser.get("/outbox/audit", params={"action": "session.begin"})).json()["items"]
    assert (entry["actor"], entry["details"]) == ("ada@shop.example", {"provider": True, "role": "admin"})
    assert (await browser.delete("/outbox/session", headers={"sec-fetch-site": "same-origin"})).status_code == 204
    assert (await browser.get("/outbox/session")).status_code == 401


async def test_cookies_are_inaccessible_to_scripts_and_other_sites(browser: httpx.AsyncClient, provider: FakeProvider) -> None:
    first = await browser.get("/outbox/session/oidc")
    asked = parse_qs(urlsplit(first.headers["location"]).query)
    [cookie] = first.headers.get_list("set-cookie")
    assert "HttpOnly" in cookie
    assert "Secure" in cookie
    assert "SameSite=lax" in cookie
    assert "Path=/outbox/session/oidc" in cookie
    provider.asked = {name: values[0] for name, values in asked.items()}
    answer = await browser.get("/outbox/session/oidc/callback", params={"code": "c", "state": provider.asked["state"]})
    cookies = {each.partition("=")[0]: each for each in answer.headers.get_list("set-cookie")}
    assert "SameSite=strict" in cookies["outbox_session"]
    assert "Path=/outbox;" in f"{cookies['outbox_session']};"
    assert "Max-Age=0" in cookies["outbox_oidc"]


WRONG: dict[str, dict[str, Any]] = {
    "another issuer": {"iss": "https://other.example"},
    "another audience": {"aud": "another"},
    "an old token": {"exp": 1},
    "of the future": {"iat": 9_999_999_999, "nbf": 9_999_999_999},
    "another login": {"nonce": "n"},
    "no nonce": {"nonce": None},
    "no subject": {"sub": None},
    "no end": {"exp": None},
}


@pytest.mark.parametrize("claims", WRONG.values(), ids=WRONG)
async def test_an_invalid_token_is_rejected(browser: httpx.AsyncClient, provider: FakeProvider, claims: dict[str, Any]) -> None:
    asked = await begun(browser, provider, "queues")
    provider.claims |= claims
    assert await returned(browser, code="c", state=asked["state"]) == "/outbox/ui/queues?login=invalid"
    assert (await browser.get("/outbox/session")).status_code == 401


async def test_a_token_with_an_unknown_key_is_rejected_and_new_keys_are_fetched(
    browser: httpx.AsyncClient, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = await begun(browser, provider)
    provider.key = RSAKey.generate_key(2048, {"kid": "one"})
    assert await returned(browser, code="c", state=asked["state"]) == "/outbox/ui/?login=invalid"
    monkeypatch.setattr("outbox.admin.oidc._MIN_KEY_AGE", timedelta(0))
    provider.published = provider.key
    asked = await begun(browser, provider)
    assert await returned(browser, code="c", state=asked["state"]) == "/outbox/ui/"
    assert provider.requests.count("configuration") == 1


async def test_a_login_without_a_role_is_refused(browser: httpx.AsyncClient, provider: FakeProvider) -> None:
    for groups in ([], ["people"], None, 7, [{"sre": 1}], {"sre": 1}):
        asked = await begun(browser, provider)
        provider.claims["groups"] = groups
        assert await returned(browser, code="c", state=asked["state"]) == "/outbox/ui/?login=no_role"


async def test_keys_that_are_not_supported_are_ignored(browser: httpx.AsyncClient, provider: FakeProvider) -> None:
    provider.further_keys = [
        {"kty": "EC", "crv": "brainpoolP256r1", "x": "AA", "y": "AA", "kid": "two"},
        {"kty": "EC", "crv": "P-256", "kid": "three"},
        {"kid": "four"},
    ]
    asked = await begun(browser, provider)
    assert await returned(browser, code="c", state=asked["state"]) == "/outbox/ui/"


async def test_only_the_browser_that_began_a_login_completes_it(browser: httpx.AsyncClient, provider: FakeProvider) -> None:
    asked = await begun(browser, provider)
    assert await returned(browser, code="c", state="another") == "/outbox/ui/?login=expired"
    assert await returned(browser, code="c", state=asked["state"]) == "/outbox/ui/?login=expired"  # its cookie is gone
    for cookie in ("x", "e30", str(State("", "", "", ""))):
        browser.cookies.set("outbox_oidc", cookie, domain="host", path="/outbox/session/oidc")
        assert await returned(browser, code="c", state="s") == "/outbox/ui/?login=expired"
    assert provider.token == {}


async def test_the_login_page_shows_refusals_and_outages(browser: httpx.AsyncClient, provider: FakeProvider) -> None:
    asked = await begun(browser, provider)
    assert await returned(browser, error="access_denied", state=asked["state"]) == "/outbox/ui/?login=refused"
    asked = await begun(browser, provider)
    provider.status = 400
    assert await returned(browser, code="c", state=asked["state"]) == "/outbox/ui/?login=refused"
    asked = await begun(browser, provider)
    assert await returned(browser, code="c", state=asked["state"], iss="https://other.example") == "/outbox/ui/?login=invalid"


async def test_sessions_survive_an_outage_of_the_provider(
    browser: httpx.AsyncClient, provider: FakeProvider, database: str
) -> None:
    away = OpenIDConnect(issuer="http://127.0.0.1:9", client_id=CLIENT, roles=ROLES)
    async with Admin(database, oidc=away) as admin:
        app = FastAPI()
        app.include_router(admin_router(admin), prefix="/outbox")
        asked = await begun(browser, provider)
        await returned(browser, code="c", state=asked["state"])
        cookies = browser.cookies
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="https://host", cookies=cookies) as client:
            answer = await client.get("/outbox/session/oidc")
            assert answer.headers["location"] == "/outbox/ui/?login=unavailable"
            assert (await client.get("/outbox/session")).json()["role"] == "admin"


async def test_a_name_is_one_line_and_the_highest_role_counts() -> None:
    settings = OpenIDConnect(issuer="https://p.example", client_id="c", roles={"a": "viewer", "b": "operator", "*": "viewer"})
    assert settings.name_of({"sub": "s", "email": " x\n\u202ey "}) == "x??y"
    assert settings.name_of({"sub": "s", "email": ""}) == "s"
    assert len(settings.name_of({"sub": "s" * 500})) == 100
    assert settings.role_of({"groups": ["a", "b"]}) is Role.OPERATOR
    assert settings.role_of({"groups": "b"}) is Role.OPERATOR
    assert settings.role_of({}) is Role.VIEWER


@pytest.mark.parametrize(
    "wrong",
    [
        {"issuer": "http://p.example"},
        {"issuer": "p.example"},
        {"client_id": ""},
        {"roles": {}},
        {"roles": {"a": "king"}},
        {"scopes": "email"},
        {"redirect_url": "ftp://host"},
    ],
)
def test_invalid_provider_settings_are_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        OpenIDConnect(**{"issuer": "https://p.example", "client_id": "c", "roles": {"a": "viewer"}, **wrong})
