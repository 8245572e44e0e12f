"""A process exempts its startup objects from garbage collection, once."""

import asyncio
import gc
from collections.abc import Iterator
from datetime import timedelta

import pytest

from outbox.runtime.gc import freeze_gc
from tests.support import eventually

AT_ONCE = timedelta(0)


@pytest.fixture(autouse=True)
def _nothing_is_exempt() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.unfreeze()


async def test_objects_that_exist_by_then_are_exempt() -> None:
    with freeze_gc(after=AT_ONCE):
        await eventually(lambda: gc.get_freeze_count() > 10_000)


async def test_a_process_that_ends_before_is_left_alone() -> None:
    with freeze_gc(after=AT_ONCE):
        pass  # the loop has had no turn
    cursor_page = asyncio.Event()
    asyncio.get_running_loop().call_later(0, cursor_page.set)
    await cursor_page.wait()
    assert gc.get_freeze_count() == 0
