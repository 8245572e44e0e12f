"""A channel that consumes one queue: receives deliveries, sends acknowledgements."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING

from aiormq.abc import ChannelFrame
from aiormq.exceptions import AMQPChannelError, ChannelClosed
from pamqp.commands import Basic
from pamqp.constants import REPLY_SUCCESS

from outbox.errors import BrokerUnavailableError, StaleDeliveryError, TopologyError
from outbox.transports.rabbitmq.connection import (
    UnresponsiveError,
    broker_version,
    preserve_cancellation,
    translate_connection_errors,
)
from outbox.transports.rabbitmq.frame_tap import FrameHandler, FrameTap, InterceptedConnection, abandon
from outbox.transports.rabbitmq.inbound import Acknowledgements, Arrival, Assembly
from outbox.transports.rabbitmq.publish_channel import connection_error
from outbox.transports.rabbitmq.topology import AccessRefused, NotFound

if TYPE_CHECKING:
    from aiormq.abc import AbstractChannel, AbstractConnection

_TIMEOUT = timedelta(seconds=10)
_CLOSING = timedelta(seconds=3)
_RETURNS_NOT_COUNTED_SINCE = (4, 3)
_WRITE_AGAIN = timedelta(milliseconds=5)
_SHORTEN_OR_RAISE = "shorten the consumer's timeout, or raise consumer_timeout in rabbitmq.conf"
_CANCELLED = (
    "the broker cancelled the consumer: its queue was deleted or its leader moved or, from RabbitMQ 4.3 on, a message was in "
    f"flight for longer than the broker's consumer_timeout: {_SHORTEN_OR_RAISE}"
)


OnArrival = Callable[["ConsumerChannel", Arrival], None]
OnReturned = Callable[[Arrival], None]


class ConsumerChannel:
    """Calls `on_arrival` for each delivery between `consume` and `cancel`. Gives back deliveries that arrive later.

    `in_order`: deliveries that are given back at the end are redelivered in their order, and no other consumer gets later ones
    before all deliveries in flight are answered. `in_flight` are the deliveries not answered yet. `on_returned` is called with
    each delivery that goes back to the broker and is counted there as if its worker had crashed. `ended` is set when no
    delivery can arrive or be answered any more; `reason` says why.
    """

    def __init__(
        self,
        channel: "AbstractChannel",
        *,
        on_arrival: OnArrival,
        on_returned: OnReturned,
        in_order: bool = False,
    ) -> None:
        self.in_flight: dict[int, Arrival] = {}
        self.ended = asyncio.Event()
        self.reason = ""
        self._channel = channel
        self._deliver = on_arrival
        self._on_returned = on_returned
        self._in_order = in_order
        self._returns_count = broker_version(channel.connection) < _RETURNS_NOT_COUNTED_SINCE
        self._unwritten = b""
        self._consumer_tag: str | None = None
        self._delivering = True
        self._cancelled = False
        self._late: list[int] = []
        self._acknowledgements = Acknowledgements(channel.number, self._write)
        self._assembly = Assembly(self._on_arrival)
        # The broker sends `Basic.Cancel` when the queue was deleted or its leader moved. aiormq must see it, too.
        watched: dict[type, FrameHandler] = {Basic.Cancel: lambda _: self._end(_CANCELLED)}
        self._tap = FrameTap(channel, self._assembly.handlers, watched=watched)
        if isinstance(channel.connection, InterceptedConnection):
            channel.connection.stream.divert(channel.number, self._assembly.take)
        channel.closing.add_done_callback(self._on_closed)

    @classmethod
    async def open(
        cls,
        connection: "AbstractConnection",
        queue: str,
        *,
        prefetch_count: int,
        on_arrival: OnArrival,
        on_returned: OnReturned,
        in_order: bool = False,
    ) -> "ConsumerChannel":
        """Opens a channel and consumes `queue`. Raises `BrokerUnavailableError`, or `TopologyError` if that is not allowed."""
        try:
            async with asyncio.timeout(_TIMEOUT.total_seconds()):
                with translate_connection_errors():
                    channel = await connection.channel(publisher_confirms=False)
                    consumer = cls(channel, on_arrival=on_arrival, on_returned=on_returned, in_order=in_order)
                    try:
                        await consumer.consume(queue, prefetch_count)
                        return consumer
                    except BaseException:
                        consumer._end("closed")
                        abandon(channel)
                        raise
        except (NotFound, AccessRefused) as error:
            raise TopologyError(f"queue {queue!r} cannot be consumed from: {error}") from None
        except TimeoutError:
            raise UnresponsiveError("the broker does not answer") from None
        except AMQPChannelError as error:
            raise BrokerUnavailableError(f"queue {queue!r} cannot be consumed from now: {error}") from None

    async def consume(self, queue: str, prefetch_count: int) -> None:
        """Begins to consume: deliveries can arrive from now on."""
        await self._channel.basic_qos(prefetch_count=prefetch_count)
        # Deliveries arrive before this call returns. If it is cancelled, aiormq closes the channel, and for an answer on it the
        # broker would end the connection.
        self._acknowledgements.hold()
        self._consumer_tag = (await self._channel.basic_consume(queue, _never_called)).consumer_tag
        self._acknowledgements.release()

    async def consume_again(self, queue: str, prefetch_count: Callable[[], Awaitable[int]]) -> None:
        """Stops consuming, and consumes again with the prefetch count that the call returns. Ends the channel if that fails.

        Deliveries in flight remain so, and do not count against the new prefetch count.
        """
        try:
            with translate_connection_errors():
                async with asyncio.timeout(_TIMEOUT.total_seconds()):
                    await self._channel.basic_cancel(self._consumer_tag or "")
                count = await prefetch_count()
                async with asyncio.timeout(_TIMEOUT.total_seconds()):
                    await self.consume(queue, count)
        except (AMQPChannelError, BrokerUnavailableError, TimeoutError) as error:
            self._end(str(error))

    @property
    def channel(self) -> "AbstractChannel":
        """The channel underneath."""
        return self._channel

    @property
    def lost(self) -> bool:
        """Whether deliveries in flight can no longer be settled."""
        return self.ended.is_set() or self._tap.close_reason is not None

    def require_open(self) -> None:
        """Raises `StaleDeliveryError` if deliveries in flight can no longer be settled."""
        if self.lost:
            raise StaleDeliveryError(f"the channel of the delivery has ended: {self.reason or 'closed by the broker'}")

    def ack(self, tag: int) -> None:
        """Acknowledges a delivery. Raises `StaleDeliveryError` if the channel has ended."""
        self.require_open()
        self.in_flight.pop(tag, None)
        self._acknowledgements.ack(tag)

    def give_back(self, tag: int) -> None:
        """Returns a delivery to its queue. Raises `StaleDeliveryError` if the channel has ended."""
        self.require_open()
        self._give_back(tag)

    def reject(self, tag: int) -> None:
        """Has the broker dead-letter a delivery. Raises `StaleDeliveryError` if the channel has ended."""
        self.require_open()
        self.in_flight.pop(tag, None)
        self._acknowledgements.reject(tag)

    async def flush(self) -> None:
        """Returns when all answers so far were sent, or can no longer be sent."""
        self._acknowledgements.flush()
        async with _best_effort(_CLOSING):
            await self._drain()

    def hold(self) -> None:
        """Stops calling `on_arrival`, and holds answers back until `cancel` is done."""
        self._delivering = False
        # Each answer frees prefetch: the broker would send another message, only to count its return as a failed delivery.
        if not self._in_order:
            self._acknowledgements.hold()

    async def cancel(self) -> None:
        """Stops consuming, and gives back deliveries that still arrive. Deliveries in flight can still be settled."""
        self.hold()
        # A cancelled single active consumer is replaced at once: the next one would get later messages while earlier ones are
        # still in flight here. Closing the channel instead returns those first.
        if self._in_order:
            return
        if self._consumer_tag is not None and not self._cancelled:
            async with _best_effort(_CLOSING):
                await self._channel.basic_cancel(self._consumer_tag)
            self._cancelled = True
        for tag in self._late:
            self._give_back(tag)
        self._late.clear()
        self._acknowledgements.release()

    async def close(self) -> None:
        """Gives back all deliveries in flight and closes the channel."""
        if not self.ended.is_set():
            if self._in_order:
                self._acknowledgements.flush()
            else:
                # Explicitly, because some brokers count a delivery that a closed channel returns as failed.
                self._acknowledgements.give_back_all()
            for arrival in self.in_flight.values():
                self._record_return(arrival)
            self.in_flight.clear()
            self._end("closed")
        async with _best_effort(_CLOSING):
            await self._drain()
        # What could not be written in time is dropped: the channel returns those deliveries when it closes.
        self._unwritten = b""
        async with _best_effort(_CLOSING):
            await self._channel.close(ChannelClosed(REPLY_SUCCESS, "closed by this side"))

    def _on_arrival(self, arrival: Arrival) -> None:
        if self.ended.is_set():
            return
        tag = arrival.tag
        self.in_flight[tag] = arrival
        self._acknowledgements.arrived(tag)
        if self._delivering:
            self._deliver(self, arrival)
        elif self._cancelled:
            self._give_back(tag)
        else:
            # Given back only after the cancellation: before, the broker would send it straight back to this consumer.
            arrival.body = b""  # frees the memory: it is not read any more
            self._late.append(tag)

    def _give_back(self, tag: int) -> None:
        """Returns a delivery to its queue."""
        self._record_return(self.in_flight.pop(tag, None))
        # In order, after `hold`, the closing channel returns it: only then the queue puts all returned messages in their order.
        if self._delivering or not self._in_order:
            self._acknowledgements.give_back(tag)

    def _write(self, frames: bytes) -> None:
        """Hands frames to the connection, or retries a little later while it is congested."""
        if self.ended.is_set():
            return
        # All frames leave in order: an acknowledgement with `multiple` would also cover earlier deliveries whose return is
        # still unwritten.
        congested = bool(self._unwritten)
        self._unwritten += frames
        if not congested:
            self._write_again()

    def _write_again(self) -> None:
        if not self._unwritten or self._channel.is_closed or self._tap.close_reason is not None:
            self._unwritten = b""
            return
        try:
            self._channel.connection.write_queue.put_nowait(ChannelFrame(payload=self._unwritten, should_close=False))
        except asyncio.QueueFull:
            asyncio.get_running_loop().call_later(_WRITE_AGAIN.total_seconds(), self._write_again)
        else:
            self._unwritten = b""

    async def _drain(self) -> None:
        """Returns when all frames written so far were handed to the socket."""
        while self._unwritten:  # noqa: ASYNC110  as often as `_write_again` tries
            await asyncio.sleep(_WRITE_AGAIN.total_seconds())
        # The connection writes its queue in order, so an empty entry is done when everything before it has left.
        drained = self._channel.create_future()
        frame = ChannelFrame(payload=b"", should_close=False, drain_future=drained)
        await self._channel.create_task(self._channel.connection.write_queue.put(frame))
        await drained

    def _on_closed(self, closing: "asyncio.Future[None]") -> None:
        if isinstance(self._channel.connection, InterceptedConnection):
            self._channel.connection.stream.restore(self._channel.number, self._assembly.take)
        error = None if closing.cancelled() else closing.exception()
        if self._tap.close_reason is None:
            self._end(connection_error(self._channel.connection, error).text)
            return
        reason = self._tap.close_reason[1]
        # The broker's own text about its consumer_timeout names neither the cause nor a remedy.
        if "delivery acknowledgement" in reason and "timed out" in reason:
            reason = (
                "a message was in flight for longer than the broker's consumer_timeout, so all in flight are redelivered: "
                f"{_SHORTEN_OR_RAISE} ({reason})"
            )
        self._end(reason)

    def _end(self, reason: str) -> None:
        if self.ended.is_set():
            return
        self.reason = reason
        self.ended.set()
        for arrival in self.in_flight.values():
            self._on_returned(arrival)
        self.in_flight.clear()

    def _record_return(self, arrival: Arrival | None) -> None:
        if arrival is not None and self._returns_count:
            self._on_returned(arrival)


@asynccontextmanager
async def _best_effort(limit: timedelta) -> AsyncIterator[None]:
    """Runs the block for up to `limit`. Ignores errors and a timeout of the channel."""
    with preserve_cancellation() as cancelled:
        with suppress(AMQPChannelError, BrokerUnavailableError, TimeoutError):
            async with asyncio.timeout(limit.total_seconds()):
                with translate_connection_errors():
                    yield
        if cancelled():
            raise asyncio.CancelledError  # aiormq may have swallowed it


async def _never_called(_: object) -> None:
    """Never called: deliveries are intercepted before aiormq sees them."""
