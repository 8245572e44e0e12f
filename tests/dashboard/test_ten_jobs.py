"""The ten jobs of an operator on call, each from a cold start with trouble in it, in as few clicks as the job is worth."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import asyncpg
import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from outbox.admin import Role
from tests.dashboard.axe import assert_accessible
from tests.dashboard.failing import row
from tests.dashboard.stage import NewStage, Stage, Visit
from tests.support import eventually

QUEUE = "payments.capture"


@pytest.fixture(scope="module")
def stage(new_stage: NewStage) -> Iterator[Stage]:
    """One whose queues are in the database, for this module alone."""
    with new_stage(queues_in_postgres=True) as it:
        yield it


@pytest_asyncio.fixture(loop_scope="session")
async def database(stage: Stage) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(stage.database_url)
    yield connection
    await connection.close()


class Clicks:
    """Counts what a person clicks. What is typed, and Enter after it, is no click."""

    def __init__(self) -> None:
        self.count = 0

    async def on(self, place: Locator) -> None:
        """One more."""
        self.count += 1
        await place.click()


async def dead(database: asyncpg.Connection, error: str, count: int, **body: Any) -> None:
    """So many dead letters of one error, whose requeue would succeed."""
    await database.execute(
        "insert into outbox_dead_letter (source, exchange, queue, message_id, routing_key, body, content_type, tracking_ids, "
        "created_at, attempt, cause, exception_type, exception_message, exception_traceback, fingerprint, search, preview, "
        "service_version) select 'worker', 'outbox', $1, $2 || n, 'payment.requested', convert_to($3, 'UTF8'), "
        "'application/json', jsonb_build_array($2 || n), now(), 1, 'exhausted', $2, 'the message', '', md5($2), "
        "to_tsvector('simple', $2 || ' ' || $3), $3, '2026.11.2' from generate_series(1, $4::integer) as n",
        QUEUE,
        error,
        json.dumps(body),
        count,
    )


async def counted(page: Page, error: str, count: int) -> None:
    """Waits for the group of that error with so many dead letters."""
    line = page.get_by_role("listitem").filter(has=page.get_by_role("link", name=error))
    await expect(line).to_contain_text(f"{count:,}")


async def test_what_is_wrong_right_now(stage: Stage, visit: Visit, database: asyncpg.Connection) -> None:
    await dead(database, "shop.TillError", 3)
    page = await visit()
    await expect(page.get_by_role("list", name="Problems")).to_contain_text("3 dead letters are open")
    await expect(page.get_by_role("region", name="Top failure groups")).to_contain_text("shop.TillError")
    await assert_accessible(page)


async def test_why_this_orders_event_is_stuck(stage: Stage, visit: Visit) -> None:
    await stage.publish({"order_id": "order-7788"}, routing_key="unbound.key")
    clicks, page = Clicks(), await visit()
    await page.keyboard.press("Control+k")
    await page.get_by_label(re.compile("^ID, number, queue")).fill("order-7788")
    results = page.get_by_role("list", name="Results")
    await expect(results.get_by_role("listitem").first).to_contain_text("unbound.key")
    await clicks.on(results.get_by_role("link").first)
    await expect(page.get_by_text(re.compile("no queue is bound", re.IGNORECASE)).first).to_be_visible()
    assert clicks.count <= 2


async def test_three_thousand_of_three_errors_go_carefully_and_are_stopped(
    stage: Stage, visit: Visit, database: asyncpg.Connection
) -> None:
    stage.fix()
    for error in ("shop.FirstError", "shop.SecondError", "shop.ThirdError"):
        await dead(database, error, 1_000, payment=1)
    page = await visit("dead-letters", Role.OPERATOR)
    for error in ("shop.FirstError", "shop.SecondError", "shop.ThirdError"):
        await counted(page, error, 1_000)
    await page.get_by_role("link", name="shop.SecondError").click()
    await expect(page.get_by_role("region", name="Versions in which it failed")).to_contain_text("2026.11.2")
    await page.get_by_role("button", name="Requeue open").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("1,000 would be requeued")
    await dialog.get_by_label("Canary size").fill("10")
    await dialog.get_by_label("Maximum rate (messages/s)").fill("5")
    await dialog.get_by_label("Type 1,000 to confirm").fill("1000")
    await dialog.get_by_role("button", name="Requeue 1,000").click()
    progress = page.get_by_role("region", name="Progress")
    await expect(progress).to_contain_text(re.compile(r"Handled\s*[1-9]\d"), timeout=90_000)
    await page.get_by_role("button", name=re.compile("^Cancel")).click()
    await page.get_by_role("dialog").get_by_role("button", name=re.compile("^Cancel")).click()
    await expect(progress).to_contain_text(re.compile("[Cc]ancelled"), timeout=90_000)
    left = await database.fetchval(
        "select count(*) from outbox_dead_letter where exception_type = 'shop.SecondError' and status = 'open'"
    )
    assert 800 < left < 1_000
    await database.execute("delete from outbox_dead_letter")


async def test_unroutable_is_found_and_fixed(stage: Stage, visit: Visit, database: asyncpg.Connection) -> None:
    await stage.publish({"letter": 1}, routing_key="letter.written")

    async def is_held() -> bool:
        found: bool = await database.fetchval(
            "select exists (select from outbox_table where routing_key = 'letter.written' and last_error = 'unroutable')"
        )
        return found

    await eventually(is_held, timeout=60)
    clicks, page = Clicks(), await visit()
    await clicks.on(page.get_by_role("link", name=re.compile("held")).first)
    await expect(page.get_by_role("link", name=re.compile("letter.written")).first).to_be_visible()
    assert clicks.count <= 2
    await database.execute(
        "insert into outbox_subscription (exchange, queue, binding_key) values ('outbox', $1, 'letter.written')", QUEUE
    )

    async def is_gone() -> bool:
        return not await is_held()

    await eventually(is_gone, timeout=90)
    await page.reload()
    await expect(page.get_by_role("link", name=re.compile("letter.written"))).to_have_count(0)


async def test_a_queue_is_paused_and_resumed(stage: Stage, visit: Visit) -> None:
    clicks, page = Clicks(), await visit("", Role.OPERATOR)
    await clicks.on(page.get_by_role("navigation", name="Pages").get_by_role("link", name="Queues"))
    await clicks.on(page.get_by_role("link", name=QUEUE, exact=True))
    await clicks.on(page.get_by_role("button", name="Pause", exact=True))
    await clicks.on(page.get_by_role("dialog").get_by_role("button", name=re.compile(f"^Pause the queue {QUEUE}")))
    await clicks.on(page.get_by_role("button", name="Resume", exact=True))
    await clicks.on(page.get_by_role("dialog").get_by_role("button", name=re.compile(f"^Resume the queue {QUEUE}")))
    await expect(page.get_by_role("button", name="Pause", exact=True)).to_be_visible()
    assert clicks.count == 6


async def test_which_handler_is_slow_since_when(stage: Stage, visit: Visit) -> None:
    stage.fix()
    await stage.publish({"payment": 1})
    clicks, page = Clicks(), await visit()
    await clicks.on(page.get_by_role("navigation", name="Pages").get_by_role("link", name="Queues"))
    line = page.get_by_role("row").filter(has=page.get_by_role("link", name=QUEUE, exact=True))
    await expect(line).to_contain_text("tests.dashboard.shop.capture")
    await clicks.on(line.get_by_role("link", name=QUEUE, exact=True))
    await expect(page.get_by_role("figure", name="Handling time over time")).to_be_visible()
    await expect(page.get_by_role("region", name="Now")).to_contain_text(re.compile("day earlier|yesterday", re.IGNORECASE))
    assert clicks.count <= 2


@pytest.mark.parametrize("what", ["message_id", "payload"])
async def test_a_dead_letter_is_found_by_its_id_or_a_value_of_its_payload(
    stage: Stage, visit: Visit, database: asyncpg.Connection, what: str
) -> None:
    await database.execute("delete from outbox_dead_letter")
    await dead(database, "shop.LostError", 1, order_id="order-5566")
    page = await visit()
    await page.keyboard.press("Control+k")
    wanted = {"message_id": "shop.LostError1", "payload": "order-5566"}[what]
    await page.get_by_label(re.compile("^ID, number, queue")).fill(wanted)
    results = page.get_by_role("list", name="Results")
    await expect(results.get_by_role("listitem").filter(has_text="shop.LostError").first).to_be_visible()


async def test_who_requeued_what_yesterday(stage: Stage, visit: Visit, database: asyncpg.Connection) -> None:
    await database.execute(
        "insert into outbox_audit (at, actor, role, action, target, outcome, reason, details, request_id, address) values "
        "(now() - interval '1 day', 'grace', 'operator', 'dlq.requeue', 'operation 41', 'done', 'the bank is back', "
        """'{"selector": {"group_id": "f1"}, "total": 120}', 'r', '::1')"""
    )
    clicks, page = Clicks(), await visit("", Role.OPERATOR)
    await clicks.on(page.get_by_role("navigation", name="Pages").get_by_role("link", name="Audit log"))
    line = page.get_by_role("row").filter(has_text="grace")
    await expect(line).to_contain_text("operation 41")
    await expect(line).to_contain_text("the bank is back")
    assert clicks.count == 1


async def test_what_one_sees_is_shared_as_a_link(stage: Stage, visit: Visit, database: asyncpg.Connection) -> None:
    await dead(database, "shop.SharedError", 2)
    async with stage.api() as client:
        letter = (await client.get("/dlq", params={"exception_type": "shop.SharedError"})).json()["items"][0]
    page = await visit("dead-letters?view=messages&exception_type=shop.SharedError")
    await row(page, letter).get_by_role("link").click()
    shared = page.url.removeprefix(stage.ui)
    other = await visit(shared, Role.VIEWER)
    await expect(other.get_by_role("region", name=f" {letter['id']}")).to_be_visible()
    await expect(other.get_by_role("button", name="Error: shop.SharedError. Change it")).to_be_visible()
