"""The archiver: takes dead letters from the queues in which a broker keeps them into the database, where they can be read."""

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from outbox.core.byte_limits import MAX_BATCH_BYTES
from outbox.core.events import Archived, DeadLettersMeasured, Dependency
from outbox.engine.lifecycle import Outage, Pauses, Stopping
from outbox.errors import BrokerUnavailableError, DatabaseUnavailableError, StaleDeliveryError, TopologyError
from outbox.ports import Archive, DeadDelivery, DeadLetterQueues, Observer

FIRST_TRY_AGAIN = timedelta(seconds=1)
"""How soon a queue that the broker does not have is tried again: a worker that has just started is about to make it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivingSettings:
    """`queues` are archived whether a worker is known to consume from them or not.

    `batch_size` dead letters of a queue are recorded at once, or fewer that have `batch_bytes` together. In all queues together
    `max_batch_bytes` are in flight, or one dead letter of each. Queues are looked for
    every `discover_every`; one that the broker does not have yet is tried sooner, and then less and less often. While the
    database is away dead letters are held for `hold`, and then given back until it answers: brokers end consumers that settle
    nothing for long.
    """

    queues: frozenset[str]
    batch_size: int = 50
    batch_bytes: int = 8_000_000
    max_batch_bytes: int = MAX_BATCH_BYTES
    discover_every: timedelta = timedelta(seconds=10)
    measure_every: timedelta = timedelta(seconds=30)
    hold: timedelta = timedelta(minutes=5)


class Archiving:
    """Empties the queues of dead letters into the archive: recorded and committed first, then let go of."""

    def __init__(self, queues: DeadLetterQueues, archive: Archive, observer: Observer, settings: ArchivingSettings) -> None:
        self._queues = queues
        self._archive = archive
        self._observer = observer
        self._settings = settings
        self._known = set(settings.queues)
        self._database = Outage(Dependency.DATABASE, observer)
        self._broker = Outage(Dependency.BROKER, observer)

    async def run(self, stopping: Stopping) -> None:
        """Works until `stopping` is requested. Outages of broker and database are waited out; nothing is lost by them."""
        async with asyncio.TaskGroup() as tasks:
            measuring = tasks.create_task(self._measure())
            archived: dict[str, asyncio.Task[None]] = {}
            while not stopping.requested:
                for queue in sorted(self._known - archived.keys()):
                    archived[queue] = tasks.create_task(self._archive_queue(queue, stopping))
                try:
                    new = await self._archive.known_queues() - self._known
                except DatabaseUnavailableError as error:
                    await stopping.wait(self._database.lost(error))
                else:
                    self._database.answers()
                    self._known |= new
                    await stopping.wait(timedelta(0) if new else self._settings.discover_every)
            if archived:
                await asyncio.wait(archived.values())
            measuring.cancel()

    async def _archive_queue(self, queue: str, stopping: Stopping) -> None:
        missing = Pauses(first=FIRST_TRY_AGAIN, longest=self._settings.discover_every)
        while not stopping.requested:
            try:
                await self._take(queue, stopping)
                missing.reset()
            except TopologyError:
                # No worker has consumed from it yet, so there is no queue of dead letters either.
                await stopping.wait(missing.next())
            except BrokerUnavailableError as error:
                await stopping.wait(self._broker.lost(error))
            except DatabaseUnavailableError as error:
                # Nothing is taken until the database takes dead letters again.
                recording = False
                while not recording and not await stopping.wait(self._database.lost(error)):
                    try:
                        await self._archive.record(())
                        recording = True
                    except DatabaseUnavailableError as again:
                        error = again

    async def _take(self, queue: str, stopping: Stopping) -> None:
        """Archives what the queue delivers until it is time to stop, or its channel ends. Raises as the ports do."""
        arrivals = _Arrivals()
        limits = {
            "prefetch_count": 2 * self._settings.batch_size,
            "max_bytes": max(self._settings.max_batch_bytes // len(self._known), 1),
        }
        async with self._queues.collect(queue, arrivals.put, **limits) as ended:

            async def wake_at_end() -> None:
                await ended.wait()
                arrivals.wake()

            self._broker.answers()
            with stopping.telling(arrivals.wake):
                ending = asyncio.create_task(wake_at_end())
                try:
                    while not stopping.requested and not ended.is_set():
                        if batch := arrivals.batch(self._settings.batch_size, self._settings.batch_bytes):
                            await self._record(queue, batch, ended)
                        else:
                            await arrivals.wait()
                finally:
                    ending.cancel()

    async def _record(self, queue: str, batch: Sequence[DeadDelivery], ended: asyncio.Event) -> None:
        """Records a batch and lets go of it; while the database is away, tries again for as long as it may be held."""
        clock = asyncio.get_running_loop().time
        give_back_at = clock() + self._settings.hold.total_seconds()
        while not ended.is_set():
            try:
                await self._archive.record([delivery.dead for delivery in batch])
            except DatabaseUnavailableError as error:
                pause = self._database.lost(error).total_seconds()
                if clock() + pause > give_back_at:
                    raise
                with suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), pause)
            else:
                self._database.answers()
                for delivery in batch:
                    # What is not ours any more comes again, and is known then.
                    with suppress(StaleDeliveryError):
                        delivery.ack()
                self._observer.notify(Archived(queue=queue, count=len(batch)))
                return

    async def _measure(self) -> None:
        """Again and again; what cannot be counted now is looked at the next time."""
        while True:
            for queue in sorted(self._known):
                with suppress(BrokerUnavailableError, DatabaseUnavailableError):
                    count = await self._queues.count(queue) + await self._archive.count_open(queue)
                    self._observer.notify(DeadLettersMeasured(queue=queue, count=count))
            await asyncio.sleep(self._settings.measure_every.total_seconds())


class _Arrivals:
    """Dead letters in flight that wait to be recorded, in their order."""

    def __init__(self) -> None:
        self._waiting: deque[DeadDelivery] = deque()
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()

    def put(self, delivery: DeadDelivery) -> None:
        self._waiting.append(delivery)
        self._changed.set()

    def wake(self) -> None:
        """May be called from another thread, or a signal handler."""
        with suppress(RuntimeError):  # the loop was closed meanwhile: nothing waits any more
            self._loop.call_soon_threadsafe(self._changed.set)

    async def wait(self) -> None:
        """Returns when something arrived since, or when it was woken."""
        await self._changed.wait()
        self._changed.clear()

    def batch(self, size: int, most_bytes: int) -> Sequence[DeadDelivery]:
        """The first ones, taken out. Of one message none but the first: the next may be its later death."""
        batch: list[DeadDelivery] = []
        ids: set[str | None] = set()
        total = 0
        while self._waiting and len(batch) < size:
            dead = self._waiting[0].dead
            total += len(dead.body)
            if batch and (total > most_bytes or (dead.message_id is not None and dead.message_id in ids)):
                break
            ids.add(dead.message_id)
            batch.append(self._waiting.popleft())
        return batch
