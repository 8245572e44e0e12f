"""Processes of ours exempt what they keep from garbage collection, once, after their start."""

import gc
from collections.abc import Iterator
from datetime import timedelta

import pytest

from outbox.memory import spared_collector
from tests.support import eventually


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    gc.unfreeze()


async def test_what_there_is_by_then_is_exempt() -> None:
    with spared_collector(after=timedelta(0)):
        await eventually(lambda: gc.get_freeze_count() > 0)


async def test_a_process_that_ends_sooner_is_left_alone() -> None:
    before = gc.get_freeze_count()
    with spared_collector():
        pass
    assert gc.get_freeze_count() == before
