"""A list is downloaded as a file, with the filter that it has on its page."""

import csv
import io
import json
import re
from pathlib import Path

from playwright.async_api import Page, expect

from outbox.admin import Role
from tests.dashboard.failing import failed, rows
from tests.dashboard.stage import Stage, Visit


async def test_what_matches_the_filter_is_downloaded(stage: Stage, visit: Visit) -> None:
    await failed(stage, "exported, the wallet", 3)
    letters = await failed(stage, "exported, the ledger", 2, "ledger")
    page = await visit(
        "dead-letters?view=messages&q=exported&exception_type=tests.dashboard.shop.LedgerOfflineError&sort=oldest"
    )
    await expect(rows(page)).to_have_count(2)
    name, content = await _downloaded(page, "CSV")
    assert re.fullmatch(r"dlq-\d{4}-\d\d-\d\dT\d{6}Z\.csv", name)
    found = list(csv.DictReader(io.StringIO(content, newline=""), strict=True))
    assert [each["id"] for each in found] == [letter["id"] for letter in reversed(letters)]
    assert {each["error.type"] for each in found} == {"tests.dashboard.shop.LedgerOfflineError"}
    await page.get_by_role("tab", name="Discarded").click()
    await expect(rows(page)).to_have_count(0)
    assert len((await _downloaded(page, "CSV"))[1].splitlines()) == 1


async def test_every_list_has_its_export(stage: Stage, visit: Visit) -> None:
    await stage.publish({"order": 7}, routing_key="exported.nowhere")
    page = await visit("messages?routing_key=exported.nowhere")
    await expect(page.get_by_text("exported.nowhere").first).to_be_visible()
    name, content = await _downloaded(page, "NDJSON")
    assert name.endswith(".ndjson")
    [line] = content.splitlines()
    assert json.loads(line)["routing_key"] == "exported.nowhere"
    await page.goto(f"{stage.ui}audit?action=session.begin")
    found = [json.loads(line) for line in (await _downloaded(page, "NDJSON"))[1].splitlines()]
    assert {entry["action"] for entry in found} == {"session.begin"}
    await page.goto(f"{stage.ui}operations")
    name, _ = await _downloaded(page, "CSV")
    assert name.startswith("operations-")


async def test_a_viewer_is_offered_no_export_of_the_audit(stage: Stage, visit: Visit) -> None:
    page = await visit("audit", Role.VIEWER)
    await expect(page.get_by_role("main")).to_contain_text("You need the operator role")
    await expect(page.get_by_role("link", name="Export")).to_have_count(0)
    await page.goto(f"{stage.ui}operations")
    await expect(page.get_by_role("link", name="Export CSV")).to_be_visible()


async def _downloaded(page: Page, format_: str) -> tuple[str, str]:
    """The name and the content of the file behind the link."""
    async with page.expect_download() as download:
        await page.get_by_role("link", name=f"Export {format_}", exact=True).click()
    file = await download.value
    return file.suggested_filename, Path(await file.path()).read_bytes().decode()
