"""Coming in: by the link of a start in development, by typing a token, and not at all."""

import re

from playwright.async_api import expect

from outbox.admin import Role
from tests.dashboard.axe import assert_accessible
from tests.dashboard.conftest import Visit
from tests.dashboard.stage import Stage


async def test_a_link_logs_in_by_itself_and_its_token_leaves_the_address(stage: Stage, visit: Visit) -> None:
    page = await visit("components?x=1", Role.VIEWER)
    await expect(page).to_have_url(f"{stage.ui}components?x=1")
    await expect(page.get_by_text("vera", exact=True)).to_be_visible()
    cookies = await page.context.cookies()
    assert [(cookie["httpOnly"], cookie["sameSite"]) for cookie in cookies] == [(True, "Strict")]
    assert stage.tokens[Role.VIEWER] not in await page.content()


async def test_whoever_logs_out_sees_the_login_and_comes_back_to_the_same_address(stage: Stage, visit: Visit) -> None:
    page = await visit("topology")
    await page.get_by_role("button", name="Log out").click()
    await expect(page.get_by_role("heading", name=re.compile("Log in"))).to_be_visible()
    await assert_accessible(page)
    await page.get_by_label("Token").fill(stage.tokens[Role.OPERATOR])
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("olga", exact=True)).to_be_visible()
    await expect(page).to_have_url(f"{stage.ui}topology")


async def test_a_wrong_token_is_told_and_can_be_mended(stage: Stage, visit: Visit) -> None:
    page = await visit()
    await page.get_by_role("button", name="Log out").click()
    await page.get_by_label("Token").fill("outbox_wrong")
    await page.get_by_role("button", name="Log in").click()
    await expect(page.get_by_label("Token")).to_have_accessible_description(re.compile("No such token is known here"))
    await page.get_by_label("Token").fill(stage.tokens[Role.VIEWER])
    await page.get_by_role("button", name="Log in").click()
    await expect(page.get_by_text("vera", exact=True)).to_be_visible()
