"""Live updates arrive soon, move nothing under the pointer, and pause on request or in a hidden tab."""

import re
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Locator, Page, Route, expect

from tests.app.support import Service
from tests.dashboard.failing import detail, failed, rows
from tests.dashboard.stage import Stage, Visit
from tests.servers.proxy import Proxy
from tests.support.processes import OurProcess, running

BROKEN_LINE = "Failed to load resource: net::ERR_"
"""What the browser says of a connection that ends."""


@pytest.fixture
def relay(stage: Stage, tmp_path: Path) -> Iterator[OurProcess]:
    """A second relay, in a process of its own, that sends heartbeats often."""
    settings = {"OUTBOX_DATABASE_URL": stage.database_url, "OUTBOX_BROKER_URL": stage.broker_url}
    options = ["--name", "doomed", "--heartbeat-interval", "0.5", "--monitoring-port", "0"]
    with running(["-m", "outbox.cli", "relay", *options], tmp_path, settings, name="relay") as process:
        yield process


@pytest.fixture
def proxied(stage: Stage) -> Iterator[tuple[Proxy, Stage]]:
    """The same service, behind a proxy."""
    with Proxy(stage.service.url) as proxy:
        yield proxy, replace(stage, service=Service(stage.service.process, proxy.url))


async def test_a_relay_that_is_killed_turns_lost(visit: Visit, relay: OurProcess) -> None:
    page = await visit("components?kind=relay")
    doomed = page.get_by_role("row").filter(has_text=f"process {relay.pid}")
    show = page.get_by_role("button", name=re.compile("new component.*Show"))
    await expect(doomed.or_(show).first).to_be_visible()
    if await show.is_visible():
        await show.click()
    await expect(doomed.get_by_text("alive", exact=True)).to_be_visible()
    relay.send(signal.SIGKILL)
    await expect(doomed.get_by_text("lost", exact=True)).to_be_visible(timeout=90_000)
    await page.get_by_role("link", name="Overview").click()
    await expect(page.get_by_role("region", name="Alive")).to_contain_text(re.compile(r"1 lost"))


async def test_the_stream_reconnects_and_missed_changes_are_shown(
    stage: Stage, visit: Visit, proxied: tuple[Proxy, Stage]
) -> None:
    proxy, behind = proxied
    page = await visit("dead-letters?view=messages&q=wire", of=behind, expected=(BROKEN_LINE,))
    await expect(page.get_by_text("No dead letters match the filters.")).to_be_visible()
    await _says(page, "Live")
    proxy.refuse()
    await _says(page, "Reconnecting")
    await failed(stage, "the wire is cut", 2)
    proxy.accept()
    await expect(rows(page)).to_have_count(2, timeout=45_000)
    await _says(page, "Live", within=45_000)  # it tries again after up to half a minute


async def test_a_service_that_answers_nothing_is_not_called_live(visit: Visit) -> None:
    page = await visit("messages")
    await _says(page, "Live")
    # Its stream stays open, but a request is not answered: the page waits for 3 s here, otherwise for 30.
    await page.add_init_script("const limit = AbortSignal.timeout; AbortSignal.timeout = () => limit.call(AbortSignal, 3_000)")

    async def never(route: Route) -> None:
        del route

    await page.route("**/outbox/messages?*", never)
    await page.reload()
    await _says(page, "Not responding")
    await page.unroute("**/outbox/messages?*")
    await _says(page, "Live")  # it asks again by itself


async def test_rows_stay_where_they_are_until_the_new_ones_are_requested(stage: Stage, visit: Visit) -> None:
    await failed(stage, "the tide is out")
    page = await visit("dead-letters?view=messages&q=tide")
    await expect(rows(page)).to_have_count(1)
    await _says(page, "Live")
    await expect(page.get_by_text("Loading …")).to_have_count(0)
    first = await rows(page).first.bounding_box()
    await failed(stage, "the tide is out again", 3)
    show = page.get_by_role("button", name="3 new · Refresh")
    await expect(show).to_be_visible()
    await expect(rows(page)).to_have_count(1)
    assert await rows(page).first.bounding_box() == first
    await show.click()
    await expect(rows(page)).to_have_count(4)


async def test_charts_do_not_move_what_is_below_them(visit: Visit) -> None:
    page = await visit()
    history = page.get_by_role("region", name="History")
    loading = await _below_charts(page, None, history.get_by_text("Loading …"))
    empty = await _below_charts(page, lambda _: [], history.get_by_text("No data"))
    drawn = await _below_charts(page, _without_gaps, history.get_by_role("slider"))
    assert loading == empty == drawn


async def _below_charts(page: Page, series: Callable[[Any], Any] | None, sign: Locator) -> float:
    """Pixels from the charts' top to the failure groups' if the statistics have these series; with None they never arrive."""

    async def answer(route: Route) -> None:
        if series is not None:
            response = await route.fetch()
            statistics = await response.json()
            await route.fulfill(response=response, json={**statistics, "series": series(statistics["series"])})

    await page.route("**/outbox/stats?*", answer)
    await page.reload()
    await expect(page.get_by_role("region", name="Alive")).to_be_visible()
    await expect(sign).to_have_count(2)
    parts = [await page.get_by_role("region", name=name).element_handle() for name in ("History", "Top failure groups")]
    # At once: what is above the charts may still arrive, and move both.
    distance: float = await page.evaluate(_DISTANCE, parts)
    await page.unroute_all(behavior="ignoreErrors")
    return distance


_DISTANCE = "([upper, lower]) => lower.getBoundingClientRect().top - upper.getBoundingClientRect().top"


def _without_gaps(series: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names = ("created", "sent", "processed", "dead", "backlog", "oldest_age_seconds")
    return [{**columns, **{name: [1] * len(columns[name]) for name in names}} for columns in series]


async def test_a_paused_view_does_not_change_and_shows_its_age(stage: Stage, visit: Visit) -> None:
    await failed(stage, "the clock stands")
    page = await visit("dead-letters?view=messages&q=clock")
    await expect(rows(page)).to_have_count(1)
    await page.get_by_role("button", name="Pause live updates").click()
    await _says(page, "Paused")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await failed(stage, "the clock stands still", 3)
    await expect(page.get_by_text(re.compile(r"as of [2-9] s ago|as of \d\d+ s ago"))).to_be_visible()
    await expect(rows(page)).to_have_count(1)
    assert asked == []
    await page.get_by_role("button", name="Resume live updates").click()
    await page.get_by_role("button", name=re.compile("new · Refresh")).click()
    await expect(rows(page)).to_have_count(4)
    await _says(page, "Live")


async def test_updates_pause_while_a_dialog_is_open_and_while_the_tab_is_hidden(stage: Stage, visit: Visit) -> None:
    letter, *_ = await failed(stage, "a nap in the afternoon")
    page = await visit(f"dead-letters/{letter['id']}?q=nap")
    await _says(page, "Live")
    await detail(page, letter).get_by_role("button", name="Discard").click()
    await _says(page, "Idle")
    await page.keyboard.press("Escape")
    await _says(page, "Live")

    await _looks_away(page, "hidden")
    await _says(page, "Idle")
    await failed(stage, "another nap", 2)
    await _looks_away(page, "visible")
    await _says(page, "Live")
    await expect(page.get_by_role("button", name=re.compile("new · Refresh"))).to_be_visible()


async def _says(page: Page, word: str, *, within: float | None = None) -> None:
    """What the shell says of the stream, within so many milliseconds; behind an open dialog, too."""
    await expect(page.get_by_text(word, exact=True).locator("visible=true").first).to_be_visible(timeout=within)


async def _looks_away(page: Page, state: str) -> None:
    await page.evaluate(
        """state => {
            Object.defineProperty(document, "visibilityState", {configurable: true, get: () => state});
            document.dispatchEvent(new Event("visibilitychange"));
        }""",
        state,
    )
