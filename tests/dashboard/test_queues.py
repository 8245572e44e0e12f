"""Which queue is behind, which handler is slow or fails since when, and what to do about it from there."""

import re

from playwright.async_api import expect

from outbox.admin import Role
from tests.dashboard.axe import assert_accessible
from tests.dashboard.failing import announced, failed
from tests.dashboard.stage import Stage, Visit

QUEUE = "payments.capture"


async def test_the_list_shows_what_a_queue_does_and_leads_to_its_page(stage: Stage, visit: Visit) -> None:
    await failed(stage, "the list of queues", count=3)
    page = await visit("queues")
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name=QUEUE, exact=True))
    await expect(row).to_contain_text("tests.dashboard.shop.capture")
    await expect(row.get_by_role("img", name=re.compile(r"failed in the last hour"))).to_be_visible()
    await expect(row.get_by_role("link", name=re.compile(r"^\d+$"))).to_have_attribute("href", re.compile(f"queue={QUEUE}"))

    await page.get_by_label("Search queues and handlers").fill("shop capture")
    await expect(page.get_by_role("table").get_by_role("row")).to_have_count(2)
    await expect(page).to_have_url(re.compile("q=shop"))
    await page.get_by_label("Search queues and handlers").fill("no such thing")
    await expect(page.get_by_text("No queue or handler contains “no such thing”.")).to_be_visible()
    await page.get_by_label("Search queues and handlers").fill("")

    await row.get_by_role("link", name=QUEUE, exact=True).click()
    await expect(page.get_by_role("heading", level=1)).to_have_text(QUEUE)
    await expect(page.get_by_role("region", name="Workers", exact=True)).to_contain_text("alive")
    await expect(page.get_by_role("region", name="Now")).to_contain_text("tests.dashboard.shop.capture")
    await expect(page.get_by_role("region", name="Now")).to_contain_text("payment.requested")
    await expect(page.get_by_role("figure", name="Messages per second over time")).to_be_visible()
    await expect(page.get_by_role("figure", name="Handling time over time")).to_be_visible()
    groups = page.get_by_role("region", name="Failure groups")
    await expect(groups.get_by_role("link", name=re.compile("CardDeclinedError"))).to_be_visible()
    await assert_accessible(page)


async def test_a_queue_is_paused_and_resumed_on_its_page(stage: Stage, visit: Visit) -> None:
    page = await visit(f"queues?name={QUEUE}", Role.OPERATOR)
    await page.get_by_role("button", name="Pause", exact=True).click()
    dialog = page.get_by_role("dialog", name="Pause")
    await dialog.get_by_role("button", name=f"Pause the queue {QUEUE}").click()
    await announced(page, f"Paused the queue {QUEUE}.")
    await expect(page.locator("header").get_by_text("paused", exact=True).first).to_be_visible()

    await page.goto(f"{stage.ui}queues?show=troubled")
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name=QUEUE, exact=True))
    await expect(row.get_by_text("paused", exact=True)).to_be_visible()
    await row.get_by_role("link", name=QUEUE, exact=True).click()
    await page.get_by_role("button", name="Resume", exact=True).click()
    resuming = page.get_by_role("dialog", name=f"Resume the queue {QUEUE}")
    await resuming.get_by_role("button", name=f"Resume the queue {QUEUE}").click()
    await announced(page, f"Resumed the queue {QUEUE}.")
    await expect(page.get_by_role("button", name="Pause", exact=True)).to_be_visible()


async def test_a_viewer_sees_why_a_queue_cannot_be_paused_and_a_name_without_a_queue_says_so(visit: Visit) -> None:
    page = await visit(f"queues?name={QUEUE}", Role.VIEWER)
    await expect(page.get_by_role("button", name="Pause", exact=True)).to_be_disabled()
    page = await visit("queues?name=a/queue that is not there")
    await expect(page.get_by_text("Queue not found.")).to_be_visible()
    await page.get_by_role("link", name="All queues").click()
    await expect(page.get_by_role("link", name=QUEUE, exact=True)).to_be_visible()
