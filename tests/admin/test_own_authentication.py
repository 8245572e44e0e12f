"""The admin's own authentication: tokens, browser sessions, and limits of failed logins."""

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any
from urllib.parse import unquote

import asyncpg
import httpx
import pytest
from fastapi import FastAPI, HTTPException

from outbox.admin import Admin, Role, admin_router
from outbox.admin.principals import Tokens, new_token
from outbox.errors import ConfigurationError
from tests.admin.support import client_of, serving

TOKEN, ENTRY = new_token("alice", Role.OPERATOR)
OTHER, OTHER_ENTRY = new_token("bob", Role.VIEWER)
SAME_ORIGIN = {"sec-fetch-site": "same-origin"}


class Applications:
    """Applications on one database, each like a separate process."""

    def __init__(self, database: str, stack: AsyncExitStack) -> None:
        self._database = database
        self._stack = stack

    async def browser(
        self, *tokens: str, url: str = "http://service", address: str = "192.0.2.1", **options: Any
    ) -> httpx.AsyncClient:
        """Returns a client with cookies for a new application."""
        admin = Admin(self._database, tokens=tokens or (str(ENTRY), str(OTHER_ENTRY)), **options)
        app = await self._stack.enter_async_context(serving(admin, authenticate=None))
        return await self.client(app, url=url, address=address)

    async def client(self, app: FastAPI, *, url: str = "http://service", address: str = "192.0.2.1") -> httpx.AsyncClient:
        """Returns a client of the application with this IP address."""
        transport = httpx.ASGITransport(app, raise_app_exceptions=False, client=(address, 1))
        client = httpx.AsyncClient(transport=transport, base_url=f"{url}/outbox")
        return await self._stack.enter_async_context(client)


@pytest.fixture
async def applications(database: str) -> AsyncIterator[Applications]:
    async with AsyncExitStack() as stack:
        yield Applications(database, stack)


def _bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


async def _rows(database: str, sql: str) -> list[asyncpg.Record]:
    connection = await asyncpg.connect(database)
    try:
        return await connection.fetch(sql)
    finally:
        await connection.close()


async def test_a_token_in_the_header_authenticates(applications: Applications) -> None:
    client = await applications.browser()
    answer = await client.get("/session", headers=_bearer(TOKEN))
    assert answer.json() == {
        "name": "alice",
        "role": "operator",
        "authenticated_by": "token",
        "expires_at": None,
        "read_only": False,
        "environment": None,
        "permissions": {"repair": True, "pause": True, "purge": False, "reveal": True, "read_audit": True},
    }


async def test_the_environment_has_a_name_and_a_colour(database: str) -> None:
    for given, expected in (
        ("production:red", {"name": "production", "colour": "red"}),
        ("eu:west:blue", {"name": "eu:west", "colour": "blue"}),
        ("staging", {"name": "staging", "colour": "grey"}),
    ):
        async with serving(Admin(database, environment=given)) as app, client_of(app) as client:
            assert (await client.get("/session")).json()["environment"] == expected


@pytest.mark.parametrize("name", ["", ":red", "production:pink", " production", "a" * 41, "one\nline"])
def test_an_invalid_environment_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="environment must be 1 to 40 characters"):
        Admin("postgresql://a@b/c", environment=name)


@pytest.mark.parametrize(
    "header",
    ["Bearer", "Bearer x", f"Bearer {TOKEN}x", f"Basic {TOKEN}", f"Bearer {ENTRY}", "Bearer é"],
    ids=["no token", "no token of ours", "longer", "another scheme", "the entry", "not ASCII"],
)
async def test_any_other_header_value_is_unauthenticated(applications: Applications, header: str) -> None:
    client = await applications.browser()
    answer = await client.get("/session", headers={b"authorization": header.encode("latin-1")})
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")


async def test_a_session_is_valid_in_every_process_until_one_ends_it(applications: Applications, database: str) -> None:
    here, there = await applications.browser(), await applications.browser()
    begun = await here.post("/session", json={"token": TOKEN})
    assert (begun.status_code, begun.json()["authenticated_by"]) == (201, "session")
    there.cookies = here.cookies
    assert (await there.get("/session")).json()["name"] == "alice"
    kept = httpx.Cookies(here.cookies)
    assert (await here.delete("/session", headers=SAME_ORIGIN)).status_code == 204
    assert len(here.cookies) == 0
    there.cookies = kept
    assert (await there.get("/session")).status_code == 401
    assert await _rows(database, "select from outbox_session") == []
    audited = await _rows(database, "select actor, action, address from outbox_audit order by id")
    assert [tuple(row) for row in audited] == [("alice", "session.begin", "192.0.2.1"), ("alice", "session.end", "192.0.2.1")]


async def test_a_login_ends_the_browsers_previous_session(applications: Applications, database: str) -> None:
    client = await applications.browser()
    await client.post("/session", json={"token": TOKEN})
    stolen = await applications.browser()
    stolen.cookies = httpx.Cookies(client.cookies)
    begun = await client.post("/session", json={"token": OTHER}, headers=SAME_ORIGIN)
    assert (begun.status_code, (await client.get("/session")).json()["name"]) == (201, "bob")
    assert (await stolen.get("/session")).status_code == 401
    audited = await _rows(database, "select actor, action from outbox_audit order by id")
    assert [tuple(row) for row in audited] == [
        ("alice", "session.begin"),
        ("alice", "session.end"),
        ("bob", "session.begin"),
    ]


async def test_a_failed_login_ends_no_session(applications: Applications) -> None:
    client = await applications.browser()
    await client.post("/session", json={"token": TOKEN})
    assert (await client.post("/session", json={"token": "wrong"}, headers=SAME_ORIGIN)).status_code == 401
    assert (await client.get("/session")).json()["name"] == "alice"


@pytest.mark.parametrize(("url", "secure"), [("http://service", False), ("https://service", True)])
async def test_the_cookie_is_limited_to_the_admin_and_hidden_from_scripts(
    applications: Applications, url: str, secure: bool
) -> None:
    client = await applications.browser(url=url, session_lifetime=timedelta(hours=1))
    cookie = (await client.post("/session", json={"token": TOKEN})).headers["set-cookie"]
    value, *attributes = cookie.split("; ")
    assert len(value) == len("outbox_session=") + 43
    assert sorted(attributes) == sorted(
        ["HttpOnly", "Max-Age=3600", "Path=/outbox", "SameSite=strict", *(["Secure"] if secure else [])]
    )


async def test_the_cookie_is_limited_to_the_admin_with_any_prefix(database: str) -> None:
    app = FastAPI()
    admin = Admin(database, tokens=[str(ENTRY)])
    app.include_router(admin_router(admin), prefix="/of/{tenant}/outbox")
    async with admin, httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://service") as client:
        for tenant in ("%E7%AE%A1", "a;%20Domain=example.org", "a%0d%0ax:%20y"):
            answer = await client.post(f"/of/{tenant}/outbox/session", json={"token": TOKEN})
            assert answer.status_code == 201
            [path] = [part for part in answer.headers["set-cookie"].split("; ") if part.startswith("Path=")]
            assert unquote(path) == f"Path=/of/{unquote(tenant)}/outbox"
            assert "domain" not in answer.headers["set-cookie"].replace(path, "").lower()


async def test_neither_token_nor_cookie_is_in_the_database(applications: Applications, database: str) -> None:
    client = await applications.browser()
    cookie = (await client.post("/session", json={"token": TOKEN})).cookies["outbox_session"]
    everything = str([tuple(row) for row in await _rows(database, "select * from outbox_session, outbox_audit")])
    assert "alice" in everything
    assert TOKEN not in everything
    assert cookie not in everything


async def test_a_session_ends_after_its_lifetime_and_with_its_token(applications: Applications, database: str) -> None:
    client, other = await applications.browser(), await applications.browser(str(OTHER_ENTRY))
    await client.post("/session", json={"token": TOKEN})
    other.cookies = client.cookies
    assert (await other.get("/session")).status_code == 401
    assert (await client.get("/session")).status_code == 200
    await _rows(database, "update outbox_session set expires_at = now()")
    assert (await client.get("/session")).status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "cross-site", "origin": "http://service"}, 403),
        ({"origin": "http://elsewhere"}, 403),
        ({"origin": "http://service:8000"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://elsewhere", "x-forwarded-host": "elsewhere"}, 403),
        ({"origin": "http://service"}, 204),
        ({"origin": "http://service:80"}, 204),
        ({"sec-fetch-site": "none"}, 204),
        (SAME_ORIGIN, 204),
    ],
)
async def test_changes_with_a_cookie_must_come_from_the_same_site(
    applications: Applications, headers: dict[str, str], status: int
) -> None:
    client = await applications.browser()
    await client.post("/session", json={"token": TOKEN})
    answer = await client.delete("/session", headers=headers)
    assert answer.status_code == status
    if status == 403:
        assert answer.json()["code"] == "cross_site"


async def test_another_site_cannot_log_a_browser_in(applications: Applications) -> None:
    client = await applications.browser()
    answer = await client.post("/session", json={"token": TOKEN}, headers={"sec-fetch-site": "cross-site"})
    assert (answer.status_code, answer.json()["code"]) == (403, "cross_site")


async def test_a_thousand_wrong_tokens_are_refused_and_a_valid_one_is_accepted(
    applications: Applications, database: str
) -> None:
    client = await applications.browser()
    wrong = [new_token("x", Role.ADMIN)[0] for _ in range(500)]
    answers = [await client.post("/session", json={"token": token}) for token in wrong]
    answers += [await client.get("/session", headers=_bearer(token)) for token in wrong]
    assert [answer.status_code for answer in answers] == [401] * 10 + [429] * 990
    assert answers[-1].json()["code"] == "too_many_logins"
    assert 0 < int(answers[-1].headers["retry-after"]) <= 300
    counted = await _rows(database, "select bucket, failures from outbox_login_failure order by bucket")
    assert [tuple(row) for row in counted] == [("192.0.2.1", 11), ("everybody", 11)]
    for address in ("192.0.2.1", "192.0.2.2"):
        assert (await (await applications.browser(address=address)).post("/session", json={"token": TOKEN})).status_code == 201


async def test_wrong_tokens_from_many_addresses_share_a_limit_and_leave_few_rows(
    applications: Applications, database: str
) -> None:
    first = await applications.browser()
    app = first._transport.app  # type: ignore[attr-defined]  # the same application, from other addresses
    statuses = []
    for number in range(205):
        client = await applications.client(app, address=f"198.51.100.{number}")
        statuses.append((await client.get("/session", headers=_bearer("wrong"))).status_code)
    assert statuses == [401] * 200 + [429] * 5
    assert len(await _rows(database, "select from outbox_login_failure")) == 201
    assert (await first.get("/session", headers=_bearer(TOKEN))).status_code == 200


async def test_without_a_configured_token_every_request_is_refused_and_logged_once(
    database: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(Admin(database), authenticate=None) as app, AsyncExitStack() as stack:
        client = await Applications(database, stack).client(app)
        with caplog.at_level(logging.WARNING, logger="outbox"):
            for headers in ({}, _bearer(TOKEN), _bearer("")):
                assert (await client.get("/session", headers=headers)).status_code == 401
            assert (await client.post("/session", json={"token": TOKEN})).status_code == 401
    assert [record.message for record in caplog.records if "OUTBOX_ADMIN_TOKENS" in record.message] == [
        "no token is configured: set OUTBOX_ADMIN_TOKENS to the output of `outbox token`"
    ]


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        (["alice"], "token 1 must be name:role:hash"),
        ([str(ENTRY), f"bob:root:{'0' * 64}"], "token 2: the role must be one of viewer, operator, admin"),
        ([f"alice:admin:{TOKEN}"], "token 1: the hash must be 64 digits"),
        ([f"a b:admin:{'0' * 64}"], "token 1: a name must be"),
        ([str(ENTRY), f"alice:admin:{'0' * 64}"], "alice has tokens with two roles"),
        ([str(ENTRY), str(ENTRY)], "two entries have the same hash"),
    ],
)
def test_invalid_entries_are_refused_at_construction_without_quoting_them(texts: list[str], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem) as caught:
        Admin("postgresql://localhost/x", tokens=texts)
    assert TOKEN not in str(caught.value)


def test_a_chosen_secret_is_never_a_token() -> None:
    from outbox.admin.principals import entry_for

    assert Tokens((entry_for("hunter2", "alice", Role.ADMIN),)).find("hunter2") is None
    assert Tokens((ENTRY,)).find(TOKEN) == ENTRY


async def test_an_error_of_the_hosts_authentication_is_handled_by_the_host(database: str) -> None:
    def refuse() -> None:
        raise HTTPException(418, {"of": "the host"})

    async with serving(Admin(database), authenticate=refuse) as app, AsyncExitStack() as stack:
        client = await Applications(database, stack).client(app)
        answer = await client.get("/session")
        assert (answer.status_code, answer.json()) == (418, {"detail": {"of": "the host"}})
        assert (await client.post("/session", json={"token": TOKEN})).status_code == 418
