"""Values masked in bodies are masked in previews, dry runs and group titles too."""

from collections.abc import AsyncIterator

import httpx
import pytest

from outbox.admin import Admin, Role
from outbox.dead_letters import DeadLetters
from outbox.masking import Masking
from outbox.postgres.archive import PostgresArchive
from outbox.postgres.pool import Pool, open_pool
from tests.admin.letters import answered
from tests.admin.repairing import confirmed
from tests.admin.support import client_of, serving
from tests.dead_letters.failed_messages import TABLE, dead
from tests.dead_letters.repairs import park

SECRET = "hunter2"
LONG = b'{"pets": {"cat": "hunter2"}, "customer": {"email": "hunter2"}, "note": "' + b"n" * 500 + b'"}'


@pytest.fixture
async def pool(database: str) -> AsyncIterator[Pool]:
    opened = await open_pool(database, size=4, application_name="tests")
    yield opened
    await opened.close()


async def test_previews_are_masked_with_the_current_settings(database: str, pool: Pool) -> None:
    await PostgresArchive(pool, TABLE).record([dead("m1", LONG, content_type="application/json")])
    masking = Masking().also("pets", paths=["$.customer.email"])
    async with serving(Admin(database, masking=masking)) as app, client_of(app, Role.OPERATOR) as client:
        [line] = (await answered(client, "/dlq"))["items"]
        assert line["preview"].startswith('{"pets": "***", "customer": {"email": "***"}, "note": "nnn')
        planned = await client.post("/requeue", json={"selector": {"ids": ["1"]}, "dry_run": True})
        [sampled] = planned.json()["sample"]
        assert sampled["preview"] == line["preview"]


async def test_titles_of_groups_are_masked(pool: Pool, viewer: httpx.AsyncClient) -> None:
    await park(pool, last_error="password=hunter2 was refused")
    [group] = (await answered(viewer, "/dlq/groups"))["items"]
    assert SECRET not in str(group)
    assert "***" in group["title"]


async def test_errors_in_a_dry_run_are_masked(pool: Pool, operator: httpx.AsyncClient) -> None:
    await park(pool, last_error="password=hunter2 was refused")
    planned = await operator.post("/requeue", json={"selector": {"filter": {}}, "dry_run": True})
    assert planned.json()["by_exception"] == {"password=*** was refused": 1}
    assert planned.json()["sample"][0]["error"]["type"] == "password=*** was refused"
    assert SECRET not in planned.text


async def test_error_types_are_masked_everywhere(pool: Pool, viewer: httpx.AsyncClient) -> None:
    await pool.execute("insert into outbox_table (routing_key, body, tracking_ids) values ('k', '{}', '[\"m\"]')")
    await pool.execute("""
        insert into outbox_history (at, fact, message_id, root_id, routing_key, queue, attempt, error_type)
        values (now(), 'retried', 'm', 'm', 'k', 'mail', 1, 'password=hunter2')
    """)
    for path in ("/messages/1", "/chains/m"):
        answer = await answered(viewer, path)
        assert "password=***" in str(answer), path
        assert SECRET not in str(answer), path


async def test_reasons_of_operation_items_are_masked(
    database: str, pool: Pool, operator: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    parked = await park(pool)
    answer = await confirmed(operator, "requeue", {"filter": {}})
    async with DeadLetters(database) as dead_letters:
        await (await dead_letters.runner()).run_once()
    await pool.execute("update outbox_table set failed_at = now(), last_error = 'RefusedError: password=hunter2'")
    operation = await answered(viewer, answer.headers["location"].removeprefix("/outbox"))
    assert operation["results"]["failed_again"] == 1
    for path in ("/operations/1/items", f"/dlq/{parked}"):
        answer = await answered(viewer, path)
        assert "RefusedError: password=***" in str(answer), path
        assert SECRET not in str(answer), path
