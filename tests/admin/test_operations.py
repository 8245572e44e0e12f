"""Operations over HTTP: their progress, their letters, and what can be done to them."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from outbox.dead_letters import DeadLetters
from outbox.maintenance import Maintenance
from outbox.postgres.pool import Pool, open_pool
from tests.admin.repairing import ask, audited, confirmed, problem
from tests.dead_letters.repairs import add_dead_letters, outbox, park
from tests.support import eventually

ALL: dict[str, Any] = {"filter": {}}


@pytest.fixture
async def pool(database: str) -> AsyncIterator[Pool]:
    """Connections of the test's own."""
    opened = await open_pool(database, size=5, application_name="tests")
    yield opened
    await opened.close()


async def finished(database: str, number: int = 1) -> None:
    """Runs the batches of an operation until none is due."""
    async with DeadLetters(database) as dead_letters:
        runner = await dead_letters.runner()
        while await runner.run_once(number):
            pass


async def shown(client: httpx.AsyncClient, number: int = 1) -> Any:
    """An operation."""
    answer = await client.get(f"/operations/{number}")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def listed(client: httpx.AsyncClient, path: str, **wanted: Any) -> tuple[list[Any], dict[str, Any]]:
    """A page: the ids of its items, and the page."""
    answer = await client.get(path, params=wanted)
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["items"]], answer.json()


async def test_maintenance_runs_an_operation_to_its_end_with_correct_counts(
    database: str, pool: Pool, operator: httpx.AsyncClient
) -> None:
    ids = await add_dead_letters(pool, 700)
    await add_dead_letters(pool, 3, queue="gone", subscribed=False)
    assert (await confirmed(operator, "requeue", ALL)).status_code == 202
    await pool.execute(
        "update outbox_dead_letter set status = 'discarded' where id = any($1::bigint[])", [int(i) for i in ids[:2]]
    )
    await pool.execute("delete from outbox_dead_letter where id = $1", int(ids[2]))

    async def is_over() -> bool:
        return not (await shown(operator))["active"]

    maintenance = Maintenance(database, enable_metrics=False)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(maintenance.run(handle_signals=False))
        await eventually(is_over)
        maintenance.stop()
    found = await shown(operator)
    assert (found["state"], found["progress"], found["settled_count"], found["remaining_seconds"]) == (
        "finished",
        1.0,
        703,
        None,
    )
    assert found["counts"] == {"requeued": 697, "skipped": 2, "not_found": 1, "refused": 3}
    assert found["items_per_second"] > 0
    assert len(await outbox(pool)) == 697


async def test_failed_items_are_listed_first(database: str, pool: Pool, operator: httpx.AsyncClient) -> None:
    ids = await add_dead_letters(pool, 4)
    gone = await add_dead_letters(pool, 2, queue="gone", subscribed=False)
    await confirmed(operator, "requeue", ALL)
    await pool.execute("update outbox_dead_letter set status = 'discarded' where id = $1", int(ids[0]))
    await finished(database)
    expected = [*gone, ids[0], *ids[1:]]
    assert (await listed(operator, "/operations/1/items"))[0] == expected
    path, seen, cursors = "/operations/1/items", [], [None]
    while True:
        found, page = await listed(operator, path, limit=2, **({} if cursors[-1] is None else {"cursor": cursors[-1]}))
        seen += found
        if page["next"] is None:
            break
        cursors.append(page["next"])
    assert seen == expected
    back, page = await listed(operator, path, limit=2, cursor=page["previous"])
    assert back == expected[2:4]
    assert (await listed(operator, path, limit=2, cursor=page["previous"]))[0] == expected[:2]
    refused, page = await listed(operator, path, outcome="refused", total=True)
    assert (refused, page["total"]) == (gone, {"value": 2, "relation": "eq"})
    assert page["items"][0]["reason"] == "the queue gone does not exist in PostgreSQL"
    assert (await listed(operator, path, outcome="purged"))[0] == []
    answer = await operator.get(path, params={"outcome": "refused", "cursor": cursors[1]})
    assert problem(answer) == (400, "cursor_mismatch")


async def test_operations_are_listed_in_pages_newest_first(pool: Pool, operator: httpx.AsyncClient) -> None:
    await add_dead_letters(pool)
    for _ in range(5):
        location = (await confirmed(operator, "requeue", ALL)).headers["location"]
        await operator.post(f"{location.removeprefix('/outbox')}/cancel")
    await confirmed(operator, "requeue", ALL)
    first, page = await listed(operator, "/operations", limit=2, total=True)
    assert (first, page["total"], page["previous"]) == (["6", "5"], {"value": 6, "relation": "eq"}, None)
    second, page = await listed(operator, "/operations", limit=2, cursor=page["next"])
    assert second == ["4", "3"]
    assert (await listed(operator, "/operations", limit=2, cursor=page["previous"]))[0] == ["6", "5"]
    last, end = await listed(operator, "/operations", limit=2, cursor=page["next"])
    assert (last, end["next"]) == (["2", "1"], None)
    assert (await listed(operator, "/operations", active=True))[0] == ["6"]
    assert problem(await operator.get("/operations", params={"active": True, "cursor": page["next"]})) == (
        400,
        "cursor_mismatch",
    )


async def test_operations_are_paused_resumed_and_cancelled_which_is_audited(
    pool: Pool, operator: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    await add_dead_letters(pool, 3)
    await confirmed(operator, "requeue", ALL)
    assert problem(await viewer.post("/operations/1/pause")) == (403, "forbidden")
    answers = [(await operator.post(f"/operations/1/{verb}")).json() for verb in ("pause", "resume", "cancel")]
    assert [answer["state"] for answer in answers] == ["paused", "running", "cancelled"]
    ended = answers[-1]
    assert (ended["settled_count"], ended["progress"], ended["items_per_second"]) == (0, 0.0, None)
    answer = await operator.post("/operations/1/resume")
    assert problem(answer) == (409, "conflict")
    assert answer.json()["detail"] == "operation 1 is cancelled and cannot be resumed"
    assert [(action, target) for action, target, _ in await audited(pool) if action.startswith("operations.")] == [
        ("operations.pause", "/outbox/operations/1/pause"),  # the viewer's
        ("operations.pause", "operation 1"),
        ("operations.resume", "operation 1"),
        ("operations.cancel", "operation 1"),
    ]
    assert (await audited(pool))[-1][2]["counts"] == {"skipped": 3}


@pytest.mark.parametrize("path", ["/operations/7", "/operations/7/items", f"/operations/{2**63 - 1}"])
async def test_an_unknown_operation_is_not_found(operator: httpx.AsyncClient, path: str) -> None:
    assert problem(await operator.get(path)) == (404, "not_found")
    assert problem(await operator.post("/operations/7/cancel")) == (404, "not_found")


@pytest.mark.parametrize("path", ["/operations/x", "/operations/0", f"/operations/{2**63}", "/operations?colour=red"])
async def test_an_invalid_operation_id_is_rejected(operator: httpx.AsyncClient, path: str) -> None:
    assert problem(await operator.get(path)) == (422, "invalid_request")


async def test_parked_messages_have_their_api_ids_in_operations(database: str, pool: Pool, operator: httpx.AsyncClient) -> None:
    parked = await park(pool)
    await confirmed(operator, "discard", ALL)
    await finished(database)
    assert (await listed(operator, "/operations/1/items"))[0] == [parked]
    assert (await shown(operator))["counts"] == {"discarded": 1}
    assert (await ask(operator, "restore", [parked])).json()["counts"] == {"not_found": 1}
