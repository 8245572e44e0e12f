"""Operators mark groups of dead letters as fixed or muted; what fails later reopens them."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from outbox.admin import cache as remembered
from outbox.admin.verdict import routes as verdict
from outbox.core.outcome import Failure
from outbox.postgres.archive import PostgresArchive
from outbox.postgres.pool import Pool, open_pool
from tests.admin.letters import answered
from tests.dead_letters.failed_messages import FAILURE, TABLE, dead

OTHER = Failure("KeyError", "no such user", "")


@pytest.fixture(autouse=True)
def counted_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((remembered, "USABLE_AGE"), (remembered, "MAX_AGE"), (verdict, "MAX_AGE")):
        monkeypatch.setattr(module, name, timedelta(0))


@pytest.fixture
async def pool(database: str) -> AsyncIterator[Pool]:
    opened = await open_pool(database, size=4, application_name="tests")
    yield opened
    await opened.close()


@pytest.fixture
async def letters(pool: Pool) -> None:
    """Two groups: three letters, one of them requeued, and one of long ago."""
    now = datetime.now(UTC)
    hourly = [dead(f"m{hours}", failed_at=now - timedelta(hours=hours, minutes=30)) for hours in (0, 1, 5)]
    await PostgresArchive(pool, TABLE).record([*hourly, dead("old", queue="billing", failure=OTHER)])
    await pool.execute("update outbox_dead_letter set status = 'requeued', resolved_at = now() where message_id = 'm5'")


async def marked(operator: httpx.AsyncClient, group: str, status: str, **more: Any) -> Any:
    response = await operator.put("/dlq/groups/status", json={"id": group, "status": status, **more})
    assert response.status_code == 200, response.text
    return response.json()


async def dead_lettered(pool: Pool, message: str, failure: Failure, **fields: Any) -> None:
    await PostgresArchive(pool, TABLE).record(
        [dead(message, queue="mail", failure=failure, failed_at=datetime.now(UTC), **fields)]
    )


async def statuses(client: httpx.AsyncClient, **wanted: Any) -> dict[str, str]:
    items = (await answered(client, "/dlq/groups", status="any", **wanted))["items"]
    return {group["title"].partition(":")[0]: group["status"] for group in items}


@pytest.mark.usefixtures("letters")
async def test_a_fixed_group_reopens_when_it_fails_again(
    pool: Pool, operator: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    group = (await answered(viewer, "/dlq/groups", queue="mail"))["items"][0]
    assert (group["status"], group["mark"], group["queue"], group["versions"]) == ("open", None, "mail", [])
    mark = await marked(operator, group["id"], "fixed")
    assert (mark["marked_as"], mark["marked_by"], mark["count_since"]) == ("fixed", "a operator", 0)
    assert await statuses(viewer) == {"shop.PaymentError": "fixed", "KeyError": "open"}
    await dead_lettered(pool, "new", FAILURE)
    assert await statuses(viewer) == {"shop.PaymentError": "reopened", "KeyError": "open"}
    again = await answered(viewer, f"/dlq/groups/{group['id']}")
    assert (again["status"], again["mark"]["count_since"], again["count"]) == ("reopened", 1, 4)
    assert again["mark"]["failed_since_at"] is not None
    await marked(operator, group["id"], "open")
    assert (await answered(viewer, f"/dlq/groups/{group['id']}"))["mark"] is None
    rows = await pool.fetch("select action, target, details ->> 'status' as status from outbox_audit order by id")
    assert [tuple(row) for row in rows] == [("dlq.mark", group["id"], "fixed"), ("dlq.mark", group["id"], "open")]


async def test_failures_in_an_older_release_do_not_reopen_a_group_fixed_in_a_later_one(
    pool: Pool, operator: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    await dead_lettered(pool, "m1", replace(FAILURE, version="1.0"))
    await dead_lettered(pool, "m2", replace(FAILURE, version="1.1"))
    [group] = (await answered(viewer, "/dlq/groups"))["items"]
    assert [(each["service_version"], each["count"]) for each in group["versions"]] == [("1.1", 1), ("1.0", 1)]
    await marked(operator, group["id"], "fixed", fixed_in="1.2")
    await dead_lettered(pool, "m3", replace(FAILURE, version="1.0"))
    assert await statuses(viewer) == {"shop.PaymentError": "fixed"}
    await dead_lettered(pool, "m4", replace(FAILURE, version="1.2"))
    assert await statuses(viewer) == {"shop.PaymentError": "reopened"}
    await marked(operator, group["id"], "fixed", fixed_in="1.4")
    assert await statuses(viewer) == {"shop.PaymentError": "fixed"}
    await dead_lettered(pool, "m5", replace(FAILURE, version="1.3"))
    assert await statuses(viewer) == {"shop.PaymentError": "reopened"}, "1.3 is new: it may contain the fix"
    shown = (await answered(viewer, "/dlq"))["items"]
    assert {letter["message_id"]: letter["service_version"] for letter in shown}["m4"] == "1.2"
    detail = await answered(viewer, f"/dlq/{shown[0]['id']}")
    assert [failure["service_version"] for failure in detail["failures"]] == ["1.3"]


@pytest.mark.usefixtures("letters")
async def test_a_muted_group_is_ignored_up_to_its_limit(
    pool: Pool, operator: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    async def counted() -> str | None:
        found = (await answered(viewer, "/health/verdict"))["findings"]
        return next((each["summary"] for each in found if each["code"] == "dead_letters"), None)

    groups = (await answered(viewer, "/dlq/groups"))["items"]
    assert [group["open_count"] for group in groups] == [2, 1]
    await marked(operator, groups[0]["id"], "muted", muted_above=2)
    await marked(operator, groups[1]["id"], "muted", muted_above=1)
    assert await statuses(viewer) == {"shop.PaymentError": "muted", "KeyError": "muted"}
    assert await counted() is None
    await dead_lettered(pool, "third", FAILURE)
    assert await statuses(viewer) == {"shop.PaymentError": "reopened", "KeyError": "muted"}
    assert await counted() == "3 dead letters are open, 2 of them new"


@pytest.mark.usefixtures("letters")
async def test_groups_are_filtered_by_status(operator: httpx.AsyncClient, viewer: httpx.AsyncClient) -> None:
    first, _ = (await answered(viewer, "/dlq/groups"))["items"]
    assert await statuses(viewer, group_status="fixed") == {}
    await marked(operator, first["id"], "fixed")
    assert await statuses(viewer, group_status="fixed") == {"shop.PaymentError": "fixed"}
    assert await statuses(viewer, group_status=["open", "reopened"]) == {"KeyError": "open"}
    assert await statuses(viewer, group_status=["open", "fixed"]) == {"shop.PaymentError": "fixed", "KeyError": "open"}
    assert await statuses(viewer, group_status="fixed", group_id="another") == {}
    refused = await viewer.get("/dlq/groups", params={"by": "queue", "group_status": "open"})
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request")


async def test_parked_messages_are_a_group_that_can_be_fixed_and_reopened(
    pool: Pool, operator: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    park = (
        "insert into outbox_table (routing_key, body, tracking_ids, failed_at, last_error) "
        "values ('a', '', '[\"m\"]', clock_timestamp(), 'nack: full')"
    )
    await pool.execute(park)
    [group] = (await answered(viewer, "/dlq/groups"))["items"]
    await marked(operator, group["id"], "fixed")
    assert (await answered(viewer, f"/dlq/groups/{group['id']}"))["status"] == "fixed"
    await pool.execute(park)
    assert (await answered(viewer, f"/dlq/groups/{group['id']}"))["status"] == "reopened"
    await marked(operator, group["id"], "muted", muted_above=1)
    assert (await answered(viewer, f"/dlq/groups/{group['id']}"))["status"] == "reopened"
    await marked(operator, group["id"], "muted", muted_above=2)
    assert (await answered(viewer, f"/dlq/groups/{group['id']}"))["status"] == "muted"


async def test_a_group_names_the_handler_of_its_queue(pool: Pool, viewer: httpx.AsyncClient) -> None:
    await dead_lettered(pool, "m", FAILURE)
    await pool.execute(
        "insert into outbox_component (id, kind, name, host, process_id, version, every, activity, consumers, started_at, "
        "seen_at) values ('w', 'worker', 'mail-1', 'web-1', 1, '1', '5 s', '{}', "
        """'[{"queue": "mail", "handler": "shop.mail.send"}, {"queue": 7}, "odd"]', now(), now())"""
    )
    [group] = (await answered(viewer, "/dlq/groups"))["items"]
    assert group["handlers"] == ["shop.mail.send"]


async def test_a_group_without_dead_letters_is_not_found_and_can_be_marked(
    operator: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    response = await viewer.get("/dlq/groups/8f1c00d2aa31be47")
    assert (response.status_code, response.json()["code"]) == (404, "not_found")
    assert (await marked(operator, "8f1c00d2aa31be47", "fixed", fixed_in="7"))["fixed_in"] == "7"


@pytest.mark.parametrize(
    "wrong",
    [
        {"status": "reopened"},
        {"status": "muted"},
        {"status": "muted", "muted_above": 0},
        {"status": "fixed", "muted_above": 1},
        {"status": "open", "fixed_in": "1"},
        {"status": "fixed", "fixed_in": ""},
    ],
)
async def test_an_invalid_mark_is_rejected(operator: httpx.AsyncClient, wrong: Any) -> None:
    response = await operator.put("/dlq/groups/status", json={"id": "g", **wrong})
    assert (response.status_code, response.json()["code"]) == (422, "invalid_request")


async def test_viewers_cannot_mark_groups(viewer: httpx.AsyncClient) -> None:
    response = await viewer.put("/dlq/groups/status", json={"id": "g", "status": "fixed"})
    assert (response.status_code, response.json()["code"]) == (403, "forbidden")


async def test_a_group_gets_a_requeue_policy_that_is_audited(
    viewer: httpx.AsyncClient, operator: httpx.AsyncClient, letters: None, pool: Pool
) -> None:
    del letters
    group = (await answered(viewer, "/dlq/groups", status="any"))["items"][0]
    assert group["requeue_policy"] is None
    wanted = {"id": group["id"], "per_hour": 100}
    assert (await viewer.put("/dlq/groups/policy", json=wanted)).status_code == 403
    for wrong in (0, 100_001, "x"):
        assert (await operator.put("/dlq/groups/policy", json={**wanted, "per_hour": wrong})).status_code == 422
    answer = await operator.put("/dlq/groups/policy", json=wanted)
    assert answer.status_code == 200, answer.text
    shown = (await answered(viewer, f"/dlq/groups/{group['id']}"))["requeue_policy"]
    assert shown == answer.json()
    assert (shown["per_hour"], shown["operation_id"], shown["stopped_at"]) == (100, None, None)
    gone = await operator.put("/dlq/groups/policy", json={**wanted, "per_hour": None})
    assert gone.json()["per_hour"] is None
    assert (await answered(viewer, f"/dlq/groups/{group['id']}"))["requeue_policy"] is None
    said = await pool.fetch(
        "select details::text from outbox_audit where action = 'dlq.policy' and outcome = 'done' order by at"
    )
    assert [row[0] for row in said] == ['{"per_hour": 100}', '{"per_hour": null}']
