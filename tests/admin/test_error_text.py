"""With `error_text=operator`, no response shows a viewer an error text."""

import json
from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI

from outbox.admin import Admin, Role
from outbox.core.failures import FailedAttempt
from outbox.core.outcome import Failure
from outbox.errors import ConfigurationError
from outbox.masking import HIDDEN
from outbox.postgres.archive import PostgresArchive
from outbox.postgres.pool import Pool, open_pool
from tests.admin.letters import answered, problem
from tests.admin.support import client_of, serving
from tests.dead_letters.failed_messages import NOON, TABLE, dead
from tests.dead_letters.repairs import park

TEXT = "sesame"
"""A secret that no masking rule recognises."""
PATHS = (
    "/dlq?status=any&facets=true",
    "/dlq/groups",
    "/dlq/1",
    "/dlq/outbox-1",
    "/messages",
    "/messages/1",
    "/chains/m1",
    "/components",
)


@pytest.fixture
async def pool(database: str) -> AsyncIterator[Pool]:
    opened = await open_pool(database, size=4, application_name="tests")
    yield opened
    await opened.close()


@pytest.fixture
async def app(database: str, pool: Pool) -> AsyncIterator[FastAPI]:
    """An admin that hides error texts from viewers, with an error text in every place that stores one."""
    failure = Failure("shop.Refused", f"{TEXT} was said", f'Traceback (most recent call last):\n  File "a.py", in b\n{TEXT}')
    failures = (FailedAttempt(at=NOON, attempt=1, failure=failure),)
    headers = {"x-outbox-exception-message": TEXT, "x-outbox-failures": json.dumps([TEXT]), "x-other": "seen"}
    await PostgresArchive(pool, TABLE).record([dead("m1", failure=failure, failures=failures, headers=headers)])
    await park(pool, last_error=f"{TEXT} was refused")
    await pool.execute(
        """
        insert into outbox_history (at, fact, message_id, root_id, routing_key, queue, attempt, error_type, error_message)
        values (now(), 'retried', 'm1', 'm1', 'k', 'mail', 1, 'E', $1)
        """,
        TEXT,
    )
    async with serving(Admin(database, error_text="operator")) as served:
        yield served


async def test_no_response_discloses_error_texts_to_viewers(app: FastAPI) -> None:
    viewer = client_of(app, Role.VIEWER)
    for path in PATHS:
        answer = await viewer.get(path)
        assert answer.status_code == 200, answer.text
        assert TEXT not in answer.text, path
    letter = (await viewer.get("/dlq/1")).json()
    assert letter["error"]["type"] == "shop.Refused"
    assert {letter["error"]["message"], letter["error"]["traceback"], letter["failures"][0]["error"]["message"]} == {HIDDEN}
    assert letter["headers"]["x-other"] == "seen"
    assert HIDDEN in (await viewer.get("/dlq")).text
    assert HIDDEN in (await viewer.get("/chains/m1")).text


async def test_a_search_does_not_disclose_error_texts_to_viewers(app: FastAPI) -> None:
    viewer, operator = client_of(app, Role.VIEWER), client_of(app, Role.OPERATOR)
    for path in ("/dlq", "/dlq/groups"):
        assert await problem(viewer, path, q=TEXT) == (403, "forbidden")
        assert (await answered(operator, path, q=TEXT))["items"]


async def test_operators_and_by_default_viewers_see_error_texts(app: FastAPI, viewer: httpx.AsyncClient) -> None:
    for client in (client_of(app, Role.OPERATOR), viewer):
        for path in ("/dlq", "/dlq/1", "/messages/1", "/chains/m1"):
            assert TEXT in (await client.get(path)).text, path


def test_an_unknown_role_for_error_texts_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="error_text"):
        Admin("postgresql://localhost/x", error_text="unknown")
