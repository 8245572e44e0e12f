"""`GET /audit`: pages and filters of the audit log."""

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import httpx
import pytest

from outbox.admin import Role
from outbox.postgres.audit import AuditFilter, Position, listing
from outbox.postgres.queries import TableName
from tests.admin.support import MakeClient

FILL = """
insert into outbox_audit (at, actor, role, action, target, outcome, details)
select
    timestamptz '2026-03-01 00:00:00+00' + (n / 3) * interval '1 second', 'actor-' || n % 50, 'operator',
    'action-' || n % 60, 'target-' || n, case when n % 100 = 0 then 'denied' else 'done' end, jsonb_build_object('n', n)
from generate_series(1, $1::integer) as n
"""


@pytest.fixture
async def connection(database: str) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    connection = await asyncpg.connect(database)
    yield connection
    await connection.close()


async def _numbers(client: httpx.AsyncClient, **parameters: object) -> tuple[list[int], dict[str, object]]:
    answer = await client.get("/audit", params={key: str(value) for key, value in parameters.items()})
    assert answer.status_code == 200, answer.text
    page = answer.json()
    return [entry["details"]["n"] for entry in page["items"]], page


async def test_entries_are_listed_newest_first_and_pages_omit_none(
    connection: "asyncpg.Connection[asyncpg.Record]", operator: httpx.AsyncClient
) -> None:
    await connection.execute(FILL, 25)
    seen, page = await _numbers(operator, limit=10)
    while page["next"]:
        more, page = await _numbers(operator, limit=10, cursor=page["next"])
        seen += more
    assert seen == list(range(25, 0, -1))
    before, _ = await _numbers(operator, limit=10, cursor=page["previous"])
    assert before == list(range(15, 5, -1))


@pytest.mark.parametrize(
    ("filter_", "numbers"),
    [
        ({"actor": "actor-7"}, [107, 57, 7]),
        ({"action": "action-3", "actor": "actor-3"}, [3]),
        ({"outcome": "denied"}, [100]),
        ({"target": "target-42"}, [42]),
        ({"created_after": "2026-03-01T00:00:39Z"}, [119, 118, 117]),
        ({"created_before": "2026-03-01T01:00:01+01:00"}, [2, 1]),
    ],
)
async def test_a_filter_finds_matching_entries(
    connection: "asyncpg.Connection[asyncpg.Record]", operator: httpx.AsyncClient, filter_: dict[str, str], numbers: list[int]
) -> None:
    await connection.execute(FILL, 119)
    found, page = await _numbers(operator, total="true", **filter_)
    assert found == numbers
    assert page["total"] == {"value": len(numbers), "relation": "eq"}


async def test_an_entry_has_every_recorded_field(operator: httpx.AsyncClient, make_client: MakeClient) -> None:
    viewer = make_client(Role.VIEWER)
    denied = await viewer.get("/audit", headers={"x-request-id": "tried-it"})
    [entry] = (await operator.get("/audit", params={"outcome": "denied"})).json()["items"]
    assert entry.pop("created_at").endswith("Z")
    assert entry == {
        "id": "1",
        "actor": "a viewer",
        "role": "viewer",
        "action": "audit.list",
        "target": "/outbox/audit",
        "outcome": "denied",
        "reason": None,
        "details": {"code": "forbidden", "method": "GET"},
        "request_id": denied.headers["x-request-id"],
        "client_request_id": "tried-it",
        "address": "127.0.0.1",
    }


async def test_a_cursor_belongs_to_its_filter(
    connection: "asyncpg.Connection[asyncpg.Record]", operator: httpx.AsyncClient
) -> None:
    await connection.execute(FILL, 5)
    _, page = await _numbers(operator, limit=1)
    answer = await operator.get("/audit", params={"cursor": str(page["next"]), "actor": "actor-1"})
    assert (answer.status_code, answer.json()["code"]) == (400, "cursor_mismatch")


@pytest.mark.parametrize("place", [[10**30, 1], [-(10**30), 1], [0, 2**63], [0, -1]])
async def test_a_forged_cursor_is_refused(operator: httpx.AsyncClient, place: list[int]) -> None:
    from outbox.admin.models import Cursor

    answer = await operator.get("/audit", params={"cursor": Cursor("next", place).encode({})})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_cursor")


@pytest.mark.parametrize(
    ("filter_", "index"),
    [
        (AuditFilter(), "outbox_audit_age_idx"),
        (AuditFilter(actor="actor-7"), "outbox_audit_actor_idx"),
        (AuditFilter(action="action-3"), "outbox_audit_action_idx"),
        (AuditFilter(outcome="denied"), "outbox_audit_outcome_idx"),
        (AuditFilter(target="target-42"), "outbox_audit_target_idx"),
    ],
)
async def test_a_page_is_read_from_an_index(
    connection: "asyncpg.Connection[asyncpg.Record]", filter_: AuditFilter, index: str
) -> None:
    await connection.execute(FILL, 20_000)
    await connection.execute("update outbox_audit set outcome = 'denied' where id % 5 = 0")
    await connection.execute("analyze outbox_audit")
    [row] = await connection.fetch("select at, id from outbox_audit where id = 10000")
    for position in (None, Position(row["at"], row["id"]), Position(row["at"], row["id"], back=True)):
        statement = listing(TableName("outbox_audit"), filter_, limit=51, position=position)
        plan = "\n".join(
            line["QUERY PLAN"] for line in await connection.fetch(f"explain {statement.text}", *statement.arguments)
        )
        assert index in plan
        assert "Seq Scan" not in plan
        assert "Sort" not in plan


FAILING: list[tuple[str, dict[str, Any] | None, str, str]] = [
    ("/operations/17/pause", None, "operations.pause", "not_found"),
    ("/requeue", {"selector": {"filter": {}}}, "dlq.requeue", "confirmation_required"),
    ("/discard", {"selector": 17}, "dlq.discard", "invalid_request"),
]


@pytest.mark.parametrize(("path", "body", "action", "code"), FAILING)
async def test_a_change_that_fails_leaves_an_entry(
    operator: httpx.AsyncClient, path: str, body: object, action: str, code: str
) -> None:
    failed = await operator.post(path, json=body)
    assert failed.json()["code"] == code
    [entry] = (await operator.get("/audit", params={"outcome": "failed"})).json()["items"]
    assert (entry["actor"], entry["action"], entry["target"]) == ("a operator", action, f"/outbox{path}")
    assert entry["details"] == {"code": code, "method": "POST"}
    assert entry["request_id"] == failed.json()["request_id"]


async def test_clients_cannot_choose_the_request_id(operator: httpx.AsyncClient) -> None:
    answers = [await operator.get("/backlog", headers={"x-request-id": "of-another-client"}) for _ in range(2)]
    ids = [answer.headers["x-request-id"] for answer in answers]
    assert len(set(ids)) == 2
    assert "of-another-client" not in ids


async def test_reads_and_unknown_paths_leave_no_entry(operator: httpx.AsyncClient) -> None:
    await operator.get("/dlq/17")
    await operator.post("/nowhere")
    await operator.delete("/dlq")
    assert (await operator.get("/audit")).json()["items"] == []
