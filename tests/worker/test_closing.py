"""Handlers whose coroutine is closed, as the garbage collector closes an abandoned one."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from outbox import Consumer
from outbox.core.events import Dependency
from outbox.core.outcome import Failure
from outbox.core.threads import Threads
from outbox.engine.attempt import AttemptRunner, Run, WorkerContext
from outbox.engine.lifecycle import Outage, Stopping
from outbox.engine.quarantine import Quarantine
from outbox.retry import Delays, RetryPolicy
from outbox.transports.memory import MemoryBroker
from tests.contract.harness import Recorder
from tests.contract.support import message, send, taking


def context() -> WorkerContext:
    recorder = Recorder()
    return WorkerContext(
        exchange_name="shop",
        observer=recorder,
        stopping=Stopping(),
        quarantine=Quarantine(),
        units=None,
        database=Outage(Dependency.DATABASE, recorder),
        inbox_wait=timedelta(0),
        now=lambda: datetime.now(UTC),
        describe=Failure.of,
    )


async def in_another_task(close: Callable[[], None]) -> None:
    async def closing() -> None:
        close()

    await asyncio.create_task(closing())


async def in_a_thread(close: Callable[[], None]) -> None:
    """As after the end of an event loop."""
    await asyncio.to_thread(close)


@pytest.mark.parametrize("closing", [in_another_task, in_a_thread])
async def test_a_handler_that_is_closed_from_outside_has_no_outcome(
    closing: Callable[[Callable[[], None]], Coroutine[Any, Any, None]],
) -> None:
    never, outcomes = asyncio.get_running_loop().create_future(), []

    async def handle(body: bytes) -> None:
        await never

    async def attempt(run: Run) -> None:
        policy = RetryPolicy(Delays(()), describe=Failure.of)
        outcomes.append(await AttemptRunner(Consumer("#", handle, "mail"), policy, context(), Threads(1, "test")).attempt(run))

    broker = MemoryBroker(exchange_name="shop")
    async with taking(broker, "mail", "#") as taken:
        await send(broker, message("order.placed"))
        delivery = await taken.next()
        coroutine = attempt(Run(delivery, delivery.message, 1))
        assert coroutine.send(None) is never
        await closing(coroutine.close)
    assert outcomes == []
