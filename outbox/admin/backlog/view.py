"""Reads the backlog from the database and the broker, once for all who ask."""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from time import monotonic
from typing import TYPE_CHECKING

from outbox.admin.brokers import BrokerKind, BrokerView, Depths, declared
from outbox.admin.cache import SingleFlightCache, Snapshot
from outbox.admin.store.backlog import BacklogFigures, BacklogReader
from outbox.errors import DatabaseUnavailableError
from outbox.reporting.components import recent_components

if TYPE_CHECKING:
    from outbox.admin.admin import Admin


OVER_SECONDS = 300.0
"""How far back rates look."""
LEAST_SECONDS = 1.0
"""A rate over less says nothing."""


@dataclass(slots=True)
class Intake:
    """How fast ids are given out, by what was seen of their number at several times (in seconds, by any steady clock)."""

    _seen: deque[tuple[float, int]] = field(default_factory=deque)

    def saw(self, at: float, inserted: int) -> None:
        """Takes note. A number that went down belongs to another table, or to one that began anew."""
        if self._seen and inserted < self._seen[-1][1]:
            self._seen.clear()
        self._seen.append((at, inserted))
        while len(self._seen) > 2 and self._seen[1][0] <= at - OVER_SECONDS:
            self._seen.popleft()

    @property
    def per_second(self) -> float | None:
        """Over the last minutes, or since there is anything to compare with; None before."""
        if not self._seen:
            return None
        (began, before), (at, now) = self._seen[0], self._seen[-1]
        return (now - before) / (at - began) if at - began >= LEAST_SECONDS else None


def drained_in(pending: int, *, incoming: float | None, outgoing: float | None) -> float | None:
    """Seconds until nothing is due any more at these rates; None if that is never, or not known."""
    if pending == 0:
        return 0.0
    if outgoing is None or incoming is None or outgoing <= incoming:
        return None
    return pending / (outgoing - incoming)


MAX_AGE = timedelta(seconds=2)
PATIENCE = timedelta(milliseconds=120)
"""How long an answer waits for newer figures while there are older ones, or an estimate can be had."""
FIRST_PATIENCE = timedelta(seconds=1)
"""How long it waits for the broker where nothing is known yet, or only what is too old."""
DATABASE_TIMEOUT = timedelta(seconds=10)
BROKER_TIMEOUT = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Backlog:
    """The figures as they were at `as_of`; `complete` False: only what could be said at once. `queues` are the broker's."""

    figures: BacklogFigures
    as_of: datetime
    complete: bool
    stale: bool
    incoming: float | None
    queues: Depths | None
    broker: BrokerKind


class BacklogView:
    """Keeps the figures of one admin for a moment. However many ask, each part is fetched once at a time."""

    def __init__(self, admin: "Admin") -> None:
        self._admin = admin
        self._broker = admin.shared(BrokerView)
        self._reader = BacklogReader(admin.table)
        self._intake = Intake()
        self._figures = SingleFlightCache(self._read, max_age=MAX_AGE, timeout=DATABASE_TIMEOUT)
        self._estimate = SingleFlightCache(self._guess, max_age=MAX_AGE, timeout=DATABASE_TIMEOUT)
        self._depths = SingleFlightCache(self._look, max_age=MAX_AGE, timeout=BROKER_TIMEOUT)

    async def now(self, *, patience: timedelta | None = PATIENCE) -> Backlog:
        """The latest figures that can be had within `patience`, or an estimate; without patience's end, all of them.

        Raises what reading raised if there are none at all.
        """
        figures, depths = await asyncio.gather(self._latest(patience), self._latest_depths(patience))
        snapshot, complete = figures
        return Backlog(
            figures=snapshot.value,
            as_of=snapshot.as_of,
            complete=complete,
            stale=snapshot.error is not None,
            incoming=self._intake.per_second,
            queues=depths,
            broker=self._broker.kind,
        )

    async def figures(self) -> Snapshot[BacklogFigures] | None:
        """Those of the database alone, or an estimate; None if neither can be had now."""
        try:
            return (await self._latest())[0]
        except (DatabaseUnavailableError, TimeoutError):
            return None

    async def close(self) -> None:
        """Ends what is being fetched."""
        for snapshots in (self._figures, self._estimate, self._depths):
            await snapshots.close()

    async def _latest(self, patience: timedelta | None = PATIENCE) -> tuple[Snapshot[BacklogFigures], bool]:
        """Figures, and whether they are all that is told."""
        try:
            return await self._figures.get(patience=patience), True
        except TimeoutError:
            return await self._estimate.get(), False

    async def _latest_depths(self, patience: timedelta | None = PATIENCE) -> Depths | None:
        """What the broker holds; None if it has not answered yet, or not in time."""
        if self._broker.kind is not BrokerKind.RABBITMQ:
            return Depths()
        if patience is not None and not self._depths.has_usable:
            patience = FIRST_PATIENCE  # the broker's connection may have to be opened first
        try:
            snapshot = await self._depths.get(patience=patience)
        except (DatabaseUnavailableError, TimeoutError):
            return None
        return snapshot.value if snapshot.error is None else Depths(problem="the broker does not answer any more")

    async def _read(self) -> BacklogFigures:
        async with self._admin.reading("counting the backlog") as connection:
            at = monotonic()
            deliveries = self._broker.kind is BrokerKind.POSTGRESQL
            figures = await self._reader.figures(connection, deliveries=deliveries)
        if figures.inserted is not None:
            self._intake.saw(at, figures.inserted)
        return figures

    async def _guess(self) -> BacklogFigures:
        async with self._admin.reading("estimating the backlog") as connection:
            return await self._reader.estimate(connection)

    async def _look(self) -> Depths:
        async with self._admin.reading("looking for queues") as connection:
            consumers = declared(await recent_components(connection, schema=self._admin.table.schema))
        if not consumers:
            return await self._broker.depths(())
        from outbox.transports.rabbitmq.topology import dead_letter_queue, delay_resource

        exchange = self._admin.exchange_name
        queues = {consumer.queue for consumer in consumers}
        delays = {delay_resource(exchange, delay) for consumer in consumers for delay in consumer.delays}
        return await self._broker.depths(sorted({*queues, *map(dead_letter_queue, queues), *delays}))
