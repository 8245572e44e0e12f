"""Parts next to an application: restarted after a crash, part of readiness, stopped together."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
from fastapi import FastAPI

from outbox import Maintenance, ensure_outbox_schema_async
from outbox.errors import ConfigurationError, SchemaError
from outbox.fastapi import outbox_lifespan, supervised
from outbox.runtime import supervision
from outbox.runtime.health import HealthChecks
from tests.support import eventually

GRACE = timedelta(seconds=5)


class Working:
    """A part that runs until it is stopped, or fails with the given error."""

    def __init__(self, failure: Exception | None = None) -> None:
        self._failure = failure
        self._stop = asyncio.Event()
        self.running = False

    async def run(self, *, handle_signals: bool = True) -> None:
        assert not handle_signals
        self.running = True
        if self._failure is not None:
            raise self._failure
        await self._stop.wait()
        self.running = False

    def stop(self) -> None:
        self._stop.set()


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "FIRST_PAUSE", timedelta(milliseconds=10))
    monkeypatch.setattr(supervision, "LONGEST_PAUSE", timedelta(milliseconds=40))


async def test_a_part_that_crashes_is_created_again_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    good = Working()
    parts: Iterator[Working] = iter([Working(RuntimeError("out of luck")), Working(OSError("again")), good])
    async with supervised({"worker": lambda: next(parts)}, grace_period=GRACE):
        await eventually(lambda: good.running)
    assert not good.running
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [record.getMessage() for record in errors] == [
        "The worker has failed and is restarted in 0.01 s: RuntimeError: out of luck",
        "The worker has failed and is restarted in 0.02 s: OSError: again",
    ]
    assert all(record.exc_info for record in errors)


async def test_own_errors_and_repeated_crashes_are_logged_without_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    good, bug = Working(), RuntimeError("a bug")
    parts = iter([Working(SchemaError("no table: run outbox migrate")), Working(bug), Working(bug), good])
    async with supervised({"relay": lambda: next(parts)}, grace_period=GRACE):
        await eventually(lambda: good.running)
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [bool(record.exc_info) for record in errors] == [False, True, False]
    assert "SchemaError" not in caplog.text


async def test_a_crash_fails_readiness_until_the_part_is_healthy_again(monkeypatch: pytest.MonkeyPatch) -> None:
    health = HealthChecks(kept_for=timedelta(0))
    good = Working()
    parts: Iterator[Working] = iter([Working(RuntimeError("out of luck")), good])
    async with supervised({"worker": lambda: next(parts)}, grace_period=GRACE, health=health):
        await eventually(lambda: good.running)
        report = await health.report()
        assert not report.ready
        assert report.parts == {"worker": "unavailable", "server": "ok"}
        monkeypatch.setattr(supervision, "PROVEN_AFTER", timedelta(0))
        assert (await health.report()).ready


async def test_a_crash_after_a_healthy_run_counts_as_the_first_one(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(supervision, "PROVEN_AFTER", timedelta(0))
    good = Working()
    parts: Iterator[Working] = iter([Working(OSError("again")), Working(OSError("again")), Working(OSError("again")), good])
    async with supervised({"relay": lambda: next(parts)}, grace_period=GRACE):
        await eventually(lambda: good.running)
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [record.getMessage() for record in errors] == [
        "The relay has failed and is restarted in 0.01 s: OSError: again",
    ] * 3
    assert all(record.exc_info for record in errors)


async def test_a_part_that_ends_without_being_asked_counts_as_crashed() -> None:
    health = HealthChecks(kept_for=timedelta(0))
    finished, good = Working(), Working()
    finished.stop()
    parts: Iterator[Working] = iter([finished, good])
    async with supervised({"relay": lambda: next(parts)}, grace_period=GRACE, health=health):
        await eventually(lambda: good.running)
        assert (await health.report()).parts["relay"] == "unavailable"


async def test_one_part_s_crashes_leave_the_others_alone() -> None:
    good = Working()
    async with supervised(
        {"relay": lambda: Working(RuntimeError("always")), "worker": lambda: good}, grace_period=GRACE
    ) as running:
        await eventually(lambda: running.problem("relay"))
        assert good.running
        assert running.problem("worker") is None


async def test_readiness_fails_as_soon_as_the_shutdown_has_begun() -> None:
    health = HealthChecks(kept_for=timedelta(0))
    async with supervised({}, grace_period=GRACE, health=health) as running:
        assert (await health.report()).ready
        running.stop()
        assert (await health.report()).parts == {"server": "unavailable"}


async def test_a_part_that_cannot_be_created_fails_the_start() -> None:
    def impossible() -> Working:
        raise ConfigurationError("a setting makes no sense")

    with pytest.raises(ConfigurationError, match="makes no sense"):
        async with supervised({"relay": impossible}, grace_period=GRACE):
            pytest.fail("it started")


async def test_a_lifespan_refuses_a_part_in_place_of_a_function() -> None:
    with pytest.raises(ConfigurationError, match=r"relay must be a function .* write relay=lambda app: …"):
        outbox_lifespan(relay=Working())  # type: ignore[arg-type]


async def test_what_is_no_part_and_no_grace_period_fails_the_start() -> None:
    async def coroutine() -> Working:
        return Working()

    never_awaited = coroutine()
    with pytest.raises(ConfigurationError, match=r"the function of relay must return a part .* not <coroutine object"):
        async with supervised({"relay": lambda: never_awaited}, grace_period=GRACE):  # type: ignore[dict-item, return-value]
            pytest.fail("it started")
    never_awaited.close()
    with pytest.raises(ConfigurationError, match=r"grace_period must be a timedelta, such as timedelta\(seconds=30\), not 30"):
        async with supervised({"relay": Working}, grace_period=30):  # type: ignore[arg-type]
            pytest.fail("it started")


async def test_passwords_in_a_crash_reach_no_report(caplog: pytest.LogCaptureFixture) -> None:
    crash = RuntimeError("cannot reach postgresql://ada:hunter2@db/orders")
    async with supervised({"relay": lambda: Working(crash)}, grace_period=GRACE) as running:
        problem = await eventually(lambda: running.problem("relay"))
    assert problem is not None
    assert "postgresql://ada:***@db/orders" in problem
    assert "hunter2" not in problem


async def test_a_lifespan_runs_every_part_that_it_is_given() -> None:
    made: dict[str, Working] = {}

    def part(name: str) -> Callable[[FastAPI], Working]:
        return lambda _app: made.setdefault(name, Working())

    names = ("relay", "worker", "archiver", "maintainer")
    health = HealthChecks()
    parts: dict[str, Any] = {name: part(name) for name in names}
    app = FastAPI(lifespan=outbox_lifespan(**parts, health=health))
    async with app.router.lifespan_context(app):
        await eventually(lambda: [name for name in names if name in made and made[name].running] == list(names))
        assert set((await health.report()).parts) == {*names, "server"}
    assert not any(working.running for working in made.values())


@pytest.mark.parametrize("error", [ValueError("of the host"), ExceptionGroup("of the host", [ValueError()]), SystemExit(3)])
async def test_an_error_of_the_host_arrives_as_it_is(error: BaseException) -> None:
    working = Working()
    app = FastAPI(lifespan=outbox_lifespan(relay=lambda _app: working))
    with pytest.raises(type(error)) as caught:
        async with app.router.lifespan_context(app):
            raise error
    assert caught.value is error
    assert error.__context__ is None
    assert not working.running


async def test_a_host_can_run_maintenance(database_url: str) -> None:
    await ensure_outbox_schema_async(database_url)
    app = FastAPI(lifespan=outbox_lifespan(maintainer=lambda _app: Maintenance(database_url)))
    connection = await asyncpg.connect(database_url)

    async def is_doing_it() -> bool:
        return bool(await connection.fetchval("select count(*) from outbox_lease") == 1)

    try:
        async with app.router.lifespan_context(app):
            await eventually(is_doing_it)
    finally:
        await connection.close()
