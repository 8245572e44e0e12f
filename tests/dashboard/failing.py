"""Dead letters that one test causes, distinguished from those of others by their error; and where the pages show them."""

from collections.abc import Mapping, Sequence
from typing import Any

from playwright.async_api import Locator, Page, expect

from tests.dashboard.stage import Stage


async def failed(stage: Stage, why: str, count: int = 1, kind: str = "card", **more: Any) -> Sequence[Mapping[str, Any]]:
    """So many payments that failed with `why`, newest first."""
    stage.breaks()
    await stage.publish(*({"payment": number, "fails": kind, "why": why, **more} for number in range(count)))
    return await stage.dead_letters(count, q=f'"{why}"')


def rows(page: Page) -> Locator:
    """The dead letters of the list."""
    return page.get_by_role("region", name="Dead letters", exact=True).get_by_role("listitem")


def row(page: Page, letter: Mapping[str, Any]) -> Locator:
    """One of them."""
    return rows(page).filter(has=page.get_by_role("checkbox", name=f"Select dead letter {letter['id']}", exact=True))


def detail(page: Page, letter: Mapping[str, Any]) -> Locator:
    """The one that is open next to the list."""
    return page.get_by_role("region", name=f" {letter['id']}")


async def choose(page: Page, label: str, option: str) -> None:
    """Chooses in a list of choices."""
    await page.get_by_label(label).select_option(label=option)


async def announced(page: Page, text: str) -> None:
    """Waits until something was said, and takes it away."""
    said = page.get_by_role("region", name="Notifications").get_by_role("dialog").filter(has_text=text)
    await expect(said).to_be_visible()


async def written(editor: Locator) -> str:
    """What an editor has on its lines."""
    await expect(editor).to_be_visible()
    return "\n".join(await editor.locator(".cm-line").all_inner_texts())
