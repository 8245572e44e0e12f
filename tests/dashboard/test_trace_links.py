"""Trace ids of messages and attempts are shown, can be copied, and link to the traces."""

from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest
import pytest_asyncio
from playwright.async_api import Locator, expect

from tests.dashboard.axe import assert_accessible
from tests.dashboard.failing import announced
from tests.dashboard.shop import QUEUE
from tests.dashboard.stage import NewStage, Stage, Visit
from tests.support import eventually

OWN, FIRST, LAST = (digit * 32 for digit in "abc")
TRACED = {"traceparent": f"00-{OWN}-b7ad6b7169203331-01"}


@pytest.fixture(scope="module")
def stage(new_stage: NewStage) -> Iterator[Stage]:
    """One with links to traces, whose queues are in the database."""
    with new_stage(queues_in_postgres=True, OUTBOX_TRACE_URL="https://traces.example/{trace_id}") as it:
        yield it


@pytest_asyncio.fixture(loop_scope="session")
async def connection(stage: Stage) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(stage.database_url)
    yield connection
    await connection.close()


async def assert_linked(part: Locator, trace_id: str) -> None:
    link = part.get_by_role("link", name=trace_id)
    await expect(link).to_have_attribute("href", f"https://traces.example/{trace_id}")


async def test_a_message_and_a_delivery_link_to_their_trace(stage: Stage, visit: Visit, connection: asyncpg.Connection) -> None:
    await stage.publish(1, routing_key="report.daily", eta=3_600_000, headers=TRACED)
    id_ = await connection.fetchval("select id from outbox_table where routing_key = 'report.daily'")
    page = await visit(f"messages/{id_}")
    details = page.get_by_role("region", name="Details")
    await assert_linked(details, OWN)
    await assert_accessible(page)
    await details.get_by_role("button", name="Copy trace ID").click()
    await announced(page, "Copy trace ID: done")

    delivery = await connection.fetchval(
        "insert into outbox_delivery (exchange, queue, message_id, routing_key, body, headers, tracking_ids, available_at) "
        "select 'outbox', $1, 'd', 'payment.requested', '', headers, '[\"d\"]', now() + interval '1 hour' "
        "from outbox_table where id = $2 returning id",
        QUEUE,
        id_,
    )
    await page.goto(f"{stage.ui}queues?name={QUEUE}&delivery={delivery}")
    await assert_linked(page.get_by_role("dialog", name="payment.requested"), OWN)


async def test_a_dead_letter_and_each_attempt_link_to_their_traces(
    stage: Stage, visit: Visit, connection: asyncpg.Connection
) -> None:
    await stage.publish({"payment": 1, "fails": "card"}, headers=TRACED)
    [letter] = await stage.dead_letters(1)
    page = await visit(f"dead-letters/{letter['id']}")
    await assert_linked(page.get_by_role("main"), OWN)

    await eventually(lambda: connection.fetchval("select count(*) > 0 from outbox_history where fact = 'died'"))
    await connection.execute("update outbox_history set trace_id = $1 where fact = 'died'", LAST)
    await connection.execute(
        "insert into outbox_history (at, fact, message_id, root_id, routing_key, queue, attempt, trace_id) "
        "select at - interval '1 second', 'retried', message_id, root_id, routing_key, queue, attempt, $1 "
        "from outbox_history where fact = 'died'",
        FIRST,
    )
    await page.goto(f"{stage.ui}chains/{letter['message_id']}?node={letter['message_id']}")
    message = page.get_by_role("region", name="Selected message")
    await assert_linked(message, OWN)
    attempts = message.get_by_role("list", name=f"Attempts in {QUEUE}").get_by_role("listitem")
    await assert_linked(attempts.nth(0), FIRST)
    await assert_linked(attempts.nth(1), LAST)
    await assert_accessible(page)
