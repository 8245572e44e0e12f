"""What relays and workers tell the database about themselves."""

import json

import asyncpg

from outbox import Consumer, MessageRelay, Worker
from tests.reporting.support import Box, at_work, published
from tests.support import eventually


async def test_a_worker_writes_what_became_of_each_message(connection: asyncpg.Connection, database_url: str) -> None:
    async def handle(body: dict[str, str]) -> None:
        if body["sku"] == "bad":
            raise ValueError("no such sku")

    consumer = Consumer("order.*", handle, queue="stock", retry_delays=("0s",))
    relay = MessageRelay(database_url, broker=database_url)
    worker = Worker(broker=database_url, consumers=[consumer], name="stock-1")
    async with at_work(relay, worker):
        await eventually(lambda: connection.fetchval("select exists(select from outbox_subscription)"))
        good = await published(connection, body={"sku": "good"})
        bad = await published(connection, body={"sku": "bad"})
        await eventually(lambda: connection.fetchval("select count(*) = 3 from outbox_history where fact <> 'sent'"), timeout=5)
    rows = await connection.fetch("select * from outbox_history where queue is not null order by at")
    told = [(row["message_id"], row["fact"], row["attempt"], row["queue"], row["component"]) for row in rows]
    assert sorted(told) == sorted(
        [
            (good, "processed", 1, "stock", "stock-1"),
            (bad, "retried", 1, "stock", "stock-1"),
            (bad, "died", 2, "stock", "stock-1"),
        ]
    )
    assert [row["root_id"] for row in rows] == [row["message_id"] for row in rows]
    assert {row["error_message"] for row in rows if row["message_id"] == bad} == {"no such sku"}
    assert all(row["ran"] is not None and row["waited"] is not None for row in rows)


async def test_components_show_that_they_live_and_what_they_do(connection: asyncpg.Connection, database_url: str) -> None:
    box = Box()
    relay = MessageRelay(database_url, broker=database_url, name="relay-1")
    worker = Worker(broker=database_url, consumers=[box.consumer], name="worker-1")
    async with at_work(relay, worker):
        rows = await eventually(lambda: _running(connection))
        assert [(row["kind"], row["name"], row["stopped_at"]) for row in rows] == [
            ("relay", "relay-1", None),
            ("worker", "worker-1", None),
        ]
        [consumer] = json.loads(rows[1]["consumers"])
        assert (consumer["queue"], consumer["binding_key"]) == ("mail", "order.*")
    assert await connection.fetchval("select count(*) from outbox_component where stopped_at is not null") == 2


async def _running(connection: asyncpg.Connection) -> list[asyncpg.Record] | None:
    rows = await connection.fetch(
        "select * from outbox_component where activity ->> 'state' = 'running' and stopped_at is null order by kind"
    )
    return rows if len(rows) == 2 else None
