"""Changes that are asked for twice, or by many at once: made once."""

import asyncio
import signal
import sys
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from outbox.admin import Role
from outbox.admin.repairs import once as keys
from outbox.postgres.pool import Pool, open_pool
from tests.admin.repairing import ask, audited, outcomes, problem
from tests.admin.support import MakeClient
from tests.dead_letters.repairs import add_dead_letters, outbox, statuses

REPLAYED = "idempotency-replayed"


@pytest.fixture
async def pool(database: str) -> AsyncIterator[Pool]:
    """Connections of the test's own."""
    opened = await open_pool(database, size=5, application_name="tests")
    yield opened
    await opened.close()


async def keyed(client: httpx.AsyncClient, verb: str, ids: list[str], key: str = "a-key", **more: object) -> httpx.Response:
    """A change under an idempotency key."""
    body = {"selector": {"ids": ids}, **more}
    return await client.post(f"/{verb}", json=body, headers={"idempotency-key": key})


async def test_of_twenty_concurrent_requeues_of_one_dead_letter_one_succeeds(pool: Pool, make_client: MakeClient) -> None:
    [id_] = await add_dead_letters(pool)
    clients = [make_client() for _ in range(20)]
    answers = await asyncio.gather(*(ask(client, "requeue", [id_]) for client in clients))
    assert Counter(outcomes(answer)[id_] for answer in answers) == {"requeued": 1, "skipped": 19}
    assert len(await outbox(pool)) == 1


async def test_of_a_concurrent_requeue_and_discard_one_succeeds(pool: Pool, operator: httpx.AsyncClient) -> None:
    ids = await add_dead_letters(pool, 10)
    asked = [ask(operator, verb, [id_]) for id_ in ids for verb in ("requeue", "discard")]
    answers = [outcomes(answer) for answer in await asyncio.gather(*asked)]
    for requeued, discarded in zip(answers[::2], answers[1::2], strict=True):
        assert sorted([*requeued.values(), *discarded.values()]) in (["requeued", "skipped"], ["discarded", "skipped"])
    assert len(await outbox(pool)) == (await statuses(pool)).count("requeued")


async def test_a_request_repeated_with_its_key_gets_the_same_response(pool: Pool, operator: httpx.AsyncClient) -> None:
    ids = await add_dead_letters(pool)
    first, again = await keyed(operator, "discard", ids), await keyed(operator, "discard", ids)
    assert (first.content, first.status_code) == (again.content, again.status_code)
    assert (first.headers.get(REPLAYED), again.headers[REPLAYED]) == (None, "true")
    assert [action for action, _, _ in await audited(pool)] == ["dlq.discard"]
    operation = await keyed(operator, "requeue", ids, key="another", rate_per_second=1)
    again = await keyed(operator, "requeue", ids, key="another", rate_per_second=1)
    assert (again.status_code, again.headers["location"], again.headers[REPLAYED]) == (
        202,
        operation.headers["location"],
        "true",
    )


async def test_a_key_belongs_to_one_request_of_one_principal(
    pool: Pool, operator: httpx.AsyncClient, make_client: MakeClient
) -> None:
    ids = await add_dead_letters(pool, 2)
    await keyed(operator, "discard", ids[:1])
    assert problem(await keyed(operator, "discard", ids)) == (422, "key_reused")
    assert problem(await keyed(operator, "restore", ids[:1])) == (422, "key_reused")
    assert outcomes(await keyed(make_client(Role.ADMIN), "discard", ids)) == {ids[0]: "skipped", ids[1]: "discarded"}


@pytest.mark.parametrize("key", ["", "x" * 201, "two words", "sn\u00f6"])
async def test_a_key_must_be_printable_ascii_without_spaces(pool: Pool, operator: httpx.AsyncClient, key: str) -> None:
    answer = await operator.post("/discard", json={"selector": {"ids": ["1"]}}, headers=[(b"idempotency-key", key.encode())])
    assert problem(answer) == (422, "invalid_request")


async def test_of_many_concurrent_requests_with_one_key_one_is_applied(pool: Pool, make_client: MakeClient) -> None:
    ids = await add_dead_letters(pool, 50)
    clients = [make_client() for _ in range(10)]
    answers = await asyncio.gather(*(keyed(client, "requeue", ids) for client in clients))
    done = [answer for answer in answers if answer.status_code == 200]
    assert {answer.content for answer in done} == {done[0].content}
    assert sum(REPLAYED not in answer.headers for answer in done) == 1
    assert {problem(answer) for answer in answers if answer.status_code != 200} <= {(409, "request_running")}
    assert (len(await outbox(pool)), len(await audited(pool))) == (50, 1)


async def test_a_failed_request_releases_its_key(pool: Pool, operator: httpx.AsyncClient) -> None:
    body: dict[str, Any] = {"selector": {"filter": {}}}
    answer = await operator.post("/discard", json=body, headers={"idempotency-key": "a-key"})
    assert problem(answer) == (428, "confirmation_required")
    assert outcomes(await keyed(operator, "discard", await add_dead_letters(pool))) == {"1": "discarded"}


async def test_the_key_of_a_crashed_process_is_taken_over(pool: Pool, operator: httpx.AsyncClient) -> None:
    ids = await add_dead_letters(pool)
    await keyed(operator, "discard", ids)
    await pool.execute(
        "update outbox_idempotency set status = null, headers = null, body = null, held_until = now() + interval '1 hour'"
    )
    await ask(operator, "restore", ids)
    assert problem(await keyed(operator, "discard", ids)) == (409, "request_running")
    await pool.execute("update outbox_idempotency set held_until = now()")
    assert problem(await keyed(operator, "discard", [*ids, "2"])) == (422, "key_reused")
    answer = await keyed(operator, "discard", ids)
    assert (outcomes(answer), answer.headers.get(REPLAYED)) == ({ids[0]: "discarded"}, None)


async def test_a_request_of_a_killed_process_is_applied_once_under_its_key(
    database: str, pool: Pool, operator: httpx.AsyncClient
) -> None:
    [id_] = await add_dead_letters(pool)
    dying = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.admin.dying_service", database, id_, "a-key", cwd=Path(__file__).parents[2]
    )
    async with asyncio.timeout(60):
        assert await dying.wait() == -signal.SIGKILL
    assert problem(await keyed(operator, "requeue", [id_])) == (409, "request_running")
    await pool.execute("update outbox_idempotency set held_until = now()")
    assert outcomes(await keyed(operator, "requeue", [id_])) == {id_: "requeued"}
    assert (await keyed(operator, "requeue", [id_])).headers[REPLAYED] == "true"
    assert (len(await outbox(pool)), len(await audited(pool))) == (1, 1)


async def test_a_process_that_lost_its_key_changes_nothing(
    pool: Pool, operator: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = await add_dead_letters(pool)
    store = keys.IdempotencyLock.store

    async def late(self: keys.IdempotencyLock, *given: object) -> None:
        await pool.execute("update outbox_idempotency set token = $1", uuid.uuid4())
        await store(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(keys.IdempotencyLock, "store", late)
    assert problem(await keyed(operator, "requeue", ids)) == (409, "request_running")
    assert (await statuses(pool), await outbox(pool), await audited(pool)) == (["open"], [], [])
    assert await pool.fetchval("select count(*) from outbox_idempotency") == 1
