"""Tasks of a block, errors that leave exception groups, and periodic tasks."""

import asyncio
import time
from datetime import timedelta

import pytest

from outbox.engine.lifecycle import pause_before_next
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


def test_periodic_tasks_of_a_process_wake_it_up_together() -> None:
    # Monotonic times at which each one is due; in between, time passes.
    ends = []
    for seconds in (5, 10, 10.3, 60):
        pause = pause_before_next(timedelta(seconds=seconds))
        assert pause == pytest.approx(seconds, abs=0.51)
        ends.append(time.monotonic() + pause)
        time.sleep(0.011)
    apart = [(end - ends[0]) % 1 for end in ends]
    assert all(min(part, 1 - part) < 0.01 for part in apart)


def test_short_intervals_are_exact() -> None:
    assert pause_before_next(timedelta(seconds=1)) == 1
