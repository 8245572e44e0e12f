"""Whatever an operator has at hand is found by one field, from any page."""

import re

from playwright.async_api import expect

from outbox.admin import Role
from tests.dashboard.axe import assert_accessible
from tests.dashboard.failing import failed
from tests.dashboard.stage import Stage, Visit


async def test_one_field_finds_everything_from_any_page(stage: Stage, visit: Visit) -> None:
    [letter] = await failed(stage, "the search of dead letters")
    page = await visit("audit")
    await page.keyboard.press("Control+k")
    field = page.get_by_label("ID, number, queue, handler, routing key or words of an error")
    await expect(field).to_be_focused()
    await field.fill("search dead letters")
    results = page.get_by_role("list", name="Results")
    await expect(results.get_by_role("listitem").first).to_contain_text("the search of dead letters")
    await expect(results.get_by_role("listitem").first).to_contain_text("payments.capture")
    await assert_accessible(page)
    await results.get_by_role("link").first.click()
    await expect(page.get_by_role("region", name=f" {letter['id']}")).to_be_visible()

    await page.keyboard.press("Control+k")
    await field.fill(letter["message_id"])
    await expect(results.get_by_role("listitem").first).to_contain_text("Chain")
    await field.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Chain")


async def test_what_is_searched_for_is_in_the_address_and_nothing_says_so(visit: Visit) -> None:
    page = await visit("search?q=shop+capture", Role.VIEWER)
    results = page.get_by_role("list", name="Results")
    await expect(results.get_by_role("link", name="payments.capture")).to_be_visible()
    await page.get_by_role("searchbox").fill("no such thing")
    await expect(page.get_by_text("No results for “no such thing”.")).to_be_visible()
    await expect(page).to_have_url(re.compile(r"search\?q=no\+such\+thing$"))
