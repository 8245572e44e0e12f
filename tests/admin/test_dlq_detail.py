"""`GET /dlq/{id}` shows one dead letter with everything: masked, or revealed to operators, which is audited."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from outbox.admin import Admin, Role
from outbox.core.failures import FailedAttempt
from outbox.core.outcome import Failure
from outbox.masking import READ_LIMIT, Masking
from outbox.postgres.archive import PostgresArchive
from outbox.postgres.pool import Pool, open_pool
from tests.admin.letters import answered, problem
from tests.admin.support import client_of, serving
from tests.dead_letters.failed_messages import NOON, TABLE, dead

SECRET = "hunter2"
BODY = '{ "n": 9007199254740993, "f": 1.10, "password" : "hunter2", "text": "{\\"token\\": \\"hunter2\\"}", "é": "\\u00e9" }'
SHOWN = '{ "n": 9007199254740993, "f": 1.10, "password" : "***", "text": "{\\"token\\": \\"***\\"}", "é": "\\u00e9" }'
FAILURE = Failure("shop.PaymentError", "password=hunter2", "Traceback:\n  token = 'hunter2'\n", "host:7")


@pytest.fixture
async def pool(database: str) -> AsyncIterator[Pool]:
    opened = await open_pool(database, size=4, application_name="tests")
    yield opened
    await opened.close()


async def add_dead_letters(pool: Pool, body: bytes = BODY.encode(), **fields: Any) -> None:
    """One dead letter, with the id 1."""
    failures = [FailedAttempt(at=NOON, attempt=number, failure=FAILURE) for number in (1, 2)]
    headers = {"x-api-key": SECRET, "tenant": "acme", "big": 2**63 + 1}
    message = dead(
        "m1",
        body,
        **{
            "failure": FAILURE,
            "failures": failures,
            "attempt": 2,
            "headers": headers,
            "header_types": {"/big": "decimal"},
            "properties": {"app_id": "shop", "reply_to": "token=hunter2"},
            "tracking_ids": ("root", "m1"),
            "ordering_key": "order-7",
            "hlc": 2**60 + 1,
            **fields,
        },
    )
    await PostgresArchive(pool, TABLE).record([message])


async def audit(pool: Pool) -> list[tuple[str, str, str]]:
    rows = await pool.fetch("select action, target, outcome from outbox_audit order by id")
    return [tuple(row) for row in rows]


async def test_all_details_are_shown_with_secrets_masked(pool: Pool, viewer: httpx.AsyncClient) -> None:
    await add_dead_letters(pool)
    await pool.execute(
        "insert into outbox_dead_letter_edition (dead_letter_id, version, body, headers, content_type, replaced_by) "
        "values (1, 1, $1, '{\"secret\": \"hunter2\", \"a\": 1}', 'application/json', 'ann')",
        BODY.encode(),
    )
    shown = await answered(viewer, "/dlq/1")
    assert SECRET not in json.dumps(shown)
    assert shown["body"] == {
        "content_type": "application/json",
        "size": len(BODY.encode()),
        "encoding": "json",
        "content": SHOWN,
        "truncated": False,
        "masked": True,
        "access": None,
    }
    assert shown["headers"] == {"x-api-key": "***", "tenant": "acme", "big": 2**63 + 1}
    assert shown["header_types"] == {"/big": "decimal"}
    assert shown["properties"]["app_id"] == "shop"
    assert shown["error"]["message"] == "password=***"
    assert shown["error"]["traceback"] == "Traceback:\n  token = ***\n"
    assert [failed["attempt"] for failed in shown["failures"]] == [1, 2]
    assert (shown["tracking_ids"], shown["root_id"], shown["ordering_key"]) == (["root", "m1"], "root", "order-7")
    assert (shown["hlc"], shown["version"], shown["revealed"]) == (str(2**60 + 1), 1, False)
    [edition] = shown["editions"]
    assert (edition["body"]["content"], edition["headers"], edition["replaced_by"]) == (SHOWN, {"secret": "***", "a": 1}, "ann")
    assert shown["links"]["chain"] == "chains/m1"
    assert await audit(pool) == []


async def test_operators_can_reveal_values_which_is_audited(
    pool: Pool, operator: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    await add_dead_letters(pool)
    shown = await answered(operator, "/dlq/1", reveal="true")
    assert (shown["body"]["content"], shown["body"]["masked"], shown["revealed"]) == (BODY, False, True)
    assert shown["headers"]["x-api-key"] == SECRET
    assert shown["error"]["message"] == "password=hunter2"
    assert await audit(pool) == [("dlq.reveal", "1", "done")]
    assert await problem(viewer, "/dlq/1", reveal="true") == (403, "forbidden")
    assert [(action, outcome) for action, _, outcome in await audit(pool)] == [("dlq.reveal", "done"), ("dlq.reveal", "denied")]


async def test_nothing_is_revealed_without_an_audit_entry(pool: Pool, operator: httpx.AsyncClient) -> None:
    await add_dead_letters(pool)
    await pool.execute("drop table outbox_audit")
    for path in ("/dlq/1?reveal=true", "/dlq/1/body"):
        response = await operator.get(path)
        assert response.status_code == 503
        assert SECRET not in response.text


async def test_a_body_is_downloaded_unchanged_under_a_safe_name(
    pool: Pool, operator: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    body = bytes(range(256)) * 2_000
    await add_dead_letters(pool, body, content_type='text/html"; filename="x\r\nx: y')
    response = await operator.get("/dlq/1/body")
    assert response.content == body
    assert response.headers["content-type"] == "application/octet-stream"
    assert response.headers["content-disposition"] == 'attachment; filename="dead-letter-1.bin"'
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["cache-control"] == "no-store"
    assert await audit(pool) == [("dlq.download", "1", "done")]
    assert await problem(viewer, "/dlq/1/body") == (403, "forbidden")


BODIES: list[tuple[bytes, str | None, tuple[str | None, str | None], tuple[str, str]]] = [
    (b"a token=x", "text/plain", ("text", "a token=***"), ("text", "a token=x")),
    (b"a=1&token=x", "application/x-www-form-urlencoded", ("text", "a=1&token=***"), ("text", "a=1&token=x")),
    (b"<password>x</password>", "application/xml", (None, None), ("text", "<password>x</password>")),
    (b"name,password\nann,x\n", "text/csv", (None, None), ("text", "name,password\nann,x\n")),
    (b"\x00\x01", None, (None, None), ("base64", "AAE=")),
    (b"\xff\xfe", "text/plain", (None, None), ("base64", "//4=")),
    (b'{"a": 1', "application/json", (None, None), ("json", '{"a": 1')),
    (b'{"a": "\\ud800"}', None, ("json", '{"a": "\\ud800"}'), ("json", '{"a": "\\ud800"}')),
    (b"", None, ("text", ""), ("text", "")),
]


async def test_a_body_that_cannot_be_masked_is_only_shown_revealed(pool: Pool, operator: httpx.AsyncClient) -> None:
    for body, content_type, masked, revealed in BODIES:
        await pool.execute("truncate outbox_dead_letter restart identity cascade")
        await add_dead_letters(pool, body, content_type=content_type)
        shown = (await answered(operator, "/dlq/1"))["body"]
        assert (shown["encoding"], shown["content"]) == masked, body
        assert shown["masked"] == (masked != revealed)
        shown = (await answered(operator, "/dlq/1", reveal="true"))["body"]
        assert (shown["encoding"], shown["content"]) == revealed, body


async def test_a_large_body_is_cut_and_large_json_is_hidden_until_it_is_revealed(
    pool: Pool, operator: httpx.AsyncClient
) -> None:
    text = "é" * READ_LIMIT
    await add_dead_letters(pool, json.dumps(text, ensure_ascii=False).encode())
    shown = (await answered(operator, "/dlq/1"))["body"]
    assert (shown["content"], shown["truncated"], shown["size"]) == (None, True, 2 * READ_LIMIT + 2)
    shown = (await answered(operator, "/dlq/1", reveal="true"))["body"]
    assert (len(shown["content"]), shown["truncated"]) == (READ_LIMIT // 2, True)


async def test_the_outcome_of_each_requeue_and_the_operations_are_shown(pool: Pool, viewer: httpx.AsyncClient) -> None:
    await add_dead_letters(pool)
    facts: list[tuple[str, str | None]] = [("requeued", "mail"), ("died", "mail"), ("requeued", "mail"), ("died", "elsewhere")]
    facts.append(("processed", "mail"))
    facts.append(("requeued", None))
    for number, (fact, queue) in enumerate(facts):
        await pool.execute(
            "insert into outbox_history (at, fact, message_id, root_id, routing_key, queue, component) "
            "values (now() + $1 * interval '1 s', $2, 'm1', 'root', 'k', $3, 'ann')",
            number,
            fact,
            queue,
        )
    await pool.execute(
        "insert into outbox_operation (action, selector, state, finished_at) "
        "values ('requeue', '{}', 'finished', now()), ('discard', '{}', 'running', null)"
    )
    await pool.execute(
        "insert into outbox_operation_item (operation_id, position, letter, outcome) "
        "values (1, 1, '1', 'died again'), (2, 1, '1', 'pending')"
    )
    shown = await answered(viewer, "/dlq/1")
    assert [(life["outcome"], life["requeued_by"], life["queue"]) for life in shown["requeues"]] == [
        ("failed_again", "ann", "mail"),
        ("processed", "ann", "mail"),
        ("in_progress", "ann", None),
    ]
    assert shown["operation_id"] == "2"
    assert [(operation["id"], operation["outcome"]) for operation in shown["operations"]] == [
        ("2", "pending"),
        ("1", "failed_again"),
    ]
    assert shown["links"]["operation"] == "operations/2"


async def test_configured_paths_are_masked_in_the_list_and_the_detail(database: str, pool: Pool) -> None:
    masking = Masking(paths=("$.customer.email",))
    async with serving(Admin(database, masking=masking)) as app, client_of(app, Role.VIEWER) as client:
        # Written down before the place was named.
        await add_dead_letters(pool, b'{"customer": {"email": "ann@example.org", "id": 1}}')
        assert (await answered(client, "/dlq"))["items"][0]["preview"] == '{"customer": {"email": "***", "id": 1}}'
        assert (await answered(client, "/dlq/1"))["body"]["content"] == '{"customer": {"email": "***", "id": 1}}'
