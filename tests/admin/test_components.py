"""`/components`, `/pauses`, `/pause` and `/resume`."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import httpx
import pytest
from pydantic import BaseModel

from outbox import Consumer, MessageRelay, Worker
from outbox.admin.components import ComponentActivity, ConsumerResponse, PauseKey
from tests.admin.rows import insert
from tests.reporting.support import at_work
from tests.support import eventually


async def component(connection: asyncpg.Connection, id_: str, kind: str = "relay", **columns: Any) -> None:
    """A component whose last heartbeat is `ago` old."""
    values = {
        "name": id_,
        "activity": "{}",
        "consumers": "[]",
        "applied": "[]",
        "ago": timedelta(0),
        "stopped": False,
        **columns,
    }
    await connection.execute(
        """
        insert into outbox_component (id, kind, name, host, process_id, version, every, activity, consumers, applied, seen_at,
            stopped_at)
        values ($1, $2, $3, 'h', 1, '1', interval '5 s', $4, $5, $6, now() - $7::interval,
            case when $8 then now() - $7::interval end)
        """,
        id_,
        kind,
        *values.values(),
    )


async def components(client: httpx.AsyncClient, **parameters: Any) -> dict[str, Any]:
    answer = await client.get("/components", params=parameters)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_the_status_follows_the_last_heartbeat(viewer: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
    await component(connection, "a")
    await component(connection, "b", ago=timedelta(seconds=15))
    await component(connection, "c", ago=timedelta(minutes=1))
    await component(connection, "d", stopped=True)
    found = (await components(viewer))["items"]
    assert [(one["name"], one["status"]) for one in found] == [
        ("a", "alive"),
        ("b", "late"),
        ("c", "lost"),
        ("d", "stopped"),
    ]
    assert [one["status_changed_at"] for one in found] == [
        found[0]["started_at"],
        found[1]["last_heartbeat_at"],
        found[2]["last_heartbeat_at"],
        found[3]["stopped_at"],
    ]


@pytest.mark.parametrize(
    "columns",
    [
        {"activity": "null"},
        {"activity": "[]", "applied": '["relay"]'},
        {"activity": '{"state": 5, "history_lost_at": "yesterday", "history_lost_count": 1}'},
        {"activity": '{"history_lost_at": "2999-01-01T00:00:00Z", "history_lost_count": "many"}'},
        {
            "activity": '{"state": "paused", "failing_queues": [{}], "paused_queues": [{}]}',
            "consumers": '[{"queue": "mail", "binding_key": "a"}]',
        },
        {"consumers": '[1, null, {"queue": 5}, {"queue": ["mail"], "binding_key": "a"}]'},
        {"consumers": '[{"queue": "mail", "binding_key": {}, "retry": "never"}]'},
        {"consumers": '[{"queue": "mail", "binding_key": "a", "retry": {"delays_seconds": ["1m"]}}]'},
    ],
)
async def test_a_heartbeat_of_an_unexpected_form_hides_nothing_else(
    viewer: httpx.AsyncClient, connection: asyncpg.Connection, columns: dict[str, str]
) -> None:
    await component(connection, "other", "worker", **columns)
    await component(connection, "mine", "worker", consumers='[{"queue": "mail", "binding_key": "a"}]')
    assert [one["name"] for one in (await components(viewer))["items"]] == ["mine", "other"]
    for path in ("/health/verdict", "/queues/mail", "/topology", "/asyncapi", "/search?q=mail"):
        answer = await viewer.get(path)
        assert answer.status_code == 200, answer.text


async def test_only_the_latest_stopped_components_are_listed(viewer: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
    await component(connection, "alive")
    for number in range(5):
        await component(connection, f"gone {number}", ago=timedelta(minutes=1 + number))
    found = (await components(viewer, ended=2))["items"]
    assert [one["name"] for one in found] == ["alive", "gone 0", "gone 1"]


async def test_schemas_are_included_on_request_and_errors_are_masked(
    viewer: httpx.AsyncClient, connection: asyncpg.Connection
) -> None:
    consumers = json.dumps([{"queue": "mail", "binding_key": "order.*", "body": {"type": "object"}}])
    failure = {"failed_at": "2026-03-01T12:00:00Z", "subject": "mail", "text": "refused: password=hunter2"}
    activity = json.dumps({"state": "running", "last_failure": failure})
    await component(connection, "w", "worker", consumers=consumers, activity=activity)
    [plain] = (await components(viewer))["items"]
    assert plain["consumers"] == [{"queue": "mail", "binding_key": "order.*"}]
    assert plain["activity"]["last_failure"]["error"]["message"] == "refused: password=***"
    [whole] = (await components(viewer, schemas=True))["items"]
    assert whole["consumers"][0]["body"] == {"type": "object"}


async def test_a_pause_lists_the_components_that_apply_it(viewer: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
    wish = [{"scope": "queue", "name": "mail"}]
    mail = json.dumps([{"queue": "mail"}])
    await component(connection, "resting", "worker", consumers=mail, applied=json.dumps(wish))
    await component(connection, "busy", "worker", consumers=mail)
    await component(connection, "silent", "worker", consumers=mail, ago=timedelta(minutes=1))
    await component(connection, "other", "worker")
    await component(connection, "stopped", "worker", consumers=mail, stopped=True)
    await connection.execute("insert into outbox_control (scope, name) values ('queue', 'mail'), ('relay', '')")
    mail_pause, relay_pause = (await viewer.get("/pauses")).json()["items"]
    assert (mail_pause["state"], {one["name"]: one["state"] for one in mail_pause["components"]}) == (
        "pending",
        {"resting": "applied", "busy": "pending", "silent": "silent"},
    )
    assert (relay_pause["state"], relay_pause["components"]) == ("unmet", [])


class Order(BaseModel):
    """The body of a message."""

    id: int


def fits(shape: type[BaseModel], reported: Any) -> bool:
    """Whether it has what the shape has, and nothing else."""
    return bool(shape.model_validate(reported).model_dump(mode="json", exclude_unset=True) == reported)


async def test_heartbeats_of_real_components_have_the_documented_shape(
    viewer: httpx.AsyncClient, database: str, connection: asyncpg.Connection
) -> None:
    async def fail(body: Order) -> None:
        raise ValueError(f"order {body.id} is not there yet")

    relay = MessageRelay(database, broker=database, name="relay-1", heartbeat_interval=0.2)
    consumers = [Consumer("order.*", fail, queue="mail", timeout=5), Consumer("order.*", fail, queue="stock")]
    worker = Worker(broker=database, consumers=consumers, name="worker-1", heartbeat_interval=0.2)
    async with at_work(relay, worker):

        async def reported() -> list[dict[str, Any]]:
            await insert(connection, routing_key="order.placed", body=b'{"id": 7}')
            found = (await components(viewer, schemas=True))["items"]
            assert any("last_failure" in one["activity"] for one in found)
            assert any("oldest_due_age_seconds" in one["activity"] for one in found)
            return list(found)

        found = await eventually(reported)
        await connection.execute("insert into outbox_control (scope, name) values ('relay', ''), ('queue', 'mail')")

        async def held() -> list[dict[str, Any]]:
            paused = (await components(viewer))["items"]
            assert all(one["applied_pauses"] for one in paused)
            return list(paused)

        found += await eventually(held)
    for one in found:
        assert fits(ComponentActivity, one["activity"]), one["activity"]
        assert all(fits(ConsumerResponse, consumer) for consumer in one["consumers"]), one["consumers"]
        assert all(fits(PauseKey, pause) for pause in one["applied_pauses"]), one["applied_pauses"]


async def test_real_components_pause_and_resume(operator: httpx.AsyncClient, database: str) -> None:
    async def handle(body: object) -> None:
        del body

    relay = MessageRelay(database, broker=database, name="relay-1", heartbeat_interval=5)
    worker = Worker(
        broker=database, consumers=[Consumer("order.*", handle, queue="mail")], name="worker-1", heartbeat_interval=5
    )
    async with at_work(relay, worker):

        async def states(expected: set[tuple[str, str]]) -> bool:
            pauses = (await components(operator))["pauses"]
            return {(pause["scope"], pause["state"]) for pause in pauses} == expected

        async def alive() -> bool:
            return {one["name"] for one in (await components(operator))["items"]} == {"relay-1", "worker-1"}

        await eventually(alive)
        for wanted in ({"scope": "relay", "reason": "moving"}, {"scope": "queue", "name": "mail"}):
            answer = await operator.post("/pause", json=wanted)
            assert (answer.status_code, answer.json()["state"]) == (200, "pending")
        await eventually(lambda: states({("relay", "applied"), ("queue", "applied")}))
        assert (await operator.post("/resume", json={"scope": "relay"})).json() == {"resumed": True, "still_paused_by": []}
        assert (await operator.post("/resume", json={"scope": "relay"})).json()["resumed"] is False
        await eventually(lambda: states({("queue", "applied")}))


async def test_a_pause_and_its_audit_entry_share_a_transaction(
    operator: httpx.AsyncClient, connection: asyncpg.Connection
) -> None:
    until = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    await operator.post("/pause", json={"scope": "queue", "name": "mail", "reason": "broken", "expires_at": until})
    await operator.post("/resume", json={"scope": "queue", "name": "mail"})
    audit = await connection.fetch("select action, target, reason, actor from outbox_audit order by id")
    assert [tuple(row) for row in audit] == [
        ("pause", "queue mail", "broken", "a operator"),
        ("resume", "queue mail", None, "a operator"),
    ]
    await connection.execute("alter table outbox_audit rename to hidden")
    refused = await operator.post("/pause", json={"scope": "relay"})
    assert refused.status_code >= 500
    assert await connection.fetchval("select count(*) from outbox_control") == 0


async def test_resuming_lists_the_pauses_that_stay_active(operator: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
    await component(connection, "a")
    await operator.post("/pause", json={"scope": "relay"})
    await operator.post("/pause", json={"scope": "relay", "name": "a"})
    answer = (await operator.post("/resume", json={"scope": "relay", "name": "a"})).json()
    assert (answer["resumed"], [(one["scope"], one["name"]) for one in answer["still_paused_by"]]) == (True, [("relay", "")])


@pytest.mark.parametrize(
    "wanted",
    [
        {"scope": "relay", "expires_at": "2020-01-01T00:00:00Z"},
        {"scope": "relay", "expires_at": "2030-01-01T00:00:00"},
        {"scope": "relay", "expires_at": 1_900_000_000},
        {"scope": "queue"},
        {"scope": "everything"},
        {"scope": "relay", "name": "a\0b"},
        {"scope": "relay", "name": "x" * 1_001},
        {"scope": "relay", "more": 1},
    ],
)
async def test_an_invalid_pause_is_refused(operator: httpx.AsyncClient, wanted: dict[str, Any]) -> None:
    answer = await operator.post("/pause", json=wanted)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert (await operator.get("/pauses")).json()["items"] == []


async def test_viewers_cannot_pause(viewer: httpx.AsyncClient) -> None:
    for path in ("/pause", "/resume"):
        answer = await viewer.post(path, json={"scope": "relay"})
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
