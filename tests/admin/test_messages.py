"""The outbox, message by message."""

from datetime import datetime, timedelta
from typing import Any

import asyncpg
import httpx
import pytest

from outbox.admin import message_list
from outbox.admin import messages as routes
from outbox.admin.backlog_reader import MessageState
from outbox.admin.message_list import MessageFilter, MessageListing, order_of
from outbox.postgres.schema.objects import outbox_table
from tests.admin.rows import insert, insert_each
from tests.postgres_transport.support import explained, rows_read


async def listed(client: httpx.AsyncClient, **parameters: Any) -> dict[str, Any]:
    answer = await client.get("/messages", params=parameters)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def shown(client: httpx.AsyncClient, id_: str, **parameters: Any) -> dict[str, Any]:
    answer = await client.get(f"/messages/{id_}", params=parameters)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def ids(page: dict[str, Any]) -> list[str]:
    return [item["id"] for item in page["items"]]


async def test_each_state_has_its_own_list(viewer: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
    by_state = await insert_each(connection)
    for state, id_ in by_state.items():
        page = await listed(viewer, state=state, total=True)
        assert (ids(page), page["items"][0]["state"], page["total"]) == ([id_], state, {"value": 1, "relation": "eq"})
    assert ids(await listed(viewer)) == sorted(by_state.values(), key=int, reverse=True)


async def test_a_list_item_has_no_body_but_its_size_and_a_masked_preview(
    viewer: httpx.AsyncClient, connection: asyncpg.Connection
) -> None:
    await insert(connection, tracking_ids='["root", "mine"]', last_error="refused: password=hunter2")
    [line] = (await listed(viewer))["items"]
    assert (line["size"], line["preview"]) == (28, '{"order": 7, "token": "***"}')
    assert (line["message_id"], line["root_id"], line["last_error"]["message"]) == ("mine", "root", "refused: password=***")
    assert "body" not in line


@pytest.mark.parametrize("state", [None, *MessageState])
async def test_pages_lead_on_and_back_without_gaps(
    viewer: httpx.AsyncClient, connection: asyncpg.Connection, state: MessageState | None
) -> None:
    columns: dict[str | None, dict[str, Any]] = {
        "scheduled": {"send_after": "1 hour"},
        "retrying": {"send_after": "1 hour", "attempts": 1},
        "held": {"last_error": "unroutable", "send_after": "infinity"},
        "stalled": {"last_error": "stalled", "send_after": "infinity"},
        "blocked": {"last_error": "blocked", "send_after": "infinity", "ordering_key": "k"},
        "parked": {"last_error": "no", "failed_at": "-1 hour"},
        "sent": {"sent_at": "-1 hour"},
    }
    async with connection.transaction():  # in one, all their times are the same
        for number in range(7):
            more = {"priority": number % 3} if number % 2 and state != "blocked" else {"ordering_key": "k"}
            await insert(connection, **(columns.get(state, {}) | more))
    whole = ids(await listed(viewer, **_state(state)))
    assert len(whole) == len(set(whole)) == 7
    page, pages = await listed(viewer, limit=3, **_state(state)), []
    while True:
        pages.append(ids(page))
        if page["next"] is None:
            break
        page = await listed(viewer, limit=3, cursor=page["next"], **_state(state))
    assert [len(each) for each in pages] == [3, 3, 1]
    assert [id_ for each in pages for id_ in each] == whole
    back = await listed(viewer, limit=3, cursor=page["previous"], **_state(state))
    assert ids(back) == pages[1]
    assert ids(await listed(viewer, limit=3, cursor=back["previous"], **_state(state))) == pages[0]


@pytest.mark.parametrize("due", ["2300-01-01 00:00:00.123457+00", "9999-12-31 23:59:59.999999+00", "20000-01-01 00:00+00"])
async def test_pages_are_complete_however_late_messages_are_due(
    viewer: httpx.AsyncClient, connection: asyncpg.Connection, due: str
) -> None:
    rows = [await insert(connection) for _ in range(3)]
    await connection.execute("update outbox_table set send_after = $1::text::timestamptz", due)
    page = await listed(viewer, limit=1, state="scheduled")
    for id_ in rows[1:]:
        page = await listed(viewer, limit=1, state="scheduled", cursor=page["next"])
        assert ids(page) == [id_]
    assert page["next"] is None
    assert ids(await listed(viewer, limit=1, state="scheduled", cursor=page["previous"])) == [rows[1]]


@pytest.mark.parametrize("state", ["scheduled", "retrying"])
async def test_messages_that_were_moved_to_infinity_by_hand_are_listed_last(
    viewer: httpx.AsyncClient, operator: httpx.AsyncClient, connection: asyncpg.Connection, state: str
) -> None:
    attempts = {"attempts": int(state == "retrying")}
    for error in ("unroutable", "stalled", "blocked"):
        await insert(connection, send_after="infinity", last_error=error, ordering_key="k" if error == "blocked" else None)
    moved = [
        await insert(connection, send_after="infinity", **more, **attempts)
        for more in ({"priority": 3}, {"ordering_key": "k"}, {"last_error": "refused"}, {})
    ]
    timed = [await insert(connection, send_after="1 hour", **attempts)]
    page = await listed(viewer, state=state, total=True)
    assert (ids(page), page["total"], page["states"][state]) == (
        timed + moved,
        {"value": 5, "relation": "eq"},
        {"value": 5, "relation": "eq"},
    )
    assert {item["state"] for item in page["items"]} == {state}
    pages = [await listed(viewer, state=state, limit=2)]
    while pages[-1]["next"]:
        pages.append(await listed(viewer, state=state, limit=2, cursor=pages[-1]["next"]))
    assert [ids(each) for each in pages] == [(timed + moved)[:2], (timed + moved)[2:4], (timed + moved)[4:]]
    back = await listed(viewer, state=state, limit=2, cursor=pages[-1]["previous"])
    assert ids(back) == ids(pages[1])
    assert ids(await listed(viewer, state=state, limit=2, cursor=back["previous"])) == ids(pages[0])
    assert ids(await listed(viewer, state=state, ordering_key="k")) == [moved[1]]
    assert ids(await listed(viewer, state=state, destination="default")) == timed + moved
    plan = await operator.post("/messages/send-now", json={"selector": {"filter": {"state": state}}, "dry_run": True})
    assert plan.json()["sample"] == timed + moved


def _state(state: MessageState | None) -> dict[str, str]:
    return {} if state is None else {"state": state.value}


async def test_filters_select_messages(viewer: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
    old = await insert(connection, routing_key="order.placed", created_at="-2 days", tracking_ids='["root", "old"]')
    new = await insert(connection, routing_key="order.paid", target_queue="mail", ordering_key="customer 7")
    for parameters, expected in (
        ({"routing_key": "order.placed"}, [old]),
        ({"routing_key": "order.p*"}, [new, old]),
        ({"routing_key": "order.%"}, []),
        ({"message_id": "old"}, [old]),
        ({"message_id": "root"}, []),
        ({"tracking_id": "root"}, [old]),
        ({"target_queue": "mail"}, [new]),
        ({"ordering_key": "customer 7"}, [new]),
        ({"ordering_key": "customer 7", "state": "held"}, []),
        ({"created_before": "2020-01-01T00:00:00Z"}, []),
        ({"created_after": "2020-01-01T00:00:00Z", "state": "pending"}, [old, new]),
    ):
        found = ids(await listed(viewer, **parameters))
        assert found == expected or (set(found) == set(expected) and "state" in parameters), parameters


async def test_the_messages_of_one_key_are_listed_in_their_order(
    viewer: httpx.AsyncClient, connection: asyncpg.Connection
) -> None:
    rows = await insert_each(connection)
    last = await insert(connection, ordering_key="customer 7")
    await insert(connection, ordering_key="customer 8")
    assert ids(await listed(viewer, ordering_key="customer 7")) == [rows["held"], rows["blocked"], last]


async def test_a_filter_that_takes_too_long_is_rejected_with_advice(
    viewer: httpx.AsyncClient, connection: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "SEARCH_TIMEOUT", timedelta(milliseconds=1))
    await connection.execute("insert into outbox_table (routing_key, body) select 'k', 'x' from generate_series(1, 20000)")
    answer = await viewer.get("/messages", params={"state": "pending", "routing_key": "unbound"})
    assert (answer.status_code, answer.json()["code"]) == (422, "filter_too_broad")
    assert "filter by state" in answer.json()["detail"]


@pytest.mark.parametrize(
    "parameters",
    [
        {"state": "lost"},
        {"unknown": "1"},
        {"routing_key": "a\0b"},
        {"limit": "0"},
        {"limit": "201"},
        {"created_after": "yesterday"},
        {"message_id": "x" * 10_000},
    ],
)
async def test_invalid_parameters_are_rejected(viewer: httpx.AsyncClient, parameters: dict[str, str]) -> None:
    answer = await viewer.get("/messages", params=parameters)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")


async def test_a_cursor_has_room_for_a_long_routing_key(viewer: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
    keys = [f"{'ж' * 499}{number}" for number in range(2)]
    rows = [await insert(connection, routing_key=key, last_error="unroutable", send_after="infinity") for key in keys]
    page = await listed(viewer, limit=1, state="held")
    assert ids(await listed(viewer, limit=1, state="held", cursor=page["next"])) == rows[1:]


async def test_a_cursor_is_only_valid_for_its_own_list(viewer: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
    for _ in range(3):
        await insert(connection)
    cursor = (await listed(viewer, limit=1, state="pending"))["next"]
    for parameters, code in (
        ({"state": "held", "cursor": cursor}, "cursor_mismatch"),
        ({"state": "pending", "cursor": cursor[:-4]}, "invalid_cursor"),
        ({"state": "pending", "cursor": "WzFd"}, "invalid_cursor"),
    ):
        answer = await viewer.get("/messages", params=parameters)
        assert (answer.status_code, answer.json()["code"]) == (400, code)


@pytest.mark.parametrize("keys", [["nonsense", 1], ["2026-01-01", 2**70], ["\0", 1], ["\ud800", 1], [1.0, 1]])
async def test_a_cursor_with_forged_keys_is_invalid(viewer: httpx.AsyncClient, keys: list[Any]) -> None:
    from outbox.admin.messages import MessageListParameters
    from outbox.admin.models import Cursor

    forged = Cursor("next", keys).encode(MessageListParameters(state=MessageState.PENDING).bound_to())
    answer = await viewer.get("/messages", params={"state": "pending", "cursor": forged})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_cursor")


# --- one message -----------------------------------------------------------------------------------------------------------


async def test_each_message_explains_its_state(viewer: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
    rows = await insert_each(connection)
    await _relay(connection)
    reasons = {state: (await shown(viewer, id_))["reason"] for state, id_ in rows.items()}
    assert reasons["pending"] == "It is due and will be sent in one of the next batches."
    assert reasons["scheduled"].startswith("It is due at ")
    assert reasons["retrying"].startswith("The broker refused it 2 times. It is sent again at ")
    assert reasons["held"].startswith("No queue is bound for its routing key. A relay retries this message at ")
    assert reasons["stalled"] == (
        "A queue that is bound for its routing key accepts no messages: the broker responds, but did not confirm the last "
        "message sent there, or refused it. A relay retries this message within a minute, on behalf of all that wait."
    )
    assert reasons["blocked"] == f"It waits for message {rows['held']}, which is held, of its ordering key."
    assert reasons["parked"].startswith("It was parked at ")
    assert reasons["sent"].startswith("It was sent at ")


async def test_a_message_names_what_it_waits_for(viewer: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
    rows = await insert_each(connection)
    waiting = await insert(connection, routing_key="unbound", send_after="infinity", last_error="unroutable")
    blocked, held = await shown(viewer, rows["blocked"]), await shown(viewer, waiting)
    assert (blocked["blocked_by"]["id"], blocked["blocked_by"]["state"]) == (rows["held"], "held")
    assert (held["probe_id"], held["due_at"]) == (rows["held"], None)
    assert held["next_attempt_at"] == (await shown(viewer, rows["held"]))["due_at"]
    assert "'unbound'" in held["hint"]
    for_a_queue = await insert(
        connection, routing_key="unbound", target_queue="mail", send_after="1 minute", last_error="unroutable"
    )
    found = await shown(viewer, for_a_queue)
    assert (found["probe_id"], found["reason"][:33]) == (for_a_queue, "The queue 'mail' does not exist. ")
    assert "'mail'" in found["hint"]


async def test_only_a_held_message_has_held_at(viewer: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
    held = await insert(connection, created_at="-1 day", held_at="-2 hours", last_error="unroutable", send_after="infinity")
    released = await insert(connection, held_at="-2 hours")  # by a relay of the release before, which knows no such time
    found = {id_: await shown(viewer, id_) for id_ in (held, released)}
    since = await connection.fetchval("select held_at from outbox_table where id = $1", int(held))
    assert abs(datetime.fromisoformat(found[held]["held_at"]) - since) < timedelta(milliseconds=1)
    assert found[released]["held_at"] is None
    assert {line["id"]: line["held_at"] for line in (await listed(viewer))["items"]} == {
        id_: message["held_at"] for id_, message in found.items()
    }


async def test_a_message_reports_paused_and_missing_relays(viewer: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
    id_ = await insert(connection)
    alone = await shown(viewer, id_)
    assert (alone["reason"], alone["hint"]) == ("It is due, but no relay is running.", "start a relay")
    await _relay(connection)
    await connection.execute("insert into outbox_control (scope, reason) values ('relay', 'moving')")
    paused = await shown(viewer, id_)
    assert paused["reason"] == "It is due, but all relays are paused (moving)."
    assert [(pause["name"], pause["reason"]) for pause in paused["blocking_pauses"]] == [("", "moving")]


async def test_a_sent_message_has_its_outcome_in_each_queue(viewer: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
    id_ = await insert(connection, sent_at="-1 second", tracking_ids='["m"]')
    await connection.execute("""
        insert into outbox_history (at, fact, message_id, root_id, routing_key, queue, attempt, error_type, error_message)
        values (now() - interval '1 s', 'retried', 'm', 'm', 'k', 'mail', 1, 'ValueError', 'not yet'),
            (now(), 'processed', 'm', 'm', 'k', 'mail', 2, null, null),
            (now(), 'died', 'm', 'm', 'k', 'stock', 1, 'KeyError', 'token=abc')
    """)
    handled = (await shown(viewer, id_))["deliveries"]
    assert [(one["queue"], one["outcome"], one["attempt"]) for one in handled] == [
        ("mail", "processed", 2),
        ("stock", "dead_lettered", 1),
    ]
    assert [one["error"] for one in handled] == [None, {"type": "KeyError", "message": "token=***", "traceback": None}]


async def test_bodies_are_masked_unless_an_operator_reveals_them_which_is_audited(
    viewer: httpx.AsyncClient, operator: httpx.AsyncClient, connection: asyncpg.Connection
) -> None:
    id_ = await insert(connection, headers='{"authorization": "Bearer x", "n": 1}')
    found = await shown(viewer, f"outbox-{id_}")
    assert (found["body"], found["headers"], found["masked"]) == (
        '{"order": 7, "token": "***"}',
        {"authorization": "***", "n": 1},
        True,
    )
    refused = await viewer.get(f"/messages/{id_}", params={"reveal": True})
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    revealed = await shown(operator, id_, reveal=True)
    assert (revealed["body"], revealed["masked"]) == ('{"order": 7, "token": "abc"}', False)
    assert revealed["headers"] == {"authorization": "Bearer x", "n": 1}
    audit = await connection.fetch("select action, target, outcome from outbox_audit order by id")
    assert [tuple(row) for row in audit] == [
        ("messages.reveal", f"/outbox/messages/{id_}", "denied"),
        ("messages.reveal", f"outbox-{id_}", "done"),
    ]


async def test_a_binary_body_is_revealed_in_base64(operator: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
    id_ = await insert(connection, body=b"\xff\x00", content_type="application/octet-stream")
    masked, revealed = await shown(operator, id_), await shown(operator, id_, reveal=True)
    assert (masked["body"], masked["body_base64"], masked["size"]) == (None, None, 2)
    assert (revealed["body"], revealed["body_base64"]) == (None, "/wA=")


@pytest.mark.parametrize("id_", ["1", "outbox-1", "9223372036854775808", "a8b1", "-1", "1 or 1=1"])
async def test_a_deleted_message_is_not_found_with_a_hint_to_its_chain(viewer: httpx.AsyncClient, id_: str) -> None:
    answer = await viewer.get(f"/messages/{id_}")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert "Its chain may still be known" in answer.json()["detail"]


async def test_rows_with_times_out_of_range_are_shown(viewer: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
    await connection.execute("""
        insert into outbox_table (routing_key, body, created_at, send_after, tracking_ids, headers, expiration)
        values ('k', 'x', '-infinity', '-infinity', '{"a": 1}', '[1]', '9000 years'),
            ('k', 'x', 'infinity', 'infinity', '[]', null, null)
    """)
    for parameters in ({}, {"state": "pending"}, {"state": "scheduled"}):
        for item in (await listed(viewer, **parameters))["items"]:
            assert (await shown(viewer, item["id"]))["created_at"] is None


# --- how it is read --------------------------------------------------------------------------------------------------------

ROWS = 60_000
FILTERS = [
    *(MessageFilter(state=state) for state in (None, *MessageState)),
    MessageFilter(ordering_key="key 7"),
    MessageFilter(state=MessageState.HELD, routing_key="held.3"),
    MessageFilter(state=MessageState.STALLED, routing_key="stalled.3"),
]


@pytest.fixture
async def large(connection: asyncpg.Connection) -> asyncpg.Connection:
    """Tables of some size, of which the planner knows nothing."""
    await connection.execute("alter table outbox_table set (autovacuum_enabled = off)")
    for columns, chosen in (
        ("routing_key", "'k'"),
        ("routing_key, ordering_key", "'k', 'key ' || n % 100"),
        ("routing_key, send_after", "'k', now() + interval '1 hour'"),
        ("routing_key, last_error, send_after", "'held.' || n % 10, 'unroutable', timestamptz 'infinity'"),
        ("routing_key, last_error, send_after", "'stalled.' || n % 10, 'stalled', timestamptz 'infinity'"),
        ("routing_key, last_error, send_after, ordering_key", "'k', 'blocked', timestamptz 'infinity', n::text"),
        ("routing_key, sent_at", "'k', now() - n * interval '1 s'"),
        ("routing_key, failed_at, last_error", "'k', now() - n * interval '1 s', 'no'"),
    ):
        await connection.execute(
            f"insert into outbox_table (body, {columns}) select 'x', {chosen} from generate_series(1, $1::integer) as n",
            ROWS // 8,
        )
    return connection


async def test_no_page_reads_more_than_its_rows(large: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    # As many rows at infinity are looked through for those that were moved there by hand.
    monkeypatch.setattr(message_list, "COUNT_LIMIT", 11 * 51)
    listing = MessageListing(outbox_table("outbox_table"))
    for filter_ in FILTERS:
        if filter_.state is MessageState.RETRYING:  # there are none, and the scheduled ones are looked through
            continue
        for back in (False, True):
            after: list[Any] | None = None
            async with large.transaction():
                rows = await listing.page(large, filter_, limit=3, after=None, back=back, inclusive=False)
                after = list(order_of(filter_).keys(rows[-1]))
                statement, arguments = listing.statement(filter_, 51, after, back=back, inclusive=False)
                nodes = await explained(large, statement, *arguments)
            assert nodes
            for node in nodes:
                assert node["Node Type"] not in ("Seq Scan", "Bitmap Heap Scan"), (filter_, node)
                assert rows_read(node) <= 11 * 51, (filter_, back, node["Node Type"], rows_read(node))


async def _relay(connection: asyncpg.Connection) -> None:
    await connection.execute(
        "insert into outbox_component (id, kind, name, host, process_id, version, every) "
        "values ('r', 'relay', 'relay-1', 'h', 1, '1', '1 hour')"
    )
