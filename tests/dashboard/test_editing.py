"""A dead letter is edited and sent again, is put aside and taken back; nothing that was typed gets lost."""

import re
from collections.abc import Mapping
from typing import Any

from playwright.async_api import Locator, Page, expect

from outbox.admin import Role
from tests.dashboard.axe import assert_accessible
from tests.dashboard.failing import announced, detail, failed, row, written
from tests.dashboard.stage import Stage, Visit
from tests.support import eventually

LARGE = 9_007_199_254_740_993
"""The first whole number that a double does not hold."""


async def test_an_edit_is_checked_while_it_is_typed_shown_as_a_difference_and_sent(stage: Stage, visit: Visit) -> None:
    letter, *_ = await failed(stage, "the account has a typo", account=LARGE)
    page = await visit(f"dead-letters/{letter['id']}", Role.OPERATOR)
    dialog = await _editor(page, letter)
    body = dialog.get_by_role("textbox", name="Body")
    text = await written(body)
    assert f'"account": {LARGE}' in text

    look = dialog.get_by_role("button", name="Review changes")
    await expect(look).to_be_disabled()
    await body.fill(text.replace('"fails": "card"', '"fails": '))
    await expect(dialog).to_contain_text(re.compile(r"Line \d+, column \d+:"))
    await expect(look).to_be_disabled()
    await body.fill(text.replace('"fails": "card"', '"fails": null'))
    await expect(dialog).to_contain_text("Valid JSON.")
    await look.click()

    changes = dialog.get_by_role("table", name="Changes in the body")
    await expect(changes.get_by_role("row").filter(has_text="removed")).to_have_text(re.compile('"fails": "card"'))
    await expect(changes.get_by_role("row").filter(has_text="added")).to_have_text(re.compile('"fails": null'))
    await expect(dialog).to_contain_text("Headers: unchanged.")
    await dialog.get_by_label("Reason").fill("they meant another account")
    await dialog.get_by_role("button", name="Requeue").click()
    await announced(page, f"Dead letter {letter['id']} was edited and requeued.")
    await expect(dialog).to_be_hidden()

    await page.goto(f"{stage.ui}dead-letters/{letter['id']}?status=requeued")
    await expect(detail(page, letter)).to_contain_text("It has been processed.")
    await expect(detail(page, letter)).to_contain_text("Edited by olga")
    tree = detail(page, letter).get_by_role("tree", name=f"Body of dead letter {letter['id']}")
    await expect(tree.get_by_role("treeitem", name=f"account: {LARGE}")).to_be_visible()
    async with stage.api() as client:
        sent = (await client.get(f"/dlq/{letter['id']}")).json()["body"]["content"]
    assert f'"account": {LARGE}' in sent or f'"account":{LARGE}' in sent


async def test_input_stays_when_another_operator_was_faster(stage: Stage, visit: Visit) -> None:
    letter, *_ = await failed(stage, "two people look at this")
    page = await visit(f"dead-letters/{letter['id']}")
    dialog = await _editor(page, letter)
    body = dialog.get_by_role("textbox", name="Body")
    mine = (await written(body)).replace('"fails": "card"', '"fails": null')
    await body.fill(mine)
    await _edited_elsewhere(stage, letter)
    await dialog.get_by_role("button", name="Review changes").click()
    await dialog.get_by_role("button", name="Requeue").click()

    await expect(dialog.get_by_role("alert")).to_contain_text("The dead letter was changed by another user.")
    await dialog.get_by_role("button", name="Compare with the current version").click()
    changes = dialog.get_by_role("table", name="Changes in the body")
    await expect(changes.get_by_role("row").filter(has_text="removed: ").filter(has_text="from elsewhere")).to_be_visible()
    await dialog.get_by_role("button", name="Back to the editor").click()
    await expect(body).to_be_visible()
    assert await written(body) == mine
    await dialog.get_by_role("button", name="Review changes").click()
    await dialog.get_by_role("button", name="Requeue").click()
    await announced(page, f"Dead letter {letter['id']} was edited and requeued.")


async def test_headers_of_the_system_are_shown_and_cannot_be_set(stage: Stage, visit: Visit) -> None:
    letter, *_ = await failed(stage, "a header is wrong")
    page = await visit(f"dead-letters/{letter['id']}")
    dialog = await _editor(page, letter)
    await dialog.get_by_role("tab", name="Headers").click()
    await expect(dialog).to_contain_text("x-outbox-routing-key")
    headers = dialog.get_by_role("textbox", name="Headers")
    await headers.fill('{"x-outbox-routing-key": "elsewhere"}')
    await expect(dialog).to_contain_text("The header “x-outbox-routing-key” is reserved. Remove it.")
    await expect(dialog.get_by_role("button", name="Review changes")).to_be_disabled()
    await headers.fill('{"tenant": "north"}')
    await dialog.get_by_role("button", name="Review changes").click()
    await expect(dialog.get_by_role("table", name="Changes in the headers")).to_contain_text('"tenant": "north"')
    page.on("dialog", lambda question: question.dismiss())
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_visible()


async def test_the_editor_is_used_by_keys_alone(stage: Stage, visit: Visit) -> None:
    letter, *_ = await failed(stage, "only a keyboard is there")
    page = await visit(f"dead-letters/{letter['id']}")
    dialog = await _editor(page, letter)
    body = dialog.get_by_role("textbox", name="Body")
    await expect(body).to_be_focused()
    await assert_accessible(page)
    text = await written(body)

    await page.keyboard.press("ControlOrMeta+End")
    await page.keyboard.type("\n?j")
    await expect(body).to_have_attribute("aria-invalid", "true")
    await expect(body).to_have_attribute("aria-description", re.compile(r"Line \d+, column 1:"))
    await assert_accessible(page)
    await page.keyboard.press("ControlOrMeta+z")
    await expect(body).to_have_attribute("aria-invalid", "false")
    assert await written(body) == text

    await page.keyboard.press("ControlOrMeta+f")
    find = dialog.get_by_role("textbox", name="Find")
    await expect(find).to_be_focused()
    await assert_accessible(page)
    await page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    await assert_accessible(page)
    await page.keyboard.type("keyboard")
    await page.keyboard.press("Escape")
    await expect(find).to_have_count(0)
    await expect(body).to_be_focused()

    await page.keyboard.press("Shift+Tab")
    await expect(dialog.get_by_role("button", name="Format")).to_be_focused()
    await page.keyboard.press("Tab")
    await expect(body).to_be_focused()
    await page.keyboard.press("Tab")
    await expect(body).not_to_be_focused()
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()

    opener = detail(page, letter).get_by_role("button", name="Edit and requeue")
    await expect(opener).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(body).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    await expect(opener).to_be_focused()


async def test_a_long_body_is_edited_at_its_end_without_losing_what_is_out_of_sight(stage: Stage, visit: Visit) -> None:
    letter, *_ = await failed(stage, "it is long", rows=[{"row": n, "large": LARGE} for n in range(3_000)], last="typo")
    page = await visit(f"dead-letters/{letter['id']}")
    dialog = await _editor(page, letter)
    reveal, body = dialog.get_by_role("button", name="Reveal and edit"), dialog.get_by_role("textbox", name="Body")
    await expect(reveal.or_(body).first).to_be_visible()
    if await reveal.is_visible():
        await reveal.click()
    await expect(body).to_be_focused()
    await page.keyboard.press("ControlOrMeta+f")
    await expect(dialog.get_by_role("textbox", name="Find")).to_be_focused()
    await page.keyboard.type("typo")
    await page.keyboard.press("Enter")
    await page.keyboard.press("Escape")
    await page.keyboard.insert_text("fixed")
    await dialog.get_by_role("button", name="Review changes").click()
    changes = dialog.get_by_role("table", name="Changes in the body")
    await expect(changes.get_by_role("row").filter(has_text="removed: ")).to_have_count(1)
    await expect(changes.get_by_role("row").filter(has_text="added: ")).to_contain_text("fixed")


async def test_what_is_masked_is_revealed_before_it_is_edited(stage: Stage, visit: Visit) -> None:
    letter, *_ = await failed(stage, "the card is on the black list", card={"number": "4111-1111"})
    page = await visit(f"dead-letters/{letter['id']}")
    dialog = await _editor(page, letter)
    await expect(dialog).to_contain_text("written to the audit log under your name")
    await dialog.get_by_role("button", name="Reveal and edit").click()
    await expect(dialog.get_by_role("textbox", name="Body")).to_contain_text("4111-1111")
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    await expect(detail(page, letter)).not_to_contain_text("4111-1111")


async def test_one_is_discarded_found_again_and_restored(stage: Stage, visit: Visit) -> None:
    letter, other = await failed(stage, "a rare failure", 2)
    page = await visit(f"dead-letters/{letter['id']}?q=rare", Role.OPERATOR)
    await detail(page, letter).get_by_role("button", name="Discard").click()
    dialog = page.get_by_role("dialog", name=f"Discard dead letter {letter['id']}")
    await dialog.get_by_label("Reason").fill("it was a test")
    await dialog.get_by_role("button", name="Discard 1").click()
    await announced(page, "1 of 1 dead letter was discarded.")
    await expect(detail(page, other)).to_be_visible()

    await page.goto(f"{stage.ui}dead-letters?view=messages&q=rare")
    await expect(row(page, other)).to_be_visible()
    await expect(row(page, letter)).to_have_count(0)
    await page.get_by_role("tab", name="Discarded").click()
    await row(page, letter).get_by_role("link").click()
    await expect(detail(page, letter)).to_contain_text("Discarded by olga")
    await expect(detail(page, letter)).to_contain_text("“it was a test”")
    await detail(page, letter).get_by_role("button", name="Restore").click()
    dialog = page.get_by_role("dialog", name=f"Restore dead letter {letter['id']}")
    await dialog.get_by_role("button", name="Restore 1").click()
    await announced(page, "1 of 1 dead letter was restored.")
    await expect(detail(page, letter).get_by_role("button", name="Discard")).to_be_enabled()


async def _editor(page: Page, letter: Mapping[str, Any]) -> Locator:
    await detail(page, letter).get_by_role("button", name="Edit and requeue").click()
    return page.get_by_role("dialog", name=f"dead letter {letter['id']}")


async def _edited_elsewhere(stage: Stage, letter: Mapping[str, Any]) -> None:
    """Another operator requeues it with another body; it fails again."""
    body = {"fails": "card", "why": "two people look at this", "note": "from elsewhere"}
    async with stage.api(Role.OPERATOR) as client:
        version = (await client.get(f"/dlq/{letter['id']}")).json()["version"]
        edit = {"version": version, "body": body}
        request = {"selector": {"ids": [letter["id"]]}, "dry_run": False, "edit": edit}
        done = await client.post("/requeue", json=request, headers={"idempotency-key": f"elsewhere-{letter['id']}"})
        assert done.status_code == 200, done.text

        async def back() -> Any:
            found = (await client.get(f"/dlq/{letter['id']}")).json()
            return found["status"] == "open" and found["version"] > version

        await eventually(back, interval=0.2)
