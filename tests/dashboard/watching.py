"""What a page must never do, noticed while a test looks at something else."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import ConsoleMessage, Page, Request

EXPECTED_FAILURES = "Failed to load resource: the server responded with a status of 4"
"""The browser's own words for an answer that the page shows as a problem; they carry no error of the page."""


@asynccontextmanager
async def watched(page: Page, service: str, *, expected: tuple[str, ...] = ()) -> AsyncIterator[None]:
    """Fails at the end of the block if the page wrote an error, broke its policy, or asked anybody but the service.

    The console may say what begins with one of `expected`.
    """
    wrong: list[str] = []

    def heard(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"} and not message.text.startswith((EXPECTED_FAILURES, *expected)):
            wrong.append(f"console {message.type}: {message.text}")

    def asked(request: Request) -> None:
        if not request.url.startswith((f"{service}/", "data:", "blob:")):
            wrong.append(f"asked elsewhere: {request.url}")

    page.on("console", heard)
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.on("request", asked)
    yield
    assert wrong == [], "\n".join(wrong)
