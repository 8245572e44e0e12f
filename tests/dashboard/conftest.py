"""A real browser before the real service. A console error, a broken policy or a request to elsewhere fails the test."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Route, ViewportSize, async_playwright, expect

from outbox.admin import Role
from tests.dashboard.stage import WIDE, NewStage, Stage, Visit, staged
from tests.dashboard.watching import watched
from tests.servers.chromium import chromium_arguments, chromium_program
from tests.servers.postgres import PostgresServer, fresh_database, with_database
from tests.servers.rabbitmq import NamedRabbitMQ, PrivateRabbitMQ, fresh_vhost, with_vhost
from tests.servers.session_folder import one_process_at_a_time
from tests.support.dashboard import build_dashboard

LONGEST_WAIT = 45_000
"""Milliseconds that an expected change of a page may take on a busy machine."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests here need the browser, and share one event loop with it."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("browser")
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest.fixture(scope="session")
def dashboard() -> None:
    """The dashboard, built from these sources."""
    with one_process_at_a_time("dashboard"):
        build_dashboard()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Chromium, without a window."""
    expect.set_options(timeout=LONGEST_WAIT)
    async with async_playwright() as playwright:
        opened = await playwright.chromium.launch(executable_path=chromium_program(), args=chromium_arguments())
        yield opened
        await opened.close()


@pytest.fixture(scope="session")
def new_stage(
    dashboard: None,
    postgres_server: PostgresServer,
    rabbitmq_server: PrivateRabbitMQ | NamedRabbitMQ,
    tmp_path_factory: pytest.TempPathFactory,
) -> NewStage:
    """`with new_stage(OUTBOX_…="…") as it:` the service on real servers, where nothing has happened yet.

    `queues_in_postgres`: without RabbitMQ.
    """

    @contextmanager
    def new(*, queues_in_postgres: bool = False, **settings: str) -> Iterator[Stage]:
        with fresh_database(postgres_server.url) as name, fresh_vhost(rabbitmq_server) as vhost:
            database = with_database(postgres_server.url, name)
            broker = database if queues_in_postgres else with_vhost(rabbitmq_server.url, vhost)
            with staged(tmp_path_factory.mktemp("stage"), database, broker, settings=settings) as it:
                yield it

    return new


@pytest.fixture(scope="module")
def stage(new_stage: NewStage) -> Iterator[Stage]:
    """One for all tests of a module."""
    with new_stage() as it:
        yield it


@pytest_asyncio.fixture(loop_scope="session")
async def visit(browser: Browser, stage: Stage) -> AsyncIterator[Visit]:
    """`await visit("dead-letters?queue=a", Role.VIEWER, theme="dark")`: a page of the dashboard in a session of its own."""
    async with AsyncExitStack() as open_contexts:

        async def open_page(
            path: str = "",
            role: Role = Role.ADMIN,
            *,
            theme: str = "light",
            viewport: ViewportSize = WIDE,
            of: Stage = stage,
            expected: tuple[str, ...] = (),
            routes: Sequence[tuple[Callable[[str], bool], Callable[[Route], Awaitable[None]]]] = (),
        ) -> Page:
            context = await browser.new_context(
                viewport=viewport, color_scheme="dark" if theme == "dark" else "light", reduced_motion="reduce", locale="en-GB"
            )
            open_contexts.push_async_callback(context.close)
            context.set_default_timeout(LONGEST_WAIT)
            page = await context.new_page()
            await open_contexts.enter_async_context(watched(page, of.service.url, expected=expected))
            for matching, answer in routes:
                await page.route(matching, answer)
            await page.goto(f"{of.ui}{path}#token={of.tokens[role]}")
            await page.locator("nav[aria-label=Pages]").wait_for(state="attached")  # of narrow windows it is not shown
            return page

        yield open_page
