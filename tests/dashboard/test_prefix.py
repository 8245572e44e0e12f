"""In a host application, below any address, also one that a proxy takes away."""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest
from fastapi import FastAPI, Request
from playwright.async_api import Browser, expect
from starlette.types import ASGIApp, Receive, Scope, Send

from outbox.admin import Admin, Role, admin_router
from outbox.admin.principals import new_token
from tests.app.support import Service
from tests.dashboard.axe import assert_accessible
from tests.dashboard.stage import NAMES, Stage, Visit
from tests.dashboard.watching import watched
from tests.servers.postgres import PostgresServer, fresh_database, with_database
from tests.support.processes import OurProcess
from tests.support.serving import in_a_thread

BEFORE = "/a/b"
NO_PROCESS = cast("OurProcess", None)
"""There are no processes besides the test's own."""


class Stripping:
    """A proxy that takes the beginning of the path away, which the server knows: `uvicorn --root-path`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            assert scope["path"].startswith(f"{BEFORE}/")
            stripped = {name: scope[name][len(BEFORE) :] for name in ("path", "raw_path")}
            scope = {**scope, **stripped, "root_path": BEFORE}
        await self._app(scope, receive, send)


@pytest.fixture(scope="module", params=["mounted", "stripped"])
def stage(request: pytest.FixtureRequest, dashboard: None, postgres_server: PostgresServer) -> Iterator[Stage]:
    """The admin in an application of its own, whose database is its broker."""
    made = {role: new_token(NAMES[role], role) for role in Role}
    with fresh_database(postgres_server.url, tables=True) as name:
        url = with_database(postgres_server.url, name)
        app = _host(
            url, [str(entry) for _, entry in made.values()], "/outbox" if request.param == "stripped" else f"{BEFORE}/outbox"
        )
        with in_a_thread(Stripping(app) if request.param == "stripped" else app, timeout_graceful_shutdown=1) as address:
            tokens = {role: token for role, (token, _) in made.items()}
            yield Stage(Service(NO_PROCESS, f"{address}{BEFORE}"), NO_PROCESS, url, url, tokens, Path("nowhere"))


async def test_every_address_is_below_the_prefix(stage: Stage, visit: Visit) -> None:
    await stage.publish({"order": 7}, routing_key="order.placed")
    page = await visit()
    answers: list[tuple[int, str]] = []
    page.on("response", lambda answer: answers.append((answer.status, answer.url)))
    await page.get_by_role("link", name="Messages", exact=True).click()
    await expect(page).to_have_url(f"{stage.ui}messages")
    await page.get_by_role("tab", name=re.compile("Pending", re.IGNORECASE)).click()
    await page.get_by_role("link", name="order.placed").click()
    await expect(page.get_by_role("article")).to_contain_text("order.placed")
    await expect(page.get_by_text("Live", exact=True).locator("visible=true")).to_be_visible()

    assert await page.evaluate("document.fonts.ready.then(() => [...document.fonts].some(font => font.status === 'loaded'))")
    assert sum(url.endswith(".woff2") for _, url in answers) <= 2
    deep = page.url
    assert deep.startswith(f"{stage.ui}messages/")
    await page.reload()
    await expect(page.get_by_role("article")).to_contain_text("order.placed")
    await expect(page).to_have_url(deep)
    await page.go_back()
    await expect(page).to_have_url(re.compile(rf"^{re.escape(stage.ui)}messages"))
    assert any("/assets/" in url for _, url in answers)
    wrong = [(status, url) for status, url in answers if status >= 400 or not url.startswith(f"{stage.service.url}/outbox/")]
    assert wrong == []


async def test_a_link_from_elsewhere_leads_deep_into_it(stage: Stage, visit: Visit) -> None:
    page = await visit("chains/a%2Fb?view=table", Role.VIEWER)
    await expect(page.get_by_text("No chain found for this ID.")).to_be_visible()
    await page.get_by_role("link", name="All chains").click()
    await expect(page).to_have_url(f"{stage.ui}chains")
    await page.goto(f"{stage.service.url}/outbox/ui")
    await expect(page).to_have_url(stage.ui)
    await expect(page.get_by_role("heading", level=1)).to_have_text("Overview")


async def test_a_switch_leads_to_the_same_page_of_another_outbox(
    dashboard: None, browser: Browser, postgres_server: PostgresServer
) -> None:
    (eu, eu_entry), (us, us_entry) = (new_token(name, Role.VIEWER) for name in ("vera", "walt"))
    with fresh_database(postgres_server.url, tables=True) as one, fresh_database(postgres_server.url, tables=True) as other:
        admins = {
            "eu": Admin(with_database(postgres_server.url, one), tokens=[str(eu_entry)]),
            "us": Admin(with_database(postgres_server.url, other), tokens=[str(us_entry)], environment="production:red"),
        }

        @asynccontextmanager
        async def lifespan(app: FastAPI) -> AsyncIterator[None]:
            async with admins["eu"], admins["us"]:
                yield

        app = FastAPI(lifespan=lifespan)
        app.include_router(admin_router(admins), prefix="/outbox")
        with in_a_thread(app, timeout_graceful_shutdown=1) as address:
            context = await browser.new_context(locale="en-GB")
            page = await context.new_page()
            async with watched(page, address):
                await page.goto(f"{address}/outbox/ui/messages?status=sent#token={eu}")
                await expect(page).to_have_title("Messages · eu · Outbox")
                await page.get_by_role("button", name="Outbox eu").click()
                await assert_accessible(page)
                await page.get_by_role("link").filter(has_text="Log in").click()
                await expect(page).to_have_title("Log in · us · Outbox")
                await assert_accessible(page)
                await page.get_by_label("Token").fill(us)
                await page.keyboard.press("Enter")
                await expect(page.get_by_text("walt", exact=True)).to_be_visible()
                await expect(page).to_have_url(f"{address}/outbox/us/ui/messages")
                await page.get_by_role("button", name="Outbox us").press("Enter")
                await page.get_by_role("link", name="eu", exact=True).press("Enter")
                await expect(page.get_by_text("vera", exact=True)).to_be_visible()
                await page.get_by_role("button", name="Log out").click()
                await expect(page).to_have_title("Log in · eu · Outbox")
                await page.goto(f"{address}/outbox/ui/messages")
                await expect(page).to_have_url(f"{address}/outbox/us/ui/messages")
                await expect(page.get_by_text("walt", exact=True)).to_be_visible()
            await context.close()


def _host(url: str, tokens: list[str], prefix: str) -> FastAPI:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with Admin(url, tokens=tokens) as app.state.admin:
            yield

    app = FastAPI(lifespan=lifespan)
    app.include_router(admin_router(_admin), prefix=prefix)
    return app


def _admin(request: Request) -> Admin:
    admin: Admin = request.app.state.admin
    return admin
