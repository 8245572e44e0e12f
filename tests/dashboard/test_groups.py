"""Groups of failures come first: what they are, where and in which versions they fail, and what operators make of them."""

import re

import asyncpg
from playwright.async_api import expect

from outbox.admin import Role
from tests.dashboard.axe import assert_accessible
from tests.dashboard.failing import announced, failed
from tests.dashboard.stage import Stage, Visit

TITLE = re.compile("LedgerOfflineError: the well is dry")


async def test_three_errors_at_once_are_distinguished_and_one_is_fixed_and_reopened(stage: Stage, visit: Visit) -> None:
    letter, *_ = await failed(stage, "the well is dry", 3, "ledger")
    page = await visit("dead-letters?q=well", Role.OPERATOR)
    line = page.get_by_role("listitem").filter(has=page.get_by_role("link", name=TITLE))
    await expect(line).to_contain_text("payments")
    await expect(line).to_contain_text("tests.dashboard.shop")
    await line.get_by_role("link", name=TITLE).click()

    await expect(page.get_by_role("heading", name=TITLE)).to_be_visible()
    await expect(page.get_by_role("region", name="Latest sample")).to_contain_text("in capture")
    latest = page.get_by_role("region", name="Dead letters of this group").get_by_role("row")
    await expect(latest).to_have_count(4)
    await assert_accessible(page)

    await page.get_by_role("button", name="Mark", exact=True).click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Save").click()
    await announced(page, "Group marked as fixed.")
    await expect(page.get_by_role("region", name="Details")).to_contain_text("fixed by olga")

    await page.goto(f"{stage.ui}dead-letters?q=well")
    await expect(page.get_by_text("No dead letters match the filters.")).to_be_visible()
    await failed(stage, "the well is dry", 4, "ledger")
    await page.goto(f"{stage.ui}dead-letters?q=well")
    await expect(line).to_contain_text("reopened")
    await expect(line).to_contain_text(re.compile(r"4 failed since|[1-4] failed since"))
    assert letter["status"] == "open"


async def test_a_group_is_muted_and_chosen_by_its_status(stage: Stage, visit: Visit) -> None:
    await failed(stage, "the gate is shut", 2, "ledger")
    page = await visit("dead-letters?q=gate", Role.OPERATOR)
    await page.get_by_role("link", name=re.compile("the gate is shut")).click()
    await page.get_by_role("button", name="Mark", exact=True).click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Mark as").select_option(label="Muted")
    await dialog.get_by_label("Reopen when more than this number are open").fill("none")
    await expect(dialog.get_by_text("Enter a whole number from 1 to 100,000.").first).to_be_visible()
    await dialog.get_by_label("Reopen when more than this number are open").fill("25")
    await dialog.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("region", name="Details")).to_contain_text("muted up to 25 open")
    await page.goto(f"{stage.ui}dead-letters?q=gate")
    await page.get_by_label("Group status").select_option(label="Muted")
    await expect(page.get_by_role("link", name=re.compile("the gate is shut"))).to_be_visible()
    await expect(page).to_have_url(re.compile("group_status=muted"))


async def test_a_group_gets_a_requeue_policy_and_shows_what_became_of_it(stage: Stage, visit: Visit) -> None:
    await failed(stage, "the ferry is late", 2, "ledger")
    page = await visit("dead-letters?q=ferry", Role.OPERATOR)
    await page.get_by_role("link", name=re.compile("the ferry is late")).click()
    await page.get_by_role("button", name="Requeue policy").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("At most per hour").fill("0")
    await expect(dialog.get_by_text("Enter a whole number from 1 to 100,000.").first).to_be_visible()
    await dialog.get_by_label("At most per hour").fill("25")
    await assert_accessible(page)
    await dialog.get_by_role("button", name="Save").click()
    await announced(page, "Up to 25 per hour will be requeued.")
    details = page.get_by_role("region", name="Details")
    await expect(details).to_contain_text("Up to 25 per hour, set by olga")

    connection = await asyncpg.connect(stage.database_url)
    await connection.execute(
        "update outbox_requeue_policy set stopped_at = now(), operation_id = 7, started_at = now(), "
        "stopped_because = '1 of the messages of operation 7 failed again'"
    )
    await connection.close()
    await page.reload()
    await expect(details).to_contain_text("1 of the messages of operation 7 failed again")
    await expect(details.get_by_role("link", name="operation 7")).to_be_visible()

    await page.get_by_role("button", name="Requeue policy").click()
    await dialog.get_by_label("Requeue policy").select_option(label="Off (remove the policy)")
    await dialog.get_by_role("button", name="Save").click()
    await announced(page, "The requeue policy was removed.")
    await expect(details).not_to_contain_text("per hour")


async def test_a_note_that_another_operator_changed_is_shown_before_it_is_replaced(stage: Stage, visit: Visit) -> None:
    letter, *_ = await failed(stage, "the clock is slow", 1, "ledger")
    page = await visit("dead-letters?q=clock", Role.OPERATOR, expected=("the server responded with a status of 409",))
    await page.get_by_role("link", name=re.compile("the clock is slow")).click()
    await page.get_by_role("button", name="Add note").click()
    dialog = page.get_by_role("dialog", name="Note on the group")
    await dialog.get_by_label("Note", exact=True).fill("ask Olga")
    async with stage.api() as client:
        noted = {"by": "fingerprint", "id": letter["group_id"], "note": "ask Ada"}
        assert (await client.put("/dlq/groups/note", json=noted)).status_code == 200
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("ada changed the note")
    await expect(dialog.get_by_label("Current note")).to_have_value("ask Ada")
    await expect(dialog.get_by_label("Note", exact=True)).to_have_value("ask Olga")
    await assert_accessible(page)
    await dialog.get_by_label("Note", exact=True).fill("ask Ada or Olga")
    await dialog.get_by_role("button", name="Save").click()
    await announced(page, "Note saved.")
    await expect(page.get_by_text("ask Ada or Olga")).to_be_visible()


async def test_a_viewer_marks_nothing_and_a_group_that_is_gone_is_reported(stage: Stage, visit: Visit) -> None:
    page = await visit("dead-letters/groups/8f1c00d2aa31be47", Role.VIEWER)
    await expect(page.get_by_text("Group not found.")).to_be_visible()
    await failed(stage, "the sky is low", 1, "ledger")
    await page.goto(f"{stage.ui}dead-letters?q=sky")
    await page.get_by_role("link", name=re.compile("the sky is low")).click()
    await expect(page.get_by_role("button", name="Mark", exact=True)).to_be_disabled()


async def test_a_long_name_of_a_group_breaks_on_a_phone(stage: Stage, visit: Visit) -> None:
    await failed(stage, "the queue is long", 1, "ledger")
    page = await visit("dead-letters?q=long", viewport={"width": 360, "height": 740})
    await page.get_by_role("link", name=re.compile("the queue is long")).click()
    await expect(page.get_by_role("region", name="Latest sample")).to_contain_text("in capture")
    assert await page.evaluate("document.documentElement.scrollWidth") <= 360
