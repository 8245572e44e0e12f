"""Tasks of a block, errors that leave exception groups, and periodic tasks."""

import asyncio
from datetime import timedelta
from types import SimpleNamespace

import pytest

from outbox.engine import lifecycle
from outbox.engine.tasks import in_background, ungrouped


async def fail() -> None:
    raise ZeroDivisionError


async def test_an_error_in_the_background_ends_the_block() -> None:
    limit = asyncio.timeout(30)
    with pytest.raises(ZeroDivisionError):
        async with limit, in_background(fail()):
            await asyncio.Event().wait()
    assert not limit.expired()


async def test_work_in_the_background_has_ended_after_the_block() -> None:
    ended = False

    async def work() -> None:
        nonlocal ended
        try:
            await asyncio.Event().wait()
        finally:
            ended = True

    async with in_background(work()):
        await asyncio.sleep(0)  # it begins
    assert ended


def test_an_error_alone_in_its_group_keeps_its_cause() -> None:
    error, cause = ValueError("outer"), KeyError("inner")
    error.__cause__ = cause
    with pytest.raises(ValueError, match="outer") as raised, ungrouped():
        raise BaseExceptionGroup("", [ExceptionGroup("", [error])])
    assert raised.value.__cause__ is cause


def test_an_error_that_is_not_alone_has_the_group_as_its_cause() -> None:
    group = ExceptionGroup("", [ValueError("first"), KeyError("second")])
    with pytest.raises(ValueError, match="first") as raised, ungrouped():
        raise group
    assert raised.value.__cause__ is group


@pytest.mark.parametrize("seconds", [5, 10, 10.3, 60])
@pytest.mark.parametrize("since_start", [0, 0.4, 7.25, 1_000.9])
def test_periodic_tasks_are_due_at_whole_seconds_of_the_process(
    monkeypatch: pytest.MonkeyPatch, seconds: float, since_start: float
) -> None:
    monkeypatch.setattr(lifecycle, "time", SimpleNamespace(monotonic=lambda: lifecycle._STARTED + since_start))
    pause = lifecycle.pause_before_next(timedelta(seconds=seconds))
    assert abs(pause - seconds) <= 0.5 + 1e-6
    assert since_start + pause == pytest.approx(round(since_start + pause), abs=1e-6)


def test_short_intervals_are_exact() -> None:
    assert lifecycle.pause_before_next(timedelta(seconds=1)) == 1
