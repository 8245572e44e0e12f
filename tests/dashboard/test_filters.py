"""Filters stay: over a reload, back and forward, an action, and a slow network."""

import asyncio
import re
from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Page, Route, expect

from outbox.admin import Role
from tests.dashboard.failing import announced, detail, failed, row, rows
from tests.dashboard.stage import Stage, Visit


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def two_kinds(stage: Stage) -> AsyncIterator[Stage]:
    """Four dead letters of cards, and two of the ledger."""
    await failed(stage, "the wallet of Mary", 4)
    await failed(stage, "the ledger of Mary", 2, "ledger")
    yield stage


async def test_a_filter_is_chosen_with_the_keyboard_and_survives_a_reload(two_kinds: Stage, visit: Visit) -> None:
    page = await visit("dead-letters?view=messages")
    await expect(rows(page)).to_have_count(6)
    await page.keyboard.press("/")
    await _narrow(page, "Search", "ledger")
    await expect(rows(page)).to_have_count(2)
    await expect(page).to_have_url(re.compile(r"\?view=messages&q=ledger$"))
    await page.reload()
    await expect(page.get_by_role("button", name="Search: ledger. Change it")).to_be_visible()
    await expect(rows(page)).to_have_count(2)


async def test_tab_leaves_the_open_list_of_filters_for_the_next_control(two_kinds: Stage, visit: Visit) -> None:
    page = await visit("dead-letters?view=messages")
    await expect(rows(page)).to_have_count(6)
    await page.set_viewport_size({"width": 1280, "height": 400})  # so that the list scrolls
    await page.keyboard.press("/")
    await page.keyboard.press("ArrowDown")
    await expect(page.get_by_role("option").first).to_be_visible()
    await page.keyboard.press("Tab")
    assert await page.evaluate("document.activeElement.matches('button, a, input, select, [tabindex=\"0\"]')")


async def test_a_page_of_a_list_that_is_not_there_becomes_the_first_one(two_kinds: Stage, visit: Visit) -> None:
    for address in ("messages", "dead-letters?view=messages", "audit", "operations", "chains"):
        separator = "&" if "?" in address else "?"
        page = await visit(f"{address}{separator}cursor=nonsense", Role.OPERATOR, expected=("status of 400",))
        await announced(page, "That page of the list no longer exists.")
        await expect(page).to_have_url(re.compile(rf"{re.escape(address)}$"))
        await expect(page.get_by_role("alert")).to_have_count(0)


async def test_back_and_forward_go_through_what_was_chosen(two_kinds: Stage, visit: Visit) -> None:
    page = await visit("dead-letters?view=messages")
    await _narrow(page, "Search", "Mary")
    await _narrow(page, "Error", "tests.dashboard.shop.LedgerOfflineError")
    await expect(rows(page)).to_have_count(2)
    await page.get_by_role("tab", name="Discarded").click()
    await expect(rows(page)).to_have_count(0)
    await page.go_back()
    await expect(rows(page)).to_have_count(2)
    await page.go_back()
    await expect(rows(page)).to_have_count(6)
    await expect(page).to_have_url(re.compile(r"\?view=messages&q=Mary$"))
    await page.go_forward()
    await page.go_forward()
    await expect(page.get_by_role("tab", name="Discarded")).to_have_attribute("aria-selected", "true")
    await expect(page.get_by_role("list", name="Active filters").get_by_role("listitem")).to_contain_text(
        ["Search", "LedgerOfflineError", "Clear all"]
    )


async def test_an_action_and_an_opened_row_leave_the_filter_as_it_is(two_kinds: Stage, visit: Visit) -> None:
    letter, *_ = await failed(two_kinds, "the purse of Mary", 2)
    page = await visit("dead-letters?view=messages&q=purse&sort=oldest")
    await row(page, letter).get_by_role("link").click()
    await expect(page).to_have_url(re.compile(rf"/{letter['id']}\?view=messages&q=purse&sort=oldest$"))
    await detail(page, letter).get_by_role("button", name="Discard").click()
    await page.get_by_role("dialog").get_by_role("button", name="Discard 1").click()
    await announced(page, "1 of 1 dead letter was discarded.")
    await expect(page).to_have_url(re.compile(r"\?view=messages&q=purse&sort=oldest$"))
    await expect(page.get_by_role("button", name="Search: purse. Change it")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page).to_have_url(re.compile(r"/dead-letters\?view=messages&q=purse&sort=oldest$"))


async def test_on_a_slow_network_the_last_choice_counts_whatever_arrives_when(two_kinds: Stage, visit: Visit) -> None:
    page = await visit("dead-letters?view=messages&q=Mary")
    await expect(rows(page).first).to_be_visible()
    slow = asyncio.Event()
    held: list[str] = []

    async def hold(route: Route) -> None:
        held.append(route.request.url)
        if "exception_type" not in route.request.url:
            await slow.wait()
        await route.continue_()

    await page.route(re.compile(r"/outbox/dlq\?.*q=wallet"), hold)
    await _narrow(page, "Search", "wallet")
    await expect(page.get_by_role("button", name="Search: wallet. Change it")).to_be_visible()
    await _narrow(page, "Error", "tests.dashboard.shop.CardDeclinedError")
    await expect(page.get_by_role("button", name="Error: tests.dashboard.shop.CardDeclinedError. Change it")).to_be_visible()
    await expect(rows(page)).to_have_count(4)
    slow.set()
    await page.get_by_role("button", name="Remove the filter Error").click()
    await expect(page).to_have_url(re.compile(r"\?view=messages&q=wallet$"))
    await expect(rows(page)).to_have_count(4)
    assert len(held) >= 2
    await page.unroute_all(behavior="wait")


async def test_a_reload_while_nothing_arrives_keeps_the_filter(two_kinds: Stage, visit: Visit) -> None:
    page = await visit("dead-letters?q=ledger&view=messages")
    await expect(rows(page)).to_have_count(2)
    arrives = asyncio.Event()

    async def hold(route: Route) -> None:
        await arrives.wait()
        await route.continue_()

    await page.route(re.compile(r"/outbox/(dlq|session)"), hold)
    await page.reload()
    arrives.set()
    await expect(page.get_by_role("button", name="Search: ledger. Change it")).to_be_visible()
    await expect(rows(page)).to_have_count(2)
    await page.unroute_all(behavior="wait")


async def _narrow(page: Page, label: str, value: str) -> None:
    """Chooses a filter, then types its value."""
    field = page.get_by_role("combobox", name="Filter dead letters")
    await field.click()
    await page.get_by_role("option", name=f"{label} …", exact=True).click()
    await field.fill(value)
    await page.keyboard.press("Enter")
