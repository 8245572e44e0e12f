"""Health: short responses in bounded time, with the reasons in the log."""

import asyncio
from datetime import timedelta

import httpx
import pytest
from fastapi import FastAPI

from outbox.admin import health_router
from outbox.fastapi import HealthChecks, checking
from outbox.schema import ensure_outbox_schema_async
from tests.servers.postgres import OwnPostgres


def _client(health: HealthChecks) -> httpx.AsyncClient:
    app = FastAPI()
    app.include_router(health_router(health))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")


async def _well() -> None:
    return


async def _broken() -> None:
    raise RuntimeError("no route to amqp://ada:hunter2@broker")


async def test_all_well_is_200() -> None:
    async with _client(HealthChecks({"database": _well})) as client:
        answer = await client.get("/outbox/health/ready")
    assert answer.status_code == 200
    assert answer.json() == {"status": "ready", "parts": {"database": "ok"}}


async def test_an_unhealthy_part_is_a_503_that_names_only_the_part(caplog: pytest.LogCaptureFixture) -> None:
    async with _client(HealthChecks({"database": _well, "broker": _broken})) as client:
        answer = await client.get("/outbox/health/ready")
    assert answer.status_code == 503
    assert answer.json() == {"status": "not_ready", "parts": {"database": "ok", "broker": "unavailable"}}
    assert "Not ready: broker: no route to amqp://ada:***@broker" in caplog.text


async def test_liveness_checks_nothing() -> None:
    async with _client(HealthChecks({"broker": _broken})) as client:
        answer = await client.get("/outbox/health/live")
    assert (answer.status_code, answer.json()) == (200, {"status": "alive"})


async def test_a_check_that_does_not_answer_times_out() -> None:
    async def hangs() -> None:
        await asyncio.Event().wait()

    health = HealthChecks({"broker": hangs}, timeout=timedelta(milliseconds=50))
    async with asyncio.timeout(30):
        report = await health.report()
    assert report.parts == {"broker": "unavailable"}


async def test_concurrent_requests_share_one_check() -> None:
    looks = 0

    async def counts() -> None:
        nonlocal looks
        looks += 1
        await asyncio.sleep(0)

    health = HealthChecks({"database": counts})
    await asyncio.gather(*(health.report() for _ in range(100)))
    assert looks == 1


async def test_a_database_without_tables_is_named_as_schema(database_url: str) -> None:
    health = HealthChecks(kept_for=timedelta(0), timeout=timedelta(seconds=30))
    async with checking(health, database_url=database_url):
        assert (await health.report()).parts == {"database": "ok", "schema": "unavailable"}
        await ensure_outbox_schema_async(database_url)
        assert (await health.report()).ready


async def test_the_broker_inside_postgresql_is_checked(database_url: str) -> None:
    health = HealthChecks(kept_for=timedelta(0), timeout=timedelta(seconds=30))
    await ensure_outbox_schema_async(database_url)
    async with checking(health, broker_url=database_url):
        assert (await health.report()).parts == {"broker": "ok"}


async def test_rabbitmq_is_checked(broker_url: str) -> None:
    health = HealthChecks(kept_for=timedelta(0), timeout=timedelta(seconds=30))
    async with checking(health, broker_url=broker_url):
        assert (await health.report()).parts == {"broker": "ok"}
    async with checking(health, broker_url="amqp://ada:hunter2@127.0.0.1:1/"):
        assert (await health.report()).parts == {"broker": "unavailable"}


async def test_a_database_that_goes_away_and_comes_back_is_noticed(own_postgres: OwnPostgres) -> None:
    health = HealthChecks(kept_for=timedelta(0), timeout=timedelta(seconds=30))
    await ensure_outbox_schema_async(own_postgres.url)
    async with checking(health, database_url=own_postgres.url):
        assert (await health.report()).ready
        await asyncio.to_thread(own_postgres.stop)
        assert (await health.report()).parts == {"database": "unavailable", "schema": "unavailable"}
        await asyncio.to_thread(own_postgres.start)
        assert (await health.report()).ready
