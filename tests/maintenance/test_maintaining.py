"""One process at a time does the duties; the others stand by."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import asyncpg
import pytest

from outbox.core.events import (
    DependencyLost,
    DependencyRestored,
    DutyDone,
    DutyFailed,
    Event,
    MaintenanceStarted,
    MaintenanceStopped,
)
from outbox.engine.lifecycle import Stopping
from outbox.engine.maintenance import LEASE, Duty, MaintenanceRunner
from outbox.errors import DatabaseUnavailableError
from outbox.postgres.pool import open_pool
from outbox.postgres.pruning import PostgresLease
from outbox.postgres.queries import TableName
from outbox.schema import ensure_outbox_schema_async
from tests.support import eventually

SHORT = timedelta(milliseconds=300)
LONG = timedelta(hours=1)


class Noting:
    """An observer that keeps its events, and a process that can be stopped."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.stopping = Stopping()

    def notify(self, event: Event) -> None:
        self.events.append(event)

    def saw(self, kind: type) -> bool:
        return any(isinstance(event, kind) for event in self.events)


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[asyncpg.Pool]:
    await ensure_outbox_schema_async(database_url)
    pool = await open_pool(database_url, size=5, application_name="tests")
    yield pool
    await pool.close()


def lease(pool: asyncpg.Pool, holder: str, lasts: timedelta = LONG) -> PostgresLease:
    return PostgresLease(pool, TableName("outbox_table"), duty="maintenance", holder=holder, lasts=lasts)


async def test_a_lease_is_held_by_one_until_it_is_released(pool: asyncpg.Pool) -> None:
    one, other = lease(pool, "one"), lease(pool, "other")
    assert await one.hold()
    assert await one.hold()
    assert not await other.hold()
    await other.release()
    assert not await other.hold()
    await one.release()
    assert await other.hold()
    assert not await one.hold()


async def test_a_lease_that_is_not_renewed_is_taken_over(pool: asyncpg.Pool) -> None:
    one, other = lease(pool, "one", SHORT), lease(pool, "other")
    assert await one.hold()
    await eventually(other.hold)
    assert not await one.hold()
    assert await pool.fetchval("select holder from outbox_lease") == "other"


async def test_a_standby_takes_over_when_the_holder_ends(pool: asyncpg.Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outbox.engine.maintenance.STANDBY", timedelta(milliseconds=20))
    one, other = Noting(), Noting()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(MaintenanceRunner(lease(pool, "one"), [], one).run(one.stopping))
        await eventually(lambda: one.saw(MaintenanceStarted))
        tasks.create_task(MaintenanceRunner(lease(pool, "other"), [], other).run(other.stopping))
        one.stopping.request()
        await eventually(lambda: other.saw(MaintenanceStarted))
        assert one.saw(MaintenanceStopped)
        other.stopping.request()
    assert await pool.fetchval("select count(*) from outbox_lease") == 0


async def test_a_process_that_loses_the_lease_stops_its_duties(pool: asyncpg.Pool) -> None:
    noting = Noting()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(MaintenanceRunner(lease(pool, "one", SHORT), [], noting, lasts=SHORT).run(noting.stopping))
        await eventually(lambda: noting.saw(MaintenanceStarted))
        await pool.execute("update outbox_lease set holder = 'thief', token = gen_random_uuid(), held_until = 'infinity'")
        await eventually(lambda: noting.saw(MaintenanceStopped))
        noting.stopping.request()
    assert await pool.fetchval("select holder from outbox_lease") == "thief"


async def test_a_duty_goes_on_in_batches_until_nothing_is_left_and_one_that_fails_stops_no_other(pool: asyncpg.Pool) -> None:
    noting, batches = Noting(), iter([10, 10, 3, 0])

    async def prune() -> int:
        return next(batches, 0)

    async def fail() -> int:
        raise ValueError("no")

    duties = [Duty(name="broken", every=LONG, work=fail), Duty(name="pruning", every=LONG, work=prune)]
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(MaintenanceRunner(lease(pool, "one"), duties, noting).run(noting.stopping))
        await eventually(lambda: noting.saw(DutyDone) and noting.saw(DutyFailed))
        noting.stopping.request()
    assert DutyDone(duty="pruning", changed=23) in noting.events


async def test_a_duty_without_work_is_done_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    noting, batches, pauses = Noting(), iter([0, 0, 0, 5, 0, 0]), list[timedelta]()

    async def work() -> int:
        changed = next(batches, None)
        if changed is None:
            noting.stopping.request()
        return changed or 0

    async def wait(stopping: Stopping, pause: timedelta) -> bool:
        if pause < LEASE / 3:
            pauses.append(pause)
        await asyncio.sleep(0)
        return stopping.requested

    monkeypatch.setattr(Stopping, "wait", wait)
    duty = Duty(name="operations", every=timedelta(seconds=1), idle=timedelta(seconds=3), work=work)
    await MaintenanceRunner(FailingLease(True), [duty], noting).run(noting.stopping)
    assert [pause.total_seconds() for pause in pauses] == [2, 3, 3, 1, 2, 3]


class FailingLease:
    """A lease whose answers are given: whether it is held, or None while the database is away. The last one stays."""

    def __init__(self, *answers: bool | None) -> None:
        self._answers = list(answers)

    async def hold(self) -> bool:
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if answer is None:
            raise DatabaseUnavailableError("no connection")
        return answer

    async def release(self) -> None:
        pass


@pytest.mark.parametrize("answers", [(None, False), (True, None, True)], ids=["in standby", "with the lease"])
async def test_the_end_of_an_outage_is_reported(monkeypatch: pytest.MonkeyPatch, answers: tuple[bool | None, ...]) -> None:
    monkeypatch.setattr("outbox.engine.maintenance.STANDBY", timedelta(milliseconds=20))
    noting = Noting()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(MaintenanceRunner(FailingLease(*answers), [], noting, lasts=SHORT).run(noting.stopping))
        try:
            await eventually(lambda: noting.saw(DependencyLost))
            await eventually(lambda: noting.saw(DependencyRestored), timeout=5)
        finally:
            noting.stopping.request()
