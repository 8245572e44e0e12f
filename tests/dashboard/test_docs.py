"""`/docs` in a browser: its viewer works under its policy, and requests nothing from elsewhere."""

import re

from playwright.async_api import Browser, expect

from tests.dashboard.stage import Stage
from tests.dashboard.watching import watched


async def test_the_docs_show_and_ask_the_api_with_nothing_from_elsewhere(stage: Stage, browser: Browser) -> None:
    context = await browser.new_context(locale="en-GB")
    page = await context.new_page()
    async with watched(page, stage.service.url):
        await page.goto(f"{stage.service.url}/docs")
        await expect(page.get_by_role("heading", name=re.compile("^Outbox"))).to_be_visible()
        health = page.locator("#operations-health-outbox_health_live")
        await health.get_by_role("button").first.click()
        await health.get_by_role("button", name="Try it out").click()
        await health.get_by_role("button", name="Execute").click()
        await expect(health.get_by_text('"status": "alive"').first).to_be_visible()
    await context.close()
