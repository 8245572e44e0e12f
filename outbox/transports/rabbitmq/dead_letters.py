"""The queues of dead letters, emptied by whoever records them elsewhere."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from aiormq.exceptions import AMQPChannelError

from outbox.core.urls import amqp_url
from outbox.errors import BrokerUnavailableError, ConfigurationError
from outbox.ports import DeadMessage, ReceiveDead
from outbox.transports.rabbitmq.arriving import Arrival
from outbox.transports.rabbitmq.connection import CONNECT_TIMEOUT, LentLink, Link, OwnLink, UnresponsiveError
from outbox.transports.rabbitmq.dead_messages import read_dead
from outbox.transports.rabbitmq.inquiry import NotThere, inquiry_on
from outbox.transports.rabbitmq.receiving import Arrived, ConsumerChannel
from outbox.transports.rabbitmq.topology import dead_letter_queue

if TYPE_CHECKING:
    from aio_pika.abc import AbstractConnection as LentConnection

FIRST_PREFETCH = 1
"""How many messages of a queue are in flight before anybody knows how large they are."""


class OnAck(Protocol):
    """Is told of an arrival that was acknowledged, and how many are still in flight."""

    def __call__(self, arrival: Arrival, *, in_flight: int) -> None: ...


class RabbitDeadLetterQueues:
    """Implements `outbox.ports.DeadLetterQueues` on RabbitMQ.

    Either `url`, which makes a connection of its own, or `connection`, an aio-pika connection that is left open. Of a queue of
    which nothing is known yet `first_prefetch` messages are taken at once.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        connection: "LentConnection | None" = None,
        connect_timeout: timedelta = CONNECT_TIMEOUT,
        first_prefetch: int = FIRST_PREFETCH,
    ) -> None:
        if (url is None) == (connection is None):
            raise ConfigurationError("RabbitMQ takes either a URL or a connection")
        self._link: Link
        if connection is not None:
            self._link = LentLink(connection)
        else:
            address = amqp_url(url or "", argument="url")
            self._link = OwnLink(address, purpose="outbox dead letters", connect_timeout=connect_timeout)
        self._first_prefetch = first_prefetch
        self._sizes: dict[str, int] = {}

    @asynccontextmanager
    async def collect(
        self, queue: str, receive: ReceiveDead, *, prefetch_count: int, max_bytes: int
    ) -> "AsyncIterator[asyncio.Event]":
        """See `outbox.ports.DeadLetterQueues.collect`. Brokers know no limit in bytes, so the number is chosen by the sizes."""
        size = self._sizes.get(queue)
        chosen = min(self._first_prefetch, prefetch_count) if size is None else _fitting(size, prefetch_count, max_bytes)
        intake = _Intake(queue, receive, chosen, most=prefetch_count, max_bytes=max_bytes)
        channel = await self._consume(queue, intake.arrived, chosen)
        following = asyncio.create_task(intake.follow(channel.ended))
        try:
            yield intake.ended
        finally:
            following.cancel()
            if intake.largest is not None:
                self._sizes[queue] = intake.largest
            await channel.cancel()
            await channel.close()

    async def count(self, queue: str) -> int:
        """See `outbox.ports.DeadLetterQueues.count`."""
        name = dead_letter_queue(queue)
        async with inquiry_on(self._link) as inquiry:
            try:
                declared = await inquiry.ask(lambda channel: channel.queue_declare(name, passive=True))
            except NotThere:
                return 0
            except AMQPChannelError as error:
                raise BrokerUnavailableError(f"queue {name!r} cannot be looked at: {error}") from None
        return declared.message_count or 0

    async def close(self) -> None:
        """See `outbox.ports.DeadLetterQueues.close`."""
        await self._link.close()

    async def _consume(self, queue: str, arrived: Arrived, prefetch_count: int) -> ConsumerChannel:
        connection = await self._link.open()
        try:
            return await ConsumerChannel.open(
                connection,
                dead_letter_queue(queue),
                prefetch_count=prefetch_count,
                arrived=arrived,
                let_go=_nobody_counts,
                in_order=True,
            )
        except UnresponsiveError:
            self._link.discard(connection)
            raise


class _Intake:
    """What arrives on one channel, and when another one is to be opened that is sent more at once, or less.

    The number of a consumer's messages in flight cannot be changed while it consumes.
    """

    def __init__(self, queue: str, receive: ReceiveDead, prefetch_count: int, *, most: int, max_bytes: int) -> None:
        self.ended = asyncio.Event()
        self.largest: int | None = None
        self._queue = queue
        self._receive = receive
        self._prefetch_count = prefetch_count
        self._most = most
        self._max_bytes = max_bytes
        self._bytes = 0
        self._acknowledged = 0

    async def follow(self, channel_ended: asyncio.Event) -> None:
        """Ends with the channel."""
        await channel_ended.wait()
        self.ended.set()

    def arrived(self, source: ConsumerChannel, arrival: Arrival) -> None:
        """Hands it over; if there is too much by now, no more is, and what is in flight is given back and comes again."""
        size = len(arrival.body)
        self.largest = max(self.largest or 0, size)
        self._bytes += size
        if self._bytes > self._max_bytes and self._bytes > size:
            arrival.body = b""
            source.hold()
            self.ended.set()
        else:
            self._receive(RabbitDeadDelivery(self._queue, arrival, source, self._on_ack))

    def _on_ack(self, arrival: Arrival, *, in_flight: int) -> None:
        """Nothing needs to be given back while nothing is in flight: a good time to ask for more."""
        self._bytes -= len(arrival.body)
        self._acknowledged += 1
        if in_flight or self.largest is None or self._acknowledged < self._prefetch_count:
            return
        if _fitting(self.largest, self._most, self._max_bytes) >= 2 * self._prefetch_count:
            self.ended.set()
        else:
            self.largest, self._acknowledged = None, 0  # the next ones may be smaller


def _fitting(size: int, most: int, max_bytes: int) -> int:
    """How many messages of that size may be in flight."""
    return max(min(max_bytes // max(size, 1), most), 1)


class RabbitDeadDelivery:
    """Implements `outbox.ports.DeadDelivery`."""

    __slots__ = ("_arrival", "_dead", "_on_ack", "_queue", "_source")

    def __init__(self, queue: str, arrival: Arrival, source: ConsumerChannel, on_ack: "OnAck") -> None:
        self._queue = queue
        self._arrival = arrival
        self._source = source
        self._on_ack = on_ack
        self._dead: DeadMessage | None = None

    @property
    def dead(self) -> DeadMessage:
        """See `outbox.ports.DeadDelivery`."""
        if self._dead is None:
            self._dead = read_dead(self._queue, self._arrival)
        return self._dead

    def ack(self) -> None:
        """See `outbox.ports.DeadDelivery`."""
        self._source.ack(self._arrival.tag)
        self._on_ack(self._arrival, in_flight=len(self._source.in_hand))


def _nobody_counts(_: Arrival) -> None:
    """How often a dead letter came back says nothing about it."""
