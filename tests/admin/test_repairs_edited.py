"""Edits over HTTP: of the version that was read, as the queue's consumer would take it."""

import base64
import json
import time
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from typing import Any

import httpx
import pytest

from outbox.admin import Admin
from outbox.admin.repairs import edits
from outbox.admin.repairs import routes as changing
from outbox.admin.repairs.edits import SchemaViolation, find_violations
from outbox.postgres.pool import Pool, open_pool
from outbox.transports.memory import MemoryBroker
from tests.admin.repairing import ask, audited, outcomes, problem
from tests.admin.support import client_of, serving
from tests.dead_letters.repairs import QUEUE, add_dead_letters, outbox, park, statuses

ORDER = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}}},
    "required": ["id"],
    "$defs": {"Line": {"type": "object", "properties": {"amount": {"type": "number", "minimum": 0}}}},
}


@pytest.fixture
async def pool(database: str) -> AsyncIterator[Pool]:
    """Connections of the test's own."""
    opened = await open_pool(database, size=5, application_name="tests")
    yield opened
    await opened.close()


async def consume(
    pool: Pool,
    schema: object,
    *,
    worker: str = "w1",
    queue: str = QUEUE,
    binding_key: str = "",
    alive: bool = True,
    event: Mapping[str, int] | None = None,
) -> None:
    """A worker with a consumer of `queue` that takes bodies of that schema, and of an event of those versions."""
    consumer = {"queue": queue, "binding_key": binding_key} | ({} if schema is None else {"body": schema})
    consumer |= {} if event is None else {"event": event}
    await pool.execute(
        "insert into outbox_component (id, kind, name, host, process_id, version, every, consumers, seen_at) "
        "values ($1, 'worker', $1, 'here', 1, '1', '10 seconds', $2::jsonb, now() - make_interval(days => $3))",
        worker,
        json.dumps([consumer]),
        0 if alive else 1,
    )


async def edited(client: httpx.AsyncClient, id_: str, *, version: int = 1, **edit: Any) -> httpx.Response:
    """A requeue with an edit, and its options."""
    more = {name: edit.pop(name) for name in ("force", "destination") if name in edit}
    return await ask(client, "requeue", [id_], edit={"version": version, **edit}, **more)


async def sent(pool: Pool) -> list[tuple[bytes, str | None, Any]]:
    """What was requeued: bodies, their kinds, and headers."""
    return [
        (row["body"], row["content_type"], None if row["headers"] is None else json.loads(row["headers"]))
        for row in await outbox(pool)
    ]


@pytest.mark.parametrize(
    ("edit", "body", "kind"),
    [
        ({"body": {"id": 8}}, b'{"id": 8}', "application/json"),
        ({"body": None}, b"null", "application/json"),
        ({"body": '{"id":  9}', "encoding": "text"}, b'{"id":  9}', "application/json"),
        ({"body": base64.b64encode(b"\xff\0").decode(), "encoding": "base64"}, b"\xff\0", "application/json"),
    ],
)
async def test_a_body_is_json_text_or_bytes(
    pool: Pool, operator: httpx.AsyncClient, edit: dict[str, Any], body: bytes, kind: str
) -> None:
    [id_] = await add_dead_letters(pool, headers='{"a": 1}')
    assert outcomes(await edited(operator, id_, **edit)) == {id_: "requeued"}
    assert await sent(pool) == [(body, kind, {"a": 1})]
    [(_, _, details)] = await audited(pool)
    assert details["edit"] == {"version": 1, "body": True, "headers": False}


async def test_headers_are_replaced_and_removed(pool: Pool, operator: httpx.AsyncClient) -> None:
    one, two, three = await add_dead_letters(pool, 3, headers='{"a": 1}')
    await edited(operator, one, headers={"b": [2]})
    await edited(operator, two, headers={})
    await edited(operator, three, headers={"c": 3}, encoding="text")  # of a body, of which there is none
    assert [headers for _, _, headers in await sent(pool)] == [{"b": [2]}, None, {"c": 3}]


async def test_a_parked_row_is_edited_too(pool: Pool, operator: httpx.AsyncClient) -> None:
    parked = await park(pool)
    assert outcomes(await edited(operator, parked, body={"id": 8})) == {parked: "requeued"}
    assert [body for body, _, _ in await sent(pool)] == [b'{"id": 8}']


async def test_an_edit_of_an_outdated_version_is_a_conflict(pool: Pool, operator: httpx.AsyncClient) -> None:
    [id_] = await add_dead_letters(pool, version=3)
    answer = await edited(operator, id_, version=2, body={"id": 8})
    assert problem(answer) == (409, "version_conflict")
    assert answer.json()["version"] == 3
    assert await statuses(pool) == ["open"]
    assert outcomes(await edited(operator, id_, version=3, body={"id": 8})) == {id_: "requeued"}
    assert outcomes(await edited(operator, id_, version=4, body={"id": 9})) == {id_: "skipped"}
    assert outcomes(await edited(operator, "999", body={"id": 9})) == {"999": "not_found"}


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        ({"headers": {"X-Outbox-Attempt": 1}}, "header_locked"),
        ({"headers": {"a": "\0"}}, "invalid_edit"),
        ({"headers": {"a": "\ud800"}}, "invalid_request"),
        ({"body": "!", "encoding": "base64"}, "invalid_edit"),
        ({"body": "\ud800", "encoding": "text"}, "invalid_request"),
    ],
)
async def test_an_edit_that_cannot_be_sent_is_rejected(
    pool: Pool, operator: httpx.AsyncClient, edit: dict[str, Any], code: str
) -> None:
    [id_] = await add_dead_letters(pool)
    content = json.dumps({"selector": {"ids": [id_]}, "edit": {"version": 1, **edit}})
    answer = await operator.post("/requeue", content=content, headers={"content-type": "application/json"})
    assert problem(answer) == (422, code)
    assert await statuses(pool) == ["open"]


async def test_a_body_that_violates_the_consumers_schema_is_rejected_with_the_paths(
    pool: Pool, operator: httpx.AsyncClient
) -> None:
    [id_] = await add_dead_letters(pool)
    await consume(pool, ORDER)
    answer = await edited(operator, id_, body={"id": "seven", "lines": [{"amount": 1}, {"amount": -1}]})
    assert problem(answer) == (422, "invalid_edit")
    assert {error["field"] for error in answer.json()["errors"]} == {"id", "lines.1.amount"}
    answer = await edited(operator, id_, body="{", encoding="text")
    assert answer.json()["errors"] == [{"field": "body", "message": "not valid JSON"}]
    dry = await ask(operator, "requeue", [id_], edit={"version": 1, "body": {}}, dry_run=True)
    assert problem(dry) == (422, "invalid_edit")
    assert await statuses(pool) == ["open"]
    assert outcomes(await edited(operator, id_, body='{"id": 7}', encoding="text")) == {id_: "requeued"}


async def test_force_sends_a_body_that_violates_the_schema(pool: Pool, operator: httpx.AsyncClient) -> None:
    [id_] = await add_dead_letters(pool)
    await consume(pool, ORDER)
    assert outcomes(await edited(operator, id_, body={}, force=True)) == {id_: "requeued"}


@pytest.mark.parametrize(
    "others",
    [
        pytest.param([{"queue": "other"}], id="the consumer of another queue"),
        pytest.param([{"alive": False}], id="a worker that is lost"),
        pytest.param([{}, {"schema": None}], id="a worker that takes anything"),
        pytest.param([{}, {"schema": {"type": "string"}}], id="a worker of another release"),
    ],
)
async def test_a_body_that_one_running_consumer_accepts_is_sent(
    pool: Pool, operator: httpx.AsyncClient, others: list[dict[str, Any]]
) -> None:
    [id_] = await add_dead_letters(pool)
    for number, other in enumerate(others):
        await consume(pool, other.pop("schema", ORDER), worker=f"w{number}", **other)
    assert outcomes(await edited(operator, id_, body="text")) == {id_: "requeued"}


async def test_a_body_must_match_a_consumer_of_every_bound_queue(pool: Pool, operator: httpx.AsyncClient) -> None:
    [id_] = await add_dead_letters(pool)
    await consume(pool, {"type": "object"}, worker="w1", queue="shipping", binding_key="order.*")
    await consume(pool, ORDER, worker="w2", queue="billing", binding_key="order.#")
    await consume(pool, {"type": "string"}, worker="w3", queue="elsewhere", binding_key="invoice.*")
    await pool.execute(
        "insert into outbox_subscription (exchange, queue, binding_key) "
        "values ('outbox', 'shipping', 'order.*'), ('outbox', 'billing', 'order.#'), ('outbox', 'elsewhere', 'invoice.*')"
    )
    by_key: dict[str, Any] = {"destination": "original_routing"}
    answer = await edited(operator, id_, body={"id": "seven"}, **by_key)
    assert problem(answer) == (422, "invalid_edit")
    assert "billing" in answer.json()["detail"]
    parked = await park(pool)
    assert problem(await edited(operator, parked, body={"id": "seven"})) == (422, "invalid_edit")
    assert outcomes(await edited(operator, id_, body={"id": 7}, **by_key)) == {id_: "requeued"}


V2 = {"version": 2, "oldest": 1}


@pytest.mark.parametrize(
    ("headers", "edit", "found"),
    [
        pytest.param('{"event-version": 1}', {"body": {"id": 7}}, "version 1", id="an older message"),
        pytest.param('{"event-version": 2}', {"body": {"id": 7}, "headers": {"a": 1}}, "no version", id="the header is lost"),
        pytest.param('{"event-version": 2}', {"headers": {"a": 1}}, "no version", id="the header is lost, with the old body"),
        pytest.param(None, {"body": {"id": 7}, "headers": {"event-version": 3}}, "version 3", id="a version unknown so far"),
        pytest.param(None, {"body": {"id": 7}}, "no version", id="no version"),
        pytest.param(None, {"headers": {"event-version": "new"}}, "version new", id="a version that is none"),
    ],
)
async def test_an_edit_that_consumers_would_read_as_another_version_is_rejected(
    pool: Pool, operator: httpx.AsyncClient, headers: str | None, edit: dict[str, Any], found: str
) -> None:
    [id_] = await add_dead_letters(pool, headers=headers)
    await consume(pool, ORDER, event=V2)
    answer = await edited(operator, id_, **edit)
    assert problem(answer) == (422, "invalid_edit")
    mismatch = f"consumers of {QUEUE} read version 2 of the event, but the message has {found}"
    assert answer.json()["detail"].startswith(mismatch)
    assert answer.json()["errors"] == [{"field": "headers.event-version", "message": mismatch}]
    assert await statuses(pool) == ["open"]
    assert outcomes(await edited(operator, id_, **edit, force=True)) == {id_: "requeued"}


@pytest.mark.parametrize(
    ("headers", "edit", "event"),
    [
        pytest.param('{"event-version": "2"}', {"body": {"id": 7}}, V2, id="of the version, as text"),
        pytest.param('{"event-version": 1}', {"body": {"id": 7}, "headers": {"event-version": 2}}, V2, id="the edit raises it"),
        pytest.param('{"event-version": 1}', {"headers": {"event-version": 2}}, V2, id="only the version was wrong"),
        pytest.param('{"event-version": 1}', {"headers": {"event-version": 1, "a": 2}}, V2, id="other headers"),
        pytest.param(None, {"body": {"id": 7}}, {**V2, "default_version": 2}, id="without a version, it is that one"),
    ],
)
async def test_an_edit_of_the_version_that_consumers_read_is_sent(
    pool: Pool, operator: httpx.AsyncClient, headers: str | None, edit: dict[str, Any], event: Mapping[str, int]
) -> None:
    [id_] = await add_dead_letters(pool, headers=headers)
    await consume(pool, ORDER, event=event)
    assert outcomes(await edited(operator, id_, **edit)) == {id_: "requeued"}


async def test_the_schema_of_the_messages_own_version_decides(pool: Pool, operator: httpx.AsyncClient) -> None:
    """During a deploy, workers of two releases read the queue."""
    [id_] = await add_dead_letters(pool, headers='{"event-version": 1}')
    await consume(pool, {"type": "string"}, worker="new", event=V2)
    await consume(pool, ORDER, worker="old", event={"version": 1, "oldest": 1})
    assert problem(await edited(operator, id_, body="text")) == (422, "invalid_edit")
    assert outcomes(await edited(operator, id_, body={"id": 7})) == {id_: "requeued"}


async def test_bindings_that_workers_report_are_used_if_the_broker_reports_none(database: str, pool: Pool) -> None:
    [id_] = await add_dead_letters(pool)
    await consume(pool, ORDER, queue="billing", binding_key="order.#")
    async with serving(Admin(database, broker=MemoryBroker())) as app, client_of(app) as operator:
        by_key: dict[str, Any] = {"destination": "original_routing"}
        assert problem(await edited(operator, id_, body={"id": "seven"}, **by_key)) == (422, "invalid_edit")
        assert outcomes(await edited(operator, id_, body={}, force=True, **by_key)) == {id_: "requeued"}


DOUBLING = {f"d{depth}": {"allOf": [{"$ref": f"#/$defs/d{depth + 1}"}] * 2} for depth in range(40)}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"$ref": "#"},
        {"$ref": "#/$defs/d0", "$defs": {**DOUBLING, "d40": True}},
        {"type": "no such type"},
        {"properties": 7},
        {"required": 7},
    ],
    ids=lambda schema: str(schema)[:40],
)
async def test_a_schema_that_cannot_be_evaluated_accepts_everything(schema: dict[str, Any]) -> None:
    assert await find_violations(schema, {"a": "x"}) is None  # to follow it to its end would take for ever


class Stalled(dict[str, object]):
    """An object that other work of the machine delays whenever it is looked at."""

    def __contains__(self, key: object) -> bool:
        time.sleep(0.1)
        return super().__contains__(key)


async def test_a_busy_machine_accepts_no_body_that_does_not_match(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edits, "CHECK_TIMEOUT", timedelta(milliseconds=50))
    schema = {"required": ["order"], "properties": {"order": {"type": "integer"}}}
    assert await find_violations(schema, Stalled(order="eight"))
    assert await find_violations(schema, Stalled(order=8)) == []


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": "^(a+)+$"},
        {"patternProperties": {"^(a+)+$": {"type": "integer"}}},
        {"patternProperties": {"^(a+)+$": True}, "additionalProperties": False},
        {"patternProperties": {"^(a+)+$": True}, "unevaluatedProperties": False},
        {"properties": {"a": {"pattern": "^(a+)+$"}}},
        {"uniqueItems": True},
    ],
    ids=str,
)
async def test_regular_expressions_of_a_schema_are_ignored(schema: dict[str, Any]) -> None:
    bodies: tuple[Any, ...] = ("a" * 50 + "!", {"a" * 50 + "!": 1, "a": "a" * 50 + "!"}, [{}] * 3)
    for body in bodies:
        assert await find_violations(schema, body) == []


async def test_ambiguous_keywords_of_a_schema_reject_nothing() -> None:
    alike = [{"type": "object", "properties": {"id": {"type": "integer"}}}, {"type": "object", "required": ["id"]}]
    assert await find_violations({"oneOf": alike}, {"id": 1}) == []
    assert await find_violations({"not": {"pattern": "^a"}}, "b") == []
    assert await find_violations({"if": {"pattern": "^a"}, "then": {"minLength": 9}}, "b") == []
    assert await find_violations({"oneOf": alike}, "text") != []


async def test_at_most_20_schema_violations_are_reported() -> None:
    found = await find_violations({"items": {"type": "integer"}}, ["x" * 1_000] * 100)
    assert found is not None
    assert len(found) == 20
    assert found[3] == SchemaViolation("3", found[3].message)
    assert len(found[3].message) == 300


async def test_concurrent_edits_get_a_version_conflict(
    pool: Pool, operator: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    [id_] = await add_dead_letters(pool)
    checked: Any = vars(changing)["prepare_edit"]

    async def overtaken(*given: Any) -> Any:
        edit = await checked(*given)
        await pool.execute("update outbox_dead_letter set version = 2")
        return edit

    monkeypatch.setattr(changing, "prepare_edit", overtaken)
    answer = await edited(operator, id_, body={"id": 8})
    assert problem(answer) == (409, "version_conflict")
    assert answer.json()["version"] == 2
    assert (await statuses(pool), await audited(pool)) == (["open"], [])
