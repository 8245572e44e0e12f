"""Several outboxes in one router: each has its own tokens, sessions and audit, and one page leads to the dashboard of one."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import httpx
import pytest
from click.testing import CliRunner
from fastapi import FastAPI, Request

from outbox.admin import Admin, OpenIDConnect, Principal, Role, admin_router
from outbox.admin.principals import new_token
from outbox.cli import main
from outbox.errors import ConfigurationError
from outbox.runtime.health import HealthChecks
from tests.servers.postgres import PostgresServer, fresh_database, with_database
from tests.support.oidc import CLIENT, FakeProvider
from tests.support.serving import in_a_thread

EU, EU_ENTRY = new_token("ada", Role.OPERATOR)
US, US_ENTRY = new_token("ben", Role.ADMIN)
BOTH, BOTH_ENTRY = new_token("cleo", Role.VIEWER)
TOKENS = {"eu": (str(EU_ENTRY), str(BOTH_ENTRY)), "us": (str(US_ENTRY), str(BOTH_ENTRY))}
PAUSE = {"scope": "queue", "name": "mail", "reason": "the provider is down"}
SAME_ORIGIN = {"sec-fetch-site": "same-origin"}
UNREACHABLE = "postgresql://user@127.0.0.1:1/none"
Databases = dict[str, str]
Browser = Callable[..., httpx.AsyncClient]


@pytest.fixture(scope="module")
def databases(postgres_server: PostgresServer) -> Iterator[Databases]:
    """Two databases on one server, with the tables."""
    with fresh_database(postgres_server.url, tables=True) as eu, fresh_database(postgres_server.url, tables=True) as us:
        yield {"eu": with_database(postgres_server.url, eu), "us": with_database(postgres_server.url, us)}


@pytest.fixture
async def admins(databases: Databases) -> AsyncIterator[dict[str, Admin]]:
    """The admins of both, open."""
    async with AsyncExitStack() as stack:
        yield {
            name: await stack.enter_async_context(Admin(url, tokens=TOKENS[name], environment=f"{name} shop:red"))
            for name, url in databases.items()
        }


def application(admins: dict[str, Admin], **options: Any) -> FastAPI:
    app = FastAPI()
    app.include_router(admin_router(admins, **options), prefix="/outbox")
    return app


@pytest.fixture
async def browser(admins: dict[str, Admin]) -> AsyncIterator[Browser]:
    """Creates clients with cookies of one application with both admins."""
    async with AsyncExitStack() as stack:
        app = application(admins)
        clients = [httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="https://host/outbox") for _ in range(2)]
        waiting = [await stack.enter_async_context(client) for client in clients]
        yield waiting.pop


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


async def rows(url: str, sql: str) -> list[tuple[Any, ...]]:
    connection = await asyncpg.connect(url)
    try:
        return [tuple(row) for row in await connection.fetch(sql)]
    finally:
        await connection.close()


async def test_a_token_of_one_outbox_is_refused_by_the_other(browser: Browser) -> None:
    client = browser()
    for path, token, expected in (
        ("eu", EU, (200, "ada", "eu shop")),
        ("us", US, (200, "ben", "us shop")),
        ("eu", US, (401, None, None)),
        ("us", EU, (401, None, None)),
        ("eu", BOTH, (200, "cleo", "eu shop")),
    ):
        answer = await client.get(f"/{path}/session", headers=bearer(token))
        body = answer.json()
        assert (answer.status_code, body.get("name"), (body.get("environment") or {}).get("name")) == expected


async def test_sessions_of_two_outboxes_do_not_disturb_each_other(browser: Browser) -> None:
    client, other = browser(), browser()
    assert (await client.post("/eu/session", json={"token": BOTH})).status_code == 201
    assert [(each.name, each.path) for each in client.cookies.jar] == [("outbox_session_eu", "/outbox")]
    assert (await client.get("/us/session")).status_code == 401
    # Even by hand, though the token behind it is valid at the other one, too.
    other.cookies.set("outbox_session_us", client.cookies["outbox_session_eu"])
    assert (await other.get("/us/session")).status_code == 401

    assert (await client.post("/us/session", json={"token": US}, headers=SAME_ORIGIN)).status_code == 201
    names = [(await client.get(f"/{name}/session")).json()["name"] for name in ("eu", "us")]
    assert names == ["cleo", "ben"]
    assert (await client.delete("/us/session", headers=SAME_ORIGIN)).status_code == 204
    assert [(await client.get(f"/{name}/session")).status_code for name in ("eu", "us")] == [200, 401]


async def test_a_session_of_the_same_schema_opens_no_other_outbox(databases: Databases) -> None:
    async with Admin(databases["eu"], tokens=TOKENS["eu"]) as one, Admin(databases["eu"], tokens=TOKENS["eu"]) as two:
        transport = httpx.ASGITransport(application({"one": one, "two": two}))
        async with httpx.AsyncClient(transport=transport, base_url="https://host/outbox") as client:
            await client.post("/one/session", json={"token": EU})
            client.cookies.set("outbox_session_two", client.cookies["outbox_session_one"])
            assert [(await client.get(f"/{name}/session")).status_code for name in ("one", "two")] == [200, 401]


async def test_each_change_is_in_the_audit_of_its_own_database(browser: Browser, databases: Databases) -> None:
    client = browser()
    assert (await client.post("/us/pause", json=PAUSE, headers=bearer(US))).status_code < 300
    assert (await client.post("/eu/pause", json=PAUSE, headers=bearer(BOTH))).status_code == 403
    sql = "select actor, action, outcome from outbox_audit where actor in ('ben', 'cleo') and action = 'pause'"
    assert await rows(databases["us"], sql) == [("ben", "pause", "done")]
    assert await rows(databases["eu"], sql) == [("cleo", "pause", "denied")]
    assert len((await client.get("/us/pauses", headers=bearer(US))).json()["items"]) == 1
    assert (await client.get("/eu/pauses", headers=bearer(EU))).json()["items"] == []


async def test_the_list_shows_what_the_client_may_enter_and_an_unknown_client_nothing(browser: Browser) -> None:
    client = browser()
    nothing = await client.get("/outboxes")
    assert (nothing.status_code, nothing.json()["code"]) == (401, "unauthenticated")
    assert "eu" not in nothing.text
    assert "shop" not in nothing.text

    listed = (await client.get("/outboxes", headers=bearer(EU))).json()
    red = {"name": "eu shop", "colour": "red"}
    assert listed == {
        "items": [
            {"name": "eu", "may_enter": True, "environment": red},
            {"name": "us", "may_enter": False, "environment": None},
        ]
    }
    both = (await client.get("/outboxes", headers=bearer(BOTH))).json()["items"]
    assert [each["may_enter"] for each in both] == [True, True]
    await client.post("/us/session", json={"token": US})
    assert [each["may_enter"] for each in (await client.get("/outboxes")).json()["items"]] == [False, True]


async def test_wrong_tokens_at_the_list_count_as_failed_logins_and_those_of_another_outbox_do_not(
    browser: Browser, databases: Databases
) -> None:
    client = browser()
    await client.get("/outboxes", headers=bearer(US))
    counted = "select sum(failures)::int from outbox_login_failure where bucket = 'everybody'"
    before = {name: (await rows(url, counted))[0][0] or 0 for name, url in databases.items()}
    await client.get("/outboxes", headers=bearer(US))
    assert (await client.get("/outboxes", headers=bearer("outbox_wrong"))).status_code == 401
    after = {name: (await rows(url, counted))[0][0] or 0 for name, url in databases.items()}
    assert (after["eu"] - before["eu"], after["us"] - before["us"]) == (1, 0)


async def test_an_outbox_whose_database_is_away_does_not_hide_the_others(admins: dict[str, Admin]) -> None:
    async with Admin(UNREACHABLE, tokens=TOKENS["us"]) as away:
        transport = httpx.ASGITransport(application({**admins, "away": away}))
        async with httpx.AsyncClient(transport=transport, base_url="https://host/outbox") as client:
            await client.post("/eu/session", json={"token": EU})
            client.cookies.set("outbox_session_away", "A" * 43, path="/outbox")
            items = (await client.get("/outboxes")).json()["items"]
            assert [(each["name"], each["may_enter"]) for each in items] == [("eu", True), ("us", False), ("away", None)]
            await client.delete("/eu/session", headers=SAME_ORIGIN)
            # A made-up cookie is no proof, so that the names stay hidden.
            client.cookies.set("outbox_session_away", "A" * 43, path="/outbox")
            hidden = await client.get("/outboxes")
            assert (hidden.status_code, hidden.json()["code"]) == (503, "database_unavailable")


async def test_the_prefix_leads_to_the_dashboard_that_was_open_last_or_may_be_entered(browser: Browser) -> None:
    client = browser()

    async def led_to(path: str) -> str:
        answer = await client.get(path)
        assert answer.status_code == 307
        return urlsplit(str(answer.next_request.url if answer.next_request else "")).path

    assert [await led_to(path) for path in ("https://host/outbox", "/", "/ui", "/ui/")] == ["/outbox/", *["/outbox/eu/ui/"] * 3]
    await client.post("/us/session", json={"token": US})
    assert await led_to("/ui/") == "/outbox/us/ui/", "there is no session at the first one"
    await client.post("/eu/session", json={"token": EU}, headers=SAME_ORIGIN)
    client.cookies.set("outbox_last", "us", path="/outbox")
    assert await led_to("/ui/") == "/outbox/us/ui/"
    client.cookies.clear()
    client.cookies.set("outbox_last", "us", path="/outbox")
    assert await led_to("/ui/") == "/outbox/us/ui/", "the login page of the last one"
    kept = await client.get("/ui/chains/a%2Fb?view=table")
    assert str(kept.next_request and kept.next_request.url) == "https://host/outbox/us/ui/chains/a%2Fb?view=table"


async def test_a_path_without_the_name_of_an_outbox_says_so(browser: Browser) -> None:
    client = browser()
    answer = await client.get("/backlog", headers=bearer(EU))
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert "no outbox is named 'backlog'" in answer.json()["detail"]
    assert (await client.get("/mars/ui/")).status_code == 404
    assert (await client.get("/eu/nothing")).status_code == 401, "as for a single outbox"
    assert (await client.get("/eu/nothing", headers=bearer(EU))).json()["code"] == "not_found"
    assert (await client.post("/eu/backlog", headers=bearer(EU))).headers["allow"] == "GET, HEAD"


async def test_a_host_decides_by_the_name_in_the_path(admins: dict[str, Admin]) -> None:
    def who(request: Request) -> Principal | None:
        name = request.headers.get("x-name")
        forbidden = request.path_params.get("outbox_name") == "us"
        return None if name is None or forbidden else Principal(name, Role.VIEWER)

    app = application(admins, authenticate=who, health=HealthChecks())
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="https://host/outbox") as client:
        assert (await client.get("/outboxes")).status_code == 401
        headers = {"x-name": "dora"}
        listed = (await client.get("/outboxes", headers=headers)).json()["items"]
        assert [(each["name"], each["may_enter"]) for each in listed] == [("eu", None), ("us", None)]
        assert [(await client.get(f"/{name}/session", headers=headers)).status_code for name in ("eu", "us")] == [200, 401]
        assert (await client.get("/health/live")).status_code == 200


async def test_a_login_at_a_provider_returns_to_its_outbox(databases: Databases) -> None:
    provider = FakeProvider()
    with in_a_thread(provider.app) as issuer:
        provider.issuer = issuer
        login = OpenIDConnect(issuer=issuer, client_id=CLIENT, roles={"*": "viewer"})
        async with Admin(databases["eu"], oidc=login) as eu, Admin(databases["us"], oidc=login) as us:
            transport = httpx.ASGITransport(application({"eu": eu, "us": us}))
            async with httpx.AsyncClient(transport=transport, base_url="https://host/outbox", timeout=30) as client:
                begun = await client.get("/us/session/oidc", params={"page": "queues"})
                asked = dict(httpx.URL(begun.headers["location"]).params)
                assert asked["redirect_uri"] == "https://host/outbox/us/session/oidc/callback"
                provider.asked = asked
                ended = await client.get("/us/session/oidc/callback", params={"code": "a code", "state": asked["state"]})
                assert ended.headers["location"] == "/outbox/us/ui/queues"
                assert [(await client.get(f"/{name}/session")).status_code for name in ("eu", "us")] == [401, 200]


def test_the_command_line_works_with_the_address_of_one(databases: Databases, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, url in databases.items():
        monkeypatch.setenv(f"{name.upper()}_DATABASE_URL", url)
        monkeypatch.setenv(f"{name.upper()}_TOKEN", TOKENS[name][0])
    page = (Path(__file__).parents[2] / "docs" / "admin.md").read_text()
    host = dict[str, Any]()
    exec(page.partition("# console.py")[2].partition("```")[0], host)
    with in_a_thread(host["app"]) as address:
        results = {
            name: CliRunner().invoke(main, ["backlog", "--url", f"{address}/outbox/{name}"], env={"OUTBOX_TOKEN": EU})
            for name in ("eu", "us", "mars")
        }
    assert [result.exit_code == 0 for result in results.values()] == [True, False, False]
    assert "unauthenticated" in results["us"].output
    assert "no outbox is named 'mars'" in results["mars"].output


@pytest.mark.parametrize("name", ["", "ui", "health", "outboxes", "a/b", "eu west", "é", "-eu", "e" * 41])
def test_a_name_that_cannot_be_in_a_path_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="an outbox's name must be 1 to 40 letters"):
        admin_router({name: Admin(UNREACHABLE)})


def test_no_admin_and_something_else_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="at least one Admin"):
        admin_router({})
    with pytest.raises(ConfigurationError, match="the value of 'eu' must be an Admin, not str"):
        admin_router({"eu": UNREACHABLE})  # type: ignore[dict-item]
