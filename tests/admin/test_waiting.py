"""Messages that wait are changed before they are sent or handled: in the outbox, and in queues of the database."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest
from click.testing import CliRunner, Result
from pydantic import BaseModel

from outbox import Consumer, MessageRelay, Publisher, Worker
from outbox.admin import Admin, Role, queues, topology
from outbox.admin.verdict import routes as verdict
from outbox.cli import main as cli
from outbox.contracts import Event
from outbox.postgres.pool import Pool, open_pool
from outbox.postgres.queries import BellName
from tests.admin.rows import BODY, deliver, insert, insert_each
from tests.admin.support import MakeClient, client_of, serving
from tests.support import eventually

SHARED = {"ordering_key": "customer 7"}


@pytest.fixture
async def pool(database: str) -> AsyncIterator[Pool]:
    opened = await open_pool(database, size=5, application_name="tests")
    yield opened
    await opened.close()


@pytest.fixture(autouse=True)
def looked_at_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (queues, verdict, topology):
        monkeypatch.setattr(module, "MAX_AGE", timedelta(0))
        monkeypatch.setattr(module, "PATIENCE", None, raising=False)


async def post(client: httpx.AsyncClient, path: str, **request: Any) -> dict[str, Any]:
    answer = await client.post(path, json=request)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def confirmed(client: httpx.AsyncClient, path: str, **request: Any) -> dict[str, Any]:
    plan = await post(client, path, **request, dry_run=True)
    return await post(client, path, **request, confirm_token=plan["confirm_token"])


async def state_of(client: httpx.AsyncClient, id_: str) -> str:
    answer = await client.get(f"/messages/{id_}")
    return str(answer.json()["state"]) if answer.status_code == 200 else "gone"


def outcomes(answer: Mapping[str, Any]) -> dict[str, str]:
    return {item["id"]: item["outcome"] for item in answer["items"]}


@asynccontextmanager
async def running(part: Any) -> AsyncIterator[None]:
    task = asyncio.create_task(part.run(handle_signals=False))
    try:
        yield
    finally:
        part.stop()
        await task


# --- the outbox ----------------------------------------------------------------------------------------------------------


async def test_waiting_messages_are_cancelled_and_kept_as_discarded_dead_letters(
    operator: httpx.AsyncClient, connection: asyncpg.Connection
) -> None:
    by_state = await insert_each(connection)
    answer = await post(operator, "/messages/cancel", selector={"ids": [*by_state.values(), "999"]}, reason="a mistake")
    expected = {id_: "done" if state not in ("parked", "sent") else "skipped" for state, id_ in by_state.items()}
    assert outcomes(answer) == expected | {"999": "not_found"}
    assert answer["counts"] == {"done": 6, "skipped": 2, "not_found": 1}
    letters = (await operator.get("/dlq", params={"status": "discarded"})).json()["items"]
    assert (len(letters), {letter["error"]["type"] for letter in letters}) == (6, {"Cancelled"})
    [entry] = (await operator.get("/audit", params={"action": "messages.cancel"})).json()["items"]
    assert (entry["reason"], entry["details"]["counts"]["done"]) == ("a mistake", 6)
    # One that was cancelled by mistake is sent after all.
    await post(operator, "/restore", ids=[letters[0]["id"]])
    await post(operator, "/requeue", ids=[letters[0]["id"]], destination="original_routing")
    [again] = (await operator.get("/messages", params={"state": "pending"})).json()["items"]
    assert again["message_id"] == letters[0]["message_id"]
    detail = (await operator.get(f"/messages/{again['id']}", params={"reveal": True})).json()
    assert detail["body"].encode() == BODY


async def test_cancelling_a_message_unblocks_its_ordering_key(
    operator: httpx.AsyncClient, connection: asyncpg.Connection
) -> None:
    first = await insert(connection, last_error="unroutable", send_after="infinity", **SHARED)
    second = await insert(connection, last_error="blocked", send_after="infinity", **SHARED)
    await post(operator, "/messages/cancel", selector={"ids": [first]})
    assert await state_of(operator, second) == "pending"


async def test_messages_that_a_relay_is_sending_are_skipped(
    operator: httpx.AsyncClient, connection: asyncpg.Connection, database: str
) -> None:
    id_ = await insert(connection)
    relay = await asyncpg.connect(database)
    async with relay.transaction():
        await relay.execute("select from outbox_table where id = $1 for update", int(id_))
        for path in ("/messages/cancel", "/messages/send-now"):
            answer = await post(operator, path, selector={"ids": [id_]})
            assert outcomes(answer) == {id_: "skipped"}
            assert "in flight" in answer["items"][0]["reason"]
        edited = await operator.patch(f"/messages/{id_}", json={"version": 1, "routing_key": "other"})
        assert (edited.status_code, edited.json()["code"]) == (409, "conflict")
    await relay.close()
    assert await state_of(operator, id_) == "pending"


@pytest.mark.parametrize("state", ["scheduled", "retrying", "held", "stalled", "blocked"])
async def test_send_now_makes_waiting_messages_of_every_state_due(
    operator: httpx.AsyncClient, connection: asyncpg.Connection, state: str
) -> None:
    id_ = (await insert_each(connection))[state]
    answer = await post(operator, "/messages/send-now", selector={"ids": [f"outbox-{id_}"]})
    assert outcomes(answer) == {id_: "done"}
    assert await state_of(operator, id_) == "pending"


@pytest.mark.parametrize("table", ["outbox_table", "outbox_delivery"])
async def test_changes_wake_sleeping_relays_and_workers(
    operator: httpx.AsyncClient, connection: asyncpg.Connection, table: str
) -> None:
    woken = asyncio.Event()
    channel = BellName.of("public", table).channel
    await connection.add_listener(channel, lambda *_: woken.set())
    if table == "outbox_table":
        path, id_ = "/messages/send-now", await insert(connection, send_after="1 hour")
    else:
        path, id_ = "/deliveries/retry", await deliver(connection, available_at="1 hour")
    await asyncio.sleep(0)
    woken.clear()  # what was inserted may have woken them already
    assert outcomes(await post(operator, path, selector={"ids": [id_]})) == {id_: "done"}
    await asyncio.wait_for(woken.wait(), 30)


async def test_messages_are_rescheduled_and_prioritised(operator: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
    id_, ordered = await insert(connection), await insert(connection, **SHARED)
    due = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=2)
    await post(operator, "/messages/reschedule", selector={"ids": [id_]}, due_at=due.isoformat())
    found = (await operator.get(f"/messages/{id_}")).json()
    assert (found["state"], datetime.fromisoformat(found["due_at"])) == ("scheduled", due)
    answer = await post(operator, "/messages/reschedule", selector={"ids": [id_, ordered]}, priority=9)
    assert outcomes(answer) == {id_: "done", ordered: "refused"}
    found = (await operator.get(f"/messages/{id_}")).json()
    assert (found["state"], found["priority"], datetime.fromisoformat(found["due_at"])) == ("scheduled", 9, due)
    nothing = await operator.post("/messages/reschedule", json={"selector": {"ids": [id_]}})
    assert (nothing.status_code, nothing.json()["code"]) == (422, "invalid_request")


async def test_a_filter_requires_a_dry_run_and_never_changes_more_than_it_counted(
    operator: httpx.AsyncClient, connection: asyncpg.Connection
) -> None:
    for number in range(3):
        await insert(connection, send_after=f"{number + 1} hours")
    request = {"selector": {"filter": {"state": "scheduled", "routing_key": "order.*"}}}
    refused = await operator.post("/messages/send-now", json=request)
    assert (refused.status_code, refused.json()["code"]) == (428, "confirmation_required")
    plan = await post(operator, "/messages/send-now", **request, dry_run=True)
    assert (plan["count"], len(plan["sample"])) == (3, 3)
    later = await insert(connection, send_after="9 hours")
    answer = await post(operator, "/messages/send-now", **request, confirm_token=plan["confirm_token"])
    assert (answer["counts"], await state_of(operator, later)) == ({"done": 3}, "scheduled")
    again = await operator.post("/messages/send-now", json={**request, "confirm_token": plan["confirm_token"]})
    assert (again.status_code, again.json()["code"]) == (428, "confirmation_required")


async def test_a_dry_run_and_a_limit_of_ids_count_what_would_change(
    operator: httpx.AsyncClient, connection: asyncpg.Connection
) -> None:
    by_state = await insert_each(connection)
    waiting = [id_ for state, id_ in by_state.items() if state not in ("parked", "sent")]
    ids = {"selector": {"ids": [*by_state.values(), "999"]}}
    plan = await post(operator, "/messages/cancel", **ids, dry_run=True)
    assert (plan["count"], plan["sample"]) == (len(waiting), waiting)
    retrying = await deliver(connection, available_at="1 hour", attempt=2)
    due = await deliver(connection)
    retried = await post(operator, "/deliveries/retry", selector={"ids": [due, retrying, 999]}, dry_run=True)
    assert (retried["count"], retried["sample"]) == (1, [str(retrying)])
    answer = await post(operator, "/messages/send-now", selector={"ids": waiting}, max_items=2)
    assert outcomes(answer) == dict.fromkeys(waiting[:2], "done")


async def test_the_dry_run_of_a_slow_filter_is_rejected(
    operator: httpx.AsyncClient, connection: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await connection.execute(
        "insert into outbox_table (routing_key, body, send_after) select n::text, '', now() + interval '1 hour' "
        "from generate_series(1, 20000) as n"
    )
    monkeypatch.setattr("outbox.admin.messages.SEARCH_TIMEOUT", timedelta(milliseconds=1))
    request = {"selector": {"filter": {"state": "scheduled", "routing_key": "nothing"}}, "dry_run": True}
    refused = await operator.post("/messages/cancel", json=request)
    assert (refused.status_code, refused.json()["code"]) == (422, "filter_too_broad")


async def test_a_publisher_cancels_a_message_that_an_operator_is_changing(
    operator: httpx.AsyncClient, connection: asyncpg.Connection, database: str
) -> None:
    waits = "select exists(select from pg_stat_activity where datname = current_database() and wait_event = $1)"
    audit_turn = "hashtextextended('outbox audit ' || 'outbox_audit'::regclass::oid, 0)"
    await Publisher().publish_async(connection, "order.unpaid", {}, eta=timedelta(hours=1), dedup_key="unpaid 7")
    [message] = (await operator.get("/messages")).json()["items"]
    publisher = await asyncpg.connect(database)

    async def cancel() -> bool:
        async with publisher.transaction():
            return await Publisher().cancel_async(publisher, "unpaid 7")

    try:
        # The operator's transaction has locked the message, and waits before it writes its audit entry.
        await connection.execute(f"select pg_advisory_lock({audit_turn})")
        change = {"selector": {"ids": [message["id"]]}, "due_at": "2100-01-31T12:00:00Z"}
        changing = asyncio.create_task(post(operator, "/messages/reschedule", **change))
        await eventually(lambda: connection.fetchval(waits, "advisory"))
        cancelling = asyncio.create_task(cancel())
        await eventually(lambda: connection.fetchval(waits, "transactionid"))
        await connection.execute(f"select pg_advisory_unlock({audit_turn})")
        assert ((await changing)["counts"], await cancelling) == ({"done": 1}, True)
    finally:
        await publisher.close()
    assert await state_of(operator, message["id"]) == "gone"


async def test_a_repeated_request_gets_the_first_response_and_changes_nothing(
    operator: httpx.AsyncClient, connection: asyncpg.Connection
) -> None:
    id_ = await insert(connection)
    asked: dict[str, Any] = {"json": {"selector": {"ids": [id_]}}, "headers": {"Idempotency-Key": "once"}}
    first = await operator.post("/messages/cancel", **asked)
    second = await operator.post("/messages/cancel", **asked)
    assert (first.json(), second.headers["idempotency-replayed"]) == (second.json(), "true")


async def test_viewers_cannot_change_anything(make_client: MakeClient, connection: asyncpg.Connection) -> None:
    id_, viewer = await insert(connection), make_client(Role.VIEWER)
    for path in (
        "/messages/cancel",
        "/messages/send-now",
        "/messages/reschedule",
        "/deliveries/retry",
        "/deliveries/move",
        "/deliveries/dead-letter",
    ):
        answer = await viewer.post(path, json={"selector": {"ids": [id_]}, "priority": 1, "to": "front"})
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert (await viewer.patch(f"/messages/{id_}", json={"version": 1, "routing_key": "b"})).status_code == 403


async def test_a_message_is_edited_before_it_is_sent(operator: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
    id_ = await insert(connection, routing_key="oder.placed", last_error="unroutable", send_after="infinity")
    await connection.execute("""update outbox_table set headers = '{"a": 1, "x-outbox-own": "kept"}'""")
    version = (await operator.get(f"/messages/{id_}")).json()["version"]
    edit = {"version": version, "routing_key": "order.placed", "body": {"order": 8}, "headers": {"b": 2}, "reason": "a typo"}
    answer = await operator.patch(f"/messages/{id_}", json=edit)
    assert answer.status_code == 200, answer.text
    found = (await operator.get(f"/messages/{id_}", params={"reveal": True})).json()
    assert (found["state"], found["routing_key"], found["body"]) == ("pending", "order.placed", '{"order": 8}')
    assert found["headers"] == {"b": 2, "x-outbox-own": "kept"}
    stale = await operator.patch(f"/messages/{id_}", json=edit)
    assert (stale.status_code, stale.json()["version"]) == (409, found["version"])
    [entry] = (await operator.get("/audit", params={"action": "messages.edit", "outcome": "done"})).json()["items"]
    assert entry["details"]["routing_key"] == ["oder.placed", "order.placed"]
    locked = await operator.patch(f"/messages/{id_}", json={"version": found["version"], "headers": {"x-outbox-id": "1"}})
    assert (locked.status_code, locked.json()["code"]) == (422, "header_locked")
    missing = await operator.patch("/messages/999", json=edit)
    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
    nothing = await operator.patch(f"/messages/{id_}", json={"version": 1})
    assert (nothing.status_code, nothing.json()["code"]) == (422, "invalid_request")


async def test_an_edit_is_repeated_under_its_key(operator: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
    id_, other = await insert(connection), await insert(connection)
    version = (await operator.get(f"/messages/{id_}")).json()["version"]
    edit: dict[str, Any] = {"json": {"version": version, "body": {"order": 8}}, "headers": {"Idempotency-Key": "once"}}
    first = await operator.patch(f"/messages/{id_}", **edit)
    assert first.status_code == 200, first.text
    await connection.execute("delete from outbox_table where id = $1", int(id_))
    again = await operator.patch(f"/messages/{id_}", **edit)
    assert (again.json(), again.headers["idempotency-replayed"]) == (first.json(), "true")
    reused = await operator.patch(f"/messages/{other}", **edit)
    assert (reused.status_code, reused.json()["code"]) == (422, "key_reused")


async def test_a_message_is_published_once_with_its_audit_entry(
    operator: httpx.AsyncClient, make_client: MakeClient, connection: asyncpg.Connection
) -> None:
    wanted = {"routing_key": "order.placed", "body": None, "headers": {"tenant": "acme"}, "reason": "trying it"}
    first = await operator.post("/messages", json=wanted, headers={"Idempotency-Key": "once"})
    assert first.status_code == 201, first.text
    again = await operator.post("/messages", json=wanted, headers={"Idempotency-Key": "once"})
    assert (again.json(), again.headers["idempotency-replayed"]) == (first.json(), "true")
    [line] = (await operator.get("/messages")).json()["items"]
    found = (await operator.get(f"/messages/{line['id']}")).json()
    assert (found["message_id"], found["body"], found["headers"]) == (first.json()["message_id"], "null", {"tenant": "acme"})
    [entry] = (await operator.get("/audit", params={"action": "messages.publish"})).json()["items"]
    assert (entry["target"], entry["reason"], entry["details"]) == (
        found["message_id"],
        "trying it",
        {"routing_key": "order.placed"},
    )
    await connection.execute("delete from outbox_table")
    later = {**wanted, "due_at": "2100-01-01T00:00:00Z", "ordering_key": "customer 7", "body": "aGk=", "encoding": "base64"}
    assert (await operator.post("/messages", json=later)).status_code == 201
    [line] = (await operator.get("/messages", params={"state": "scheduled"})).json()["items"]
    assert (line["ordering_key"], line["due_at"], line["size"]) == ("customer 7", "2100-01-01T00:00:00.000Z", 2)
    written = {**wanted, "body": '{"price": 1.10}', "encoding": "text"}
    for content_type, stored in (("application/vnd.a+json", "application/vnd.a+json"), (None, "application/octet-stream")):
        assert (await operator.post("/messages", json={**written, "content_type": content_type})).status_code == 201
        [row] = await connection.fetch("delete from outbox_table where send_after <= now() returning body, content_type")
        assert tuple(row) == (b'{"price": 1.10}', stored)
    for wrong in ("json", "application/json\r\nx: y", "a/" + "b" * 254):
        refused = await operator.post("/messages", json={**written, "content_type": wrong})
        assert (refused.status_code, "content_type" in refused.text) == (422, True), wrong
    locked = await operator.post("/messages", json={**wanted, "headers": {"x-outbox-id": "7"}})
    assert (locked.status_code, locked.json()["code"]) == (422, "header_locked")
    denied = await make_client(Role.VIEWER).post("/messages", json=wanted)
    assert (denied.status_code, denied.json()["code"]) == (403, "forbidden")


class Order(BaseModel):
    order: int


async def ignore(order: Order) -> None:
    del order


async def test_an_edited_body_must_match_the_schema_of_its_consumers(
    operator: httpx.AsyncClient, connection: asyncpg.Connection, database: str
) -> None:
    id_ = await insert(connection, send_after="1 hour")
    version = (await operator.get(f"/messages/{id_}")).json()["version"]
    consumer = Consumer("order.*", ignore, queue="orders")
    async with running(Worker(broker=database, db_engine_url=database, consumers=[consumer], enable_metrics=False)):

        async def reported() -> Any:
            bound = await connection.fetchval("select count(*) from outbox_subscription")
            return bound and [each for each in (await operator.get("/components")).json()["items"] if each["consumers"]]

        await eventually(reported)
        edit = {"version": version, "body": {"order": "eight"}}
        refused = await operator.patch(f"/messages/{id_}", json=edit)
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_edit")
        forced = await operator.patch(f"/messages/{id_}", json={**edit, "force": True})
        assert forced.status_code == 200, forced.text
        wrong = {"routing_key": "order.placed", "body": {"order": "eight"}}
        refused = await operator.post("/messages", json=wrong)
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_edit")
        assert (await operator.post("/messages", json={**wrong, "force": True})).status_code == 201


async def test_an_edit_must_have_the_version_of_the_event_that_its_consumers_read(
    operator: httpx.AsyncClient, connection: asyncpg.Connection, database: str
) -> None:
    event = Event("order.placed", Order, version=2)
    event.upcast(from_=1)(lambda body: {**body, "order": 0})
    id_ = await insert(connection, send_after="1 hour")
    version = (await operator.get(f"/messages/{id_}")).json()["version"]
    consumer = Consumer("order.placed", ignore, queue="orders", event=event)
    async with running(Worker(broker=database, db_engine_url=database, consumers=[consumer], enable_metrics=False)):

        async def reported() -> Any:
            bound = await connection.fetchval("select count(*) from outbox_subscription")
            return bound and [each for each in (await operator.get("/components")).json()["items"] if each["consumers"]]

        [worker] = await eventually(reported)
        assert worker["consumers"][0]["event"] == {"version": 2, "oldest": 1, "default_version": 1}
        edit: dict[str, Any] = {"version": version, "routing_key": "order.placed", "body": {"order": 8}}
        refused = await operator.patch(f"/messages/{id_}", json=edit)
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_edit")
        assert "has no version" in refused.json()["detail"]
        written = await operator.patch(f"/messages/{id_}", json={**edit, "headers": {"event-version": 2}})
        assert written.status_code == 200, written.text
        wanted = {"routing_key": "order.placed", "body": {"order": 8}}
        refused = await operator.post("/messages", json=wanted)
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_edit")
        assert (await operator.post("/messages", json={**wanted, "headers": {"event-version": "2"}})).status_code == 201


@pytest.mark.parametrize("headers", ["null", "[1]", '"text"'])
async def test_headers_that_are_no_object_are_replaced(
    operator: httpx.AsyncClient, connection: asyncpg.Connection, headers: str
) -> None:
    id_ = await insert(connection, send_after="1 hour")
    await connection.execute("update outbox_table set headers = $1", headers)
    version = (await operator.get(f"/messages/{id_}")).json()["version"]
    answer = await operator.patch(f"/messages/{id_}", json={"version": version, "headers": {"b": 2}})
    assert answer.status_code == 200, answer.text
    assert answer.json()["headers"] == {"b": 2}


# --- queues of the database ------------------------------------------------------------------------------------------------


FAILED = (
    '[{"at": "2026-11-20T12:00:00.000000+00:00", "attempt": 1, "type": "ShopError", "message": "token=hunter2", '
    '"traceback": "Traceback (most recent call last)"}]'
)


async def test_deliveries_are_listed_by_state_in_the_order_in_which_they_are_due(
    viewer: httpx.AsyncClient, connection: asyncpg.Connection
) -> None:
    made = {
        "queued": await deliver(connection),
        "in_flight": await deliver(connection, available_at="1 minute", leased=True),
        "retrying": await deliver(connection, available_at="2 minutes", attempt=2, failures=FAILED),
        "postponed": await deliver(connection, available_at="3 minutes"),
    }
    await deliver(connection, "other")
    for state, id_ in made.items():
        answer = (await viewer.get("/deliveries", params={"queue": "mail", "state": state, "total": True})).json()
        assert [(line["id"], line["state"]) for line in answer["items"]] == [(id_, state)]
        assert answer["total"] == {"value": 1, "relation": "eq"}
    seen: list[str] = []
    more: dict[str, str] = {}
    while True:
        page = (await viewer.get("/deliveries", params={"queue": "mail", "limit": 1, **more})).json()
        seen += [line["id"] for line in page["items"]]
        if page["next"] is None:
            break
        more = {"cursor": page["next"]}
    assert seen == list(made.values())
    back = (await viewer.get("/deliveries", params={"queue": "mail", "limit": 2, "cursor": page["previous"]})).json()
    assert [line["id"] for line in back["items"]] == [made["in_flight"], made["retrying"]]
    [line] = (await viewer.get("/deliveries", params={"queue": "mail", "state": "retrying"})).json()["items"]
    assert (line["last_error"]["type"], line["last_error"]["message"]) == ("ShopError", "token=***")
    assert line["preview"] == '{"order": 7, "token": "***"}'


async def reason(client: httpx.AsyncClient, id_: str) -> tuple[str, str | None]:
    answer = await client.get(f"/deliveries/{id_}")
    assert answer.status_code == 200, answer.text
    return answer.json()["reason"], answer.json()["hint"]


async def test_a_delivery_explains_why_it_waits(operator: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
    first = await deliver(connection, available_at="-1 minute")
    second = await deliver(connection)
    assert await reason(operator, second) == (
        "1 is due before it. But no worker consumes the queue.",
        "start a worker that consumes mail",
    )
    consumer = '[{"queue": "mail", "binding_key": "order.*", "ordered": true}]'
    await connection.execute(
        "insert into outbox_component (id, kind, name, host, process_id, version, every, consumers, activity, started_at, "
        "seen_at) values ('w', 'worker', 'mail-1', 'web-1', 4711, '1', '5 s', $1, '{}', now(), now())",
        consumer,
    )
    assert await reason(operator, first) == ("It is due, and is the next one that a worker takes.", None)
    retrying = await deliver(connection, available_at="1 hour", attempt=3, failures=FAILED)
    text, hint = await reason(operator, retrying)
    assert text.startswith("Attempt 2 failed; attempt 3 is due at ")
    assert hint == "POST /deliveries/retry makes it due now"
    earlier = await deliver(connection, available_at="30 minutes", attempt=2, **SHARED)
    behind = await deliver(connection, available_at="5 minutes", **SHARED)
    assert await reason(operator, behind) == (
        f"It waits for delivery {earlier} with the same ordering key, which is retrying.",
        f"GET /deliveries/{earlier} says what that one waits for",
    )
    await post(operator, "/pause", scope="queue", name="mail", reason="the provider is down")
    assert await reason(operator, first) == (
        "It is due, and is the next one that a worker takes. But the queue is paused (the provider is down).",
        "POST /resume with the scope queue and the name mail",
    )
    gone = await operator.get("/deliveries/999")
    assert (gone.status_code, gone.json()["code"]) == (404, "not_found")


async def test_a_delivery_in_flight_names_its_worker_and_since_when(
    operator: httpx.AsyncClient, pool: Pool, database: str
) -> None:
    begun, done = asyncio.Event(), asyncio.Event()

    async def handle(body: bytes) -> None:
        del body
        begun.set()
        await done.wait()

    before = datetime.now(UTC) - timedelta(seconds=1)
    worker = Worker(
        broker=database,
        db_engine_url=database,
        consumers=[Consumer("order.*", handle, queue="mail")],
        enable_metrics=False,
        name="mail-1",
    )
    async with running(worker), running(MessageRelay(db_engine_url=database, broker=database, enable_metrics=False)):
        async with pool.acquire() as connection:
            await Publisher().publish(connection, "order.placed", {"order": 7})
        await asyncio.wait_for(begun.wait(), 30)
        [line] = (await operator.get("/deliveries", params={"queue": "mail", "state": "in_flight"})).json()["items"]

        async def known() -> Any:
            found = (await operator.get(f"/deliveries/{line['id']}")).json()
            return found if found["leased_by"] else None

        found = await eventually(known)
        assert found["leased_by"]["name"] == "mail-1"
        assert before <= datetime.fromisoformat(found["leased_at"]) <= datetime.now(UTC)
        assert found["reason"].startswith("The worker mail-1 took it at ")
        for path in ("/deliveries/retry", "/deliveries/dead-letter"):
            assert outcomes(await post(operator, path, selector={"ids": [line["id"]]})) == {line["id"]: "skipped"}
        done.set()


async def test_retry_wakes_a_sleeping_worker(operator: httpx.AsyncClient, pool: Pool, database: str) -> None:
    attempts: list[int] = []

    async def handle(body: bytes, attempt_count: int) -> None:
        del body
        attempts.append(attempt_count)
        if len(attempts) == 1:
            raise RuntimeError("not yet")

    consumer = Consumer("order.*", handle, queue="mail", retry_delays=("59m",))
    worker = Worker(broker=database, db_engine_url=database, consumers=[consumer], enable_metrics=False)
    async with running(worker), running(MessageRelay(db_engine_url=database, broker=database, enable_metrics=False)):
        async with pool.acquire() as connection:
            await Publisher().publish(connection, "order.placed", {"order": 7})

        async def retrying() -> Any:
            return (await operator.get("/deliveries", params={"queue": "mail", "state": "retrying"})).json()["items"]

        [line] = await eventually(retrying)
        request = {"selector": {"filter": {"queue": "mail", "state": "retrying"}}}
        assert outcomes(await confirmed(operator, "/deliveries/retry", **request)) == {line["id"]: "done"}

        async def settled() -> bool:
            answer = await operator.get("/deliveries", params={"queue": "mail"})
            return attempts == [1, 2] and answer.json()["items"] == []

        await eventually(settled)
        again = await post(operator, "/deliveries/retry", selector={"ids": [line["id"]]})
        assert outcomes(again) == {line["id"]: "not_found"}


async def test_deliveries_are_moved_to_the_front_and_to_the_back_of_their_queue(
    operator: httpx.AsyncClient, connection: asyncpg.Connection
) -> None:
    first, second, third = [await deliver(connection, available_at=f"-{minutes} minutes") for minutes in (3, 2, 1)]
    later, other = await deliver(connection, available_at="1 hour", attempt=2), await deliver(connection, "other")
    ordered = await deliver(connection, available_at="-30 seconds", **SHARED)
    leased = await deliver(connection, available_at="1 minute", leased=True)

    async def move(to: str, *ids: str) -> Any:
        return outcomes(await post(operator, "/deliveries/move", selector={"ids": ids}, to=to))

    async def order() -> list[str]:
        answer = await operator.get("/deliveries", params={"queue": "mail", "state": "queued"})
        return [line["id"] for line in answer.json()["items"]]

    done = await move("front", third, later, ordered, leased, "999")
    assert done == {third: "done", later: "done", ordered: "refused", leased: "skipped", "999": "not_found"}
    assert await order() == [third, later, first, second, ordered]
    assert await move("back", first) == {first: "done"}
    assert await order() == [third, later, second, ordered, first]
    waits = await deliver(connection, available_at="1 hour", attempt=2)
    assert await move("back", waits) == {waits: "skipped"}
    assert await move("front", other) == {other: "done"}  # it is the only one there
    filtered = {"selector": {"filter": {"queue": "mail", "state": "retrying"}}, "to": "front"}
    assert outcomes(await confirmed(operator, "/deliveries/move", **filtered)) == {waits: "done"}
    assert (await order())[0] == waits
    [entry] = (await operator.get("/audit", params={"action": "deliveries.move", "target": f"deliveries {other}"})).json()[
        "items"
    ]
    assert (entry["details"]["to"], entry["details"]["ids"]) == ("front", [other])


async def test_deliveries_at_the_front_of_a_queue_are_handled_next(
    operator: httpx.AsyncClient, connection: asyncpg.Connection, database: str
) -> None:
    handled: list[str] = []

    def handle(body: bytes) -> None:
        handled.append(body.decode())

    ids = [await deliver(connection, body=str(number).encode()) for number in range(5)]
    assert outcomes(await post(operator, "/deliveries/move", selector={"ids": ids[3:]}, to="front")) == dict.fromkeys(
        ids[3:], "done"
    )
    worker = Worker(
        broker=database,
        db_engine_url=database,
        consumers=[Consumer("order.*", handle, queue="mail")],
        prefetch_count=1,
        enable_metrics=False,
    )
    async with running(worker):
        await eventually(lambda: len(handled) == 5)
    assert handled == ["3", "4", "0", "1", "2"]


async def test_a_delivery_is_dead_lettered_with_its_failures_and_unblocks_its_followers(
    operator: httpx.AsyncClient, connection: asyncpg.Connection
) -> None:
    first = await deliver(connection, available_at="1 hour", attempt=2, failures=FAILED, **SHARED)
    behind = await deliver(connection, available_at="5 minutes", message_id="n", **SHARED)
    fresh = await deliver(connection, message_id="o")
    answer = await post(operator, "/deliveries/dead-letter", selector={"ids": [first, fresh]}, reason="it never ends")
    assert outcomes(answer) == {first: "done", fresh: "done"}
    letters = {each["message_id"]: each for each in (await operator.get("/dlq")).json()["items"]}
    assert {name: each["error"]["type"] for name, each in letters.items()} == {"m": "ShopError", "o": "DeadLettered"}
    detail = (await operator.get(f"/dlq/{letters['m']['id']}")).json()
    assert [(failure["attempt"], failure["error"]["type"]) for failure in detail["failures"]] == [(1, "ShopError")]
    [left] = (await operator.get("/deliveries", params={"queue": "mail"})).json()["items"]
    assert (left["id"], left["state"]) == (behind, "queued")
    history = await connection.fetch("select fact, error_type, component from outbox_history order by message_id")
    assert [tuple(row) for row in history] == [("died", "ShopError", "a operator"), ("died", "DeadLettered", "a operator")]
    await post(operator, "/requeue", ids=[letters["m"]["id"]])  # it is as any other dead letter


@pytest.mark.rabbitmq
async def test_deliveries_at_rabbitmq_are_not_supported(database: str, broker_url: str) -> None:
    async with serving(Admin(database, broker=broker_url)) as app, client_of(app) as client:
        asked = [
            await client.get("/deliveries", params={"queue": "mail"}),
            await client.get("/deliveries/1"),
            await client.post("/deliveries/retry", json={"selector": {"ids": [1]}}),
            await client.post("/deliveries/move", json={"selector": {"ids": [1]}, "to": "back"}),
            await client.post("/deliveries/dead-letter", json={"selector": {"ids": [1]}}),
        ]
    assert {(answer.status_code, answer.json()["code"]) for answer in asked} == {(409, "not_supported")}


# --- from a terminal ---------------------------------------------------------------------------------------------------------


async def test_commands_change_waiting_messages(database: str, connection: asyncpg.Connection, tmp_path: Path) -> None:
    id_, later = await insert(connection), await insert(connection, send_after="1 hour")
    retrying = await deliver(connection, available_at="1 hour", attempt=2, failures=FAILED)

    async def run(*arguments: str, code: int = 0) -> str:
        def invoke() -> Result:
            return CliRunner().invoke(cli, [*arguments], env={"OUTBOX_DATABASE_URL": database})

        answer = await asyncio.to_thread(invoke)
        assert answer.exit_code == code, answer.output
        return answer.output

    assert "scheduled" in await run("messages")
    assert "which is" not in await run("messages", id_)
    assert "1 message changed." in await run("messages", "cancel", id_, "--reason", "a mistake")
    assert "not found" in await run("messages", "cancel", id_, code=1)
    filtered = "--state", "scheduled", "--created-after", "1h"
    assert "Send now: 1 message" in await run("messages", "send-now", *filtered, "--dry-run")
    assert "there is no terminal" in await run("messages", "send-now", *filtered, code=2)
    await run("messages", "reschedule", later, "--due", "2100-01-31T12:00+00:00", "--priority", "3")
    found = json.loads(await run("messages", later, "--json"))
    assert (found["due_at"], found["priority"]) == ("2100-01-31T12:00:00.000Z", 3)
    await run("messages", "reschedule", later, "--due", "2h")
    assert re.search(r"next attempt .* \(in 1 h\)", await run("messages", later))
    assert "has no time zone: write" in await run("messages", "reschedule", later, "--due", "2100-01-31T12:00", code=2)
    assert "1 message changed." in await run("messages", "send-now", *filtered, "--yes")
    assert "order.placed.late" in await run("messages", "edit", later, "--routing-key", "order.placed.late")
    (tmp_path / "body.json").write_text('{"order": 9}')
    published = ("messages", "publish", "order.placed", "--body", str(tmp_path / "body.json"))
    assert "Published" in await run(*published)
    assert "`outbox migrate --destination lake` creates it" in await run(*published, "--destination", "lake", code=1)
    shown = await run("deliveries", retrying)
    assert "ShopError" in shown
    assert "\n\n  Traceback (most recent call last)\n" in shown
    await run("pause", "queue", "mail")
    assert "`outbox resume queue mail`" in await run("deliveries", retrying)
    assert "POST /resume with the scope queue and the name mail" in await run("deliveries", retrying, "--json")
    await run("resume", "queue", "mail")
    assert "token=***" in await run("deliveries", "--queue", "mail")
    assert "1 message changed." in await run("deliveries", "retry", "--queue", "mail", "--state", "retrying", "--yes")
    assert "1 message changed." in await run("deliveries", "move", "--to", "front", retrying)
    assert "1 message changed." in await run("deliveries", "dead-letter", retrying)
    assert "select messages by ids or by a filter" in await run("deliveries", "retry", code=2)
