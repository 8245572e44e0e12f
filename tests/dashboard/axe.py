"""axe: what would keep people with assistive technology from using a page."""

from functools import cache
from pathlib import Path

from playwright.async_api import Page

_SOURCE = Path(__file__).parents[2] / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
_RUN = r"""
async rules => (await axe.run(document, {resultTypes: ["violations"], ...(rules && {runOnly: rules})})).violations
    .filter(({impact}) => impact === "serious" || impact === "critical")
    .map(({id, help, nodes}) => [`${id}: ${help}`, ...nodes.map(node => `    ${node.html}\n${node.failureSummary}`)].join("\n"))
"""


async def assert_accessible(page: Page, *rules: str) -> None:
    """Fails with every violation of a serious or critical kind, of these rules or of all."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(_source())
    violations: list[str] = await page.evaluate(_RUN, [*rules] or None)
    assert violations == [], "\n".join(violations)


@cache
def _source() -> str:
    return _SOURCE.read_text(encoding="utf-8")
