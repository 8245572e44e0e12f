"""Who is paused, who asked for it, and whether it is so already."""

import re

from playwright.async_api import expect

from outbox.admin import Role
from tests.dashboard.failing import announced, choose
from tests.dashboard.stage import Stage, Visit


async def test_a_queue_is_paused_which_the_overview_shows_and_resumed(stage: Stage, visit: Visit) -> None:
    page = await visit("components", Role.OPERATOR)
    await page.get_by_role("button", name="Pause …").click()
    dialog = page.get_by_role("dialog", name="Pause")
    await choose(page, "Scope", "A queue")
    await expect(dialog.get_by_role("button", name="Pause", exact=True)).to_be_disabled()
    await dialog.get_by_label("Queue").fill("payments.capture")
    await expect(dialog).to_contain_text("Applies to 1 worker")
    await dialog.get_by_label("Reason").fill("the bank closes at noon")
    await dialog.get_by_role("button", name="Pause the queue payments.capture").click()
    await announced(page, "Paused the queue payments.capture.")

    paused = page.get_by_role("region", name="Paused: 1 pause")
    await expect(paused.get_by_role("listitem").first).to_contain_text("the bank closes at noon")
    await expect(paused.get_by_role("listitem").first).to_contain_text("Paused by olga")
    await expect(paused.get_by_text("applied", exact=True)).to_be_visible()
    await page.get_by_role("link", name="Overview").click()
    banner = page.get_by_role("note").filter(has_text="The queue payments.capture is paused")
    await expect(banner).to_contain_text("by olga")
    await expect(banner).to_contain_text("the bank closes at noon")

    await stage.publish({"payment": 1})
    await banner.get_by_role("link", name="Show pauses").click()
    await page.get_by_role("button", name="Resume the queue payments.capture").first.click()
    resuming = page.get_by_role("dialog", name="Resume the queue payments.capture")
    await expect(resuming).to_contain_text("the bank closes at noon")
    await resuming.get_by_role("button", name="Resume the queue payments.capture").click()
    await announced(page, "Resumed the queue payments.capture.")
    await expect(page.get_by_role("region", name=re.compile("^Paused"))).to_have_count(0)
    await page.get_by_role("link", name="Overview").click()
    await expect(page.get_by_role("region", name="Alive")).to_be_visible()
    await expect(page.get_by_role("note")).to_have_count(0)


async def test_what_waits_behind_a_paused_relay_says_so(stage: Stage, visit: Visit) -> None:
    page = await visit("components?kind=relay")
    await page.get_by_role("button", name="Pause …").click()
    dialog = page.get_by_role("dialog", name="Pause")
    # Nothing is chosen beforehand: one press too many does not stop every relay.
    await expect(dialog.get_by_role("button", name="Pause", exact=True)).to_be_disabled()
    await choose(page, "Scope", "Relays")
    await dialog.get_by_role("button", name="Pause all relays").click()
    await announced(page, "Paused all relays.")
    paused = page.get_by_role("region", name="Paused: 1 pause")
    await expect(paused.get_by_text("applied", exact=True)).to_be_visible()

    await stage.publish({"payment": 2}, routing_key="payment.requested.later")
    await page.goto(f"{stage.ui}messages?state=pending")
    await page.get_by_role("link", name="payment.requested.later").click()
    await expect(page.get_by_role("article")).to_contain_text("paused")

    await page.goto(f"{stage.ui}components")
    await page.get_by_role("button", name="Resume all relays").click()
    await page.get_by_role("dialog").get_by_role("button", name="Resume all relays").click()
    await announced(page, "Resumed all relays.")
    await page.goto(f"{stage.ui}messages?state=pending")
    await expect(page.get_by_role("link", name="payment.requested.later")).to_have_count(0)


async def test_a_pause_without_a_consumer_is_distinguished(stage: Stage, visit: Visit) -> None:
    page = await visit("components")
    await page.get_by_role("button", name="Pause …").click()
    dialog = page.get_by_role("dialog", name="Pause")
    await choose(page, "Scope", "Workers")
    await dialog.get_by_label("Name of the worker").fill("tomorrow")
    await expect(dialog).to_contain_text("The pause applies to components that start later")
    await dialog.get_by_role("button", name="Pause the worker tomorrow").click()
    await expect(page.get_by_role("region", name="Paused: 1 pause")).to_contain_text("no running component")
    await page.get_by_role("button", name="Resume the worker tomorrow").click()
    await page.get_by_role("dialog").get_by_role("button", name="Resume the worker tomorrow").click()
    await announced(page, "Resumed the worker tomorrow.")
