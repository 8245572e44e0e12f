"""Every screen, in both themes, with and without anything to show and while the API fails: nothing that axe holds serious."""

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Page, Route, ViewportSize, expect

from tests.dashboard.axe import assert_accessible
from tests.dashboard.conftest import Visit
from tests.dashboard.stage import Stage

SCREENS = (
    "",
    "messages",
    "messages?state=sent",
    "dead-letters",
    "dead-letters?view=groups",
    "operations",
    "chains",
    "components",
    "topology",
    "audit",
    "settings",
    "nowhere",
)
NARROW = ViewportSize(width=320, height=700)
AWAY = {
    "type": "about:blank",
    "title": "The database is away.",
    "status": 503,
    "detail": "It did not answer; try again in a moment.",
    "code": "database-unavailable",
    "request_id": "of-the-test",
}


async def settled(page: Page) -> None:
    """Nothing is on its way any more."""
    await expect(page.get_by_role("heading", level=1)).not_to_have_text("…")
    await expect(page.get_by_text("Loading …")).to_have_count(0)


async def assert_good_in_both_themes(page: Page) -> None:
    """By axe, and without anything wider than the window."""
    await settled(page)
    for theme in ("light", "dark"):
        await page.emulate_media(color_scheme="dark" if theme == "dark" else "light", reduced_motion="reduce")
        await assert_accessible(page)
    wider = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wider <= 0, f"the page is {wider} px wider than its window"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def loaded(stage: Stage) -> AsyncIterator[Stage]:
    """With dead letters of two kinds, and orders on their way."""
    for sku in ("book", "flaky", "forbidden"):
        stage.service.place(sku)
    bodies = [{"payment": n, "order": n, "fails": "card" if n % 3 else "ledger", "card": {"number": "4111"}} for n in range(9)]
    await stage.publish(*bodies)
    await stage.dead_letters(10)
    yield stage


@pytest.mark.parametrize("path", SCREENS)
async def test_a_screen_without_anything_to_show(visit: Visit, path: str) -> None:
    await assert_good_in_both_themes(await visit(path))


@pytest.mark.parametrize("path", SCREENS)
async def test_a_screen_with_something_to_show(loaded: Stage, visit: Visit, path: str) -> None:
    await assert_good_in_both_themes(await visit(path))


@pytest.mark.parametrize("path", SCREENS)
async def test_a_screen_at_320_pixels(loaded: Stage, visit: Visit, path: str) -> None:
    await assert_good_in_both_themes(await visit(path, viewport=NARROW))


@pytest.mark.parametrize("path", SCREENS)
async def test_a_screen_while_the_api_fails(loaded: Stage, visit: Visit, path: str) -> None:
    page = await visit("settings")

    async def fail(route: Route) -> None:
        await route.fulfill(status=503, content_type="application/problem+json", body=json.dumps(AWAY))

    await page.route(lambda url: "/outbox/" in url and "/outbox/ui/" not in url and "/session" not in url, fail)
    await page.goto(loaded.ui + path)
    if path not in ("settings", "nowhere"):
        alert = page.get_by_role("alert").first
        await expect(alert).to_contain_text("database-unavailable")
        await expect(alert).to_contain_text("of-the-test")
        await expect(alert.get_by_role("button", name="Try again")).to_be_visible()
    await assert_good_in_both_themes(page)


async def test_what_is_opened_from_a_screen(loaded: Stage, visit: Visit) -> None:
    letter = (await loaded.dead_letters(1, exception_type="CardDeclinedError"))[0]
    async with loaded.api() as client:
        message = (await client.get("/messages", params={"state": "sent", "limit": 1})).json()["items"][:1]
    paths = [f"dead-letters/{letter['id']}", f"chains/{letter['message_id']}", f"chains/{letter['message_id']}?view=tree"]
    paths += [f"chains/{letter['message_id']}?view=table", *(f"messages/{one['id']}" for one in message)]
    for path in paths:
        await assert_good_in_both_themes(await visit(path))
        await assert_good_in_both_themes(await visit(path, viewport=NARROW))
    page = await visit(f"dead-letters/{letter['id']}")
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog")).to_be_visible()
    await assert_good_in_both_themes(page)
