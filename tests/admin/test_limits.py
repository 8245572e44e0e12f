"""Many or slow reads of one principal delay neither other principals nor changes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta

import asyncpg
import pytest
from fastapi import FastAPI

from outbox.admin import Admin, Role
from outbox.admin import limits as limits_module
from outbox.admin.problems import Problem
from tests.admin.support import client_of, serving
from tests.support import eventually

SLOW = "/dlq/groups"
"""A request that reads the marks of groups, and waits while they are locked."""
WAITING = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%group_mark%'"


@pytest.fixture
async def app(database: str) -> AsyncIterator[FastAPI]:
    async with serving(Admin(database)) as served:
        yield served


@pytest.fixture
async def lock(database: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection in whose transaction the marks are locked."""
    connection = await asyncpg.connect(database)
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute("lock table outbox_group_mark in access exclusive mode")
    yield connection
    if not connection.is_closed():
        await transaction.rollback()
        await connection.close()


async def test_slow_reads_of_one_principal_delay_neither_repairs_nor_others(
    app: FastAPI, lock: asyncpg.Connection, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits_module, "LONGEST_WAIT", timedelta(minutes=2))
    async with AsyncExitStack() as stack:
        looking = await stack.enter_async_context(asyncpg.create_pool(database, min_size=1, max_size=1))
        viewer, operator, other = [
            await stack.enter_async_context(client_of(app, role)) for role in (Role.VIEWER, Role.OPERATOR, Role.ADMIN)
        ]
        asked = [asyncio.create_task(viewer.get(SLOW, params={"q": f"word{n}"})) for n in range(20)]

        async def held() -> bool:
            return bool(await looking.fetchval(WAITING) == 4)

        await eventually(held, timeout=60)
        async with asyncio.timeout(60):
            repaired = await operator.post("/requeue", json={"ids": ["17"]})
            seen = await other.get("/audit")
        assert (repaired.status_code, seen.status_code) == (200, 200)
        assert not any(task.done() for task in asked)
        await lock.execute("rollback")
        assert {answer.status_code for answer in await asyncio.gather(*asked)} == {200}


async def test_a_read_that_waits_too_long_gets_a_retry_after(
    app: FastAPI, lock: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits_module, "LONGEST_WAIT", limits_module.LONGEST_WAIT / 20)
    async with client_of(app, Role.VIEWER) as viewer:
        asked = [asyncio.create_task(viewer.get(SLOW, params={"q": f"word{n}"})) for n in range(8)]

        async def four_are_refused() -> bool:
            return sum(task.done() for task in asked) == 4

        await eventually(four_are_refused, timeout=60)
        for refused in [task.result() for task in asked if task.done()]:
            assert (refused.status_code, refused.json()["code"]) == (429, "too_many_requests")
            assert refused.headers["retry-after"] == "2"
        await lock.execute("rollback")
        answers = [answer.status_code for answer in await asyncio.gather(*asked)]
    assert sorted(answers) == [200] * 4 + [429] * 4


async def test_the_number_of_waiting_reads_is_limited(database: str) -> None:
    async with Admin(database, reads_per_principal=1) as admin:
        reads, release = limits_module.Reads(admin), asyncio.Event()

        async def read() -> None:
            async with reads.slot("ann"):
                await release.wait()

        async with asyncio.TaskGroup() as group:
            for _ in range(1 + limits_module.MOST_WAITING):
                group.create_task(read())
            await asyncio.sleep(0)
            with pytest.raises(Problem) as refused:
                await read()
            assert refused.value.code == "too_many_requests"
            async with reads.slot("bob"):
                release.set()
        async with reads.slot("ann"):
            pass
        assert reads._by_principal == {}


async def test_one_principal_cannot_take_all_streams(database: str) -> None:
    async with Admin(database, streams=5, streams_per_principal=2) as admin:
        from outbox.admin.events import Broadcaster

        broadcaster = admin.shared(Broadcaster)
        mine = [broadcaster.join("ann", None) for _ in range(2)]
        with pytest.raises(Problem) as refused:
            broadcaster.join("ann", None)
        assert (refused.value.code, refused.value.headers) == ("too_many_requests", {"retry-after": "5"})
        broadcaster.join("bob", None)
        broadcaster.leave(mine[0])
        broadcaster.join("ann", None)


async def test_a_problem_releases_the_slot(app: FastAPI) -> None:
    async with client_of(app, Role.VIEWER) as viewer:
        statuses = [(await viewer.get(path)).status_code for path in ("/dlq/17", "/audit", "/nowhere", "/dlq?limit=x") * 3]
        assert set(statuses) == {404, 403, 422}
        assert (await viewer.get("/dlq")).status_code == 200


async def test_authentication_does_not_wait_for_reads(database: str) -> None:
    """Looks up a cookie while reads hold all their connections."""
    async with Admin(database) as admin, AsyncExitStack() as stack:
        for _ in range(5):
            await stack.enter_async_context(admin.reading("holding a connection"))
        async with asyncio.timeout(30), admin.reading("looking for a session", for_change=True) as connection:
            assert await connection.fetchval("select 1") == 1


async def test_each_transaction_has_a_limit_for_standing_still(database: str) -> None:
    async with Admin(database) as admin:
        for opened in (admin.reading("reading"), admin.reading("reading first", for_change=True), admin.changing("changing")):
            async with opened as connection:
                assert await connection.fetchval("show idle_in_transaction_session_timeout") == "1min"
