"""The queues of dead letters, emptied by whoever records them elsewhere."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from aiormq.exceptions import AMQPChannelError

from outbox.errors import BrokerUnavailableError, ConfigurationError
from outbox.ports import DeadMessage, ReceiveDead
from outbox.transports.rabbitmq.arriving import Arrival
from outbox.transports.rabbitmq.connection import CONNECT_TIMEOUT, LentLink, Link, OwnLink, UnresponsiveError
from outbox.transports.rabbitmq.dead_messages import read_dead
from outbox.transports.rabbitmq.inquiry import NotThere, inquiry_on
from outbox.transports.rabbitmq.receiving import Arrived, ConsumerChannel
from outbox.transports.rabbitmq.topology import dead_letter_queue
from outbox.urls import amqp_url

if TYPE_CHECKING:
    import asyncio

    from aio_pika.abc import AbstractConnection as LentConnection


class RabbitDeadLetterQueues:
    """Implements `outbox.ports.DeadLetterQueues` on RabbitMQ.

    Either `url`, which makes a connection of its own, or `connection`, an aio-pika connection that is left open.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        connection: "LentConnection | None" = None,
        connect_timeout: timedelta = CONNECT_TIMEOUT,
    ) -> None:
        if (url is None) == (connection is None):
            raise ConfigurationError("RabbitMQ takes either a URL or a connection")
        self._link: Link
        if connection is not None:
            self._link = LentLink(connection)
        else:
            address = amqp_url(url or "", argument="url")
            self._link = OwnLink(address, purpose="outbox dead letters", connect_timeout=connect_timeout)

    @asynccontextmanager
    async def collect(self, queue: str, receive: ReceiveDead, *, prefetch_count: int) -> "AsyncIterator[asyncio.Event]":
        """See `outbox.ports.DeadLetterQueues.collect`."""

        def arrived(source: ConsumerChannel, arrival: Arrival) -> None:
            receive(RabbitDeadDelivery(queue, arrival, source))

        channel = await self._consume(queue, arrived, prefetch_count)
        try:
            yield channel.ended
        finally:
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
                keep_headers=True,
            )
        except UnresponsiveError:
            self._link.discard(connection)
            raise


class RabbitDeadDelivery:
    """Implements `outbox.ports.DeadDelivery`."""

    __slots__ = ("_arrival", "_dead", "_queue", "_source")

    def __init__(self, queue: str, arrival: Arrival, source: ConsumerChannel) -> None:
        self._queue = queue
        self._arrival = arrival
        self._source = source
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


def _nobody_counts(_: Arrival) -> None:
    """How often a dead letter came back says nothing about it."""
