"""One channel that consumes from one queue: deliveries put together from their frames, and the answers to them."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from aiormq.abc import ChannelFrame
from aiormq.exceptions import AMQPChannelError
from pamqp.body import ContentBody
from pamqp.commands import Basic
from pamqp.header import ContentHeader

from outbox.errors import BrokerUnavailableError, StaleDeliveryError, TopologyError
from outbox.transports.rabbitmq.acknowledging import Acknowledgements
from outbox.transports.rabbitmq.confirming import connection_cut
from outbox.transports.rabbitmq.connection import CONNECTION_ERRORS, UnresponsiveError
from outbox.transports.rabbitmq.inquiry import NotAllowed, NotThere
from outbox.transports.rabbitmq.tapping import Tap, abandon
from outbox.urls import redacted

if TYPE_CHECKING:
    from aiormq.abc import AbstractChannel, AbstractConnection

_TIMEOUT = timedelta(seconds=10)
_CLOSING = timedelta(seconds=3)
_WRITE_AGAIN = timedelta(milliseconds=5)


@dataclass(frozen=True, slots=True)
class Arrival:
    """What the broker delivered, as it came."""

    method: Basic.Deliver
    header: ContentHeader
    body: bytes


class ConsumerChannel:
    """Calls `arrived` for each delivery from the moment it is open until `cancel`; afterwards they are given back.

    `ended` is set when nothing more will come and nothing in hand can be settled: `reason` says why.
    """

    def __init__(self, channel: "AbstractChannel", arrived: Callable[["ConsumerChannel", Arrival], None]) -> None:
        self.ended = asyncio.Event()
        self.reason = ""
        self._channel = channel
        self._arrived = arrived
        self._method: Basic.Deliver | None = None
        self._header: ContentHeader | None = None
        self._pieces: list[bytes] = []
        self._missing = 0
        self._unwritten = b""
        self._consumer_tag: str | None = None
        self._cancelling = False
        self._late: list[int] = []
        self._acknowledgements = Acknowledgements(channel.number, self._write)
        self._tap = Tap(
            channel,
            {Basic.Deliver: self._on_deliver, ContentHeader: self._on_header, ContentBody: self._on_body},
        )
        channel.closing.add_done_callback(self._on_closed)
        channel.on_consumer_cancel_callbacks.add(self._on_cancelled_by_broker)

    @classmethod
    async def open(
        cls,
        connection: "AbstractConnection",
        queue: str,
        *,
        prefetch_count: int,
        arrived: Callable[["ConsumerChannel", Arrival], None],
    ) -> "ConsumerChannel":
        """A channel that consumes. Raises `BrokerUnavailableError`, or `TopologyError` if the queue cannot be consumed."""
        try:
            async with asyncio.timeout(_TIMEOUT.total_seconds()):
                channel = await connection.channel(publisher_confirms=False)
                try:
                    consumer = cls(channel, arrived)
                    await consumer.consume(queue, prefetch_count)
                    return consumer
                except BaseException:
                    abandon(channel)
                    raise
        except (NotThere, NotAllowed) as error:
            raise TopologyError(f"queue {queue!r} cannot be consumed from: {error}") from None
        except TimeoutError:
            raise UnresponsiveError("the broker does not answer") from None
        except CONNECTION_ERRORS as error:
            raise BrokerUnavailableError(f"queue {queue!r} cannot be consumed from now: {redacted(str(error))}") from None

    async def consume(self, queue: str, prefetch_count: int) -> None:
        """Deliveries come from here on."""
        await self._channel.basic_qos(prefetch_count=prefetch_count)
        self._consumer_tag = (await self._channel.basic_consume(queue, _never_called)).consumer_tag

    @property
    def channel(self) -> "AbstractChannel":
        """The channel underneath."""
        return self._channel

    def require_open(self) -> None:
        """Raises `StaleDeliveryError` if nothing in hand can be settled any more."""
        if self.ended.is_set() or self._tap.close_reason is not None:
            raise StaleDeliveryError(f"the channel of the delivery has ended: {self.reason or 'closed by the broker'}")

    def ack(self, tag: int) -> None:
        """Lets go of a delivery. Raises `StaleDeliveryError` if the channel has ended."""
        self.require_open()
        self._acknowledgements.ack(tag)

    def give_back(self, tag: int) -> None:
        """Has a delivery delivered again. Raises `StaleDeliveryError` likewise."""
        self.require_open()
        self._acknowledgements.give_back(tag)

    def reject(self, tag: int) -> None:
        """Has the broker dead-letter a delivery. Raises `StaleDeliveryError` likewise."""
        self.require_open()
        self._acknowledgements.reject(tag)

    async def cancel(self) -> None:
        """No delivery is handed over any more; what is on its way is given back. What is in hand can still be settled."""
        if self._cancelling or self._consumer_tag is None:
            return
        self._cancelling = True
        with suppress(AMQPChannelError, *CONNECTION_ERRORS):
            async with asyncio.timeout(_TIMEOUT.total_seconds()):
                await self._channel.basic_cancel(self._consumer_tag)
        for tag in self._late:
            self._acknowledgements.give_back(tag)
        self._late.clear()

    async def close(self) -> None:
        """Gives back whatever is in hand, and ends."""
        if not self.ended.is_set():
            # Explicitly: closing alone counts as a failed delivery on some brokers.
            self._acknowledgements.give_back_all()
            self._end("closed")
        with suppress(AMQPChannelError, *CONNECTION_ERRORS):
            async with asyncio.timeout(_CLOSING.total_seconds()):
                await self._flush()
                await self._channel.close()

    def _on_deliver(self, frame: Basic.Deliver) -> None:
        self._method = frame

    def _on_header(self, frame: ContentHeader) -> None:
        self._header, self._pieces, self._missing = frame, [], frame.body_size
        if not self._missing:
            self._complete()

    def _on_body(self, frame: ContentBody) -> None:
        self._pieces.append(frame.value)
        self._missing -= len(frame.value)
        if self._missing <= 0:
            self._complete()

    def _complete(self) -> None:
        method, header = self._method, self._header
        if method is None or header is None or self.ended.is_set():
            return
        tag = method.delivery_tag or 0
        self._acknowledgements.arrived(tag)
        if self._cancelling:
            # Given back after the cancellation: before, it would come straight back to us.
            self._late.append(tag)
            return
        body = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._arrived(self, Arrival(method, header, body))

    def _write(self, frames: bytes) -> None:
        """Hands frames to the connection, in order; when it is congested, a little later."""
        if self.ended.is_set():
            return
        congested = bool(self._unwritten)
        self._unwritten += frames
        if not congested:
            self._write_again()

    def _write_again(self) -> None:
        if self.ended.is_set() or not self._unwritten:
            return
        try:
            self._channel.connection.write_queue.put_nowait(ChannelFrame(payload=self._unwritten, should_close=False))
        except asyncio.QueueFull:
            asyncio.get_running_loop().call_later(_WRITE_AGAIN.total_seconds(), self._write_again)
        else:
            self._unwritten = b""

    async def _flush(self) -> None:
        if self._unwritten:
            frames, self._unwritten = self._unwritten, b""
            await self._channel.connection.write_queue.put(ChannelFrame(payload=frames, should_close=False))

    def _on_cancelled_by_broker(self, _: object) -> None:
        """The queue was deleted, or its leader moved."""
        self._end("the broker cancelled the consumer")

    def _on_closed(self, closing: "asyncio.Future[None]") -> None:
        error = None if closing.cancelled() else closing.exception()
        if self._tap.close_reason is not None:
            self._end(self._tap.close_reason[1])
        else:
            self._end(connection_cut(self._channel.connection, error).text)

    def _end(self, reason: str) -> None:
        if not self.ended.is_set():
            self.reason = reason
            self.ended.set()


async def _never_called(_: object) -> None:
    """Deliveries are tapped before aiormq sees them."""
