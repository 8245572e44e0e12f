"""Every screen, in both themes, with and without anything to show and while the API fails: no serious finding of axe."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial

import pytest_asyncio
from playwright.async_api import Page, Route, ViewportSize, expect

from tests.dashboard.axe import assert_accessible
from tests.dashboard.failing import announced
from tests.dashboard.stage import WIDE, Stage, Visit
from tests.support import eventually

SCREENS = (
    "",
    "queues",
    "queues?name=orders.payment",
    "messages",
    "messages?state=sent",
    "dead-letters",
    "dead-letters?view=messages",
    "operations",
    "chains",
    "components",
    "topology",
    "alerts",
    "audit",
    "settings",
    "nowhere",
)
DRAWN = """async () => {
    const drawn = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
    do await drawn(); while (document.getAnimations().some(({playState}) => playState === "running"));
}"""
"""Colours change a moment after the theme, also where motion is reduced."""
NARROW = ViewportSize(width=320, height=700)
FORGOTTEN = """[...document.querySelectorAll("table, thead, tbody, tr, th, td")]
    .filter(part => !/^(table|none)/.test(getComputedStyle(part).display) && !part.role)
    .map(part => part.outerHTML.slice(0, 120))
"""
"""Parts of tables that have another layout: some browsers take them for parts of a table no longer, unless they say so."""
IN_SIGHT = """part => {
    const middle = (from, to, most) => (Math.max(from, 0) + Math.min(to, most)) / 2;
    const {left, right, top, bottom} = part.getClientRects()[0];
    const there = document.elementFromPoint(middle(left, right, innerWidth), middle(top, bottom, innerHeight));
    return there !== null && (there.contains(part) || part.contains(there));
}"""
"""Whether a part of the page is neither scrolled away nor covered."""
FOCUSED = f"""async () => {{
    const isInSight = {IN_SIGHT};
    for (let frame = 0; ; frame++) {{
        const focused = document.activeElement;
        if (focused === document.body) return {{name: "", inSight: true}};
        const inSight = isInSight(focused);
        if (inSight || frame === 30)
            return {{name: focused.getAttribute("aria-label") || focused.textContent || focused.tagName, inSight}};
        await new Promise(requestAnimationFrame);
    }}
}}"""
"""What has focus, without a name if nothing has, and whether it comes in sight."""
UNAVAILABLE = "Failed to load resource: the server responded with a status of 503"
AWAY = {
    "type": "about:blank",
    "title": "The database is away.",
    "status": 503,
    "detail": "It did not answer; try again in a moment.",
    "code": "database_unavailable",
    "request_id": "of-the-test",
}


@asynccontextmanager
async def screen(page: Page, path: str) -> AsyncIterator[None]:
    """Goes there as a link does, wide and light; opening a page costs ten times as much. A failure in the block names it."""
    await page.set_viewport_size(WIDE)
    await page.emulate_media(color_scheme="light", reduced_motion="reduce")
    await page.evaluate("path => history.pushState(null, '', path)", f"/outbox/ui/{path}")
    await page.evaluate(DRAWN)
    try:
        yield
    except Exception as error:
        error.add_note(f"on the screen {path!r}")
        raise


async def settled(page: Page) -> None:
    """Nothing is on its way any more."""
    await expect(page.get_by_role("heading", level=1)).not_to_have_text("…")
    await expect(page.get_by_text("Loading …")).to_have_count(0)
    await expect(page.locator("[aria-busy=true]")).to_have_count(0)


async def assert_good(page: Page) -> None:
    """By axe, in the dark for contrast alone, and without anything wider than the window."""
    await settled(page)
    await assert_accessible(page)
    await page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    await page.evaluate(DRAWN)
    await assert_accessible(page, "color-contrast")
    await assert_fits(page)


async def assert_good_where_it_is_narrow(page: Page) -> None:
    """The same at 320 pixels, where much has another place; it stays dark."""
    await page.set_viewport_size(NARROW)
    await page.evaluate(DRAWN)
    await assert_accessible(page)
    await assert_fits(page)
    assert await page.evaluate(FORGOTTEN) == []


async def assert_fits(page: Page) -> None:
    """Nothing is wider than the window."""
    wider = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wider <= 0, f"the page is {wider} px wider than its window"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def loaded(stage: Stage) -> AsyncIterator[Stage]:
    """With dead letters of two kinds, and orders on their way."""
    for sku in ("book", "flaky", "forbidden"):
        stage.service.place(sku)
    bodies = [{"payment": n, "order": n, "fails": "card" if n % 3 else "ledger", "card": {"number": "4111"}} for n in range(9)]
    await stage.publish(*bodies)
    await stage.publish({"invoice": 1}, routing_key="invoice.due", eta=timedelta(days=1))
    await stage.dead_letters(10)
    yield stage


async def test_screens_without_anything_to_show(visit: Visit) -> None:
    page = await visit()
    for path in SCREENS:
        async with screen(page, path):
            await assert_good(page)


async def test_screens_with_something_to_show_wide_and_narrow(loaded: Stage, visit: Visit) -> None:
    page = await visit()
    for path in SCREENS:
        async with screen(page, path):
            await assert_good(page)
            await assert_good_where_it_is_narrow(page)


async def test_tab_goes_from_control_to_control_and_each_is_in_sight(loaded: Stage, visit: Visit) -> None:
    page = await visit()
    for path in SCREENS:
        async with screen(page, path):
            for viewport, key in ((WIDE, "Tab"), (NARROW, "Shift+Tab")):
                await page.set_viewport_size(viewport)
                await settled(page)
                await assert_walkable(page, key)


async def assert_walkable(page: Page, key: str) -> None:
    """From the start of the page around to it again, nothing but the browser itself takes focus away."""
    await page.get_by_role("button", name="Skip to content").focus()
    names: list[str] = []
    while "Skip to content" not in names:
        await page.keyboard.press(key)
        focused = await page.evaluate(FOCUSED)
        assert focused["inSight"], f"{focused['name']!r} is out of sight, {key} after {names[-1:]}"
        names.append(focused["name"])
    assert "" not in (names[:-2] if key == "Tab" else names[1:]), f"focus is lost by {key} after {names[: names.index('')]}"


async def test_screens_while_the_api_fails(loaded: Stage, visit: Visit) -> None:
    async def fail(route: Route) -> None:
        await route.fulfill(status=503, content_type="application/problem+json", body=json.dumps(AWAY))

    def of_the_api(url: str) -> bool:
        return "/outbox/" in url and "/outbox/ui/" not in url and "/session" not in url

    page = await visit(expected=(UNAVAILABLE,), routes=((of_the_api, fail),))
    for path in SCREENS:
        async with screen(page, path):
            if path not in ("settings", "nowhere"):
                alert = page.get_by_role("alert").first
                await expect(alert).to_contain_text("database_unavailable")
                await expect(alert).to_contain_text("of-the-test")
                await expect(alert.get_by_role("button", name="Try again")).to_be_visible()
            await assert_good(page)


async def test_what_is_opened_from_a_screen(loaded: Stage, visit: Visit) -> None:
    letter = next(one for one in await loaded.dead_letters(10) if one["error"]["type"].endswith("CardDeclinedError"))
    async with loaded.api() as client:
        message = (await client.get("/messages", params={"state": "scheduled"})).json()["items"][0]
    chain = f"chains/{letter['message_id']}"
    paths = f"dead-letters/{letter['id']}", chain, f"{chain}?view=tree", f"{chain}?view=table", f"messages/{message['id']}"
    for path in paths:
        page = await visit(path)
        await assert_good(page)
        await assert_good_where_it_is_narrow(page)


async def test_a_sheet_with_the_details_of_a_message_does_not_cover_it(loaded: Stage, visit: Visit) -> None:
    letter = next(one for one in await loaded.dead_letters(10) if one["queue"] == "orders.payment")
    for view, last in (("waterfall", "[role=treeitem]"), ("tree", "[role=treeitem]"), ("table", "th button")):
        page = await visit(f"chains/{letter['message_id']}?view={view}")
        await settled(page)
        await page.set_viewport_size(NARROW)
        await page.get_by_role("tabpanel").locator(last).last.click()
        await expect(page.get_by_role("region", name="Selected message")).to_be_visible()
        selected = page.locator("[data-selected]").first
        await eventually(partial(selected.evaluate, IN_SIGHT), message=f"{view}: the message is hidden")


async def test_tokens_and_sessions_fit_into_a_narrow_window(loaded: Stage, visit: Visit) -> None:
    page = await visit("settings")
    await settled(page)
    await page.set_viewport_size(NARROW)
    # Where a table folds, its headings are not shown: cells that need theirs have it.
    ends = page.get_by_role("region", name="Open sessions").get_by_role("cell").filter(has_text="Session ends").first
    await expect(ends).to_have_text(re.compile("^Session ends in "), use_inner_text=True)
    box = await page.get_by_role("button", name="End session").first.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= NARROW["width"]


async def test_focus_stays_on_the_control_that_copied(loaded: Stage, visit: Visit) -> None:
    letter, *_ = await loaded.dead_letters(10)
    page = await visit(f"dead-letters/{letter['id']}")
    more = page.get_by_role("button", name="More")
    await more.focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("menuitem").first).to_be_focused()
    await page.keyboard.press("Enter")
    await announced(page, "Copied.")
    await expect(more).to_be_focused()


async def test_focus_goes_to_the_title_when_the_details_of_the_diagram_are_closed(loaded: Stage, visit: Visit) -> None:
    page = await visit("topology?node=queue:orders.payment")
    await page.get_by_role("button", name="Close the details").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_be_focused()


async def test_the_list_of_shortcuts_and_where_focus_is_afterwards(loaded: Stage, visit: Visit) -> None:
    page = await visit("dead-letters?view=messages")
    await settled(page)
    for opened in ("?", "Enter"):
        before = page.get_by_role("button", name="Shortcuts")
        await before.focus()
        await page.keyboard.press(opened)
        dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
        await expect(dialog).to_be_visible()
        await expect(dialog.get_by_text("ShiftX")).to_be_visible()  # a key each, next to each other
        await assert_accessible(page)
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await expect(before).to_be_focused()
