"""What a person does here: find what is wrong, look at it, send it again, one or all, and follow what came of it."""

import re
from typing import Any

from playwright.async_api import Page, expect

from outbox.admin import Role
from tests.dashboard.failing import announced, detail, failed, row, rows
from tests.dashboard.stage import Stage, Visit
from tests.support import eventually


async def test_from_the_overview_to_what_failed_and_why(stage: Stage, visit: Visit) -> None:
    letter, *_ = await failed(stage, "the ledger is closed", 3, "ledger", card={"number": "4111", "holder": "Grace"})
    page = await visit()
    groups = page.get_by_role("region", name="Top failure groups")
    await groups.get_by_role("link", name="LedgerOfflineError: the ledger is closed in dashboard/shop.py:capture").click()
    await expect(page).to_have_url(re.compile(r"/dead-letters/groups/"))

    messages = page.get_by_role("region", name="Latest messages")
    await messages.get_by_role("link", name=letter["id"], exact=True).click()
    shown = detail(page, letter)
    await expect(shown.get_by_role("heading", name="LedgerOfflineError")).to_be_visible()
    await expect(shown.get_by_text("the ledger is closed", exact=True)).to_be_visible()
    await expect(shown).to_contain_text("shop.py")
    await expect(shown).to_contain_text("in capture")
    payload = shown.get_by_role("tree", name=f"Body of dead letter {letter['id']}")
    await expect(payload.get_by_role("treeitem", name="holder")).to_contain_text("Grace")
    await expect(payload.get_by_role("treeitem", name="number")).to_contain_text("masked")
    await expect(shown).not_to_contain_text("4111")
    await expect(shown.get_by_role("listitem").filter(has_text="Attempt 1 failed")).to_be_visible()


async def test_a_requeued_message_fails_again_and_the_list_keeps_its_filter(stage: Stage, visit: Visit) -> None:
    letter, other = await failed(stage, "the bank is on strike", 2)
    page = await visit("dead-letters?view=messages&q=strike&sort=oldest")
    await expect(rows(page)).to_have_count(2)
    await row(page, letter).get_by_role("link").click()
    await detail(page, letter).get_by_role("button", name="Requeue", exact=True).click()
    dialog = page.get_by_role("dialog", name=f"Requeue dead letter {letter['id']}")
    await expect(dialog).to_contain_text("1 would be requeued")
    await dialog.get_by_role("button", name="Requeue 1").click()
    await announced(page, "1 of 1 dead letter was requeued.")
    await expect(dialog).to_be_hidden()
    await expect(page).to_have_url(re.compile(r"\?view=messages&q=strike&sort=oldest$"))
    await expect(row(page, other)).to_be_visible()

    await eventually(lambda: _dead_lettered(stage, letter["id"], 2))
    await page.goto(f"{stage.ui}dead-letters/{letter['id']}?q=strike")
    await expect(row(page, letter)).to_contain_text("failed again")
    entries = detail(page, letter).get_by_role("listitem")
    await expect(entries.filter(has_text="Requeued by ada")).to_be_visible()
    await expect(entries.filter(has_text="Failed again")).to_be_visible()


async def test_a_requeued_message_is_handled(stage: Stage, visit: Visit) -> None:
    letter, *_ = await failed(stage, "the bank has moved")
    stage.fix()
    page = await visit(f"dead-letters/{letter['id']}", Role.OPERATOR)
    await expect(detail(page, letter).get_by_role("button", name="Requeue", exact=True)).to_be_enabled()
    await page.keyboard.press("R")
    dialog = page.get_by_role("dialog", name=f"Requeue dead letter {letter['id']}")
    await dialog.get_by_role("button", name="Requeue 1").click()
    await announced(page, "1 of 1 dead letter was requeued.")
    await page.goto(f"{stage.ui}dead-letters/{letter['id']}?status=requeued")
    await expect(detail(page, letter)).to_contain_text("Requeued by olga")
    await expect(detail(page, letter)).to_contain_text("It has been processed.")


async def test_all_that_match_go_with_a_canary_first_once_their_number_is_typed(stage: Stage, visit: Visit) -> None:
    await failed(stage, "the till is locked", 60)
    stage.fix()
    page = await visit("dead-letters?view=messages&q=till")
    await expect(rows(page)).to_have_count(50)
    await page.get_by_role("checkbox", name="Select all on this page").click()
    selection = page.get_by_role("region", name="Selection")
    await selection.get_by_role("button", name="Select all 60 matching").click()
    await expect(selection).to_contain_text("All 60 matching selected")
    await selection.get_by_role("button", name="Requeue").click()

    dialog = page.get_by_role("dialog", name="Requeue all 60 dead letters that match the filters")
    await expect(dialog.get_by_role("region", name="Dry run")).to_contain_text("60 would be requeued")
    await expect(dialog).to_contain_text("payments.capture")
    await expect(dialog).to_contain_text("CardDeclinedError")
    await dialog.get_by_role("checkbox", name="Canary").click()
    await dialog.get_by_label("Canary size").fill("5")
    await expect(dialog.get_by_label("Observe for (s)")).to_have_value("600")
    await dialog.get_by_label("Reason").fill("the till is open again")
    go = dialog.get_by_role("button", name="Requeue 60")
    await expect(go).to_be_disabled()
    await dialog.get_by_label("Type 60 to confirm").fill("6")
    await expect(go).to_be_disabled()
    await dialog.get_by_label("Type 60 to confirm").fill("60")
    await go.click()

    await expect(page).to_have_url(re.compile(r"/operations/\d+"))
    await _ends_as(page, "finished")
    await expect(page.get_by_role("region", name="Progress")).to_contain_text("60 of 60")
    await expect(page.get_by_role("region", name="Request")).to_contain_text("the till is open again")
    outcomes = page.get_by_role("region", name="Items")
    await expect(outcomes.get_by_role("tab", name="Requeued")).to_contain_text("60")
    await expect(outcomes.get_by_role("tab", name="Failed again")).to_have_count(0)
    # Sent is not handled: the page continues to show their results.
    results = page.get_by_label("Outcomes of sent messages")
    await expect(results).to_have_text(
        re.compile(r"Waiting\s*0\s*Retrying\s*0\s*Handled\s*60\s*Failed again\s*0"), timeout=90_000
    )
    await expect(outcomes.get_by_role("table").get_by_text("handled").first).to_be_visible()


async def test_an_operation_stops_itself_when_its_canary_fails(stage: Stage, visit: Visit) -> None:
    await failed(stage, "the vault is full", 12, "ledger")
    page = await visit("dead-letters?view=groups&q=vault")
    await page.get_by_role("button", name="Requeue the group tests.dashboard.shop.LedgerOfflineError").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("12 would be requeued")
    await dialog.get_by_role("checkbox", name="Canary").click()
    await dialog.get_by_label("Canary size").fill("2")
    await dialog.get_by_label("Type 12 to confirm").fill("12")
    await dialog.get_by_role("button", name="Requeue 12").click()

    await _ends_as(page, "stopped automatically")
    far = page.get_by_role("region", name="Progress")
    await expect(far).to_contain_text("Stopped automatically")
    await expect(far).to_contain_text("10 dead letters were not changed.")
    await far.get_by_role("link", name="2 failed again").click(timeout=90_000)
    outcomes = page.get_by_role("region", name="Items")
    await expect(outcomes.get_by_role("table").get_by_text("failed again", exact=True)).to_have_count(4)
    await expect(outcomes.get_by_role("table").get_by_text("failed again after")).to_have_count(2)
    await outcomes.get_by_role("table").get_by_role("link").first.click()
    await expect(page.get_by_text("Failed again").first).to_be_visible()


async def test_a_chain_is_followed_from_a_dead_letter_as_waterfall_tree_and_table(stage: Stage, visit: Visit) -> None:
    stage.service.place("forbidden")
    letter, *_ = await stage.dead_letters(1, queue="orders.payment")
    page = await visit(f"dead-letters/{letter['id']}")
    await detail(page, letter).get_by_role("link", name="Show chain").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Chain of order.placed")
    for way, called in (("Waterfall", "by time"), ("Tree", "as a tree")):
        await page.get_by_role("tab", name=way).click()
        drawn = page.get_by_role("tree", name=f"Messages of the chain {called}")
        await expect(drawn.get_by_role("treeitem", name=re.compile("order.placed.*dead"))).to_be_visible()
        await expect(drawn.get_by_role("treeitem", name="order.rejected")).to_be_visible()
    await page.get_by_role("tab", name="table").click()
    table = page.get_by_role("region", name="Messages of the chain")
    payment = table.get_by_role("row").filter(has_text="orders.payment")
    await expect(payment).to_contain_text("dead letter")
    await expect(payment).to_contain_text("no payment is taken")
    await expect(table.get_by_role("row").filter(has_text="order.rejected")).to_contain_text("order.placed")
    await payment.get_by_role("button").click()
    await page.get_by_role("region", name="Selected message").get_by_role("link", name="Dead letter").click()
    await expect(row(page, letter)).to_be_visible()


async def _ends_as(page: Page, state: str) -> None:
    await expect(page.get_by_role("banner").or_(page.get_by_role("main")).get_by_text(state, exact=True).first).to_be_visible(
        timeout=90_000
    )


async def _dead_lettered(stage: Stage, letter: str, count: int) -> Any:
    async with stage.api() as client:
        return (await client.get(f"/dlq/{letter}")).json()["dead_letter_count"] >= count
