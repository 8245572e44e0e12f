"""A channel that consumes from one queue: deliveries in, acknowledgements out."""

import asyncio
from collections.abc import AsyncIterator, Callable
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
from outbox.transports.rabbitmq.publish_channel import connection_cut
from outbox.transports.rabbitmq.topology import NotAllowed, NotThere

if TYPE_CHECKING:
    from aiormq.abc import AbstractChannel, AbstractConnection

_TIMEOUT = timedelta(seconds=10)
_CLOSING = timedelta(seconds=3)
_RETURNS_DO_NOT_COUNT_SINCE = (4, 3)
_WRITE_AGAIN = timedelta(milliseconds=5)


Arrived = Callable[["ConsumerChannel", Arrival], None]
LetGo = Callable[[Arrival], None]


class ConsumerChannel:
    """Calls `arrived` for each delivery from `consume` to `cancel`; what comes later is given back.

    `in_order`: whatever is given back at the end comes again in the order in which it came, and no other consumer gets what
    follows before everything in flight is answered. `in_hand` are those not answered yet. `let_go` is called with each
    that goes back to the broker, and counts there as if its worker had died. `ended` is set when nothing more will come and
    nothing can be answered: `reason` says why.
    """

    def __init__(
        self,
        channel: "AbstractChannel",
        *,
        arrived: Arrived,
        let_go: LetGo,
        in_order: bool = False,
    ) -> None:
        self.in_hand: dict[int, Arrival] = {}
        self.ended = asyncio.Event()
        self.reason = ""
        self._channel = channel
        self._arrived = arrived
        self._let_go = let_go
        self._in_order = in_order
        self._returns_count = broker_version(channel.connection) < _RETURNS_DO_NOT_COUNT_SINCE
        self._unwritten = b""
        self._consumer_tag: str | None = None
        self._handing_over = True
        self._cancelled = False
        self._late: list[int] = []
        self._acknowledgements = Acknowledgements(channel.number, self._write)
        self._assembly = Assembly(self._on_arrival)
        # `Basic.Cancel`: the queue was deleted, or its leader moved.
        watched: dict[type, FrameHandler] = {Basic.Cancel: lambda _: self._end("the broker cancelled the consumer")}
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
        arrived: Arrived,
        let_go: LetGo,
        in_order: bool = False,
    ) -> "ConsumerChannel":
        """A channel that consumes. Raises `BrokerUnavailableError`, or `TopologyError` if the queue cannot be consumed."""
        try:
            async with asyncio.timeout(_TIMEOUT.total_seconds()):
                with translate_connection_errors():
                    channel = await connection.channel(publisher_confirms=False)
                    try:
                        consumer = cls(channel, arrived=arrived, let_go=let_go, in_order=in_order)
                        await consumer.consume(queue, prefetch_count)
                        return consumer
                    except BaseException:
                        abandon(channel)
                        raise
        except (NotThere, NotAllowed) as error:
            raise TopologyError(f"queue {queue!r} cannot be consumed from: {error}") from None
        except TimeoutError:
            raise UnresponsiveError("the broker does not answer") from None
        except AMQPChannelError as error:
            raise BrokerUnavailableError(f"queue {queue!r} cannot be consumed from now: {error}") from None

    async def consume(self, queue: str, prefetch_count: int) -> None:
        """Deliveries come from here on."""
        await self._channel.basic_qos(prefetch_count=prefetch_count)
        self._consumer_tag = (await self._channel.basic_consume(queue, _never_called)).consumer_tag

    @property
    def channel(self) -> "AbstractChannel":
        """The channel underneath."""
        return self._channel

    @property
    def lost(self) -> bool:
        """Whether nothing in flight can be settled any more."""
        return self.ended.is_set() or self._tap.close_reason is not None

    def require_open(self) -> None:
        """Raises `StaleDeliveryError` if nothing in flight can be settled any more."""
        if self.lost:
            raise StaleDeliveryError(f"the channel of the delivery has ended: {self.reason or 'closed by the broker'}")

    def ack(self, tag: int) -> None:
        """Lets the broker forget a delivery. Raises `StaleDeliveryError` if the channel has ended."""
        self.require_open()
        self.in_hand.pop(tag, None)
        self._acknowledgements.ack(tag)

    def give_back(self, tag: int) -> None:
        """Has a delivery delivered again. Raises `StaleDeliveryError` likewise."""
        self.require_open()
        self._give_back(tag)

    def reject(self, tag: int) -> None:
        """Has the broker dead-letter a delivery. Raises `StaleDeliveryError` likewise."""
        self.require_open()
        self.in_hand.pop(tag, None)
        self._acknowledgements.reject(tag)

    async def flush(self) -> None:
        """Returns when the answers given so far have left for the broker, or can no longer."""
        self._acknowledgements.flush()
        async with _courtesy(_CLOSING):
            await self._drain()

    def hold(self) -> None:
        """From here on nothing is handed over, and no answer leaves until `cancel` is done.

        Each answer would have the broker send more, which it may count as failed deliveries when it takes them back.
        """
        self._handing_over = False
        if not self._in_order:
            self._acknowledgements.hold()

    async def cancel(self) -> None:
        """Nothing is handed over any more; what is on its way is given back. What is in flight can still be settled.

        In order, the consumer is not cancelled before the channel is closed: the queue would turn to the next one at once,
        which would receive what follows while this one still has what comes before.
        """
        self.hold()
        if self._in_order:
            return
        if self._consumer_tag is not None and not self._cancelled:
            async with _courtesy(_CLOSING):
                await self._channel.basic_cancel(self._consumer_tag)
            self._cancelled = True
        for tag in self._late:
            self._give_back(tag)
        self._late.clear()
        self._acknowledgements.release()

    async def close(self) -> None:
        """Gives back whatever is in flight, and ends."""
        if not self.ended.is_set():
            if self._in_order:
                self._acknowledgements.flush()
            else:
                # Explicitly: closing alone counts as a failed delivery on some brokers.
                self._acknowledgements.give_back_all()
            for arrival in self.in_hand.values():
                self._returned(arrival)
            self.in_hand.clear()
            self._end("closed")
        async with _courtesy(_CLOSING):
            await self._drain()
        self._unwritten = b""  # the broker takes nothing from a channel that it has closed
        async with _courtesy(_CLOSING):
            await self._channel.close(ChannelClosed(REPLY_SUCCESS, "closed by this side"))

    def _on_arrival(self, arrival: Arrival) -> None:
        if self.ended.is_set():
            return
        tag = arrival.tag
        self.in_hand[tag] = arrival
        self._acknowledgements.arrived(tag)
        if self._handing_over:
            self._arrived(self, arrival)
        elif self._cancelled:
            self._give_back(tag)
        else:
            # Given back after the cancellation: before, it would come straight back to us. Until then it is not read.
            arrival.body = b""
            self._late.append(tag)

    def _give_back(self, tag: int) -> None:
        """In order, from `hold` on, by closing the channel: then the queue sorts what comes back, and only then."""
        self._returned(self.in_hand.pop(tag, None))
        if self._handing_over or not self._in_order:
            self._acknowledgements.give_back(tag)

    def _write(self, frames: bytes) -> None:
        """Hands frames to the connection; when it is congested, a little later.

        Always in order: an acknowledgement of a run would cover what was to be given back before it.
        """
        if self.ended.is_set():
            return
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
        """Returns when all frames written so far are on their way."""
        while self._unwritten:  # noqa: ASYNC110  as often as `_write_again` tries
            await asyncio.sleep(_WRITE_AGAIN.total_seconds())
        drained = self._channel.create_future()
        frame = ChannelFrame(payload=b"", should_close=False, drain_future=drained)
        await self._channel.create_task(self._channel.connection.write_queue.put(frame))
        await drained

    def _on_closed(self, closing: "asyncio.Future[None]") -> None:
        if isinstance(self._channel.connection, InterceptedConnection):
            self._channel.connection.stream.restore(self._channel.number, self._assembly.take)
        error = None if closing.cancelled() else closing.exception()
        if self._tap.close_reason is None:
            self._end(connection_cut(self._channel.connection, error).text)
            return
        reason = self._tap.close_reason[1]
        # What the broker says of its consumer_timeout names neither the cause nor the remedy.
        if "delivery acknowledgement" in reason and "timed out" in reason:
            reason = (
                "a message was in flight for longer than the broker's consumer_timeout, so all that were come again: "
                f"shorten the consumer's timeout, or raise consumer_timeout in rabbitmq.conf ({reason})"
            )
        self._end(reason)

    def _end(self, reason: str) -> None:
        if self.ended.is_set():
            return
        self.reason = reason
        self.ended.set()
        for arrival in self.in_hand.values():
            self._let_go(arrival)
        self.in_hand.clear()

    def _returned(self, arrival: Arrival | None) -> None:
        if arrival is not None and self._returns_count:
            self._let_go(arrival)


@asynccontextmanager
async def _courtesy(limit: timedelta) -> AsyncIterator[None]:
    """What is polite to do on a channel, and no harm if it has ended or does not answer."""
    with preserve_cancellation() as cancelled:
        with suppress(AMQPChannelError, BrokerUnavailableError, TimeoutError):
            async with asyncio.timeout(limit.total_seconds()):
                with translate_connection_errors():
                    yield
        if cancelled():
            raise asyncio.CancelledError  # aiormq may have kept it to itself


async def _never_called(_: object) -> None:
    """Deliveries are tapped before aiormq sees them."""
