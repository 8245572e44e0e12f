"""How soon the dashboard answers a hand where a great deal has piled up: from the input to the next paint, in Chromium."""

import asyncio
import statistics
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import asyncpg
from playwright.async_api import CDPSession, Locator, Page, async_playwright

from benchmarks.administering import pile_up_dead_letters
from benchmarks.measuring import OWN_COST
from benchmarks.servers import Servers, execute
from outbox.admin import Role
from outbox.admin.principals import new_token
from outbox.postgres.history import ensure_partitions
from tests.app.support import service
from tests.servers.chromium import chromium_arguments, chromium_program, ensure_chromium

ROOT = Path(__file__).parents[1]
CHAIN = 2_000
"""Messages of the chain."""
TIMES = 3
"""How often each thing is done in a run."""

# An interaction's `duration` is from the input to the paint after it, in steps of 8 ms and from 16 on. A task that is longer
# than that, such as drawing an answer, would delay the next input: the longer of the two counts.
_MEASURED = """
(() => {
  let longest = 0
  const keep = ({duration, entryType, interactionId}) => {
    if (entryType !== "event" || interactionId) longest = Math.max(longest, duration)
  }
  const observer = new PerformanceObserver((list) => list.getEntries().forEach(keep))
  observer.observe({type: "event", durationThreshold: 16})
  observer.observe({type: "longtask"})
  window.measured = {
    async longest() {
      await new Promise((resolve) => setTimeout(resolve, 80))
      observer.takeRecords().forEach(keep)
      const took = Math.max(longest, 8)
      longest = 0
      return took
    },
  }
})()
"""

Step = Callable[[], Awaitable[object]]


async def dashboard(servers: Servers, rows: int) -> dict[str, float]:
    """Milliseconds from an input to the paint after it: median, worst, and what it costs the page; `rows` dead letters."""
    await asyncio.to_thread(ensure_chromium)
    subprocess.run([sys.executable, ROOT / "scripts" / "dashboard.py"], check=True, capture_output=True)
    async with servers.fresh_database() as url:
        await _pile_up(url, rows)
        async with _opened(url) as hand:
            for _ in range(TIMES):
                await _dead_letters(hand)
                await _chain(hand)
            return hand.figures()


async def _dead_letters(hand: "Hand") -> None:
    """The groups, the list, its filter, its selection, a letter, another page."""
    page = hand.page
    rows, groups = page.locator("[data-letter]"), page.get_by_text("last 24 hours").first
    await hand.visit("operations")
    await hand.clicks("open the dead letters", page.get_by_role("link", name="Dead letters", exact=False).first, groups)
    await hand.clicks("switch to the messages", page.get_by_role("button", name="Messages", exact=True), rows.first)
    await page.get_by_role("tab", name="Open").wait_for()
    await hand.presses("next row (j)", "j", 10)
    await hand.presses("previous row (k)", "k", 5)
    await hand.presses("select a row (x)", "x", 1)
    last = rows.last
    await last.scroll_into_view_if_needed()
    await hand.does("select with shift", lambda: last.click(modifiers=["Shift"]))
    await hand.presses("select nothing (Escape)", "Escape", 1)
    await hand.clicks("select the page", page.get_by_role("checkbox", name="Select all on this page"))
    every = page.get_by_role("button", name="Select all", exact=False)
    await hand.clicks("select all that match", every.last, page.get_by_text("matching selected"))
    await hand.presses("select nothing (Escape)", "Escape", 1)
    await hand.clicks("turn a page", page.get_by_role("button", name="Older"), page.get_by_role("button", name="Newer"))
    await hand.clicks("open a letter", rows.nth(3), page.get_by_role("button", name="Close the dead letter"))
    await hand.presses("next letter (j)", "j", 3)
    await hand.presses("close the letter (Escape)", "Escape", 1)
    await hand.clicks("switch to the groups", page.get_by_role("button", name="Groups"), groups)
    await hand.clicks("switch to the messages", page.get_by_role("button", name="Messages", exact=True), rows.first)
    await hand.presses("go to the filter (/)", "/", 1)
    await hand.types("type into the filter", "queue-7")
    await hand.presses("take a filter (Enter)", "Enter", 1)


async def _chain(hand: "Hand") -> None:
    """The chain as waterfall, tree and table."""
    page = hand.page
    await hand.visit("chains")
    drawing = page.get_by_role("tree")
    rows = page.locator("[data-row]")
    field = page.get_by_role("searchbox").or_(page.get_by_role("textbox")).first
    await field.fill("chain-1")
    await field.focus()
    await hand.does("open the chain", lambda: page.keyboard.press("Enter"), drawing)
    await hand.clicks("select a node", rows.nth(3), page.get_by_label("Selected message"))
    await hand.presses("next node (j)", "j", 10)
    whole = page.get_by_role("definition").filter(has_text=f"{CHAIN:,}").first
    await hand.clicks("show the whole chain", page.get_by_role("button", name="Show up to"), whole)
    await rows.nth(1).click()
    await page.keyboard.press("End")
    await hand.clicks("unfold what is folded", rows.filter(has_text="more (").last)
    await hand.scrolls("scroll the waterfall", drawing)
    await hand.clicks("switch to the tree", page.get_by_role("tab", name="Tree"), drawing)
    await hand.scrolls("scroll the tree", drawing)
    table = page.get_by_role("columnheader", name="Cause")
    await hand.clicks("switch to the table", page.get_by_role("tab", name="Table"), table)
    await hand.clicks("sort the table", page.get_by_role("button", name="In the outbox", exact=False))
    await hand.clicks("turn a part of the table", page.get_by_role("button", name="Next", exact=True))
    await hand.clicks("switch to the waterfall", page.get_by_role("tab", name="Waterfall"), drawing)


@dataclass(slots=True)
class Hand:
    """Does things on a page, and keeps how long each took."""

    page: Page
    address: str
    inside: CDPSession
    took: dict[str, list[float]] = field(default_factory=dict)
    cost: dict[str, list[float]] = field(default_factory=dict)

    def figures(self) -> dict[str, float]:
        """Of each thing: the median and the worst in milliseconds; the page's own processor time in microseconds."""
        figures: dict[str, float] = {}
        for name, took in self.took.items():
            figures |= {name: statistics.median(took), f"{name}, worst": max(took)}
            figures[name + OWN_COST] = statistics.median(self.cost[name]) * 1_000
        return figures

    async def visit(self, path: str) -> None:
        """Goes there by the address, unmeasured."""
        await self.page.goto(self.address + path)
        await self.page.get_by_role("main").wait_for()
        await self._settle()

    async def does(self, name: str, step: Step, until: Locator | None = None) -> None:
        """Measures one thing, until what it leads to is there."""
        await self._settle()
        before = await self._spent()
        await step()
        if until is not None:
            await until.wait_for()
        took: float = await self.page.evaluate("measured.longest()")
        self.took.setdefault(name, []).append(took)
        self.cost.setdefault(name, []).append(await self._spent() - before)

    async def clicks(self, name: str, what: Locator, until: Locator | None = None) -> None:
        await what.hover()
        await self.does(name, what.click, until)

    async def presses(self, name: str, key: str, times: int) -> None:
        for _ in range(times):
            await self.does(name, lambda: self.page.keyboard.press(key))

    async def types(self, name: str, text: str) -> None:
        for letter in text:
            await self.presses(name, letter, 1)

    async def scrolls(self, name: str, what: Locator) -> None:
        """Turns the wheel over it. To the browser that is no interaction: the longest task counts, if any is long."""
        await what.hover(position={"x": 20, "y": 20}, force=True)

        async def turn() -> None:
            for _ in range(10):
                await self.page.mouse.wheel(0, 900)
                await self.page.wait_for_timeout(16)

        await self.does(name, turn)

    async def _settle(self) -> None:
        """What earlier things led to is no part of what comes."""
        await self.page.evaluate("measured.longest()")

    async def _spent(self) -> float:
        """Milliseconds of processor that the page's own thread has had so far."""
        metrics = (await self.inside.send("Performance.getMetrics"))["metrics"]
        return 1_000 * float(next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration"))


@asynccontextmanager
async def _opened(url: str) -> AsyncIterator[Hand]:
    """The dashboard of a service on that database, in Chromium."""
    token, entry = new_token("bench", Role.ADMIN)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        settings = {"OUTBOX_DATABASE_URL": url, "OUTBOX_ADMIN_TOKENS": str(entry)}
        address = f"{stack.enter_context(service(folder, settings)).url}/outbox/ui/"
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=chromium_program(), args=chromium_arguments())
            page = await browser.new_page(viewport={"width": 1280, "height": 860})
            page.set_default_timeout(60_000)
            await page.add_init_script(_MEASURED)
            await page.goto(f"{address}#token={token}")
            await page.get_by_role("navigation", name="Pages").wait_for()
            inside = await page.context.new_cdp_session(page)
            await inside.send("Performance.enable", {"timeDomain": "threadTicks"})
            yield Hand(page, address, inside)
            await browser.close()


async def _pile_up(url: str, rows: int) -> None:
    await pile_up_dead_letters(url, rows)
    connection = await asyncpg.connect(url)
    try:
        await ensure_partitions(connection)
    finally:
        await connection.close()
    await execute(url, _FACTS, CHAIN)
    for table in ("outbox_dead_letter", "outbox_history"):
        await execute(url, f"vacuum analyze {table}")


# A root that published a hundred messages, the first of which published a hundred each.
_FACTS = """
insert into outbox_history (at, fact, message_id, root_id, parent_id, routing_key, queue, attempt, waited, ran, component)
select
    now() - interval '1 minute' + (n + case fact when 'sent' then 0 else 15 end) * interval '10 ms', fact,
    'chain-' || n, 'chain-1', case when n > 1 then 'chain-' || (n + 98) / 100 end, 'bench.' || n % 50,
    case fact when 'processed' then 'queue-' || n % 50 end, case fact when 'processed' then 1 end,
    interval '5 ms', interval '100 ms', 'bench'
from generate_series(1, $1::integer) as n, unnest(array['sent', 'processed']) as fact
"""
