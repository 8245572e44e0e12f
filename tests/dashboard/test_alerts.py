"""What was sent about what is wrong is on a page, with a way to see whether webhooks take messages."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from playwright.async_api import expect

from outbox.admin import Role
from tests.dashboard.axe import assert_accessible
from tests.dashboard.failing import announced, failed
from tests.dashboard.stage import NewStage, Stage, Visit
from tests.support.webhooks import SECRET


class Webhook(BaseHTTPRequestHandler):
    """Takes everything."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Says nothing."""


@pytest.fixture
def webhook() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Webhook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/secret-path"
    server.shutdown()
    server.server_close()


async def test_without_webhooks_the_page_says_how_to_have_alerts(visit: Visit) -> None:
    page = await visit("alerts", Role.VIEWER)
    await expect(page.get_by_text("No webhooks are configured.")).to_be_visible()
    await assert_accessible(page)


async def test_what_was_sent_leads_to_what_is_wrong_and_a_webhook_is_tested(
    new_stage: NewStage, visit: Visit, webhook: str
) -> None:
    settings = {
        "OUTBOX_ALERT_WEBHOOKS": webhook,
        "OUTBOX_ALERT_SECRET": SECRET,
        "OUTBOX_ALERT_AFTER": "1ms",
        "OUTBOX_ALERT_EVERY": "0.2",
        "OUTBOX_ALERT_ON": "group_new",
    }
    with new_stage(**settings) as stage:
        await failed(stage, "the till is empty", 1, "ledger")
        page = await visit("alerts", Role.OPERATOR, of=stage)
        table = page.get_by_role("region", name="Alerts, newest first")
        row = table.get_by_role("row").filter(has_text="the till is empty")
        await expect(row).to_contain_text("127.0.0.1#")
        await expect(row).to_contain_text("sent")
        await assert_accessible(page)
        await page.get_by_role("button", name="Send test message").click()
        await announced(page, "accepted the test message.")
        await expect(page.locator("body")).not_to_contain_text("secret-path")
        await row.get_by_role("link").click()
        await expect(page.get_by_role("region", name="Latest sample")).to_contain_text("in capture")


async def test_a_viewer_sends_no_test(stage: Stage, visit: Visit) -> None:
    del stage
    page = await visit("alerts", Role.VIEWER)
    await expect(page.get_by_role("button", name="Send test message")).to_have_count(0)
