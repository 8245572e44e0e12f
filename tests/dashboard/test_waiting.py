"""A message is changed before it is sent or handled, and says why it waits."""

import re
import signal
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
from playwright.async_api import Route, expect

from outbox.admin import Role
from tests.dashboard.axe import assert_accessible
from tests.dashboard.failing import announced
from tests.dashboard.stage import NewStage, Stage, Visit
from tests.support import eventually

QUEUE = "payments.capture"
FAILED = (
    '[{"at": "2026-11-20T12:00:00.000000+00:00", "attempt": 1, "type": "shop.BankAwayError", "message": "no answer", '
    '"traceback": ""}]'
)


@pytest.fixture(scope="module")
def in_postgres(new_stage: NewStage) -> Iterator[Stage]:
    """One whose queues are in the database."""
    with new_stage(queues_in_postgres=True) as it:
        yield it


async def scheduled(stage: Stage, routing_key: str, count: int = 1) -> list[str]:
    """The ids of so many messages that are due in two hours."""
    bodies = [{"payment": number, "password": "secret"} for number in range(count)]
    await stage.publish(*bodies, routing_key=routing_key, eta=timedelta(hours=2))
    async with stage.api() as client:
        found = (await client.get("/messages", params={"state": "scheduled", "routing_key": routing_key})).json()["items"]
    return [message["id"] for message in found]


async def retrying(stage: Stage, count: int) -> list[str]:
    """The ids of so many deliveries whose next attempt is in an hour."""
    connection = await asyncpg.connect(stage.database_url)
    try:
        rows = await connection.fetch(
            "insert into outbox_delivery (exchange, queue, message_id, routing_key, body, content_type, tracking_ids, attempt, "
            "available_at, failures) select 'outbox', $1, n::text, 'payment.requested', convert_to('{}', 'UTF8'), "
            "'application/json', jsonb_build_array(n::text), 2, now() + interval '1 hour', $3::text::jsonb "
            "from generate_series(1, $2::integer) as n returning id",
            QUEUE,
            count,
            FAILED,
        )
    finally:
        await connection.close()
    return [str(row["id"]) for row in rows]


async def test_a_message_is_edited_and_sent_before_its_time(stage: Stage, visit: Visit) -> None:
    [id_] = await scheduled(stage, "payment.requestet")
    page = await visit(f"messages/{id_}", Role.OPERATOR)
    await page.get_by_role("button", name="Edit …").click()
    dialog = page.get_by_role("dialog", name=f"Edit message {id_}")
    await expect(dialog.get_by_role("button", name="Save", exact=True)).to_be_disabled()
    await assert_accessible(page)
    await dialog.get_by_label("Routing key").fill("payment.requested")
    await dialog.get_by_role("button", name=re.compile("^Reveal the body")).click()
    await dialog.get_by_label("Body").fill('{"payment": 8}')
    await dialog.get_by_role("button", name="Save", exact=True).click()
    await announced(page, f"Message {id_} was changed.")
    await expect(page.get_by_role("heading", name="payment.requested")).to_be_visible()

    await page.get_by_role("button", name="Reschedule …").click()
    rescheduling = page.get_by_role("dialog", name="Reschedule messages")
    await expect(rescheduling.get_by_role("button", name="Reschedule 1 message")).to_be_disabled()
    await rescheduling.get_by_label("Priority").fill("7")
    await rescheduling.get_by_role("button", name="Reschedule 1 message").click()
    await announced(page, "1 message rescheduled.")

    await page.get_by_role("button", name="Send now").click()
    sending = page.get_by_role("dialog", name="Send messages now")
    await sending.get_by_label("Reason").fill("the bank is open again")
    await sending.get_by_role("button", name="Send 1 message").click()
    await announced(page, "1 message due now.")

    async def sent() -> Any:
        async with stage.api() as client:
            answer = await client.get(f"/messages/{id_}")
        return answer.status_code == 404 or answer.json()["state"] == "sent"

    await eventually(sent)


async def test_a_revealed_message_that_another_operator_edits_is_masked_and_can_be_edited(stage: Stage, visit: Visit) -> None:
    [id_] = await scheduled(stage, "payment.shared")
    page = await visit(f"messages/{id_}", Role.OPERATOR)
    await page.get_by_role("button", name=re.compile("^Reveal \\(")).click()
    body = page.get_by_role("region", name="Body", exact=True)
    await expect(body).to_contain_text("secret")
    async with stage.api() as client:
        version = (await client.get(f"/messages/{id_}")).json()["version"]
        edit = {"version": version, "body": {"payment": 9, "password": "changed"}}
        assert (await client.patch(f"/messages/{id_}", json=edit)).status_code == 200
    await scheduled(stage, "payment.other")  # the page reads messages again when their number changes
    await expect(body.get_by_role("treeitem", name="payment: 9")).to_be_visible()
    await expect(body.get_by_role("treeitem", name="password: masked")).to_be_visible()
    await page.get_by_role("button", name="Edit …").click()
    dialog = page.get_by_role("dialog", name=f"Edit message {id_}")
    await dialog.get_by_role("button", name=re.compile("^Reveal the body")).click()
    await expect(dialog.get_by_label("Body")).to_have_value('{"payment": 9, "password": "changed"}')
    await dialog.get_by_label("Body").fill('{"payment": 10}')
    await dialog.get_by_role("button", name="Save", exact=True).click()
    await announced(page, f"Message {id_} was changed.")


async def test_an_edit_that_another_operator_overtook_is_saved_after_reading_the_message_again(
    stage: Stage, visit: Visit
) -> None:
    [id_] = await scheduled(stage, "payment.overtaken")
    page = await visit(f"messages/{id_}", Role.OPERATOR, expected=("the server responded with a status of 409",))
    await page.get_by_role("button", name="Edit …").click()
    dialog = page.get_by_role("dialog", name=f"Edit message {id_}")
    await dialog.get_by_role("button", name=re.compile("^Reveal the body")).click()
    body = dialog.get_by_label("Body", exact=True)
    await body.fill('{"payment": "mine"}')
    async with stage.api() as client:
        version = (await client.get(f"/messages/{id_}")).json()["version"]
        edit = {"version": version, "routing_key": "payment.theirs", "body": {"payment": "theirs"}}
        assert (await client.patch(f"/messages/{id_}", json=edit)).status_code == 200
    await dialog.get_by_role("button", name="Save", exact=True).click()
    await expect(dialog.get_by_role("alert")).to_contain_text("version_conflict")
    await dialog.get_by_role("button", name="Read it again").focus()
    await page.keyboard.press("Enter")

    await expect(dialog.get_by_label("Current body")).to_have_value('{"payment": "theirs"}')
    await expect(dialog.get_by_label("Current body")).to_be_focused()
    await expect(dialog.get_by_role("alert")).to_have_count(0)
    await expect(body).to_have_value('{"payment": "mine"}')
    await expect(dialog.get_by_label("Routing key")).to_have_value("payment.theirs")
    await assert_accessible(page)
    await dialog.get_by_role("button", name="Save", exact=True).click()
    await announced(page, f"Message {id_} was changed.")
    async with stage.api(Role.OPERATOR) as client:
        found = (await client.get(f"/messages/{id_}", params={"reveal": True})).json()
    assert (found["routing_key"], found["body"]) == ("payment.theirs", '{"payment": "mine"}')


async def test_an_edit_stays_if_its_message_is_gone_when_it_is_read_again(stage: Stage, visit: Visit) -> None:
    connection = await asyncpg.connect(stage.database_url)
    try:
        [id_] = await scheduled(stage, "payment.gone")
        expected = ("the server responded with a status of 409", "the server responded with a status of 404")
        page = await visit(f"messages/{id_}", Role.OPERATOR, expected=expected)
        await page.get_by_role("button", name="Edit …").click()
        dialog = page.get_by_role("dialog", name=f"Edit message {id_}")
        key = dialog.get_by_label("Routing key")
        await key.fill("payment.mine")
        again = dialog.get_by_role("button", name="Read it again")
        change = "update outbox_table set routing_key = $2 where id = $1"
        await connection.execute(change, int(id_), "payment.theirs")
        await key.press("Enter")
        await again.press("Enter")
        await expect(key).to_have_value("payment.mine")
        await expect(dialog).to_contain_text("Now “payment.theirs”. Saving replaces it.")
        await expect(page.locator("[role=dialog]:focus-within")).to_be_visible()
        await connection.execute(change, int(id_), "payment.others")
        await key.press("Enter")
        await expect(again).to_be_visible()
        await connection.execute("delete from outbox_table where id = $1", int(id_))
        await again.press("Enter")
        await expect(dialog.get_by_role("alert").last).to_contain_text("not_found")
        await expect(key).to_have_value("payment.mine")
    finally:
        await connection.close()


async def test_all_that_fit_a_filter_are_cancelled_after_a_dry_run(stage: Stage, visit: Visit) -> None:
    await scheduled(stage, "report.monthly", 3)
    page = await visit("messages?state=scheduled&routing_key=report.*", Role.OPERATOR)
    await expect(page.get_by_role("button", name="Send all now …")).to_be_visible()
    await page.get_by_role("button", name="Cancel all …").click()
    dialog = page.get_by_role("dialog", name="Cancel messages")
    await expect(dialog).to_contain_text("3 messages match now.")
    await assert_accessible(page)
    await dialog.get_by_role("button", name="Cancel 3 messages").click()
    await announced(page, "3 messages cancelled.")
    await expect(page.get_by_text("No messages match the filters.")).to_be_visible()


async def test_a_change_of_more_messages_than_fit_into_one_request_says_so(stage: Stage, visit: Visit) -> None:
    connection = await asyncpg.connect(stage.database_url)
    try:
        await connection.execute(
            "insert into outbox_table (routing_key, body, send_after) "
            "select 'report.many', '', now() + interval '1 day' from generate_series(1, 10001)"
        )
        page = await visit("messages?state=scheduled&routing_key=report.many", Role.OPERATOR)
        await page.get_by_role("button", name="Cancel all …").click()
        dialog = page.get_by_role("dialog", name="Cancel messages")
        await expect(dialog).to_contain_text("At least 10,000 messages match now. The first 10,000 are changed;")
    finally:
        await connection.execute("delete from outbox_table where routing_key = 'report.many'")
        await connection.close()


async def test_viewers_see_why_they_may_not(stage: Stage, visit: Visit) -> None:
    [id_] = await scheduled(stage, "payment.later")
    page = await visit(f"messages/{id_}", Role.VIEWER)
    await expect(page.get_by_role("button", name="Send now")).to_be_disabled()
    await expect(page.get_by_role("button", name="Edit …")).to_be_disabled()


async def test_a_queue_of_rabbitmq_says_why_its_messages_are_not_listed(stage: Stage, visit: Visit) -> None:
    page = await visit(f"queues?name={QUEUE}")
    part = page.get_by_role("region", name="Messages in the queue")
    await expect(part).to_contain_text("RabbitMQ cannot show messages without delivering them")
    await expect(part.get_by_role("button")).to_have_count(0)


async def test_a_message_in_a_queue_says_why_it_waits_and_is_retried_or_ended(in_postgres: Stage, visit: Visit) -> None:
    first, second, third, *_ = await retrying(in_postgres, 5)
    page = await visit(f"queues?name={QUEUE}&status=retrying", Role.OPERATOR, of=in_postgres)
    part = page.get_by_role("region", name="Messages in the queue")
    row = part.get_by_role("row", name=re.compile(rf"^payment.requested {first} retrying"))
    await expect(row).to_contain_text("no answer")
    await row.get_by_role("link", name="payment.requested").click()
    dialog = page.get_by_role("dialog", name="payment.requested")
    await expect(dialog).to_contain_text("Attempt 1 failed; attempt 2 is due at")
    await expect(dialog.get_by_role("region", name="Failed attempts")).to_contain_text("shop.BankAwayError: no answer")
    await assert_accessible(page)
    in_postgres.worker.send(signal.SIGSTOP)
    await dialog.get_by_role("button", name="Retry now").click()
    await page.get_by_role("button", name="Retry 1 message").click()
    await announced(page, "1 message due now.")
    await expect(dialog).to_contain_text("It is due, and is the next one that a worker takes.")
    in_postgres.worker.send(signal.SIGCONT)
    await expect(dialog).to_contain_text(f"Delivery {first} is no longer in the queue.")

    await page.goto(f"{in_postgres.ui}queues?name={QUEUE}&delivery={third}")
    await expect(dialog.get_by_role("button", name="Move to back …")).to_be_disabled()  # it is not due
    await dialog.get_by_role("button", name="Move to front …").click()
    await expect(page.get_by_role("dialog", name="Move messages to the front")).to_contain_text("before all others")
    await page.get_by_role("button", name="Move 1 message").click()
    await announced(page, "1 message moved to the front.")
    await expect(dialog).to_contain_text(f"Delivery {third} is no longer in the queue.")

    await page.goto(f"{in_postgres.ui}queues?name={QUEUE}&delivery={second}")
    await dialog.get_by_role("button", name="Dead-letter …").click()
    await page.get_by_role("button", name="Dead-letter 1 message").click()
    await announced(page, "1 message dead-lettered.")
    [letter] = await in_postgres.dead_letters(1)
    assert letter["error"]["type"] == "shop.BankAwayError"

    await page.goto(f"{in_postgres.ui}queues?name={QUEUE}&status=retrying")
    await page.get_by_role("button", name="Retry all now …").click()
    await expect(page.get_by_role("dialog", name="Retry messages now")).to_contain_text("2 messages match now.")
    await page.get_by_role("button", name="Retry 2 messages").click()
    await announced(page, "2 messages due now.")
    await expect(part).to_contain_text("No retrying messages in the queue.")


async def test_an_event_is_published_from_the_console(stage: Stage, visit: Visit) -> None:
    page = await visit("messages", Role.OPERATOR)
    await page.get_by_role("button", name="Publish …").click()
    dialog = page.get_by_role("dialog", name="Publish a message")
    await dialog.get_by_label("Routing key").fill("payment.requested")
    await dialog.get_by_label("Body (JSON)").fill("{")
    await expect(dialog.get_by_role("button", name="Publish", exact=True)).to_be_disabled()
    await dialog.get_by_label("Body (JSON)").fill('{"payment": 9007199254740993}')
    await dialog.get_by_label("Reason").fill("trying the worker")
    await assert_accessible(page)
    await dialog.get_by_role("button", name="Publish", exact=True).click()
    await announced(page, "Published ")

    async def handled() -> Any:
        async with stage.api() as client:
            [entry] = (await client.get("/audit", params={"action": "messages.publish"})).json()["items"]
            found = (await client.get(f"/chains/{entry['target']}")).json()
        return found["state"] == "processed"

    await eventually(handled)


async def test_a_message_is_published_once_if_the_first_response_is_lost(stage: Stage, visit: Visit) -> None:
    lost: list[int] = []

    async def lose_the_first_response(route: Route) -> None:
        if route.request.method != "POST" or lost:
            return await route.continue_()
        lost.append((await route.fetch()).status)
        return await route.abort()

    routes = [(lambda url: url.endswith("/outbox/messages"), lose_the_first_response)]
    page = await visit("messages", Role.OPERATOR, expected=("Failed to load resource: net::ERR_FAILED",), routes=routes)
    await page.get_by_role("button", name="Publish …").click()
    dialog = page.get_by_role("dialog", name="Publish a message")
    await dialog.get_by_label("Routing key").fill("payment.lost")
    await dialog.get_by_role("button", name="Publish", exact=True).click()
    await expect(dialog.get_by_role("alert")).to_be_visible()
    await dialog.get_by_role("button", name="Publish", exact=True).click()
    await announced(page, "Published ")
    async with stage.api() as client:
        entries = (await client.get("/audit", params={"action": "messages.publish"})).json()["items"]
    assert (lost, [each["details"]["routing_key"] for each in entries].count("payment.lost")) == ([201], 1)


async def test_the_dialog_of_a_delivery_in_flight_shows_its_end(in_postgres: Stage, visit: Visit) -> None:
    [id_] = await retrying(in_postgres, 1)
    connection = await asyncpg.connect(in_postgres.database_url)
    try:
        await connection.execute(
            "update outbox_delivery set lease_token = gen_random_uuid(), leased_until = available_at where id = $1", int(id_)
        )
        page = await visit(f"queues?name={QUEUE}&delivery={id_}", Role.OPERATOR, of=in_postgres)
        dialog = page.get_by_role("dialog", name="payment.requested")
        await expect(dialog.get_by_role("button", name="Retry now")).to_be_disabled()
        await connection.execute("delete from outbox_delivery where id = $1", int(id_))
        await expect(dialog).to_contain_text(f"Delivery {id_} is no longer in the queue.")
    finally:
        await connection.close()
