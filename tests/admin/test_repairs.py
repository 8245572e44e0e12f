"""Requeueing, discarding, restoring and purging over HTTP: what is answered, and what is true afterwards."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from fastapi import FastAPI

from outbox.admin import Admin, Role, admin_router
from outbox.postgres.pool import Pool, open_pool
from tests.admin.repairing import ask, audited, confirmed, outcomes, problem
from tests.admin.support import MakeClient, principal_by_header
from tests.dead_letters.repairs import add_dead_letters, outbox, park, statuses


@pytest.fixture
async def pool(database: str) -> AsyncIterator[Pool]:
    """Connections of the test's own."""
    opened = await open_pool(database, size=5, application_name="tests")
    yield opened
    await opened.close()


@pytest.fixture
def administrator(make_client: MakeClient) -> httpx.AsyncClient:
    """An administrator."""
    return make_client(Role.ADMIN)


async def test_a_few_ids_are_changed_at_once_with_an_outcome_for_each(pool: Pool, operator: httpx.AsyncClient) -> None:
    [one, two], parked = await add_dead_letters(pool, 2), await park(pool)
    await ask(operator, "discard", [two])
    answer = await ask(operator, "requeue", [parked, one, two, "999", "no id", "outbox-999", "٣"], reason="fixed")
    assert outcomes(answer) == {
        parked: "requeued",
        one: "requeued",
        two: "skipped",
        "999": "not_found",
        "no id": "not_found",
        "outbox-999": "not_found",
        "٣": "not_found",
    }
    assert answer.json()["counts"] == {"requeued": 2, "skipped": 1, "not_found": 4}
    assert answer.json()["items"][2]["reason"] == "already discarded"
    assert len(await outbox(pool)) == 2
    action, target, details = (await audited(pool))[-1]
    assert (action, target) == ("dlq.requeue", "7 dead letters")
    assert details["counts"] == {"requeued": 2, "skipped": 1, "not_found": 4}
    assert details["selector"]["ids"][:2] == [parked, one]


async def test_discarded_dead_letters_are_restored_and_purged_ones_deleted(
    pool: Pool, operator: httpx.AsyncClient, administrator: httpx.AsyncClient
) -> None:
    ids = await add_dead_letters(pool, 3)
    assert outcomes(await ask(operator, "discard", ids)) == dict.fromkeys(ids, "discarded")
    assert outcomes(await ask(operator, "restore", ids[:1])) == {ids[0]: "restored"}
    answer = await confirmed(administrator, "discard", ids, purge=True, reason="they are tests")
    assert outcomes(answer) == {ids[0]: "refused", ids[1]: "purged", ids[2]: "purged"}
    assert await statuses(pool) == ["open"]


async def test_a_filter_becomes_an_operation_after_a_dry_run(pool: Pool, operator: httpx.AsyncClient) -> None:
    await add_dead_letters(pool, 12, fingerprint="f1")
    await add_dead_letters(pool, 3, fingerprint="f2", queue="other")
    dry = await ask(operator, "requeue", {"filter": {"queue": "orders.confirm"}}, dry_run=True)
    assert dry.status_code == 200
    plan = dry.json()
    assert (plan["count"], plan["by_queue"], plan["by_exception"]) == (12, {"orders.confirm": 12}, {"ValueError": 12})
    assert (len(plan["sample"]), plan["warnings"]) == (5, [])
    answer = await ask(
        operator, "requeue", {"filter": {"queue": "orders.confirm"}}, confirm_token=plan["confirm_token"], reason="fixed"
    )
    assert answer.status_code == 202
    assert answer.headers["location"] == "/outbox/operations/1"
    shown = answer.json()
    assert (shown["id"], shown["state"], shown["item_count"], shown["counts"]) == ("1", "running", 12, {"pending": 12})
    assert (shown["reason"], shown["requested_by"]) == ("fixed", "a operator")
    assert (await operator.get("/operations/1")).json()["item_count"] == 12


async def test_options_reach_the_operation(pool: Pool, operator: httpx.AsyncClient) -> None:
    await add_dead_letters(pool, 3)
    answer = await confirmed(
        operator,
        "requeue",
        {"group_id": "f1"},
        destination={"queue": "orders.confirm"},
        rate_per_second=2.5,
        max_items=2,
        canary={"count": 1, "wait_seconds": 5},
        stop_on_failure_ratio=0.25,
        force=True,
    )
    assert (answer.json()["options"], answer.json()["item_count"]) == (
        {
            "destination": "orders.confirm",
            "original_routing": False,
            "rate_per_second": 2.5,
            "canary": {"count": 1, "wait_seconds": 5.0},
            "stop_on_failure_ratio": 0.25,
            "force": True,
            "starts_at": None,
            "max_items": 2,
        },
        2,
    )
    [*_, (action, target, details)] = await audited(pool)
    assert (action, target, details["operation"], details["total"]) == ("dlq.requeue", "operation 1", "1", 2)
    assert details["selector"] == {"filter": {"group_id": "f1"}}
    assert details["rate_per_second"] == 2.5


async def test_more_than_a_hundred_ids_or_a_rate_make_an_operation(pool: Pool, operator: httpx.AsyncClient) -> None:
    ids = await add_dead_letters(pool, 101)
    assert (await ask(operator, "discard", [*ids, ids[0]])).headers["location"] == "/outbox/operations/1"
    assert outcomes(await ask(operator, "requeue", ids[:1])) == {ids[0]: "skipped"}
    assert (await operator.post("/operations/1/cancel")).json()["state"] == "cancelled"
    answer = await ask(operator, "requeue", ids[:2], rate_per_second=10)
    assert (answer.status_code, answer.json()["item_count"]) == (202, 2)
    later = await ask(operator, "requeue", ids[2:3], starts_at=f"{datetime.now(UTC) + timedelta(hours=2):%Y-%m-%dT%H:%MZ}")
    assert (later.status_code, later.json()["state"]) == (202, "running")
    assert later.json()["next_batch_at"] == later.json()["options"]["starts_at"]
    busy = (await ask(operator, "discard", ids[:1])).json()["items"][0]
    assert (busy["outcome"], busy["reason"], busy["done_already"]) == ("skipped", "in operation 2", False)


@pytest.mark.parametrize(
    ("first", "then", "reason", "done_already"),
    [
        ("requeue", "requeue", "already requeued", True),
        ("discard", "discard", "already discarded", True),
        ("discard", "requeue", "already discarded", False),
        ("requeue", "discard", "already requeued", False),
        ("requeue", "restore", "already requeued", False),
        (None, "restore", "open already", True),
    ],
)
async def test_a_skipped_dead_letter_is_done_already_or_in_the_way(
    pool: Pool, operator: httpx.AsyncClient, first: str | None, then: str, reason: str, done_already: bool
) -> None:
    ids = await add_dead_letters(pool)
    if first is not None:
        await ask(operator, first, ids)
    [item] = (await ask(operator, then, ids)).json()["items"]
    assert item == {"id": ids[0], "outcome": "skipped", "reason": reason, "done_already": done_already}


async def test_a_message_that_a_relay_has_sent_meanwhile_is_requeued_already(pool: Pool, operator: httpx.AsyncClient) -> None:
    id_ = await park(pool)
    await pool.execute("update outbox_table set failed_at = null, sent_at = now()")
    [item] = (await ask(operator, "requeue", [id_])).json()["items"]
    assert item == {"id": id_, "outcome": "skipped", "reason": "already sent", "done_already": True}


@pytest.mark.parametrize(
    ("verb", "more"),
    [
        ("requeue", {"selector": {}}),
        ("requeue", {"selector": {"ids": ["1"], "group_id": "f1"}}),
        ("requeue", {"selector": {"ids": []}}),
        ("requeue", {"selector": {"ids": [1.5]}}),
        ("requeue", {"selector": {"ids": [None]}}),
        ("requeue", {"selector": {"ids": [{}]}}),
        ("requeue", {"selector": {"ids": "1"}}),
        ("requeue", {"selector": {"ids": ["1\0"]}}),
        ("requeue", {"selector": {"ids": ["1"] * 10_001}}),
        ("requeue", {"selector": {"filter": {"colour": "red"}}}),
        ("requeue", {"selector": {"filter": {"failed_after": 17}}}),
        ("requeue", {"selector": {"ids": ["1"]}, "rate": 5}),
        ("requeue", {"selector": {"ids": ["1"]}, "rate_per_second": 0}),
        ("requeue", {"selector": {"ids": ["1"]}, "starts_at": "2099-01-01T00:00:00Z"}),
        ("requeue", {"selector": {"ids": ["1"]}, "starts_at": "2020-01-01T00:00:00Z", "edit": {"version": 1, "body": 1}}),
        ("requeue", {"selector": {"ids": ["1"]}, "destination": "somewhere"}),
        ("requeue", {"selector": {"ids": ["1", "2"]}, "edit": {"version": 1, "body": 1}}),
        ("requeue", {"selector": {"ids": ["1"]}, "edit": {"version": 1}}),
        ("requeue", {"selector": {"ids": ["1"]}, "edit": {"version": 1, "body": 7, "encoding": "text"}}),
        ("discard", {"selector": {"ids": ["1"]}, "purge": True}),
        ("discard", {"selector": {"ids": ["1"]}, "force": True}),
        ("restore", {"selector": {"ids": ["1"]}, "purge": True}),
    ],
)
async def test_invalid_requests_are_rejected(administrator: httpx.AsyncClient, verb: str, more: dict[str, object]) -> None:
    assert problem(await administrator.post(f"/{verb}", json=more)) == (422, "invalid_request")


async def test_viewers_cannot_change_and_operators_cannot_purge(
    pool: Pool, viewer: httpx.AsyncClient, operator: httpx.AsyncClient
) -> None:
    ids = await add_dead_letters(pool)
    for verb in ("requeue", "discard", "restore"):
        assert problem(await ask(viewer, verb, ids)) == (403, "forbidden")
    assert problem(await viewer.post("/operations/1/cancel")) == (403, "forbidden")
    assert problem(await ask(operator, "discard", ids, purge=True, reason="why not")) == (403, "forbidden")
    assert (await ask(operator, "discard", ids, purge=True, dry_run=True)).status_code == 200
    assert await statuses(pool) == ["open"]
    assert ("dlq.purge", ids[0]) in [(action, target) for action, target, _ in await audited(pool)]


async def test_the_location_is_correct_wherever_the_router_is_mounted(database: str, pool: Pool) -> None:
    ids = await add_dead_letters(pool)
    inner, outer = FastAPI(), FastAPI()
    async with Admin(database) as admin:
        inner.include_router(admin_router(admin, authenticate=principal_by_header), prefix="/deep/outbox")
        outer.mount("/internal", inner)
        for app, root, path, location in (
            (inner, "/proxied", "/proxied/deep/outbox", "/proxied/deep/outbox"),
            (inner, "/stripped", "/deep/outbox", "/stripped/deep/outbox"),
            (outer, "", "/internal/deep/outbox", "/internal/deep/outbox"),
        ):
            transport = httpx.ASGITransport(app, raise_app_exceptions=False, root_path=root)
            headers = {"x-test-role": "operator"}
            async with httpx.AsyncClient(transport=transport, base_url=f"http://service{path}", headers=headers) as client:
                answer = await ask(client, "requeue", ids, rate_per_second=1)
                assert answer.headers["location"].rpartition("/")[0] == f"{location}/operations"
                number = answer.headers["location"].rpartition("/")[2]
                assert (await client.get(f"/operations/{number}")).json()["id"] == number


async def test_a_body_that_is_too_deep_or_too_large_is_rejected(pool: Pool, operator: httpx.AsyncClient) -> None:
    [id_] = await add_dead_letters(pool)
    deep = '{"selector": {"ids": ["%s"]}, "edit": {"version": 1, "body": %s}}'

    async def send(content: str | bytes) -> tuple[int, str]:
        return problem(await operator.post("/requeue", content=content, headers={"content-type": "application/json"}))

    assert await send(deep % (id_, "[" * 101 + "]" * 101)) == (422, "invalid_request")
    assert await send(deep % (id_, "[" * 100_000 + "]" * 100_000)) == (422, "invalid_request")
    assert await send(deep % (id_, "NaN")) == (422, "invalid_request")
    assert await send(deep % (id_, "1" * 5_000)) == (422, "invalid_request")
    assert await send(b'{"selector": {"ids": ["\xff"]}}') == (422, "invalid_request")
    assert await send(b" " * 50_000_000) == (413, "body_too_large")
    assert await statuses(pool) == ["open"]
