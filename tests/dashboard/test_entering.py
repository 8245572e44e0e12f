"""Coming in: by the link of a start in development, by typing a token, and not at all."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from fastapi import FastAPI, HTTPException, Request
from playwright.async_api import Browser, expect

from outbox.admin import Admin, OpenIDConnect, Role, admin_router
from tests.dashboard.axe import assert_accessible
from tests.dashboard.stage import Stage, Visit
from tests.dashboard.watching import watched
from tests.support.oidc import CLIENT, FakeProvider
from tests.support.serving import in_a_thread


async def test_a_link_logs_in_by_itself_and_its_token_leaves_the_address(stage: Stage, visit: Visit) -> None:
    page = await visit("components?x=1", Role.VIEWER)
    await expect(page).to_have_url(f"{stage.ui}components?x=1")
    await expect(page.get_by_text("vera", exact=True)).to_be_visible()
    await expect(page.get_by_text("staging", exact=True).filter(visible=True)).to_have_count(1)
    cookies = await page.context.cookies()
    assert [(cookie["httpOnly"], cookie["sameSite"]) for cookie in cookies] == [(True, "Strict")]
    assert stage.tokens[Role.VIEWER] not in await page.content()


async def test_after_logging_out_the_login_returns_to_the_same_address(stage: Stage, visit: Visit) -> None:
    page = await visit("topology")
    await page.get_by_role("button", name="Log out").click()
    await expect(page.get_by_role("heading", name=re.compile("Log in"))).to_be_visible()
    await assert_accessible(page)
    await page.get_by_label("Token").fill(stage.tokens[Role.OPERATOR])
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("olga", exact=True)).to_be_visible()
    await expect(page).to_have_url(f"{stage.ui}topology")


async def test_a_wrong_token_is_reported_and_can_be_corrected(stage: Stage, visit: Visit) -> None:
    page = await visit()
    await page.get_by_role("button", name="Log out").click()
    await page.get_by_label("Token").fill("outbox_wrong")
    await page.get_by_role("button", name="Log in").click()
    await expect(page.get_by_label("Token")).to_have_accessible_description(re.compile("Invalid token"))
    await page.get_by_label("Token").fill(stage.tokens[Role.VIEWER])
    await page.get_by_role("button", name="Log in").click()
    await expect(page.get_by_text("vera", exact=True)).to_be_visible()


async def test_a_link_of_another_principal_asks_before_it_replaces_a_session(stage: Stage, visit: Visit) -> None:
    page = await visit("components", Role.VIEWER)
    await page.evaluate("token => { location.hash = `token=${token}` }", stage.tokens[Role.OPERATOR])
    await expect(page.get_by_role("heading", name="Log in with this link?")).to_be_visible()
    await expect(page).to_have_url(f"{stage.ui}components")
    await assert_accessible(page)
    await page.get_by_role("button", name="Stay vera").click()
    await expect(page.get_by_text("vera", exact=True)).to_be_visible()
    await page.goto(f"{stage.ui}components#token={stage.tokens[Role.OPERATOR]}")
    await page.reload()
    await expect(page.get_by_text("vera", exact=True)).to_be_visible()
    await page.evaluate("token => { location.hash = `token=${token}` }", stage.tokens[Role.OPERATOR])
    await page.get_by_role("button", name="Log in with the link").click()
    await expect(page.get_by_text("olga", exact=True)).to_be_visible()
    await expect(page).to_have_url(f"{stage.ui}components")
    async with stage.api() as api:
        ended = (await api.get("/audit", params={"action": "session.end", "actor": "vera"})).json()["items"]
    assert len(ended) == 1


async def test_a_link_asks_before_it_discards_what_was_typed(stage: Stage, visit: Visit) -> None:
    page = await visit("messages", Role.OPERATOR)
    await page.get_by_role("button", name="Publish …").click()
    key = page.get_by_role("dialog").get_by_label("Routing key")
    await key.fill("order.placed")
    open_link = "token => { location.hash = `token=${token}` }"
    async with page.expect_event("dialog") as asked:
        await page.evaluate(open_link, stage.tokens[Role.VIEWER])
        await (await asked.value).dismiss()
    await expect(page).to_have_url(f"{stage.ui}messages")
    await expect(key).to_have_value("order.placed")
    async with page.expect_event("dialog") as asked:
        await page.evaluate(open_link, stage.tokens[Role.VIEWER])
        await (await asked.value).accept()
    await expect(page.get_by_role("heading", name="Log in with this link?")).to_be_visible()
    await expect(page.get_by_role("dialog")).to_have_count(0)


async def test_a_link_that_is_opened_without_a_session_logs_in_at_once(stage: Stage, visit: Visit) -> None:
    page = await visit()
    await page.get_by_role("button", name="Log out").click()
    await expect(page.get_by_label("Token")).to_be_visible()
    await page.evaluate("token => { location.hash = `token=${token}` }", stage.tokens[Role.VIEWER])
    await expect(page.get_by_text("vera", exact=True)).to_be_visible()
    await expect(page).to_have_url(stage.ui)


@pytest.mark.parametrize("login_url", [None, "/company/login"])
async def test_where_the_host_knows_people_it_says_what_it_answered_and_where_to_log_in(
    dashboard: None, browser: Browser, login_url: str | None
) -> None:
    app = FastAPI()

    def no_principal() -> None:
        raise HTTPException(401, "who are you?")

    admin = Admin("postgresql://user@localhost/none")
    app.include_router(admin_router(admin, authenticate=no_principal, login_url=login_url), prefix="/outbox")
    with in_a_thread(app) as address:
        context = await browser.new_context(locale="en-GB")
        page = await context.new_page()
        async with watched(page, address):
            await page.goto(f"{address}/outbox/ui/")
            await expect(page.get_by_text("who are you?")).to_be_visible()
            await expect(page.get_by_label("Token")).to_have_count(0)
            await assert_accessible(page)
            link = page.get_by_role("link", name="Log in to the application")
            await expect(link).to_have_count(0 if login_url is None else 1)
            if login_url is not None:
                assert await link.evaluate("link => link.href") == f"{address}{login_url}"
        await context.close()


async def test_people_log_in_at_a_provider_and_get_to_the_page_that_they_asked_for(
    dashboard: None, browser: Browser, database: str
) -> None:
    provider = FakeProvider()
    with in_a_thread(provider.app) as issuer:
        provider.issuer = issuer
        settings = OpenIDConnect(issuer=issuer, client_id=CLIENT, roles={"sre": "admin"})

        @asynccontextmanager
        async def lifespan(app: FastAPI) -> AsyncIterator[None]:
            async with Admin(database, oidc=settings) as app.state.admin:
                yield

        def find(request: Request) -> Admin:
            admin: Admin = request.app.state.admin
            return admin

        app = FastAPI(lifespan=lifespan)
        app.include_router(admin_router(find), prefix="/outbox")
        with in_a_thread(app) as address:
            context = await browser.new_context(locale="en-GB")
            page = await context.new_page()
            provider.claims["groups"] = []
            await page.goto(f"{address}/outbox/ui/dead-letters?q=mail")
            await assert_accessible(page)
            await page.get_by_role("link", name="Log in with single sign-on").click()
            await expect(page.get_by_role("alert")).to_contain_text("Your account has no role here.")
            await assert_accessible(page)

            provider.claims["groups"] = ["sre"]
            await page.get_by_role("link", name="Log in with single sign-on").click()
            await expect(page.get_by_text("ada@shop.example", exact=True)).to_be_visible()
            await expect(page).to_have_url(f"{address}/outbox/ui/dead-letters?q=mail")
            await context.close()
