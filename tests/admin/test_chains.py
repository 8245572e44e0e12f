"""`/chains`: the whole chain for any id, and the list of the latest chains."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

import asyncpg
import httpx
import pytest

from outbox.admin import Role
from outbox.admin.chains import LONGEST_ID
from outbox.chains import ChainState
from tests.admin.rows import insert
from tests.admin.support import MakeClient

FACT = """
    insert into outbox_history (
        at, fact, message_id, root_id, parent_id, routing_key, queue, attempt, waited, ran, error_type, error_message, component
    )
    values (now() - make_interval(secs => $1), $2, $3, $4, $5, $6, $7, $8, interval '2 ms', interval '3 ms', $9, $10, 'test')
"""


class History:
    """Writes history entries."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    async def add(
        self,
        ago: float,
        fact: str,
        id_: str,
        root: str,
        parent: str | None = None,
        queue: str | None = None,
        *,
        key: str | None = None,
        attempt: int = 1,
        error: str | None = None,
    ) -> None:
        """Writes one entry that is `ago` seconds old."""
        type_ = None if error is None else "ValueError"
        await self._connection.execute(FACT, ago, fact, id_, root, parent, key or f"event.{id_}", queue, attempt, type_, error)

    def at_one_time(self) -> asyncpg.transaction.Transaction:
        """Facts of this block are so many seconds before the same moment."""
        return self._connection.transaction()

    async def waits(self, seconds: float, ago: float, id_: str) -> None:
        """A message is sent that had waited so long."""
        await self._connection.execute(
            "insert into outbox_history (at, fact, message_id, root_id, routing_key, waited)"
            " values (now() - make_interval(secs => $1), 'sent', $2, $2, 'event', make_interval(secs => $3))",
            ago,
            id_,
            seconds,
        )

    async def beginnings(self, count: int, routing_key: str = "order.placed") -> None:
        """Chains of one handled message each; `c1` is the newest."""
        await self._connection.execute(
            "insert into outbox_history (at, fact, message_id, root_id, routing_key, queue)"
            " select now() - make_interval(secs => n), fact, 'c' || n, 'c' || n, $2, nullif(queue, '')"
            " from generate_series(1, $1) as n, (values ('sent', ''), ('processed', 'q')) as facts (fact, queue)",
            count,
            routing_key,
        )


@pytest.fixture
async def history(database: str) -> Any:
    connection = await asyncpg.connect(database)
    yield History(connection)
    await connection.close()


@pytest.fixture
async def order(history: History) -> None:
    """An order that was paid at the second attempt; its mail was dead-lettered after the stock was reserved."""
    async with history.at_one_time():
        await history.add(10, "sent", "order", "order", key="order.placed")
        await history.add(9, "retried", "order", "order", None, "payments", error="password=hunter2 was refused")
        await history.add(8, "processed", "order", "order", None, "payments", attempt=2)
        await history.add(7, "sent", "stock", "order", "order", key="stock.reserved")
        await history.add(6, "sent", "paid", "order", "order", key="payment.taken")
        await history.add(2, "died", "paid", "order", "order", "mail", error="no such address")


def ids(page: Any) -> list[str]:
    """The root ids of a page, in order."""
    return [item["root_id"] for item in page["items"]]


@pytest.mark.usefixtures("order")
async def test_any_id_returns_the_whole_chain_and_its_critical_path(viewer: httpx.AsyncClient) -> None:
    answers = [(await viewer.get(f"/chains/{id_}")).json() for id_ in ("order", "stock", "paid")]
    chain = answers[0]
    assert answers[1:] == [chain, chain]
    assert (chain["root_id"], chain["state"], chain["critical_path"]) == ("order", "dead", ["order", "paid"])
    assert chain["duration_seconds"] == pytest.approx(8, abs=0.1)
    shape = [(node["id"], node["parent_id"], node["depth"], node["state"]) for node in chain["nodes"]]
    assert shape == [("order", None, 0, "processed"), ("stock", "order", 1, "sent"), ("paid", "order", 1, "dead")]
    order, _, paid = chain["nodes"]
    assert order["waited_seconds"] == pytest.approx(0.002)
    [payments] = order["deliveries"]
    assert (payments["queue"], payments["attempt_count"], payments["state"]) == ("payments", 2, "processed")
    assert payments["handling_seconds"] == pytest.approx(0.006)
    assert [each["outcome"] for each in payments["attempts"]] == ["retried", "processed"]
    assert paid["deliveries"][0]["attempts"][0]["error"] == {
        "type": "ValueError",
        "message": "no such address",
        "traceback": None,
    }
    assert chain["truncated"] is False


@pytest.mark.usefixtures("order")
async def test_errors_of_a_chain_are_masked(viewer: httpx.AsyncClient) -> None:
    answer = await viewer.get("/chains/order")
    assert answer.json()["nodes"][0]["deliveries"][0]["attempts"][0]["error"]["message"] == "password=*** was refused"
    assert "hunter2" not in answer.text


@pytest.mark.parametrize("id_", ["a/b", "a//b/", "a\nb", "a\n", "é ü", "..", "%2F", "?x=1&y", "x" * 3_000])
async def test_an_id_can_be_any_text(viewer: httpx.AsyncClient, history: History, id_: str) -> None:
    await history.add(1, "sent", id_, id_)
    assert (await viewer.get("/chains/-", params={"id": id_})).json()["root_id"] == id_
    if id_ != "..":
        path = "".join(f"%{byte:02X}" for byte in id_.encode())
        assert (await viewer.get(f"/chains/{path}")).json()["root_id"] == id_


async def test_an_unknown_id_is_not_found(viewer: httpx.AsyncClient) -> None:
    answer = await viewer.get("/chains/unknown")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    for strange in ("/chains/-?id=a%00b", "/chains/x?max_nodes=0", "/chains/x?max_nodes=2001", "/chains/x?depth=2", "/chains/"):
        refused = await viewer.get(strange)
        assert refused.status_code == 422, strange
    assert (await viewer.get("/chains/x?depth=2")).json()["detail"] == "query.depth: unknown parameter: remove it"


async def test_the_longest_id_fits_into_a_url_that_servers_accept(viewer: httpx.AsyncClient) -> None:
    assert len(quote("\U0001f4a5" * LONGEST_ID)) < 60_000
    for path in ("/chains/{}", "/chains/-?id={}"):
        assert (await viewer.get(path.format("x" * LONGEST_ID))).status_code == 404
        assert (await viewer.get(path.format("x" * (LONGEST_ID + 1)))).status_code == 422


async def test_cycles_and_orphans_terminate_and_long_chains_are_truncated(viewer: httpx.AsyncClient, history: History) -> None:
    await history.add(9, "sent", "r", "r")
    await history.add(8, "sent", "orphan", "r", "lost")
    await history.add(7, "sent", "x", "r", "y")
    await history.add(6, "processed", "y", "r", "x", "q")
    whole = (await viewer.get("/chains/y")).json()
    assert [node["id"] for node in whole["nodes"]] == ["r", "lost", "orphan", "x", "y"]
    assert whole["critical_path"] == ["x", "y"]
    assert whole["gaps"]
    part = (await viewer.get("/chains/y?max_nodes=2")).json()
    assert ([node["id"] for node in part["nodes"]], part["truncated"]) == (["r", "lost"], True)


async def test_chains_are_listed_newest_first_with_their_worst_state(
    viewer: httpx.AsyncClient, history: History, order: None
) -> None:
    await history.add(20, "sent", "old", "old")
    await history.add(19, "processed", "old", "old", None, "q")
    page = (await viewer.get("/chains")).json()
    assert ids(page) == ["order", "old"]
    assert (page["next"], page["previous"]) == (None, None)
    newest = page["items"][0]
    assert (newest["state"], newest["message_count"], newest["dead_letter_count"], newest["truncated"]) == ("dead", 3, 1, False)
    assert newest["duration_seconds"] == pytest.approx(8, abs=0.1)
    assert page["items"][1]["state"] == "processed"


async def test_a_resolved_dead_letter_does_not_decide_the_state_of_its_chain(
    viewer: httpx.AsyncClient, database: str, order: None
) -> None:
    connection = await asyncpg.connect(database)
    await connection.execute(
        "insert into outbox_dead_letter (source, exchange, queue, message_id, routing_key, body, tracking_ids, created_at,"
        " attempt, cause, exception_type, exception_message, exception_traceback, status, resolved_at)"
        " values ('worker', 'o', 'mail', 'paid', 'e', '', '[\"order\", \"paid\"]', now(),"
        " 1, 'exhausted', '', '', '', 'discarded', now())"
    )
    await connection.close()
    [chain] = (await viewer.get("/chains")).json()["items"]
    assert (chain["state"], chain["dead_letter_count"]) == ("sent", 1)  # the stock's, which no worker handled


LETTER = """
    insert into outbox_dead_letter (source, exchange, queue, message_id, routing_key, body, tracking_ids, created_at,
        attempt, cause, exception_type, exception_message, exception_traceback, status, resolved_at)
    values ('worker', 'o', 'q', 'twice', 'e', '', '["twice"]', now(), 1, 'exhausted', '', '', '', 'requeued', now())
"""


@pytest.fixture
async def requeued(history: History) -> None:
    """A message that was dead-lettered, requeued an hour later, and sent again long after that."""
    await history.add(9_000, "sent", "twice", "twice")
    await history.add(8_999, "died", "twice", "twice", None, "q", error="no")
    await history.add(8_000, "sent", "other", "other")
    await history.add(5_400, "requeued", "twice", "twice", None, "q")
    await history.waits(5_400 - 50, 50, "twice")


@pytest.mark.usefixtures("requeued")
async def test_a_chain_whose_first_message_was_requeued_is_listed_once_at_its_beginning(
    viewer: httpx.AsyncClient, history: History
) -> None:
    await history.add(49, "processed", "twice", "twice", None, "q")
    page = (await viewer.get("/chains")).json()
    assert ids(page) == ["other", "twice"]
    assert (page["items"][1]["state"], page["items"][1]["dead_letter_count"]) == ("processed", 1)
    await history.add(40, "requeued", "new", "new")  # it had been parked, and never sent before
    await history.add(39, "sent", "new", "new")
    newest = (await viewer.get("/chains?limit=1")).json()
    rest = (await viewer.get("/chains", params={"cursor": newest["next"]})).json()
    assert [ids(newest), ids(rest)] == [["new"], ["other", "twice"]]


@pytest.mark.usefixtures("requeued")
@pytest.mark.parametrize(("fact", "state"), [("retried", "retrying"), ("died", "dead"), ("processed", "processed")])
async def test_a_requeued_message_has_the_state_that_follows_the_requeue(
    viewer: httpx.AsyncClient, history: History, database: str, fact: str, state: str
) -> None:
    connection = await asyncpg.connect(database)
    await connection.execute(LETTER)
    await connection.close()
    assert (await viewer.get("/chains/twice")).json()["state"] == "requeued"
    await history.add(49, fact, "twice", "twice", None, "q")
    chain = (await viewer.get("/chains/twice")).json()
    assert (chain["state"], chain["nodes"][0]["requeue_count"]) == (state, 1)


async def test_the_latest_row_of_a_message_decides_its_state(viewer: httpx.AsyncClient, database: str) -> None:
    connection = await asyncpg.connect(database)
    await insert(connection, tracking_ids='["a"]', sent_at="-10 second")
    await insert(connection, tracking_ids='["a"]')
    await insert(connection, tracking_ids='["parked"]', failed_at="-1 day", attempts=20, last_error="no")
    await connection.close()
    assert (await viewer.get("/chains/a")).json()["state"] == "pending"
    parked = (await viewer.get("/chains/parked?max_nodes=1")).json()
    assert (parked["state"], parked["truncated"]) == ("parked", False)


async def test_pages_lead_forward_and_back(viewer: httpx.AsyncClient, history: History) -> None:
    await history.beginnings(7)
    first = (await viewer.get("/chains?limit=3")).json()
    second = (await viewer.get("/chains", params={"limit": 3, "cursor": first["next"]})).json()
    third = (await viewer.get("/chains", params={"limit": 3, "cursor": second["next"]})).json()
    assert [ids(page) for page in (first, second, third)] == [["c1", "c2", "c3"], ["c4", "c5", "c6"], ["c7"]]
    assert (first["previous"], third["next"]) == (None, None)
    back = (await viewer.get("/chains", params={"limit": 3, "cursor": third["previous"]})).json()
    assert ids(back) == ["c4", "c5", "c6"]
    start = (await viewer.get("/chains", params={"limit": 3, "cursor": back["previous"]})).json()
    assert (ids(start), start["previous"]) == (["c1", "c2", "c3"], None)
    assert ids((await viewer.get("/chains", params={"limit": 3, "cursor": start["next"]})).json()) == ["c4", "c5", "c6"]


async def test_chains_are_filtered_by_first_routing_key_state_and_time(viewer: httpx.AsyncClient, history: History) -> None:
    await history.beginnings(250)
    await history.add(300, "sent", "rare", "rare", key="rare")
    await history.add(299, "died", "rare", "rare", None, "q")
    assert ids((await viewer.get("/chains?routing_key=rare")).json()) == ["rare"]
    assert ids((await viewer.get("/chains?state=dead")).json()) == ["rare"]
    assert ids((await viewer.get("/chains?state=dead&routing_key=order.placed")).json()) == []
    newest = (await viewer.get("/chains?limit=2")).json()
    began = newest["items"][0]["sent_at"]
    later = await viewer.get("/chains", params={"sent_before": began, "limit": 1})
    assert ids(later.json()) == ["c2"]
    assert len(ids((await viewer.get("/chains", params={"routing_key": "order.placed", "limit": 200})).json())) == 200


async def test_a_filtered_scan_is_bounded_and_continues_with_the_next_page(viewer: httpx.AsyncClient, history: History) -> None:
    await history.beginnings(1_100)
    await history.add(2_000, "died", "last", "last", None, "q")
    await history.add(2_001, "sent", "last", "last")
    page = (await viewer.get("/chains?state=dead")).json()
    assert ids(page) == []
    page = (await viewer.get("/chains", params={"state": "dead", "cursor": page["next"]})).json()
    assert (ids(page), page["next"]) == (["last"], None)


async def test_a_cursor_belongs_to_its_filter(viewer: httpx.AsyncClient, history: History) -> None:
    await history.beginnings(3)
    cursor = (await viewer.get("/chains?limit=1")).json()["next"]
    other = await viewer.get("/chains", params={"limit": 1, "cursor": cursor, "state": "dead"})
    assert (other.status_code, other.json()["code"]) == (400, "cursor_mismatch")
    forged = await viewer.get("/chains?cursor=bm90aGluZw")
    assert (forged.status_code, forged.json()["code"]) == (400, "invalid_cursor")


async def test_chains_require_authentication(make_client: MakeClient) -> None:
    anonymous = make_client(None)
    assert {(await anonymous.get(path)).status_code for path in ("/chains", "/chains/x")} == {401}
    assert (await make_client(Role.VIEWER).get("/chains")).status_code == 200


# --- what waits ----------------------------------------------------------------------------------------------------------


async def deliver(
    connection: asyncpg.Connection, id_: str, queue: str, *, chain: str, due: str = "-1 s", **columns: Any
) -> None:
    await connection.execute(
        "insert into outbox_delivery (exchange, queue, message_id, routing_key, body, tracking_ids, attempt, available_at, "
        "lease_token, leased_until) values ('outbox', $1, $2, 'a', '', $3, $4, now() + $5::text::interval, "
        "case when $6 then gen_random_uuid() end, case when $6 then now() + interval '1 minute' end)",
        queue,
        id_,
        chain,
        columns.get("attempt", 1),
        due,
        columns.get("leased", False),
    )


async def worker(
    connection: asyncpg.Connection,
    queue: str,
    *,
    started: str = "1 hour",
    history: bool = True,
    ago: str = "0",
    failing: bool = False,
    delays: Sequence[float] = (),
) -> None:
    """A worker that consumes the queue with a binding for all messages."""
    retry = {"delays_seconds": delays, "computed": False}
    consumers = json.dumps([{"queue": queue, "binding_key": "#", "history": history, "retry": retry}])
    await connection.execute(
        "insert into outbox_component "
        "(id, kind, name, host, process_id, version, every, consumers, started_at, seen_at, activity) "
        "values (gen_random_uuid(), 'worker', 'w', 'h', 1, '1', '5 s', $1, now() - $2::text::interval, "
        "now() - $3::text::interval, $4)",
        consumers,
        started,
        ago,
        json.dumps({"failing_queues": [queue] if failing else []}),
    )


async def both(client: httpx.AsyncClient, id_: str) -> set[str]:
    """The states of a chain: in the list, in its detail, and in the list filtered by state."""
    [line] = [item for item in (await client.get("/chains")).json()["items"] if item["root_id"] == id_]
    state = line["state"]
    filtered = await client.get("/chains", params={"state": state})
    assert filtered.status_code == 200, filtered.text
    assert id_ in ids(filtered.json())
    return {state, (await client.get(f"/chains/{id_}")).json()["state"]}


async def test_an_unhandled_delivery_keeps_its_chain_from_being_processed(
    viewer: httpx.AsyncClient, history: History, database: str
) -> None:
    connection = await asyncpg.connect(database)
    for id_ in ("waits", "fails", "runs", "unsent", "held"):
        await history.add(60, "sent", id_, id_)
        await history.add(59, "processed", id_, id_, None, "mail")
    await deliver(connection, "waits", "stock", chain='["waits"]')
    await deliver(connection, "fails", "stock", chain='["fails"]', attempt=2, due="1 minute")
    await deliver(connection, "runs", "stock", chain='["runs"]', due="1 minute", leased=True)
    await insert(connection, tracking_ids='["unsent", "child"]')
    await insert(connection, tracking_ids='["held", "child"]', last_error="unroutable", send_after="infinity")
    await connection.close()
    assert await both(viewer, "waits") == {"queued"}
    assert await both(viewer, "fails") == {"retrying"}
    assert await both(viewer, "runs") == {"in_flight"}
    assert await both(viewer, "unsent") == {"pending"}
    assert await both(viewer, "held") == {"held"}


async def test_on_rabbitmq_a_queue_without_a_record_still_holds_the_message(
    viewer: httpx.AsyncClient, history: History, database: str
) -> None:
    connection = await asyncpg.connect(database)
    for id_ in ("order", "older"):
        await history.add(60 if id_ == "order" else 7_200, "sent", id_, id_)
        await history.add(59 if id_ == "order" else 7_199, "processed", id_, id_, None, "mail")
    for queue in ("mail", "stock"):
        await worker(connection, queue)
    await worker(connection, "silent", history=False)
    await worker(connection, "new", started="1 s")
    assert await both(viewer, "order") == {"queued"}
    assert await both(viewer, "older") == {"processed"}  # of that time nothing is known of other workers
    [node] = (await viewer.get("/chains/order")).json()["nodes"]
    assert [(leg["queue"], leg["state"]) for leg in node["deliveries"]] == [("mail", "processed"), ("stock", "queued")]
    assert node["deliveries"][1]["waiting"]["reason"] == "next"
    await history.add(1, "processed", "order", "order", None, "stock")
    assert await both(viewer, "order") == {"processed"}
    await connection.close()


async def test_a_delivery_that_waits_says_why(viewer: httpx.AsyncClient, history: History, database: str) -> None:
    connection = await asyncpg.connect(database)
    await history.add(60, "sent", "m", "m")
    await connection.execute(
        "insert into outbox_subscription (exchange, queue, binding_key) "
        "select 'outbox', queue, '#' from unnest(array['paused', 'alone', 'busy', 'fails', 'free']) as queue"
    )
    await connection.execute(
        "insert into outbox_control (scope, name, reason, requested_by) values ('queue', 'paused', 'stocktaking', 'ada')"
    )
    for queue in ("paused", "busy", "fails", "free"):
        await worker(connection, queue)
    await worker(connection, "alone", ago="10 min")
    for number in range(3):
        await deliver(connection, f"before-{number}", "busy", chain="[]", due="-1 minute")
    for queue in ("paused", "alone", "busy", "free", "open"):
        await deliver(connection, "m", queue, chain='["m"]')
    await worker(connection, "open", failing=True)
    await deliver(connection, "m", "fails", chain='["m"]', attempt=2, due="1 minute")
    await connection.close()
    [node] = (await viewer.get("/chains/m")).json()["nodes"]
    waiting = {leg["queue"]: leg["waiting"] for leg in node["deliveries"]}
    assert {queue: (each["reason"], each["ahead_count"]) for queue, each in waiting.items()} == {
        "paused": ("paused", 0),
        "alone": ("no_consumer", 0),
        "busy": ("behind", 3),
        "free": ("next", 0),
        "fails": ("retry", None),
        "open": ("failing", 0),
    }
    paused = waiting["paused"]
    assert (paused["paused_by"], paused["pause_reason"], paused["text"]) == (
        "ada",
        "stocktaking",
        "the queue is paused by ada: stocktaking",
    )
    assert paused["paused_at"] is not None
    assert [leg["due_at"] is not None for leg in node["deliveries"] if leg["queue"] == "fails"] == [True]


async def test_the_next_attempt_on_rabbitmq_follows_from_the_consumers_delays(
    viewer: httpx.AsyncClient, history: History, database: str
) -> None:
    connection = await asyncpg.connect(database)
    await worker(connection, "mail", delays=(60, 600))
    await worker(connection, "stock", delays=(60,))
    await worker(connection, "bill")
    await history.add(100, "sent", "m", "m")
    for queue in ("mail", "stock", "bill"):
        await history.add(90, "retried", "m", "m", None, queue)
    await history.add(30, "retried", "m", "m", None, "mail", attempt=2)
    await connection.execute("update outbox_history set error_type = 'outbox.errors.RetryAfter' where queue = 'stock'")
    await connection.close()
    [node] = (await viewer.get("/chains/m")).json()["nodes"]
    found = {leg["queue"]: leg for leg in node["deliveries"]}
    assert {queue: (leg["state"], leg["waiting"]["reason"]) for queue, leg in found.items()} == dict.fromkeys(
        ("mail", "stock", "bill"), ("retrying", "retry")
    )
    [_, second] = found["mail"]["attempts"]
    due = datetime.fromisoformat(found["mail"]["due_at"])
    assert due - datetime.fromisoformat(second["ended_at"]) == timedelta(minutes=10)
    assert (found["stock"]["due_at"], found["bill"]["due_at"]) == (None, None)


@pytest.mark.parametrize("state", list(ChainState))
async def test_every_state_is_a_filter(viewer: httpx.AsyncClient, history: History, state: ChainState) -> None:
    await history.beginnings(1)
    page = await viewer.get("/chains", params={"state": state.value})
    assert page.status_code == 200, page.text
    assert ids(page.json()) == (["c1"] if state is ChainState.PROCESSED else [])
