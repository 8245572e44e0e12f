"""Poison messages: they run alone, and other handlers wait for a limited time."""

import asyncio
from datetime import timedelta

import pytest

from outbox import Consumer, Worker
from outbox.engine import quarantine
from outbox.engine.quarantine import Quarantine
from outbox.transports.memory import MemoryBroker
from tests.contract.harness import MemoryHarness
from tests.contract.support import existing, message, send
from tests.support import eventually
from tests.worker.support import SOON, running

SHORT = timedelta(milliseconds=20)


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ward(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Quarantine:
    monkeypatch.setattr(quarantine, "FIRST_WAIT", SHORT)
    return Quarantine(clock)


async def test_after_a_failed_wait_other_handlers_have_four_times_as_long(ward: Quarantine, clock: Clock) -> None:
    ward.enter()
    async with ward.alone() as pause:
        assert pause == 4 * SHORT
        assert not ward.closed
    clock.seconds = 3 * SHORT.total_seconds()
    async with ward.alone() as pause:
        assert pause is not None
        assert pause.total_seconds() == pytest.approx(SHORT.total_seconds())
        assert not ward.closed
    clock.seconds = 4 * SHORT.total_seconds()
    async with ward.alone() as pause:
        assert pause == 8 * SHORT, "the second wait was twice as long"


async def test_a_poison_message_runs_at_once_when_no_handler_runs(ward: Quarantine) -> None:
    ward.enter()
    async with ward.alone() as pause:
        assert pause is not None
    ward.leave()
    async with ward.alone() as pause:
        assert pause is None
        assert ward.closed
    assert not ward.closed


async def test_poison_messages_together_block_other_handlers_no_longer_than_the_longest_wait(
    ward: Quarantine, clock: Clock
) -> None:
    """Each runs for a while; one whose turn comes too late is postponed."""
    async with ward.alone() as first:
        second = asyncio.create_task(_pause(ward))
        await asyncio.sleep(0)
        clock.seconds = quarantine.LONGEST_WAIT.total_seconds()
    assert first is None
    assert await asyncio.wait_for(second, SOON) is not None
    assert not ward.closed


async def test_a_handler_that_does_not_end_blocks_others_for_a_limited_time(
    ward: Quarantine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quarantine, "_UNTIL_FORCED", SHORT)
    async with ward.alone() as pause:
        assert pause is None
        await asyncio.wait_for(ward.wait_until_open(), SOON)
        assert not ward.closed


async def test_the_marked_copy_of_a_message_runs_before_other_handlers_start(ward: Quarantine) -> None:
    async with ward.alone():
        neighbour = asyncio.create_task(ward.wait_until_open())
        copy = asyncio.create_task(_pause(ward))
        await asyncio.wait_for(ward.wait_for_copy(), SOON)
    assert await asyncio.wait_for(copy, SOON) is None
    await asyncio.wait_for(neighbour, SOON)


async def _pause(ward: Quarantine) -> timedelta | None:
    async with ward.alone() as pause:
        return pause


async def test_a_message_that_runs_alone_for_too_long_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outbox.engine.delivery.ALONE_LIMIT", SHORT)
    harness = MemoryHarness()
    broker = harness.broker()
    assert isinstance(broker, MemoryBroker)
    await existing(broker, "risky", "risky.*")
    await send(broker, message("risky.thing"))
    for _ in range(2):
        await harness.die_with_message("risky", "risky.*", isolated=False)
    calls: list[bytes] = []

    async def hang(body: bytes) -> None:
        await asyncio.Event().wait()

    async def handle(body: bytes) -> None:
        calls.append(body)

    poison = Consumer("risky.*", hang, "risky", retry_delays=(), max_deliveries=1)
    worker = Worker(broker=broker, consumers=[poison, Consumer("order.*", handle, "mail")], enable_metrics=False)
    async with running(worker):
        await eventually(lambda: broker.dead_letters("risky"), timeout=SOON)
        await existing(broker, "mail", "order.*")
        await send(broker, message("order.placed"))
        await eventually(lambda: calls, timeout=SOON)
    [dead] = broker.dead_letters("risky")
    assert dead.failure.type == "outbox.errors.HandlerTimeoutError"
