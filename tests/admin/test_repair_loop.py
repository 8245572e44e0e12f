"""The whole repair over HTTP, with everything that a service runs: what failed is grouped, fixed, tried, and sent again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from outbox import Consumer, MessageRelay, Publisher, Worker
from outbox.admin import Admin
from outbox.archiver import Archiver
from outbox.chains import ChainState, chain
from outbox.dead_letters import DeadLetters
from outbox.maintenance import Maintenance
from outbox.postgres.pool import Pool, open_pool
from tests.admin.repairing import ask
from tests.admin.support import client_of, serving
from tests.support import eventually

QUEUE = "orders.charge"


@pytest.fixture(params=["postgres", pytest.param("rabbitmq", marks=pytest.mark.rabbitmq)])
def broker(request: pytest.FixtureRequest, database: str) -> str:
    """The address of each broker in turn."""
    if request.param == "postgres":
        return database
    url: str = request.getfixturevalue("broker_url")
    return url


@pytest.fixture
async def pool(database: str) -> AsyncIterator[Pool]:
    """Connections of the test's own."""
    opened = await open_pool(database, size=5, application_name="tests")
    yield opened
    await opened.close()


@asynccontextmanager
async def running(database: str, broker: str, consumer: Consumer) -> AsyncIterator[None]:
    """Everything that a service runs."""
    parts: list[Any] = [
        Worker(broker=broker, db_engine_url=database, consumers=[consumer], enable_metrics=False),
        MessageRelay(db_engine_url=database, broker=broker, enable_metrics=False),
        Maintenance(database, broker=broker, enable_metrics=False),
    ]
    if broker != database:
        parts.append(Archiver(database, broker=broker, queues=[QUEUE], enable_metrics=False))
    tasks = [asyncio.create_task(part.run(handle_signals=False)) for part in parts]
    try:
        yield
    finally:
        for part in parts:
            part.stop()
        await asyncio.gather(*tasks)


@pytest.fixture
async def client(database: str, broker: str) -> AsyncIterator[httpx.AsyncClient]:
    """An operator."""
    async with serving(Admin(database, broker=broker)) as app, client_of(app) as opened:
        yield opened


async def ended(client: httpx.AsyncClient, path: str) -> Any:
    """The operation, once it has ended."""

    async def look() -> Any:
        found = (await client.get(path.removeprefix("/outbox"))).json()
        assert not found["active"], found
        return found

    return await eventually(look, timeout=90)


async def test_a_fixed_consumer_handles_requeued_messages_and_none_fails_again(
    database: str, broker: str, pool: Pool, client: httpx.AsyncClient
) -> None:
    is_fixed, seen = False, set()

    def charge(order: int) -> None:
        if not is_fixed:
            raise ValueError(f"no such order: {order}")
        seen.add(order)

    async with (
        running(database, broker, Consumer("order.placed", charge, queue=QUEUE, retry_delays=())),
        DeadLetters(db_pool=pool) as dead_letters,
    ):
        async with pool.acquire() as connection, connection.transaction():
            for number in range(12):
                await Publisher().publish(connection, "order.placed", number)

        async def all_dead() -> Any:
            groups = (await client.get("/dlq/groups")).json()["items"]
            assert [group["count"] for group in groups] == [12]
            return groups[0]

        group = await eventually(all_dead, timeout=90)
        is_fixed = True
        selector = {"group_id": group["id"]}
        plan = (await ask(client, "requeue", selector, dry_run=True)).json()
        assert (plan["count"], plan["by_queue"], plan["warnings"]) == (12, {QUEUE: 12}, [])

        asked = await ask(
            client,
            "requeue",
            selector,
            rate_per_second=20,
            canary={"count": 2},
            reason="the consumer is fixed",
            confirm_token=plan["confirm_token"],
        )
        assert asked.status_code == 202, asked.text
        operation = await ended(client, asked.headers["location"])
        assert (operation["state"], operation["counts"], operation["failed_again_count"]) == ("finished", {"requeued": 12}, 0)
        await eventually(lambda: seen == set(range(12)), timeout=90)

        async def all_handled() -> bool:
            [listed] = (await client.get("/operations")).json()["items"]
            assert listed["results"] == {
                "sent": 12,
                "waiting": 0,
                "retrying": 0,
                "handled": 12,
                "failed_again": 0,
                "unknown": 0,
                "failed": 0,
            }
            return True

        await eventually(all_handled, timeout=90)

        sample = await dead_letters.get(group["sample_id"])
        assert sample is not None

        async def second_life() -> bool:
            found = await chain(pool, sample.letter.message_id or "")
            assert found.state is ChainState.PROCESSED
            attempts = [(each.queue, [attempt.outcome for attempt in each.attempts]) for each in found.nodes[0].deliveries]
            assert attempts == [(QUEUE, ["dead_lettered", "processed"])]
            return True

        await eventually(second_life, timeout=90)
    found = await client.get("/operations/1/items")
    assert {(item["outcome"], item["result"]) for item in found.json()["items"]} == {("requeued", "handled")}


async def test_a_canary_stops_a_requeue_that_would_fail_again(
    database: str, broker: str, pool: Pool, client: httpx.AsyncClient
) -> None:
    def charge(order: int) -> None:
        raise ValueError(f"no such order: {order}")

    async with (
        running(database, broker, Consumer("order.placed", charge, queue=QUEUE, retry_delays=())),
        DeadLetters(db_pool=pool) as dead_letters,
    ):
        async with pool.acquire() as connection, connection.transaction():
            for number in range(6):
                await Publisher().publish(connection, "order.placed", number)

        async def all_dead() -> bool:
            return await dead_letters.count() == 6

        await eventually(all_dead, timeout=90)
        token = (await ask(client, "requeue", {"filter": {"queue": QUEUE}}, dry_run=True)).json()["confirm_token"]
        canary = {"count": 1, "wait_seconds": 600}
        asked = await ask(client, "requeue", {"filter": {"queue": QUEUE}}, canary=canary, confirm_token=token)
        path = asked.headers["location"].removeprefix("/outbox")

        operation = await ended(client, path)
        assert (operation["state"], operation["stop_reason"]) == ("stopped", "1 of the first 1 failed")

        async def failed_again() -> bool:
            found = (await client.get(path)).json()
            assert (found["failed_again_count"], found["results"]["failed_again"]) == (1, 1)
            return True

        await eventually(failed_again, timeout=90)
    items = (await client.get(f"{path}/items")).json()["items"]
    assert [(item["outcome"], item["result"]) for item in items] == [("failed_again", "failed_again"), *[("skipped", None)] * 5]
    assert items[0]["reason"] == "ValueError: no such order: 0"
    assert items[0]["failed_attempt_count"] == 1
