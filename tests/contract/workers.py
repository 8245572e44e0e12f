"""A running worker on any broker, and what it reports."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from outbox import Consumer
from outbox.core.events import (
    ConsumerStarted,
    IsolationStep,
    PoisonIsolated,
    Processed,
)
from outbox.engine.lifecycle import OPEN, Stopping, run_until_stopped
from outbox.engine.worker import WorkerRunner, WorkSettings
from outbox.ports import Broker, Gate, Intake, Receive, Subscription
from tests.contract.harness import EXCHANGE, Recorder
from tests.support import eventually

SOON = 30.0


class Watched:
    """A broker, and how many of its subscriptions take nothing more."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.stopped = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)

    @asynccontextmanager
    async def subscribe(self, subscription: Subscription, receive: Receive) -> AsyncIterator["WatchedIntake"]:
        async with self._broker.subscribe(subscription, receive) as intake:
            yield WatchedIntake(intake, self)


class WatchedIntake:
    def __init__(self, intake: Intake, broker: Watched) -> None:
        self._intake = intake
        self._broker = broker

    async def stop(self) -> None:
        await self._intake.stop()
        self._broker.stopped += 1


class Running:
    """A worker that runs, and what it reports."""

    def __init__(
        self,
        broker: Broker,
        consumers: Sequence[Consumer],
        *,
        prefetch_count: int,
        grace_period: timedelta,
        gate: Gate = OPEN,
    ) -> None:
        self.recorder = Recorder()
        self.stopping = Stopping()
        settings = WorkSettings(exchange_name=EXCHANGE, retry_delays=(), prefetch_count=prefetch_count)
        self.broker = Watched(broker)
        work = WorkerRunner(self.broker, consumers, None, self.recorder, settings, gate_of=lambda _: gate)
        self.task = asyncio.create_task(
            run_until_stopped(work.run, self.stopping, grace_period=grace_period, handle_signals=False)
        )

    async def started(self, count: int) -> None:
        await eventually(lambda: self.task.done() or len(self.recorder.of(ConsumerStarted)) == count, timeout=SOON)
        if self.task.done():
            self.task.result()

    async def processed(self, count: int) -> list[Processed]:
        await eventually(lambda: len(self.recorder.of(Processed)) >= count, timeout=SOON)
        return self.recorder.of(Processed)

    @property
    def steps(self) -> list[IsolationStep]:
        return [event.step for event in self.recorder.of(PoisonIsolated)]

    async def stop(self) -> None:
        self.stopping.request()
        await asyncio.wait_for(self.task, SOON)


@asynccontextmanager
async def working(
    broker: Broker,
    *consumers: Consumer,
    prefetch_count: int = 10,
    grace_period: timedelta = timedelta(seconds=10),
    started: int | None = None,
) -> AsyncIterator[Running]:
    """A worker with these consumers, on their queues."""
    running = Running(broker, consumers, prefetch_count=prefetch_count, grace_period=grace_period)
    try:
        await running.started(len(consumers) if started is None else started)
        yield running
    finally:
        await running.stop()
