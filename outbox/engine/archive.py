"""The archiver: moves dead letters from the broker's queues into the database, where they can be listed and searched."""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from outbox.core.byte_limits import MAX_BATCH_BYTES
from outbox.core.events import Archived, DeadLettersMeasured, Dependency
from outbox.engine.lifecycle import Outage, Pauses, Stopping, entered
from outbox.errors import BrokerUnavailableError, DatabaseUnavailableError, StaleDeliveryError, TopologyError
from outbox.ports import Archive, DeadDelivery, DeadLetterQueues, Observer

_log = logging.getLogger("outbox")

FIRST_RETRY = timedelta(seconds=1)
"""First pause before retrying a missing queue: a worker that has just started is about to create it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveSettings:
    """Settings of an archiver. `queues` are archived even if no worker is known to consume from them.

    A batch holds up to `batch_size` dead letters of one queue, or fewer with `batch_bytes` together. At most `max_batch_bytes`
    are in flight over all queues, or one dead letter of each. New queues are looked up every `discover_every`; a queue that the
    broker does not have yet is retried sooner, then less and less often. While the database is unavailable, dead letters stay
    in flight for `hold`. Then they are returned until it is available, because brokers end consumers that settle nothing.
    """

    queues: frozenset[str]
    batch_size: int = 50
    batch_bytes: int = 8_000_000
    max_batch_bytes: int = MAX_BATCH_BYTES
    discover_every: timedelta = timedelta(seconds=10)
    measure_every: timedelta = timedelta(seconds=30)
    hold: timedelta = timedelta(minutes=5)


class ArchiveRunner:
    """Moves dead letters into the archive. Acknowledges each one only after it is committed."""

    def __init__(self, queues: DeadLetterQueues, archive: Archive, observer: Observer, settings: ArchiveSettings) -> None:
        self._queues = queues
        self._archive = archive
        self._observer = observer
        self._settings = settings
        self._known = set(settings.queues)
        self._database = Outage(Dependency.DATABASE, observer)
        self._broker = Outage(Dependency.BROKER, observer)

    async def run(self, stopping: Stopping) -> None:
        """Works until `stopping` is requested. Waits during outages of the broker and the database; they lose nothing."""
        async with asyncio.TaskGroup() as tasks:
            measuring = tasks.create_task(self._measure())
            archived: dict[str, asyncio.Task[None]] = {}
            while not stopping.requested:
                for queue in sorted(self._known - archived.keys()):
                    _log.info("archives the dead letters of queue %s", queue)
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
        missing = Pauses(first=FIRST_RETRY, longest=self._settings.discover_every)
        while not stopping.requested:
            try:
                await self._take(queue, stopping)
                missing.reset()
            except TopologyError:
                # The first worker that consumes from the queue creates its dead letter queue.
                await stopping.wait(missing.next())
            except BrokerUnavailableError as error:
                await stopping.wait(self._broker.lost(error))
            except DatabaseUnavailableError as error:
                # Take nothing until the database accepts dead letters: an empty batch finds out.
                recording = False
                while not recording and not await stopping.wait(self._database.lost(error)):
                    try:
                        await self._archive.record(())
                        recording = True
                    except DatabaseUnavailableError as again:
                        error = again

    async def _take(self, queue: str, stopping: Stopping) -> None:
        """Archives the queue's dead letters until `stopping` is requested or the channel ends. Raises as the ports do."""
        arrivals = _Arrivals()
        limits = {
            # The next batch arrives while this one is recorded.
            "prefetch_count": 2 * self._settings.batch_size,
            # An equal share for each queue, because it is not known which ones will have large dead letters.
            "max_bytes": max(self._settings.max_batch_bytes // len(self._known), 1),
        }
        async with entered(self._queues.collect(queue, arrivals.put, **limits), stopping) as ended:
            if ended is None:
                return

            async def wake_at_end() -> None:
                await ended.wait()
                arrivals.wake()

            self._broker.answers()
            with stopping.listen(arrivals.wake):
                ending = asyncio.create_task(wake_at_end())
                try:
                    while not stopping.requested and not ended.is_set():
                        if batch := arrivals.batch(self._settings.batch_size, self._settings.batch_bytes):
                            await self._record(queue, batch, ended, stopping)
                        else:
                            await arrivals.wait()
                finally:
                    ending.cancel()

    async def _record(self, queue: str, batch: Sequence[DeadDelivery], ended: asyncio.Event, stopping: Stopping) -> None:
        """Records a batch, then acknowledges it. While the database is unavailable, retries for `hold`, or until a stop."""
        clock = asyncio.get_running_loop().time
        give_back_at = clock() + self._settings.hold.total_seconds()
        while not ended.is_set():
            try:
                refused = await self._archive.record([delivery.dead for delivery in batch])
            except DatabaseUnavailableError as error:
                pause = self._database.lost(error).total_seconds()
                if stopping.requested or clock() + pause > give_back_at:
                    raise
                with suppress(TimeoutError):
                    # Ends early with the channel: without it, nothing of the batch can be acknowledged any more.
                    await asyncio.wait_for(ended.wait(), pause)
            else:
                self._database.answers()
                for delivery in batch:
                    if any(delivery.dead is each for each in refused):
                        delivery.leave()
                    else:
                        # A delivery that was lost is redelivered, and then recognized as recorded.
                        with suppress(StaleDeliveryError):
                            delivery.ack()
                if recorded := len(batch) - len(refused):
                    self._observer.notify(Archived(queue=queue, count=recorded))
                return

    async def _measure(self) -> None:
        """Reports the number of dead letters of each queue, every `measure_every`. Skips a queue that cannot be counted."""
        while True:
            for queue in sorted(self._known):
                with suppress(BrokerUnavailableError, DatabaseUnavailableError):
                    count = await self._queues.count(queue) + await self._archive.count_open(queue)
                    self._observer.notify(DeadLettersMeasured(queue=queue, count=count))
            await asyncio.sleep(self._settings.measure_every.total_seconds())


class _Arrivals:
    """Dead letters in flight that wait to be recorded, in order of arrival."""

    def __init__(self) -> None:
        self._waiting: deque[DeadDelivery] = deque()
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()

    def put(self, delivery: DeadDelivery) -> None:
        self._waiting.append(delivery)
        self._changed.set()

    def wake(self) -> None:
        """Wakes `wait`. May be called from another thread or a signal handler."""
        with suppress(RuntimeError):  # the loop is closed: no task waits any more
            self._loop.call_soon_threadsafe(self._changed.set)

    async def wait(self) -> None:
        """Waits for the next arrival, or for `wake`."""
        await self._changed.wait()
        self._changed.clear()

    def batch(self, size: int, max_bytes: int) -> Sequence[DeadDelivery]:
        """Removes and returns the first ones, at most one of each message."""
        # A second dead letter of a message may be from a later failure: the archive must see them one after the other.
        batch: list[DeadDelivery] = []
        ids: set[str | None] = set()
        total = 0
        while self._waiting and len(batch) < size:
            dead = self._waiting[0].dead
            total += len(dead.body)
            if batch and (total > max_bytes or (dead.message_id is not None and dead.message_id in ids)):
                break
            ids.add(dead.message_id)
            batch.append(self._waiting.popleft())
        return batch
