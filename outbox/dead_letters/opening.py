"""What DeadLetters works with, opened when it is first used: connections, and the broker that knows which queues are there."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from outbox.masking import Masking
from outbox.postgres.dead_letters.listing import DeadLetterListing
from outbox.postgres.names import TableName
from outbox.postgres.pool import Pool, close_pool, open_pool
from outbox.postgres.repair.changes import Changes, HasQueue, subscribed_queues
from outbox.postgres.repair.editing import Editing
from outbox.postgres.repair.operations import Operations
from outbox.postgres.repair.planning import Planning
from outbox.postgres.repair.running import OperationsRunner
from outbox.runtime.brokers import open_broker
from outbox.runtime.observing import build_observer

if TYPE_CHECKING:
    from outbox.runtime.brokers import ConsumableSource

_POOL_SIZE = 4


@dataclass(frozen=True, slots=True)
class Parts:
    """What reads and changes dead letters over one pool."""

    listing: DeadLetterListing
    changes: Changes
    editing: Editing
    planning: Planning
    operations: Operations
    runner: OperationsRunner


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where dead letters are, and whom to ask for queues: of `url` and `pool` one is given. `broker` None: PostgreSQL."""

    url: str | None
    pool: Pool | None
    table: TableName
    broker: "ConsumableSource | None"
    exchange_name: str


class Opening:
    """Opens the parts once, and closes what it opened."""

    def __init__(self, places: Places, *, masking: Masking, history: bool) -> None:
        self._places = places
        self._masking = masking
        self._history = history
        self._busy = asyncio.Lock()
        self._closing = AsyncExitStack()
        self._parts: Parts | None = None

    async def parts(self) -> Parts:
        """The parts, opened now if they are not."""
        async with self._busy:
            if self._parts is None:
                self._parts = await self._open()
            return self._parts

    async def close(self) -> None:
        """Closes what was opened."""
        async with self._busy:
            self._parts = None
            await self._closing.aclose()

    async def _open(self) -> Parts:
        table, pool = self._places.table, self._places.pool
        if pool is None:
            pool = await open_pool(self._places.url or "", size=_POOL_SIZE, application_name="outbox dead letters")
            self._closing.push_async_callback(close_pool, pool)
        has_queue = self._open_broker(pool)
        changes = Changes(pool, table, has_queue, history=self._history)
        listing = DeadLetterListing(pool, table, masking=self._masking)
        return Parts(
            listing=listing,
            changes=changes,
            editing=Editing(pool, table, changes, self._masking),
            planning=Planning(pool, table, listing, has_queue),
            operations=Operations(pool, table, masking=self._masking),
            runner=OperationsRunner(pool, table, has_queue, history=self._history),
        )

    def _open_broker(self, pool: Pool) -> HasQueue:
        if self._places.broker is None:
            return subscribed_queues(pool, self._places.table)
        broker = open_broker(
            self._places.broker,
            exchange_name=self._places.exchange_name,
            table=self._places.table,
            observer=build_observer(enable_metrics=False),
        )
        self._closing.push_async_callback(broker.close)
        return broker.has_queue
