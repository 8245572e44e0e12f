"""`SingleFlightCache`: one fetch for concurrent callers, age limits, and errors."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest

from outbox.admin.cache import SingleFlightCache
from tests.support import eventually

LONG = timedelta(seconds=30)
AT_ONCE = timedelta(0)


class Source:
    """Returns 1, 2, … on each call, while it is allowed to."""

    def __init__(self) -> None:
        self.asked = 0
        self.may = asyncio.Event()
        self.may.set()
        self.error: Exception | None = None

    async def __call__(self) -> int:
        self.asked += 1
        mine = self.asked
        await self.may.wait()
        if self.error is not None:
            raise self.error
        return mine


def snapshots(source: Callable[[], object], max_age: timedelta = LONG, timeout: timedelta = LONG) -> SingleFlightCache[int]:
    return SingleFlightCache(source, max_age=max_age, timeout=timeout)  # type: ignore[arg-type]


async def test_concurrent_callers_share_one_fetch() -> None:
    source = Source()
    kept = snapshots(source)

    answers = await asyncio.gather(*(kept.get() for _ in range(50)))

    assert {answer.value for answer in answers} == {1}
    assert source.asked == 1
    assert len({answer.as_of for answer in answers}) == 1


async def test_a_value_that_is_too_old_is_fetched_again() -> None:
    kept = snapshots(Source(), max_age=AT_ONCE)

    assert [(await kept.get()).value, (await kept.get()).value] == [1, 2]


async def test_a_value_that_is_much_too_old_is_not_returned_during_a_refresh() -> None:
    source = Source()
    recent = snapshots(source, max_age=AT_ONCE)
    old = SingleFlightCache(source, max_age=AT_ONCE, timeout=LONG, usable_for=AT_ONCE)
    assert [(await recent.get()).value, (await old.get()).value] == [1, 2]

    source.may.clear()

    assert (await recent.get(patience=AT_ONCE)).value == 1
    with pytest.raises(TimeoutError):
        await old.get(patience=AT_ONCE)
    source.may.set()
    assert (await old.get()).value == 4
    await recent.close()


async def test_a_cancelled_caller_does_not_cancel_the_refresh() -> None:
    source = Source()
    source.may.clear()
    kept = snapshots(source)
    impatient = asyncio.create_task(kept.get())
    patient = asyncio.create_task(kept.get())
    await eventually(lambda: source.asked == 1)

    impatient.cancel()
    with pytest.raises(asyncio.CancelledError):
        await impatient
    source.may.set()

    assert (await patient).value == 1
    assert source.asked == 1


async def test_a_failure_keeps_the_last_value_and_adds_the_error() -> None:
    source = Source()
    kept = snapshots(source, max_age=AT_ONCE)
    good = await kept.get()

    source.error = ConnectionError("gone")
    stale = await kept.get()

    assert (stale.value, stale.as_of) == (good.value, good.as_of)
    assert isinstance(stale.error, ConnectionError)
    source.error = None
    assert (await kept.get()).error is None


async def test_without_a_value_the_error_is_raised_and_not_retried_at_once() -> None:
    source = Source()
    source.error = ConnectionError("gone")
    kept = snapshots(source)

    for _ in range(2):
        with pytest.raises(ConnectionError, match="gone"):
            await kept.get()

    assert source.asked == 1


async def test_patience_ends_with_the_last_value_or_a_timeout() -> None:
    source = Source()
    source.may.clear()
    kept = snapshots(source, max_age=AT_ONCE)

    with pytest.raises(TimeoutError):
        await kept.get(patience=AT_ONCE)
    source.may.set()
    assert (await kept.get()).value == 1
    source.may.clear()
    assert (await kept.get(patience=timedelta(milliseconds=1))).value == 1
    await kept.close()


async def test_a_refresh_that_takes_too_long_fails() -> None:
    source = Source()
    source.may.clear()

    with pytest.raises(TimeoutError):
        await snapshots(source, timeout=AT_ONCE).get()


async def test_closing_cancels_the_refresh() -> None:
    source = Source()
    source.may.clear()
    kept = snapshots(source)
    waiting = asyncio.create_task(kept.get())
    await eventually(lambda: source.asked == 1)

    await kept.close()

    with pytest.raises(TimeoutError):
        await waiting
