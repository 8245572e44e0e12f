"""`make screenshots`: every screen, light and dark, of the service with its demo, into docs/images/, and a sheet of all."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import asyncpg
import httpx
from playwright.async_api import Browser, Page, ViewportSize, async_playwright

from outbox import MessageRelay, Publisher, ensure_outbox_schema_async
from outbox.admin import Role
from outbox.admin.principals import new_token
from tests.relay.support import running as relaying
from tests.servers.chromium import chromium_arguments, chromium_program, ensure_chromium
from tests.servers.kafka import mock_kafka
from tests.servers.postgres import private_postgres
from tests.servers.session_folder import session_folder
from tests.support import eventually
from tests.support.processes import free_port, running

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
SHEET = ROOT / "build" / "contact-sheet.png"
VIEW = ViewportSize(width=1360, height=850)
DEMO = ("--rate", "6", "--duration", "100", "--mix", "book=10,flaky=2,forbidden=1")


async def main() -> None:
    """Starts everything, lets the demo place orders, and looks at each screen."""
    ensure_chromium()
    IMAGES.mkdir(exist_ok=True)
    token, entry = new_token("ada", Role.ADMIN)
    with (
        session_folder() as folder,
        private_postgres(folder / "postgres") as server,
        _webhook() as webhook,
        _service(folder, server.url, str(entry), webhook) as url,
    ):
        demo = [sys.executable, "-m", "outbox.cli", "demo", "--url", url, *DEMO]
        print("placing orders for 100 seconds …")
        await asyncio.to_thread(subprocess.run, demo, check=True, capture_output=True)
        await _published(server.url)
        headers = {"authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(base_url=f"{url}/outbox", headers=headers, timeout=60) as client, _browser() as browser:
            screens = await _arranged(client)
            for theme in ("light", "dark"):
                page = await _entered(browser, f"{url}/outbox/ui/", token, theme)
                for name, path in screens.items():
                    await page.goto(f"{url}/outbox/ui/{path}")
                    await _at_rest(page)
                    await page.screenshot(path=IMAGES / f"{name}-{theme}.png")
                    print(f"docs/images/{name}-{theme}.png")
                await _requeue_dialog(page, f"{url}/outbox/ui/", theme)
                await _login(page, f"{url}/outbox/ui/", theme)
                await page.context.close()
            await _destinations(browser, f"{url}/outbox/ui/", token, server.url)
            await _contact_sheet(browser)


async def _contact_sheet(browser: Browser) -> None:
    """Every screen on one page, to be looked at as a whole."""
    images = sorted(IMAGES.glob("*-light.png")) + sorted(IMAGES.glob("*-dark.png"))
    page = await browser.new_page(viewport=ViewportSize(width=2_200, height=1_000))
    SHEET.parent.mkdir(exist_ok=True)
    page_file = SHEET.with_suffix(".html")
    page_file.write_text("".join(f'<img src="{image.as_uri()}" width="24.5%"> ' for image in images))
    await page.goto(page_file.as_uri())
    await page.screenshot(path=SHEET, full_page=True)
    await page.close()
    print(SHEET.relative_to(ROOT))


class _Takes(BaseHTTPRequestHandler):
    """A webhook that takes everything."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Says nothing."""


@contextmanager
def _webhook() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Takes) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}/"
        server.shutdown()


@contextmanager
def _service(folder: Path, database_url: str, entry: str, webhook: str) -> Iterator[str]:
    port = free_port()
    settings = {
        "OUTBOX_DATABASE_URL": database_url,
        "OUTBOX_HTTP_PORT": str(port),
        "OUTBOX_ADMIN_TOKENS": entry,
        "OUTBOX_EXAMPLE": "true",
        "OUTBOX_SERVICE_VERSION": "2026.11.2",
        "OUTBOX_ENVIRONMENT": "staging:amber",
        "OUTBOX_ALERT_WEBHOOKS": webhook,
        "OUTBOX_ALERT_SECRET": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "OUTBOX_ALERT_QUIET": "22:00-07:00 Europe/Berlin",
    }
    with running(["-m", "app"], folder, settings) as process:
        process.says("Press Ctrl-C to stop", timeout=120)
        yield f"http://127.0.0.1:{port}"


async def _published(database_url: str) -> None:
    """What waits: some for their time, and some for a queue that does not exist."""
    connection = await asyncpg.connect(database_url)
    try:
        async with connection.transaction():
            for number in range(1, 7):
                body = {"invoice": 4700 + number, "customer": "ada@example.com"}
                await Publisher().publish(connection, "invoice.sent", body)
                await Publisher().publish(connection, "invoice.due", body, eta=timedelta(days=14, hours=number))
    finally:
        await connection.close()


@asynccontextmanager
async def _browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        opened = await playwright.chromium.launch(executable_path=chromium_program(), args=chromium_arguments())
        yield opened
        await opened.close()


async def _arranged(client: httpx.AsyncClient) -> dict[str, str]:
    """Repairs have begun; the screens by name."""
    letters = (await client.get("/dlq", params={"limit": 50})).json()["items"]
    group = (await client.get("/dlq/groups")).json()["items"][0]
    await client.put(
        "/dlq/groups/note", json={"by": "fingerprint", "id": group["id"], "note": "Ada asks the shop about these."}
    )
    operation = await _requeued(client, group["id"])
    chains = (await client.get("/chains", params={"routing_key": "order.placed", "limit": 200})).json()["items"]
    chain = max(chains, key=lambda one: (one["message_count"], one["duration_seconds"] or 0))["root_id"]
    pause = {"scope": "queue", "name": "orders.journal.stock", "reason": "The journal's disk is being replaced."}
    (await client.post("/pause", json=pause)).raise_for_status()
    return {
        "overview": "?range=15m",
        "queues": "queues",
        "queue": "queues?name=orders.payment&range=15m",
        "messages": "messages",
        "dead-letters": "dead-letters?view=messages",
        "dead-letter-groups": "dead-letters",
        "dead-letter-group": f"dead-letters/groups/{group['id']}",
        "dead-letter": f"dead-letters/{letters[-1]['id']}",
        "operation": f"operations/{operation}",
        "chain-tree": f"chains/{chain}?view=tree",
        "chain-waterfall": f"chains/{chain}?view=waterfall",
        "components": "components",
        "topology": "topology",
        "alerts": "alerts",
        "audit": "audit",
        "settings": "settings",
    }


async def _requeued(client: httpx.AsyncClient, group: str) -> str:
    """The id of an operation over a whole group, ended."""
    wanted: dict[str, Any] = {"selector": {"group_id": group}, "reason": "The shop lifted the ban.", "max_items": 40}
    plan = (await client.post("/requeue", json={**wanted, "dry_run": True})).json()
    answer = await client.post("/requeue", json={**wanted, "confirm_token": plan["confirm_token"]})
    answer.raise_for_status()
    id_ = str(answer.json()["id"])

    async def ended() -> bool:
        return not (await client.get(f"/operations/{id_}")).json()["active"]

    await eventually(ended, timeout=90)
    return id_


async def _entered(browser: Browser, ui: str, token: str, theme: str) -> Page:
    context = await browser.new_context(
        viewport=VIEW,
        color_scheme="dark" if theme == "dark" else "light",
        reduced_motion="reduce",
        timezone_id="UTC",
    )
    page = await context.new_page()
    await page.goto(f"{ui}#token={token}")
    await _at_rest(page)
    return page


async def _at_rest(page: Page) -> None:
    """Everything that was asked for is there, and drawn."""
    await page.get_by_role("navigation", name="Pages").wait_for()
    await page.get_by_text("Loading …").first.wait_for(state="detached")
    if await page.get_by_role("heading", level=1).text_content() == "Overview":
        await page.locator("canvas").nth(1).wait_for()
    await page.evaluate("document.fonts.ready.then(() => undefined)")
    await page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


async def _requeue_dialog(page: Page, ui: str, theme: str) -> None:
    await page.goto(f"{ui}dead-letters?view=messages&status=any")
    await _at_rest(page)
    await page.keyboard.press("j")
    await page.keyboard.press("x")
    await page.keyboard.press("R")
    await page.get_by_role("dialog").wait_for()
    await page.get_by_text("Loading …").first.wait_for(state="detached")
    await page.screenshot(path=IMAGES / f"requeue-{theme}.png")
    await page.keyboard.press("Escape")


async def _destinations(browser: Browser, ui: str, token: str, database_url: str) -> None:
    """The panel of several destinations: one with a relay, and one without. Last, because every page shows the findings."""
    await ensure_outbox_schema_async(database_url, destinations=["kafka", "lake"])
    connection = await asyncpg.connect(database_url)
    with mock_kafka(brokers=1) as cluster:
        cluster.create_topic("order.archived")
        relay = MessageRelay(database_url, broker=cluster.url, destination="kafka", enable_metrics=False)
        async with relaying(relay):
            async with connection.transaction():
                for number in range(1, 13):
                    body, later = {"order": 4700 + number}, timedelta(hours=number)
                    await Publisher().publish(connection, "order.archived", body, destination=["kafka", "lake"])
                    await Publisher().publish(connection, "order.archived", body, destination="kafka", eta=later)
            await eventually(lambda: connection.fetchval("select count(*) = 12 from outbox_table_kafka"))
            for theme in ("light", "dark"):
                page = await _entered(browser, ui, token, theme)
                panel = page.get_by_role("region", name="Destinations")
                await panel.get_by_text("1 relay").nth(1).wait_for()
                await panel.screenshot(path=IMAGES / f"destinations-{theme}.png")
                print(f"docs/images/destinations-{theme}.png")
                await page.context.close()
    await connection.close()


async def _login(page: Page, ui: str, theme: str) -> None:
    await page.goto(ui)
    await page.get_by_role("button", name="Log out").click()
    await page.get_by_label("Token").wait_for()
    await page.screenshot(path=IMAGES / f"login-{theme}.png")


if __name__ == "__main__":
    asyncio.run(main())
