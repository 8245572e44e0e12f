"""Revealing and downloading are for operators who ask themselves, and not because a page of another site makes them."""

from collections.abc import AsyncIterator

import asyncpg
import httpx
import pytest

from outbox.admin import Admin, Role
from outbox.postgres.archive import PostgresArchive
from outbox.postgres.pool import open_pool
from tests.admin.support import client_of, serving
from tests.dead_letters.failed_messages import TABLE, dead
from tests.dead_letters.repairs import park

SECRET = "hunter2"
PATHS = ("/dlq/1?reveal=true", "/dlq/1/body", "/messages/1?reveal=true")


@pytest.fixture
async def letters(database: str) -> AsyncIterator[None]:
    pool = await open_pool(database, size=2, application_name="tests")
    await PostgresArchive(pool, TABLE).record([dead("m1", b'{"password": "hunter2"}')])
    await park(pool, body=b'{"password": "hunter2"}')
    yield
    await pool.close()


async def _audit(database: str) -> list[tuple[str, str]]:
    connection = await asyncpg.connect(database)
    try:
        rows = await connection.fetch("select action, outcome from outbox_audit order by id")
        return [tuple(row) for row in rows]
    finally:
        await connection.close()


@pytest.mark.usefixtures("letters")
@pytest.mark.parametrize(
    "headers",
    [{"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}, {"origin": "null"}, {"origin": "http://elsewhere"}],
)
async def test_other_sites_cannot_make_a_browser_reveal_values(
    operator: httpx.AsyncClient, database: str, headers: dict[str, str]
) -> None:
    for path in PATHS:
        answer = await operator.get(path, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (403, "cross_site"), path
        assert SECRET not in answer.text
    assert await _audit(database) == [("dlq.reveal", "denied"), ("dlq.download", "denied"), ("messages.reveal", "denied")]
    assert (await operator.get("/dlq/1", headers=headers)).status_code == 200


@pytest.mark.usefixtures("letters")
@pytest.mark.parametrize("headers", [{}, {"sec-fetch-site": "none"}, {"cookie": "a=b"}, {"origin": "http://service"}])
async def test_operators_reveal_values_in_their_own_requests(
    operator: httpx.AsyncClient, database: str, headers: dict[str, str]
) -> None:
    for path in PATHS:
        assert SECRET in (await operator.get(path, headers=headers)).text
    assert await _audit(database) == [("dlq.reveal", "done"), ("dlq.download", "done"), ("messages.reveal", "done")]


@pytest.mark.usefixtures("letters")
async def test_viewers_cannot_reveal_values_and_attempts_are_audited(viewer: httpx.AsyncClient, database: str) -> None:
    for path in PATHS:
        answer = await viewer.get(path)
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), path
    assert await _audit(database) == [("dlq.reveal", "denied"), ("dlq.download", "denied"), ("messages.reveal", "denied")]


@pytest.mark.usefixtures("letters")
async def test_operators_can_reveal_values_in_a_read_only_installation(database: str) -> None:
    async with serving(Admin(database, read_only=True)) as app, client_of(app, Role.OPERATOR) as client:
        assert (await client.get("/session")).json()["permissions"]["reveal"] is True
        for path in PATHS:
            assert SECRET in (await client.get(path)).text
        dry_run = await client.post("/requeue", json={"selector": {"ids": ["1"]}, "dry_run": True})
        assert (dry_run.status_code, dry_run.json()["code"]) == (403, "read_only")
    done = [entry for entry in await _audit(database) if entry[1] == "done"]
    assert done == [("dlq.reveal", "done"), ("dlq.download", "done"), ("messages.reveal", "done")]
