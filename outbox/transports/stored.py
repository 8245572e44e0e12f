"""Consumes from a broker that keeps no state for each message: stores its messages in PostgreSQL, which delivers them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar, cast

from outbox.core.events import Dependency
from outbox.core.message import Message
from outbox.core.outcome import Cause, Failure
from outbox.engine.lifecycle import Outage, Pauses, Stopping, entered
from outbox.engine.tasks import ungrouped
from outbox.errors import BrokerUnavailableError, OutboxError, TopologyError
from outbox.ports import (
    UNROUTABLE,
    Confirmed,
    DeadMessage,
    Guarantees,
    Intake,
    NotSent,
    Observer,
    QueueDepth,
    Reader,
    Receive,
    Received,
    Refused,
    SendResult,
    Source,
    Subscription,
    Transport,
    Unconfirmed,
)
from outbox.transports.postgres.broker import LARGEST_BATCH, LONGEST_STATEMENT, PostgresBroker
from outbox.transports.postgres.subscription import CLOSE_TIMEOUT

MOST_FETCHED = 500
"""Most messages that are fetched and stored at once."""
FIRST_FETCHED = 16
"""Most messages that are fetched first. The number rises as long as their bodies are small."""
MOST_WAITING = 10_000
"""Deliveries that wait in a queue, above which each worker fetches nothing: a topic must not pour into PostgreSQL."""
COUNT_AGAIN = timedelta(milliseconds=200)
"""Pause between two counts of a queue that is full."""

_T = TypeVar("_T")


class StoredBroker:
    """Implements `outbox.ports.Broker` with a `source` to read from, and a `database` with the queues.

    A message is acknowledged after it was stored in its queue, or recorded as a dead letter because it cannot be stored. From
    then on it is a delivery of the Postgres transport. The queues are bound to the exchange of `database`, which no relay may
    have as its own: otherwise messages would arrive twice. `send` sends to the queues, and to nothing else.
    """

    def __init__(self, source: Source, database: PostgresBroker, *, observer: Observer) -> None:
        self._source = source
        self._database = database
        self.guarantees = replace(getattr(source, "guarantees", Guarantees()), keeps_state=True)
        self._outage = Outage(Dependency.BROKER, observer)

    async def open(self) -> None:
        """See `outbox.ports.Transport.open`."""
        await self._database.open()

    async def send(self, messages: Sequence[Message], *, timeout: timedelta) -> Sequence[SendResult]:
        """See `outbox.ports.Transport.send`."""
        return await self._database.send(messages, timeout=timeout)

    async def close(self) -> None:
        """See `outbox.ports.Transport.close`."""
        await self._source.close()
        await self._database.close()

    @asynccontextmanager
    async def subscribe(self, subscription: Subscription, receive: Receive) -> AsyncIterator[Intake]:
        """See `outbox.ports.Broker.subscribe`. If only the source is away, stored messages are delivered nevertheless."""
        subscription = replace(subscription, exchange_name=self._database.exchange_name)
        with ungrouped():
            async with self._database.subscribe(subscription, receive) as intake, asyncio.TaskGroup() as tasks:
                storage = _Storage(self._source, self._database, subscription, report=self._report)
                running = tasks.create_task(storage.run())
                try:
                    await storage.started
                    yield _StoredIntake(intake, storage)
                finally:
                    storage.stopping.request()
                    await asyncio.wait([running], timeout=CLOSE_TIMEOUT.total_seconds())
                    running.cancel()
                    self._outage.waiting.discard(subscription.queue)  # while it is paused, it says nothing of the source

    async def queue_depth(self, queue: str) -> QueueDepth | None:
        """See `outbox.ports.MeasuresQueues.queue_depth`. Counts what is stored."""
        return await self._database.queue_depth(queue)

    async def count_dead_letters(self, queue: str) -> int:
        """See `outbox.ports.Broker.count_dead_letters`."""
        return await self._database.count_dead_letters(queue)

    async def has_queue(self, queue: str) -> bool:
        """See `outbox.ports.Broker.has_queue`."""
        return await self._database.has_queue(queue)

    def _report(self, queue: str, error: OutboxError | None) -> None:
        """Reports one loss and one recovery for all queues: they have the same source."""
        if error is not None:
            self._outage.waiting.add(queue)
            self._outage.lost(error)
        else:
            self._outage.waiting.discard(queue)
            self._outage.answers()


class _StoredIntake:
    """Stops storing and delivering."""

    def __init__(self, intake: Intake, storage: "_Storage") -> None:
        self._intake = intake
        self._storage = storage

    async def stop(self) -> None:
        """See `outbox.ports.Intake.stop`."""
        self._storage.stopping.request()
        await self._intake.stop()


class _Storage:
    """Stores the messages of one queue while `run` is running. `started` is done when the source was asked the first time."""

    def __init__(
        self,
        source: Source,
        database: PostgresBroker,
        subscription: Subscription,
        *,
        report: Callable[[str, OutboxError | None], None],
    ) -> None:
        self._source = source
        self._database = database
        self._subscription = subscription
        self._queue = subscription.queue
        self._report = report
        # As long as nothing is known of the bodies: 500 large ones might end the process, and the next one in the same way.
        self._mean_size = LARGEST_BATCH / FIRST_FETCHED
        self.stopping = Stopping()
        self.started: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        """Reads until `stopping` is requested. What was fetched by then and not stored is fetched again by another reader."""
        pauses = Pauses()
        while not self.stopping.requested:
            try:
                async with entered(self._source.read(self._subscription), self.stopping) as reader:
                    if reader is None:
                        return
                    self._start()
                    self._report(self._queue, None)
                    pauses.reset()
                    await self._store_all(reader)
            except TopologyError as error:
                if not self.started.done():
                    self.started.set_exception(error)
                    return
                await self._wait(error, pauses)
            except BrokerUnavailableError as error:
                # Started all the same: what is stored already can be handled while the source is away.
                self._start()
                await self._wait(error, pauses)

    def _start(self) -> None:
        if not self.started.done():
            self.started.set_result(None)

    async def _wait(self, error: OutboxError, pauses: Pauses) -> None:
        self._report(self._queue, error)
        await self.stopping.wait(pauses.next())

    async def _store_all(self, reader: Reader) -> None:
        room = 0
        while not self.stopping.requested:
            # Counted only when what was stored since may have filled the queue. Other workers store, too: the limit is rough.
            if room < MOST_FETCHED:
                count = partial(
                    self._database.count_waiting, self._queue, most=MOST_WAITING, ordered=self._subscription.ordered
                )
                room = MOST_WAITING - await self._persist(count, MOST_WAITING)
            if room < MOST_FETCHED:
                await self.stopping.wait(COUNT_AGAIN)
                continue
            nothing: Sequence[Received] = ()
            received = await self._persist(partial(self._fetch, reader), nothing)
            if not received:
                continue
            sizes = [len(each.message.body) for each in received]
            # Rises at once and falls slowly: a batch of small bodies must not allow many large ones.
            self._mean_size = max(sum(sizes) / len(sizes), self._mean_size * 0.9)
            room -= len(received)
            for piece in _pieces(received):
                await self._persist(partial(self._store, piece), None)
                if piece:
                    return  # storing is to stop, and the database is away
            await self._persist(partial(reader.acknowledge, received), None)

    async def _persist(self, work: Callable[[], Awaitable[_T]], otherwise: _T) -> _T:
        """Returns the result of `work`, which is repeated while a server is away; `otherwise` once storing is to stop."""
        pauses = Pauses()
        while True:
            try:
                result = await work()
            except BrokerUnavailableError as error:
                await self._wait(error, pauses)
                if self.stopping.requested:
                    return otherwise
            else:
                self._report(self._queue, None)
                return result

    async def _fetch(self, reader: Reader) -> Sequence[Received]:
        """Fetches messages of about `LARGEST_BATCH` bytes at most. Returns none if storing is to stop meanwhile."""
        # Bodies may all be empty.
        limit = max(1, min(MOST_FETCHED, int(LARGEST_BATCH / max(self._mean_size, 1))))
        fetching: asyncio.Future[Sequence[Received]] = asyncio.ensure_future(reader.fetch(limit))
        try:
            with self.stopping.future() as stop:
                await asyncio.wait(cast("set[asyncio.Future[Any]]", {fetching, stop}), return_when=asyncio.FIRST_COMPLETED)
            return () if self.stopping.requested else fetching.result()
        finally:
            fetching.cancel()
            # Until it has ended: a reader serves one call at a time.
            await asyncio.wait([fetching])

    async def _store(self, received: list[Received]) -> None:
        """Stores messages in their order. Removes them from `received` as soon as they are durable."""
        messages = [replace(each.message, target_queue=self._queue) for each in received]
        results = await self._database.send(messages, timeout=LONGEST_STATEMENT)
        # What the database did not answer is the end of the piece, so nothing overtakes it.
        left = [(each, result) for each, result in zip(received, results, strict=True) if not isinstance(result, Confirmed)]
        received[:] = [each for each, _ in left]
        for each, result in left:
            match result:
                case Refused(failure):
                    # One by one: the piece may have the same message twice, which is one dead letter.
                    await self._database.record_dead([self._dead(each.message, failure)])
                    received.remove(each)
                case NotSent(failure) | Unconfirmed(failure):
                    raise BrokerUnavailableError(failure.message)
                case _:
                    raise BrokerUnavailableError(
                        f"the queue {self._queue!r} is no longer bound in the database: restart the worker, which binds it"
                    )

    def _dead(self, message: Message, failure: Failure) -> DeadMessage:
        return DeadMessage(
            queue=self._queue,
            exchange=self._subscription.exchange_name,
            message_id=message.id,
            routing_key=message.routing_key,
            body=message.body,
            cause=Cause.UNDECODABLE.value,
            failure=failure,
            by_broker=False,
            content_type=message.content_type,
            headers=message.headers,
            tracking_ids=message.tracking_ids,
            ordering_key=message.ordering_key,
            hlc=message.hlc,
            created_at=message.created_at,
            failed_at=datetime.now(UTC),
            requeue_count=message.requeue_count,
        )


def _pieces(received: Sequence[Received]) -> Iterator[list[Received]]:
    """Cuts a batch into pieces that one statement stores, so that none is stored while an earlier one is not."""
    piece: list[Received] = []
    size = 0
    for each in received:
        size += len(each.message.body)
        if piece and size > LARGEST_BATCH:
            yield piece
            piece, size = [], len(each.message.body)
        piece.append(each)
    yield piece


class QueueTransport:
    """Implements `outbox.ports.Transport` for a broker without queues: messages for one queue go there in the database.

    All others go through `transport`.
    """

    def __init__(self, transport: Transport, database: PostgresBroker) -> None:
        self._transport = transport
        self._database = database

    async def open(self) -> None:
        """See `outbox.ports.Transport.open`."""
        await self._transport.open()

    async def send(self, messages: Sequence[Message], *, timeout: timedelta) -> Sequence[SendResult]:
        """See `outbox.ports.Transport.send`. A queue that no worker of this database has bound is unroutable."""
        targeted = [message for message in messages if message.target_queue is not None]
        if not targeted:
            return await self._transport.send(messages, timeout=timeout)
        others = [message for message in messages if message.target_queue is None]
        results = await asyncio.gather(
            self._transport.send(others, timeout=timeout), self._send_to_queues(targeted, timeout=timeout)
        )
        of_others, of_targeted = map(iter, results)
        return [next(of_others if message.target_queue is None else of_targeted) for message in messages]

    async def _send_to_queues(self, messages: Sequence[Message], *, timeout: timedelta) -> Sequence[SendResult]:
        try:
            await self._database.open()
        except TopologyError:
            return [UNROUTABLE] * len(messages)  # without the tables no worker has stored anything
        except BrokerUnavailableError as error:
            return [Unconfirmed(Failure.of(error))] * len(messages)
        results = await self._database.send(messages, timeout=timeout)
        # The broker is not at fault: others must not wait because of a missing privilege or a lock in the database.
        return [Unconfirmed(result.failure) if isinstance(result, NotSent) else result for result in results]

    async def close(self) -> None:
        """See `outbox.ports.Transport.close`."""
        await self._transport.close()
        await self._database.close()
