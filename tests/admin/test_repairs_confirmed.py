"""What must be looked at first: dry runs, their tokens, and what else a token is not good for."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from outbox.admin import Role
from outbox.postgres.pool import Pool, open_pool
from tests.admin.repairing import ask, audited, outcomes, problem
from tests.admin.support import MakeClient
from tests.dead_letters.repairs import add_dead_letters, statuses

ALL: dict[str, Any] = {"filter": {}}


@pytest.fixture
async def pool(database: str) -> AsyncIterator[Pool]:
    """Connections of the test's own."""
    opened = await open_pool(database, size=5, application_name="tests")
    yield opened
    await opened.close()


async def token_for(client: httpx.AsyncClient, verb: str, selector: object, **more: object) -> str:
    """The token of a dry run."""
    token: str = (await ask(client, verb, selector, dry_run=True, **more)).json()["confirm_token"]
    return token


def reason(answer: httpx.Response) -> str:
    """Why a confirmation is required."""
    assert problem(answer) == (428, "confirmation_required")
    said: str = answer.json()["reason"]
    return said


async def test_a_filter_and_a_group_require_a_token_and_ids_do_not(pool: Pool, operator: httpx.AsyncClient) -> None:
    ids = await add_dead_letters(pool)
    assert reason(await ask(operator, "discard", ALL)) == "missing"
    assert reason(await ask(operator, "discard", {"group_id": "f1"})) == "missing"
    assert outcomes(await ask(operator, "discard", ids)) == {ids[0]: "discarded"}


async def test_a_dry_run_changes_nothing(pool: Pool, operator: httpx.AsyncClient) -> None:
    ids = await add_dead_letters(pool)
    for selector in (ids, ALL, {"group_id": "f1"}):
        assert (await ask(operator, "requeue", selector, dry_run=True)).json()["count"] == 1
    assert (await statuses(pool), await audited(pool)) == (["open"], [])


async def test_a_token_is_only_valid_for_its_request_and_its_actor(
    pool: Pool, operator: httpx.AsyncClient, make_client: MakeClient
) -> None:
    await add_dead_letters(pool)
    token = await token_for(operator, "discard", ALL)
    other = make_client(Role.ADMIN)
    assert reason(await ask(other, "discard", ALL, confirm_token=token)) == "other_actor"
    assert reason(await ask(operator, "requeue", ALL, confirm_token=token)) == "other_request"
    assert reason(await ask(operator, "discard", ALL, max_items=1, confirm_token=token)) == "other_request"
    assert reason(await ask(operator, "discard", {"group_id": "f1"}, confirm_token=token)) == "other_request"
    assert reason(await ask(operator, "discard", ALL, confirm_token="made up")) == "used"
    assert (await ask(operator, "discard", ALL, confirm_token=token, reason="another, and that is fine")).status_code == 202
    assert reason(await ask(operator, "discard", ALL, confirm_token=token)) == "used"


async def test_a_token_expires(pool: Pool, operator: httpx.AsyncClient) -> None:
    await add_dead_letters(pool)
    token = await token_for(operator, "discard", ALL)
    await pool.execute("update outbox_confirmation set expires_at = now()")
    assert reason(await ask(operator, "discard", ALL, confirm_token=token)) == "expired"


async def test_concurrent_requests_can_use_a_token_once(pool: Pool, operator: httpx.AsyncClient) -> None:
    await add_dead_letters(pool, 5)
    token = await token_for(operator, "discard", ALL)
    answers = await asyncio.gather(*(ask(operator, "discard", ALL, confirm_token=token) for _ in range(10)))
    assert sorted(answer.status_code for answer in answers) == [202] + [428] * 9
    assert await pool.fetchval("select count(*) from outbox_operation") == 1


async def test_a_changed_count_is_reported_and_nothing_changes(pool: Pool, operator: httpx.AsyncClient) -> None:
    await add_dead_letters(pool, 2)
    token = await token_for(operator, "requeue", ALL)
    [late] = await add_dead_letters(pool, queue="late")
    answer = await ask(operator, "requeue", ALL, confirm_token=token)
    assert problem(answer) == (409, "count_drifted")
    assert (answer.json()["expected"], answer.json()["found"]) == (2, 3)
    assert await pool.fetchval("select count(*) from outbox_operation") == 0
    await ask(operator, "discard", [late])
    assert (await ask(operator, "requeue", ALL, confirm_token=token)).status_code == 202


@pytest.mark.parametrize(
    "change",
    [
        pytest.param("update outbox_dead_letter set status = 'open' where id = 1", id="as many others"),
        pytest.param("update outbox_dead_letter set version = 2 where id = 2", id="one that was edited"),
        pytest.param("update outbox_dead_letter set failed_at = now() where id = 2", id="one that failed again"),
    ],
)
async def test_a_token_is_only_valid_for_the_dead_letters_of_its_dry_run(
    pool: Pool, make_client: MakeClient, change: str
) -> None:
    administrator = make_client(Role.ADMIN)
    ids = await add_dead_letters(pool, 4)
    await ask(administrator, "discard", ids[:3])
    purge = {"purge": True, "reason": "they are tests"}
    discarded = {"filter": {"status": "discarded"}}
    token = await token_for(administrator, "discard", discarded, **purge)
    assert (await ask(administrator, "discard", discarded, dry_run=True, **purge)).json()["count"] == 3
    await pool.execute(change)
    await ask(administrator, "discard", ids[3:]) if "'open'" in change else None
    answer = await ask(administrator, "discard", discarded, confirm_token=token, **purge)
    assert problem(answer) == (409, "count_drifted")
    assert (answer.json()["expected"], answer.json()["found"]) == (3, 3)
    assert await pool.fetchval("select count(*) from outbox_operation") == 0


async def test_a_token_for_ids_is_only_valid_for_the_state_of_its_dry_run(pool: Pool, make_client: MakeClient) -> None:
    administrator = make_client(Role.ADMIN)
    ids = await add_dead_letters(pool, 2)
    await ask(administrator, "discard", ids[:1])
    purge = {"purge": True, "reason": "they are tests"}
    dry = await ask(administrator, "discard", ids, dry_run=True, **purge)
    assert dry.json()["count"] == 1
    await ask(administrator, "discard", ids[1:])
    answer = await ask(administrator, "discard", ids, confirm_token=dry.json()["confirm_token"], **purge)
    assert problem(answer) == (409, "count_drifted")
    assert (answer.json()["expected"], answer.json()["found"]) == (1, 2)
    assert await statuses(pool) == ["discarded", "discarded"]


async def test_a_token_for_an_operation_by_ids_is_only_valid_for_the_state_of_its_dry_run(
    pool: Pool, make_client: MakeClient
) -> None:
    administrator = make_client(Role.ADMIN)
    ids = await add_dead_letters(pool, 101)
    await pool.execute("update outbox_dead_letter set status = 'discarded', resolved_at = now() where id > 1")
    purge = {"purge": True, "reason": "they are tests"}
    token = await token_for(administrator, "discard", ids, **purge)
    await ask(administrator, "discard", ids[:1])
    assert problem(await ask(administrator, "discard", ids, confirm_token=token, **purge)) == (409, "count_drifted")
    assert await pool.fetchval("select count(*) from outbox_operation") == 0
    token = await token_for(administrator, "discard", ids, **purge)
    assert (await ask(administrator, "discard", ids, confirm_token=token, **purge)).status_code == 202


async def test_a_purge_always_requires_a_token(pool: Pool, make_client: MakeClient) -> None:
    administrator = make_client(Role.ADMIN)
    ids = await add_dead_letters(pool, 2)
    await ask(administrator, "discard", ids)
    purge = {"purge": True, "reason": "they are tests"}
    assert reason(await ask(administrator, "discard", ids, **purge)) == "missing"
    token = await token_for(administrator, "discard", ids, **purge)
    assert reason(await ask(administrator, "discard", ids[:1], confirm_token=token, **purge)) == "other_request"
    assert outcomes(await ask(administrator, "discard", ids, confirm_token=token, **purge)) == dict.fromkeys(ids, "purged")
