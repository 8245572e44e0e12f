"""Requeueing, discarding, restoring and purging over HTTP: what is answered, and what is true afterwards."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from outbox.admin import Role
from outbox.postgres.pool import Pool, open_pool
from tests.admin.conftest import MakeClient
from tests.dead_letters.repairs import bury, outbox, park, statuses


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


async def ask(client: httpx.AsyncClient, verb: str, selector: Any, **more: Any) -> httpx.Response:
    """A change of what `selector` says: ids, or a selector."""
    if isinstance(selector, list):
        selector = {"ids": selector}
    return await client.post(f"/{verb}", json={"selector": selector, **more})


async def confirmed(client: httpx.AsyncClient, verb: str, selector: Any, **more: Any) -> httpx.Response:
    """A change that a dry run has preceded."""
    token = (await ask(client, verb, selector, dry_run=True, **more)).json()["confirm_token"]
    return await ask(client, verb, selector, confirm_token=token, **more)


def outcomes(answer: httpx.Response) -> dict[str, str]:
    """What came of each id."""
    assert answer.status_code == 200, answer.text
    return {item["id"]: item["outcome"] for item in answer.json()["items"]}


def problem(answer: httpx.Response) -> tuple[int, str]:
    """The status and the code of a problem."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    return answer.status_code, answer.json()["code"]


async def audited(pool: Pool) -> list[tuple[str, str, Any]]:
    """What the audit tells: action, target and details, oldest first."""
    rows = await pool.fetch("select action, target, details from outbox_audit order by id")
    return [(row["action"], row["target"], json.loads(row["details"])) for row in rows]


async def test_each_of_a_few_ids_is_answered_at_once(pool: Pool, operator: httpx.AsyncClient) -> None:
    [one, two], parked = await bury(pool, 2), await park(pool)
    await ask(operator, "discard", [two])
    answer = await ask(operator, "requeue", [parked, one, two, "999", "no id", "outbox-999", "٣"], reason="fixed")
    assert outcomes(answer) == {
        parked: "requeued",
        one: "requeued",
        two: "skipped",
        "999": "not-found",
        "no id": "not-found",
        "outbox-999": "not-found",
        "٣": "not-found",
    }
    assert answer.json()["counts"] == {"requeued": 2, "skipped": 1, "not-found": 4}
    assert answer.json()["items"][2]["reason"] == "already discarded"
    assert len(await outbox(pool)) == 2
    action, target, details = (await audited(pool))[-1]
    assert (action, target) == ("dlq.requeue", "7 dead letters")
    assert details["counts"] == {"requeued": 2, "skipped": 1, "not-found": 4}
    assert details["selector"]["ids"][:2] == [parked, one]


async def test_what_was_discarded_is_restored_and_what_was_purged_is_gone(
    pool: Pool, operator: httpx.AsyncClient, administrator: httpx.AsyncClient
) -> None:
    ids = await bury(pool, 3)
    assert outcomes(await ask(operator, "discard", ids)) == dict.fromkeys(ids, "discarded")
    assert outcomes(await ask(operator, "restore", ids[:1])) == {ids[0]: "restored"}
    answer = await confirmed(administrator, "discard", ids, purge=True, reason="they are tests")
    assert outcomes(answer) == {ids[0]: "refused", ids[1]: "purged", ids[2]: "purged"}
    assert await statuses(pool) == ["open"]


async def test_a_filter_becomes_an_operation_after_a_dry_run(pool: Pool, operator: httpx.AsyncClient) -> None:
    await bury(pool, 12, fingerprint="f1")
    await bury(pool, 3, fingerprint="f2", queue="other")
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
    assert (shown["id"], shown["state"], shown["total"], shown["counts"]) == ("1", "running", 12, {"pending": 12})
    assert (shown["reason"], shown["requested_by"]) == ("fixed", "a operator")
    assert (await operator.get("/operations/1")).json()["total"] == 12
