"""What strangers wrote into a message is text, wherever it is shown: nothing of it runs, leads away, or leaves its place."""

import json
from collections.abc import Mapping
from typing import Any

import aio_pika
import pytest_asyncio
from playwright.async_api import Page, Route, ViewportSize, expect

from tests.dashboard.failing import detail, rows
from tests.dashboard.stage import WIDE, Stage, Visit

IMAGE = '<img src="nowhere" onerror="window.ran = true">'
SCRIPT = "</code></script><script>window.ran = true</script>"
LINK = "javascript:window.ran=true"
BACKWARDS = "\u202egnp.exe\u202c"
CONTROL = "a\u0007b\u001b[31mc\u2028d"
LONG = "x" * 4_000
WHY = f"{IMAGE} {SCRIPT} {BACKWARDS} hostile {LONG}"
BODY = {
    "fails": "card",
    "why": WHY,
    IMAGE: SCRIPT,
    "link": LINK,
    "control": CONTROL,
    "long": LONG,
    "template": "{{constructor.constructor('window.ran = true')()}}",
}
HEADERS = {"x-tenant": IMAGE, "x-link": LINK, "x-long": LONG, "x-backwards": BACKWARDS}
ROUTING_KEY = f"payment.{IMAGE}.{'k' * 180}"
QUEUE = "q" * 255
PHONE = ViewportSize(width=390, height=844)
LEADING_ELSEWHERE = r"""() => {
    const isExport = element => {
        const {origin, username, pathname, searchParams, hash} = new URL(element.href, location.origin)
        return element.matches("a[download]:not([target])") && origin === location.origin && !username && !hash
            && /^[/]outbox[/]export[/](dlq|messages|audit|operations)$/.test(pathname)
            && ["csv", "ndjson"].includes(searchParams.getAll("format").join())
    }
    return [...document.querySelectorAll("[href], [src], [action]")]
        .filter(element => !isExport(element))
        .map(leading => leading.href || leading.src || leading.action)
        .filter(to => !to.startsWith(`${location.origin}/outbox/ui/`))
}"""
"""What leads neither to a page nor to the download of a list."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def letter(stage: Stage) -> Mapping[str, Any]:
    """A dead letter of such a message, which came from elsewhere."""
    async with await aio_pika.connect(stage.broker_url) as connection:
        channel = await connection.channel()
        message = aio_pika.Message(
            json.dumps(BODY).encode(),
            content_type="application/json",
            message_id=f"id {SCRIPT}",
            headers={**HEADERS, "x-outbox-routing-key": ROUTING_KEY},
        )
        await channel.default_exchange.publish(message, routing_key="payments.capture")
    found, *_ = await stage.dead_letters(1, q="hostile")
    return found


async def test_in_the_list_and_its_groups(stage: Stage, visit: Visit, letter: Mapping[str, Any]) -> None:
    page = await visit("dead-letters?view=messages&q=hostile")
    await expect(rows(page)).to_contain_text(IMAGE)
    await expect(rows(page)).to_contain_text(ROUTING_KEY)
    await _nothing_happened(page)
    await page.get_by_role("button", name="Groups").click()
    await expect(page.get_by_text("1 group")).to_be_visible()
    await page.get_by_label("Group by").select_option(label="Routing key")
    await expect(page.get_by_role("button", name=ROUTING_KEY, exact=True)).to_be_visible()
    await _nothing_happened(page)


async def test_in_all_parts_of_its_detail(stage: Stage, visit: Visit, letter: Mapping[str, Any]) -> None:
    page = await visit(f"dead-letters/{letter['id']}?q=hostile")
    shown = detail(page, letter)
    await expect(shown.get_by_text(SCRIPT).first).to_be_visible()
    tree = shown.get_by_role("tree", name="Body of dead letter")
    for name, value in ((IMAGE, SCRIPT), ("link", LINK), ("template", "constructor")):
        await expect(tree.get_by_role("treeitem", name=name).first).to_contain_text(value)
    await shown.get_by_role("tab", name="Raw").click()
    await expect(shown.get_by_role("tabpanel")).to_contain_text(LINK)
    await shown.get_by_role("tab", name="Hex").click()
    headers = shown.get_by_role("row")
    await expect(headers.filter(has_text="x-tenant")).to_contain_text(IMAGE)
    await expect(headers.filter(has_text="x-link")).to_contain_text(LINK)
    await _nothing_happened(page)


async def test_in_the_dialogs(stage: Stage, visit: Visit, letter: Mapping[str, Any]) -> None:
    page = await visit(f"dead-letters/{letter['id']}?q=hostile")
    await detail(page, letter).get_by_role("button", name="Requeue", exact=True).click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("1 would be requeued")
    await expect(dialog).to_contain_text(IMAGE)
    await _nothing_happened(page)
    await page.keyboard.press("Escape")
    await detail(page, letter).get_by_role("button", name="Edit and requeue").click()
    body = dialog.get_by_role("textbox", name="Body")
    await expect(body).to_contain_text(IMAGE.replace('"', r"\""))
    await body.fill(json.dumps(BODY | {"fails": "<img src=nowhere onerror=ran()>"}, indent=2))
    await dialog.get_by_role("button", name="Review changes").click()
    await expect(dialog.get_by_role("table", name="Changes in the body")).to_contain_text("<img src=nowhere onerror=ran()>")
    await _nothing_happened(page)


async def test_in_its_chain_and_in_an_address(stage: Stage, visit: Visit, letter: Mapping[str, Any]) -> None:
    page = await visit(f"dead-letters/{letter['id']}")
    await detail(page, letter).get_by_role("link", name="Show chain").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Chain")
    await _nothing_happened(page)
    await page.goto(f"{stage.ui}dead-letters?view=messages&q={IMAGE}&queue={SCRIPT}")
    await expect(page.get_by_role("list", name="Active filters")).to_contain_text(IMAGE)
    await _nothing_happened(page)


async def test_in_its_detail_on_a_phone(visit: Visit, letter: Mapping[str, Any]) -> None:
    page = await visit(f"dead-letters/{letter['id']}", viewport=PHONE)
    await expect(detail(page, letter).get_by_text(f"Published with routing key {ROUTING_KEY}")).to_be_visible()
    await _nothing_happened(page)


async def test_a_finding_about_a_long_name_on_a_phone(visit: Visit) -> None:
    async def answer(route: Route) -> None:
        finding = {"code": "queue_late", "severity": "error", "summary": f"in the queue '{QUEUE}' 20 messages wait", "hint": ""}
        finding |= {"subject_kind": "queue", "subject": QUEUE, "started_at": "2026-01-01T00:00:00Z"}
        await route.fulfill(json={"as_of": "2026-01-01T00:00:00Z", "status": "error", "findings": [finding], "thresholds": {}})

    page = await visit(viewport=PHONE, routes=((lambda url: "/health/verdict" in url, answer),))
    await expect(page.get_by_role("list", name="Problems").get_by_role("listitem")).to_contain_text("20 messages wait")
    await _nothing_happened(page)


async def test_the_dialog_that_pauses_a_queue_with_a_long_name_on_a_phone(visit: Visit) -> None:
    page = await visit("components", viewport=PHONE)
    await page.get_by_role("button", name="Pause …").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Scope").select_option(label="A queue")
    await dialog.get_by_label("Queue").fill(QUEUE)
    button = dialog.get_by_role("button", name=f"Pause the queue {QUEUE}")
    assert await button.evaluate("button => button.scrollWidth - button.clientWidth") == 0
    await _nothing_happened(page)


async def test_a_long_name_in_the_audit_log(visit: Visit) -> None:
    async def answer(route: Route) -> None:
        entry = {"id": "1", "created_at": "2026-01-01T00:00:00Z", "actor": QUEUE, "role": "operator", "action": "dlq.requeue"}
        entry |= {"target": "", "outcome": "done", "reason": "", "request_id": "", "address": ""}
        await route.fulfill(json={"items": [entry | {"details": {}}], "next": None, "previous": None, "total": None})

    for viewport in (WIDE, PHONE):
        page = await visit("audit", viewport=viewport, routes=((lambda url: "/audit?" in url, answer),))
        table = page.get_by_role("region", name="Audit log")
        await expect(table).to_contain_text(QUEUE)
        assert await table.evaluate("table => table.scrollWidth - table.clientWidth") == 0
        await table.get_by_role("button").first.click()  # nothing lies above it
        await expect(table.get_by_role("button", name="All entries by")).to_be_visible()
        await _nothing_happened(page)


async def _nothing_happened(page: Page) -> None:
    """Nothing ran, no link leads elsewhere, and nothing is wider than the window."""
    assert await page.evaluate("window.ran") is None
    assert await page.evaluate(LEADING_ELSEWHERE) == []
    wider = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wider <= 0, f"the page is {wider} px wider than its window"
