"""Controls that a role may not use are there, disabled, and show the reason."""

import re
from collections.abc import Iterator

import pytest
from playwright.async_api import Locator, Page, expect

from outbox.admin import Role
from tests.dashboard.axe import assert_accessible
from tests.dashboard.failing import announced, detail, failed
from tests.dashboard.stage import NewStage, Stage, Visit

VIEWER = "You have the role viewer"
READ_ONLY = "This installation is read-only"


async def test_a_viewer_sees_every_button_and_why_it_is_not_for_viewers(stage: Stage, visit: Visit) -> None:
    letter, *_ = await failed(stage, "only to be looked at", card={"number": "4111"})
    page = await visit(f"dead-letters/{letter['id']}", Role.VIEWER)
    shown = detail(page, letter)
    for name in ("Requeue", "Edit and requeue", "Discard", "Reveal"):
        await _is_off(page, shown.get_by_role("button", name=name, exact=True), VIEWER)
    await shown.get_by_role("button", name="More").click()
    for name in ("Download the body", "Delete permanently"):
        item = page.get_by_role("menuitem", name=name)
        await expect(item).to_be_disabled()
        await expect(item).to_contain_text(VIEWER)
    await page.keyboard.press("Escape")
    await page.keyboard.press("R")
    await expect(page.get_by_role("dialog", name="Requeue")).to_have_count(0)

    await page.get_by_role("link", name="Components").click()
    await _is_off(page, page.get_by_role("button", name="Pause …"), VIEWER)
    await page.get_by_role("link", name="Overview").click()
    await expect(page.get_by_role("region", name="Alive")).to_be_visible()  # what is below it has its place
    await _is_off(page, page.get_by_role("button", name="Requeue the group").first, VIEWER)


async def test_the_audit_is_refused_in_words(stage: Stage, visit: Visit) -> None:
    page = await visit("audit", Role.VIEWER)
    await expect(page.get_by_role("main")).to_contain_text("You need the operator role to read the audit log.")
    await expect(page.get_by_role("main")).to_contain_text("You need the role operator to read the audit log")
    await expect(page.get_by_role("alert")).to_have_count(0)


async def test_masked_values_are_shown_after_a_confirmation_and_audited(stage: Stage, visit: Visit) -> None:
    letter, *_ = await failed(stage, "a secret is in this one", card={"number": "4111-2222"})
    page = await visit(f"dead-letters/{letter['id']}", Role.OPERATOR)
    shown = detail(page, letter)
    await shown.get_by_role("button", name="Reveal").click()
    dialog = page.get_by_role("dialog", name="Reveal masked values?")
    await expect(dialog).to_contain_text("written to the audit log under your name")
    await dialog.get_by_role("button", name="Cancel").click()
    await expect(shown).not_to_contain_text("4111-2222")
    await expect(shown.get_by_role("button", name="Reveal")).to_be_focused()
    await page.keyboard.press("Enter")
    await dialog.get_by_role("button", name="Reveal").click()
    await expect(shown.get_by_role("tree")).to_contain_text("4111-2222")
    await shown.get_by_role("button", name="Mask again").click()
    await expect(shown).not_to_contain_text("4111-2222")

    await page.get_by_role("link", name="Audit log").click()
    entry = page.get_by_role("row").filter(has_text="olga").filter(has_text=re.compile("reveal", re.IGNORECASE))
    await expect(entry.first).to_contain_text(letter["id"])


@pytest.fixture(scope="module")
def read_only(new_stage: NewStage) -> Iterator[Stage]:
    """A service whose admin only shows."""
    with new_stage(OUTBOX_ADMIN_READ_ONLY="true") as it:
        yield it


async def test_a_read_only_installation_changes_nothing_for_anybody(read_only: Stage, visit: Visit) -> None:
    letter, *_ = await failed(read_only, "this stays as it is")
    page = await visit(f"dead-letters/{letter['id']}", Role.ADMIN, of=read_only)
    await expect(page.get_by_text("admin, read-only")).to_be_visible()
    for name in ("Requeue", "Edit and requeue", "Discard"):
        await _is_off(page, detail(page, letter).get_by_role("button", name=name, exact=True), READ_ONLY)
    await page.get_by_role("link", name="Components").click()
    await _is_off(page, page.get_by_role("button", name="Pause …"), READ_ONLY)
    await page.get_by_role("link", name="Audit log").click()
    await expect(page.get_by_role("table")).to_be_visible()


async def _is_off(page: Page, button: Locator, why: str) -> None:
    """It says why, also to screen readers, and does nothing though it can be focused."""
    await expect(button).to_be_disabled()
    await expect(button).to_have_accessible_description(re.compile(why))
    await button.hover()
    await expect(page.get_by_text(why).locator("visible=true").first).to_be_visible()
    await button.press("Enter")
    await expect(page.get_by_role("dialog")).to_have_count(0)


async def test_administrators_see_tokens_and_sessions_and_end_one(stage: Stage, visit: Visit) -> None:
    other = await visit("", Role.VIEWER)
    page = await visit("settings")
    await expect(page.get_by_role("region", name="Configured tokens")).to_contain_text("olga")
    sessions = page.get_by_role("region", name="Open sessions")
    await assert_accessible(page)
    await sessions.get_by_role("button", name="End session of vera").first.click()
    await page.get_by_role("dialog").get_by_role("button", name="End session").click()
    await announced(page, "Session of vera ended.")
    await other.reload()
    await expect(other.get_by_role("heading", name="Log in")).to_be_visible()
    await page.goto(f"{stage.ui}settings")
    await expect(page.get_by_role("heading", name="Sessions", exact=True)).to_be_visible()
