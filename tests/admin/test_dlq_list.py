"""`GET /dlq` finds dead letters, page by page in both directions, and counts them by kind."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import aio_pika
import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from outbox.admin import Admin, Role
from outbox.core.failures import FailedAttempt
from outbox.core.fingerprint import fingerprint
from outbox.core.outcome import Failure
from outbox.postgres.archive import PostgresArchive
from outbox.postgres.pool import Pool, open_pool
from outbox.transports.rabbitmq.topology import dead_letter_queue
from tests.admin.letters import answered, flat, message_ids, pages, problem
from tests.admin.support import client_of, serving
from tests.dead_letters.failed_messages import NOON, TABLE, dead
from tests.support import eventually

MINUTE = timedelta(minutes=1)
OTHER = Failure("KeyError", "'sku'", 'Traceback (most recent call last):\n  File "/srv/shop/stock.py", line 3, in take\n')


@pytest.fixture
async def pool(database: str) -> AsyncIterator[Pool]:
    opened = await open_pool(database, size=4, application_name="tests")
    yield opened
    await opened.close()


@pytest.fixture
def archive(pool: Pool) -> PostgresArchive:
    return PostgresArchive(pool, TABLE)


async def park(pool: Pool, message_id: str = "p1", error: str = "too large: 7 bytes") -> None:
    await pool.execute(
        "insert into outbox_table (routing_key, body, tracking_ids, attempts, failed_at, last_error, target_queue) "
        "values ('order.placed', '{\"token\": \"x\"}', jsonb_build_array('root', $1::text), 20, $2, $3, 'billing')",
        message_id,
        NOON - MINUTE,
        error,
    )


@pytest.fixture
async def mixed(archive: PostgresArchive, pool: Pool) -> None:
    """Letters that differ in everything."""
    failures = tuple(FailedAttempt(at=NOON, attempt=number, failure=OTHER) for number in range(1, 6))
    await archive.record(
        [
            dead("m1", b'{"customer": "Ann Smith", "password": "hunter2"}'),
            dead("m2", queue="billing", failure=OTHER, failed_at=NOON + MINUTE, tracking_ids=("root", "m2"), failures=failures),
            dead("m3", routing_key="user.created", by_broker=True, failed_at=NOON + 2 * MINUTE),
        ]
    )
    await pool.execute("update outbox_dead_letter set status = 'requeued', resolved_at = now() where message_id = 'm3'")
    await park(pool)


FILTERS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["m2", "m1", "p1"]),
    ({"status": "any"}, ["m3", "m2", "m1", "p1"]),
    ({"status": "requeued"}, ["m3"]),
    ({"status": "discarded"}, []),
    ({"source": "relay"}, ["p1"]),
    ({"source": "broker", "status": "any"}, ["m3"]),
    ({"queue": "billing"}, ["m2", "p1"]),
    ({"routing_key": "order.placed"}, ["m2", "m1", "p1"]),
    ({"routing_key": "order.%"}, []),
    ({"exception_type": "KeyError"}, ["m2"]),
    ({"group_id": fingerprint(OTHER, queue="billing")}, ["m2"]),
    ({"tracking_id": "root"}, ["m2", "p1"]),
    ({"message_id": "m1"}, ["m1"]),
    ({"failed_after": "2026-03-01T12:00:00Z"}, ["m2", "m1"]),
    ({"failed_after": "2026-03-01T13:00:30+01:00"}, ["m2"]),
    ({"failed_before": "2026-03-01T12:00:00Z"}, ["p1"]),
    ({"min_failures": 5}, ["m2", "p1"]),
    ({"q": "smith"}, ["m1"]),
    ({"q": "hunter2"}, []),
    ({"q": "'); drop table outbox_dead_letter; --"}, []),
    ({"queue": "billing", "source": "worker"}, ["m2"]),
    ({"queue": ["billing", "mail"]}, ["m2", "m1", "p1"]),
    ({"queue": ["mail", "nothing"]}, ["m1"]),
    ({"routing_key": ["user.created", "k" * 300], "status": ["requeued", "discarded"]}, ["m3"]),
    ({"routing_key": ["user.created", "order.placed"], "status": "any"}, ["m3", "m2", "m1", "p1"]),
    ({"exception_type": ["KeyError", "too large"]}, ["m2", "p1"]),
    ({"exception_type": ["nothing", "shop.PaymentError"]}, ["m1"]),
    ({"status": ["open", "requeued"]}, ["m3", "m2", "m1", "p1"]),
    ({"status": ["discarded", "requeued"]}, ["m3"]),
    ({"status": ["discarded", "any"]}, ["m3", "m2", "m1", "p1"]),
]


@pytest.mark.usefixtures("mixed")
async def test_a_selector_accepts_several_values_like_the_list(operator: httpx.AsyncClient) -> None:
    for wanted, expected in FILTERS:
        if "any" in wanted.get("status", ""):  # any that the action is for
            continue
        asked = {"selector": {"filter": {"status": "open", **wanted}}, "dry_run": True}
        found = await operator.post("/discard", json=asked)
        assert found.json()["count"] == len(expected), (wanted, found.text)


@pytest.mark.usefixtures("mixed")
async def test_the_order_of_values_does_not_change_a_filter(viewer: httpx.AsyncClient) -> None:
    page = await answered(viewer, "/dlq", limit=1, queue=["mail", "billing"])
    more = await answered(viewer, "/dlq", limit=2, cursor=page["next"], queue=["billing", "mail", "mail"])
    assert [*message_ids(page), *message_ids(more)] == ["m2", "m1", "p1"]
    facets = (await answered(viewer, "/dlq", facets="true", queue=["mail", "billing"]))["facets"]
    assert {facet["value"]: facet["count"] for facet in facets["queue"]} == {"mail": 1, "billing": 2}


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/dlq?limit=1&limit=2", "limit"),
        ("/dlq?q=a&q=b", "q"),
        ("/dlq?queue=a&queue=b&sort=newest&sort=newest", "sort"),
        ("/audit?actor=a&actor=b", "actor"),
        ("/messages?routing_key=a&routing_key=b", "routing_key"),
        ("/stats?from=-1h&from=-2h", "from"),
        ("/backlog?x=1&x=2", "x"),
    ],
)
async def test_two_values_of_a_single_valued_parameter_are_rejected(operator: httpx.AsyncClient, path: str, name: str) -> None:
    answer = await operator.get(path)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert answer.json()["errors"] == [{"field": f"query.{name}", "message": "given more than once"}]


async def test_a_filter_has_at_most_fifty_values(viewer: httpx.AsyncClient) -> None:
    assert (await viewer.get("/dlq", params={"queue": [str(n) for n in range(50)]})).status_code == 200
    assert await problem(viewer, "/dlq", queue=[str(n) for n in range(51)]) == (422, "invalid_request")


@pytest.mark.usefixtures("mixed")
async def test_a_filter_matches_open_dead_letters_that_match_all_conditions(viewer: httpx.AsyncClient) -> None:
    for wanted, expected in FILTERS:
        assert message_ids(await answered(viewer, "/dlq", **wanted)) == expected, wanted
        counted = (await answered(viewer, "/dlq", limit=1, total="true", **wanted))["total"]
        assert counted == {"value": len(expected), "relation": "eq"}, wanted


@pytest.mark.usefixtures("mixed")
async def test_a_list_item_has_everything_but_the_payload(viewer: httpx.AsyncClient) -> None:
    page = await answered(viewer, "/dlq", sort="oldest")
    parked, letter = page["items"][:2]
    assert parked["id"] == "outbox-1"
    assert (parked["source"], parked["queue"], parked["root_id"], parked["failure_count"]) == ("relay", "billing", "root", 20)
    assert parked["preview"] == '{"token": "***"}'
    assert letter["id"] == "1"
    assert (letter["size"], letter["preview"]) == (48, '{"customer": "Ann Smith", "password": "***"}')
    assert letter["error"] == {"type": "shop.PaymentError", "message": "the card 4711 was declined", "traceback": None}
    assert letter["failed_at"] == "2026-03-01T12:00:00.000Z"
    assert "hunter2" not in str(page)
    assert (page["next"], page["previous"], page["total"], page["facets"]) == (None, None, None, None)
    assert (page["unarchived"], page["degraded"]) == (None, [])


async def test_the_error_of_a_list_item_is_masked_and_short(
    archive: PostgresArchive, pool: Pool, viewer: httpx.AsyncClient
) -> None:
    await archive.record([dead("m1", failure=Failure("E", f"password=hunter2 {'x' * 10_000}"))])
    await park(pool, error="password=hunter2")
    page = await answered(viewer, "/dlq", facets="true")
    assert "hunter2" not in str(page)
    assert len(page["items"][0]["error"]["message"]) == 500


async def test_a_search_does_not_find_secrets(archive: PostgresArchive, pool: Pool, viewer: httpx.AsyncClient) -> None:
    text = "password=hunter2 token: 'two hunter2 words' Bearer hunter2 amqp://a:hunter2@mq was refused by all"
    await archive.record([dead("m1", failure=Failure("E", text))])
    await park(pool, error=f"Refused: for reasons: {text}")
    assert message_ids(await answered(viewer, "/dlq", q="hunter2")) == []
    assert message_ids(await answered(viewer, "/dlq", q="refused by")) == ["m1", "p1"]


@pytest.mark.usefixtures("mixed")
async def test_facets_of_a_field_ignore_the_filter_on_that_field(viewer: httpx.AsyncClient) -> None:
    facets = (await answered(viewer, "/dlq", facets="true", queue="billing"))["facets"]
    assert facets["queue"] == [{"value": "billing", "count": 2}, {"value": "mail", "count": 1}]
    assert facets["status"] == [{"value": "open", "count": 2}]
    assert facets["source"] == [{"value": "relay", "count": 1}, {"value": "worker", "count": 1}]
    assert facets["exception_type"] == [{"value": "KeyError", "count": 1}, {"value": "too large", "count": 1}]
    assert facets["routing_key"] == [{"value": "order.placed", "count": 2}]
    assert facets["relation"] == "eq"
    every = (await answered(viewer, "/dlq", facets="true"))["facets"]
    assert every["status"] == [{"value": "open", "count": 3}, {"value": "requeued", "count": 1}]


async def test_facets_list_the_twenty_most_frequent_values(archive: PostgresArchive, viewer: httpx.AsyncClient) -> None:
    await archive.record([dead(f"m{number}", queue=f"q{number % 25:02}") for number in range(26)])
    facets = (await answered(viewer, "/dlq", facets="true"))["facets"]
    assert len(facets["queue"]) == 20
    assert facets["queue"][0] == {"value": "q00", "count": 2}


async def test_counting_ends_at_ten_thousand(pool: Pool, viewer: httpx.AsyncClient) -> None:
    await pool.execute(
        "insert into outbox_dead_letter (source, exchange, queue, routing_key, body, tracking_ids, created_at, attempt, cause, "
        "exception_type, exception_message, exception_traceback) "
        "select 'worker', '', 'q', 'k', '', '[]', now(), 1, 'c', '', '', '' from generate_series(1, 10001)"
    )
    assert (await answered(viewer, "/dlq", total="true", limit=1))["total"] == {"value": 10_000, "relation": "gte"}
    await pool.execute("delete from outbox_dead_letter where id = 1")
    assert (await answered(viewer, "/dlq", total="true", limit=1))["total"] == {"value": 10_000, "relation": "eq"}


# --- paging ------------------------------------------------------------------------------------------------------------


@given(
    failures=st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=12),
    limit=st.integers(1, 5),
    sort=st.sampled_from(["newest", "oldest"]),
)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_paging_forward_and_back_shows_every_item_once(
    pool: Pool, archive: PostgresArchive, viewer: httpx.AsyncClient, failures: list[tuple[int, bool]], limit: int, sort: str
) -> None:
    """Many die in the same moment, in either table."""
    await pool.execute("truncate outbox_dead_letter, outbox_dead_letter_edition, outbox_table restart identity")
    for number, (minute, parked) in enumerate(failures):
        if parked:
            await park(pool, f"m{number}")
            at, id_ = NOON + minute * MINUTE, f"m{number}"
            await pool.execute("update outbox_table set failed_at = $1 where tracking_ids ->> -1 = $2", at, id_)
        else:
            await archive.record([dead(f"m{number}", failed_at=NOON + minute * MINUTE)])
    forward = await pages(viewer, limit=limit, sort=sort)
    assert sorted(flat(forward)) == sorted(f"m{number}" for number in range(len(failures)))
    assert flat(forward) == message_ids(await answered(viewer, "/dlq", limit=200, sort=sort))
    assert all(len(page["items"]) == limit for page in forward[:-1])
    back = await pages(viewer, way="previous", limit=limit, sort=sort, cursor=forward[-1]["previous"])
    if len(forward) > 1:
        assert flat(back[::-1]) == flat(forward[:-1])


async def test_pages_neither_shift_nor_repeat_while_messages_fail_and_are_resolved(
    pool: Pool, archive: PostgresArchive, viewer: httpx.AsyncClient
) -> None:
    await archive.record([dead(f"m{number}", failed_at=NOON + number * MINUTE) for number in range(9)])
    first = await answered(viewer, "/dlq", limit=3)
    await archive.record([dead("new", failed_at=NOON + 100 * MINUTE)])
    await pool.execute(
        "update outbox_dead_letter set status = 'discarded', resolved_at = now() where message_id in ('m7', 'm5', 'm4')"
    )
    second = await answered(viewer, "/dlq", limit=3, cursor=first["next"])
    assert (message_ids(first), message_ids(second)) == (["m8", "m7", "m6"], ["m3", "m2", "m1"])
    before = await answered(viewer, "/dlq", limit=3, cursor=second["previous"])
    assert message_ids(before) == ["new", "m8", "m6"]
    assert before["previous"] is None
    assert message_ids(await answered(viewer, "/dlq", limit=3, cursor=before["next"])) == ["m3", "m2", "m1"]


async def test_paging_back_from_an_emptied_page_skips_nothing(
    pool: Pool, archive: PostgresArchive, viewer: httpx.AsyncClient
) -> None:
    await archive.record([dead(f"m{number}", failed_at=NOON + number * MINUTE) for number in range(4)])
    first = await answered(viewer, "/dlq", limit=2)
    await pool.execute("delete from outbox_dead_letter where message_id in ('m0', 'm1')")
    empty = await answered(viewer, "/dlq", limit=2, cursor=first["next"])
    assert (empty["items"], empty["next"]) == ([], None)
    back = await answered(viewer, "/dlq", limit=2, cursor=empty["previous"])
    assert message_ids(back) == ["m3", "m2"]


@pytest.mark.usefixtures("mixed")
async def test_a_cursor_is_bound_to_its_filter_and_order_but_not_to_the_limit(viewer: httpx.AsyncClient) -> None:
    cursor = (await answered(viewer, "/dlq", limit=1))["next"]
    assert message_ids(await answered(viewer, "/dlq", limit=50, cursor=cursor)) == ["m1", "p1"]
    for other in ({"sort": "oldest"}, {"status": "any"}, {"queue": "mail"}, {"q": "x"}, {"min_failures": 1}):
        assert await problem(viewer, "/dlq", cursor=cursor, **other) == (400, "cursor_mismatch"), other


# --- what the broker still has -----------------------------------------------------------------------------------------


async def test_the_list_counts_dead_letters_at_the_broker(
    database: str, broker_url: str, pool: Pool, archive: PostgresArchive
) -> None:

    await pool.execute(
        "insert into outbox_subscription (exchange, queue, binding_key) values ('outbox', 'mail', 'a'), ('outbox', 'gone', 'a')"
    )
    await archive.record([dead("m1")])
    connection = await aio_pika.connect(broker_url)
    async with connection:
        channel = await connection.channel()
        queue = await channel.declare_queue(dead_letter_queue("mail"), durable=True)
        for _ in range(3):
            await channel.default_exchange.publish(aio_pika.Message(b"{}"), queue.name)
        async with serving(Admin(database, broker=broker_url)) as app, client_of(app, Role.VIEWER) as client:

            async def seen() -> Any:
                page = await answered(client, "/dlq")
                return page if page["unarchived"] is not None else None

            await eventually(seen)
            page = await answered(client, "/dlq")
    assert (page["unarchived"]["count"], page["unarchived"]["queues"]) == (3, {"mail": 3})
    assert page["unarchived"]["as_of"].endswith("Z")
    assert page["degraded"] == []
    assert message_ids(page) == ["m1"]


@pytest.mark.usefixtures("mixed")
async def test_without_the_broker_the_list_is_degraded(database: str) -> None:
    admin = Admin(database, broker="amqp://guest:guest@127.0.0.1:1/")
    async with serving(admin) as app, client_of(app, Role.VIEWER) as client:
        page = await answered(client, "/dlq")
    assert (page["unarchived"], page["degraded"]) == (None, ["broker"])
    assert message_ids(page) == ["m2", "m1", "p1"]
