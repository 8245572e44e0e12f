"""One message in hand from RabbitMQ."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, assert_never

from aio_pika import IncomingMessage
from aiormq.abc import DeliveredMessage

from outbox.errors import MalformedMessageError, StaleDeliveryError
from outbox.message import NO_HEADERS, Message
from outbox.outcome import Dead, DeliveryOutcome, Done, Failure, Retry, Returned
from outbox.transports.rabbitmq.wire import ISOLATED, read_attempt, read_count, read_message, read_routing_key

if TYPE_CHECKING:
    from datetime import timedelta

    from outbox.transports.rabbitmq.receiving import Arrival, ConsumerChannel


class Settlement(Protocol):
    """What it takes to settle otherwise than by an acknowledgement."""

    async def retry(self, delivery: "RabbitDelivery", delay: "timedelta") -> None:
        """Has a copy wait for `delay`, then acknowledges."""
        ...

    async def bury(self, delivery: "RabbitDelivery", failure: Failure) -> None:
        """Puts a copy with the failure among the dead letters, then acknowledges."""
        ...

    async def give_back(self, delivery: "RabbitDelivery") -> None:
        """Has the message delivered again as it is."""
        ...

    async def isolate(self, delivery: "RabbitDelivery") -> None:
        """Queues a marked copy, then acknowledges."""
        ...

    def alone(self, delivery: "RabbitDelivery") -> None:
        """The message is marked, and runs now."""
        ...

    def survived(self, mark: str) -> int:
        """How many deliveries of the marked message ended with a lost connection, not with the death of this worker."""
        ...


class RabbitDelivery:
    """Implements `outbox.ports.Delivery`. What it carries is read when it is asked for, once."""

    __slots__ = ("_incoming", "_message", "_settlement", "arrival", "settled", "source")

    def __init__(self, arrival: "Arrival", source: "ConsumerChannel", settlement: Settlement) -> None:
        self.arrival = arrival
        self.source = source
        self._settlement = settlement
        self._message: Message | None = None
        self._incoming: IncomingMessage | None = None
        self.settled = False

    @property
    def tag(self) -> int:
        """The number by which the broker knows it on its channel."""
        return self.arrival.method.delivery_tag or 0

    @property
    def headers(self) -> Mapping[str, Any]:
        """As they arrived."""
        return self.arrival.header.properties.headers or NO_HEADERS

    @property
    def message(self) -> Message:
        """See `outbox.ports.Delivery`."""
        if self._message is None:
            arrival = self.arrival
            self._message = read_message(arrival.header.properties, arrival.method.routing_key or "", arrival.body)
        return self._message

    @property
    def incoming(self) -> IncomingMessage:
        """The aio-pika message, with its original routing key. It is settled by its outcome: acknowledging it is refused."""
        if self._incoming is None:
            arrival = self.arrival
            delivered = DeliveredMessage(
                delivery=arrival.method, header=arrival.header, body=arrival.body, channel=self.source.channel
            )
            self._incoming = IncomingMessage(delivered, no_ack=True)
            self._incoming.routing_key = self.routing_key
        return self._incoming

    @property
    def attempt(self) -> int:
        """See `outbox.ports.Delivery`."""
        return read_attempt(self.headers)

    @property
    def crashes(self) -> int:
        """How often its queue took it back. Brokers before 4.3 also count what was given back in good order."""
        return read_count(self.headers)

    @property
    def mark(self) -> str | None:
        """The mark of a message that runs alone."""
        mark = self.headers.get(ISOLATED)
        return None if mark is None else str(mark)

    @property
    def blamed(self) -> bool:
        """See `outbox.ports.Delivery`. A connection that was lost while this worker lived on is nobody's death."""
        mark = self.mark
        return mark is not None and self.crashes > self._settlement.survived(mark)

    @property
    def message_id(self) -> str:
        """Its id; "" if it has none that can be read. A copy of it must have the same."""
        try:
            return self.message.id
        except MalformedMessageError:
            return self.arrival.header.properties.message_id or ""

    @property
    def routing_key(self) -> str:
        """What it was first sent with, as far as that can be read."""
        arrived_with = self.arrival.method.routing_key or ""
        try:
            return read_routing_key(self.headers, arrived_with)
        except MalformedMessageError:
            return arrived_with

    async def isolate(self) -> bool:
        """See `outbox.ports.Delivery`."""
        self._require_unsettled()
        if self.mark is None:
            await self._settlement.isolate(self)
            return False
        self._settlement.alone(self)
        return True

    async def settle(self, outcome: DeliveryOutcome) -> None:
        """See `outbox.ports.Delivery`."""
        self._require_unsettled()
        match outcome:
            case Done():
                self.ack()
            case Retry(delay):
                await self._settlement.retry(self, delay)
            case Dead(_, failure):
                await self._settlement.bury(self, failure)
            case Returned():
                await self._settlement.give_back(self)
            case _:
                assert_never(outcome)

    def ack(self) -> None:
        """The broker may forget it. Raises `StaleDeliveryError`."""
        self.source.ack(self.tag)
        self.settled = True

    def give_back(self) -> None:
        """The broker shall deliver it again. Raises `StaleDeliveryError`."""
        self.source.give_back(self.tag)
        self.settled = True

    def reject(self) -> None:
        """The broker shall dead-letter it. Raises `StaleDeliveryError`."""
        self.source.reject(self.tag)
        self.settled = True

    async def pause(self, seconds: float) -> None:
        """Waits before another try. Raises `StaleDeliveryError` as soon as the delivery is no longer ours."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.source.ended.wait(), seconds)
        self.source.require_open()

    def _require_unsettled(self) -> None:
        if self.settled:
            raise StaleDeliveryError("the delivery was settled before")
        self.source.require_open()
