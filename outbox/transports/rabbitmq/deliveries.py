"""One message in hand from RabbitMQ."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, assert_never

from aio_pika import IncomingMessage
from aiormq.abc import DeliveredMessage
from pamqp.commands import Basic
from pamqp.header import ContentHeader

from outbox.core.codec import ATTEMPT, FAILURES
from outbox.core.failures import encode_trail
from outbox.core.message import NO_HEADERS, Message
from outbox.core.outcome import Cause, Dead, DeliveryOutcome, Done, Failure, Postponed, Retry, Returned
from outbox.errors import MalformedMessageError, StaleDeliveryError
from outbox.transports.rabbitmq.failing import failures_after
from outbox.transports.rabbitmq.wire import CRASHES, DELIVERY_COUNT, read_attempt, read_count, read_message, read_routing_key

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta

    from outbox.core.failures import FailedAttempt
    from outbox.transports.rabbitmq.arriving import Arrival
    from outbox.transports.rabbitmq.receiving import ConsumerChannel


class Settlement(Protocol):
    """What it takes to settle otherwise than by an acknowledgement."""

    async def retry(self, delivery: "RabbitDelivery", delay: "timedelta", failure: Failure) -> None:
        """Has a copy for the next attempt wait for `delay`, then acknowledges."""
        ...

    async def postpone(self, delivery: "RabbitDelivery", delay: "timedelta") -> None:
        """Has a copy for the same attempt wait for `delay`, then acknowledges."""
        ...

    async def bury(self, delivery: "RabbitDelivery", cause: Cause, failure: Failure) -> None:
        """Puts a copy with the failure among the dead letters, then acknowledges."""
        ...

    async def give_back(self, delivery: "RabbitDelivery") -> None:
        """Has the message delivered again as it is."""
        ...

    async def isolate(self, delivery: "RabbitDelivery") -> None:
        """Queues a marked copy, then acknowledges."""
        ...

    async def begin_alone(self, delivery: "RabbitDelivery") -> None:
        """Afterwards no other marked message is in hand, and none arrives."""
        ...

    def end_alone(self, delivery: "RabbitDelivery") -> None:
        """The end of that."""
        ...

    def survivals(self, delivery: "RabbitDelivery") -> int:
        """How many earlier deliveries ended in this process without its death, and were counted all the same."""
        ...


class RabbitDelivery:
    """Implements `outbox.ports.Delivery`. What it carries is read when it is asked for, once.

    `noted` are the headers that its attempts in flight have changed.
    """

    __slots__ = ("_alone", "_incoming", "_message", "_settlement", "arrival", "noted", "settled", "source")

    def __init__(self, arrival: "Arrival", source: "ConsumerChannel", settlement: Settlement) -> None:
        self.arrival = arrival
        self.source = source
        self._settlement = settlement
        self._message: Message | None = None
        self._incoming: IncomingMessage | None = None
        self._alone = False
        self.noted: Mapping[str, Any] = NO_HEADERS
        self.settled = False

    @property
    def message(self) -> Message:
        """See `outbox.ports.Delivery`."""
        if self._message is None:
            arrival = self.arrival
            if arrival.defect:
                raise MalformedMessageError(arrival.defect)
            self._message = read_message(arrival.properties, arrival.method.routing_key, arrival.body)
        return self._message

    @property
    def incoming(self) -> IncomingMessage:
        """The aio-pika message, with its original routing key. It is settled by its outcome: acknowledging it is refused."""
        if self._incoming is None:
            arrival = self.arrival
            method = Basic.Deliver(**(arrival.method._asdict() | {"routing_key": self.routing_key}))
            header = ContentHeader(body_size=len(arrival.body), properties=arrival.properties)
            delivered = DeliveredMessage(delivery=method, header=header, body=arrival.body, channel=self.source.channel)
            self._incoming = IncomingMessage(delivered, no_ack=True)
        return self._incoming

    @property
    def attempt(self) -> int:
        """See `outbox.ports.Delivery`."""
        return read_attempt(self.headers)

    @property
    def headers(self) -> "Mapping[str, Any]":
        """As they arrived, or as they would arrive after the attempts that failed in hand."""
        return {**self.arrival.headers, **self.noted} if self.noted else self.arrival.headers

    @property
    def gone(self) -> bool:
        """See `outbox.ports.Delivery`."""
        return self.settled or self.source.lost

    async def note_failed(self, failed: "FailedAttempt") -> None:
        """See `outbox.ports.Delivery`. Nothing can be written to a message in hand: other workers will know nothing of it."""
        self._require_unsettled()
        trail = encode_trail(failures_after(self.headers, failed))
        self.noted = {ATTEMPT: failed.attempt + 1, FAILURES: trail}

    @property
    def attempt_or_first(self) -> int:
        """The same, and the first where it cannot be read."""
        try:
            return self.attempt
        except MalformedMessageError:
            return 1

    @property
    def crashes(self) -> int:
        """See `outbox.ports.Delivery`. What other workers gave back in good order counts too, on brokers before 4.3."""
        return read_count(self.arrival.headers, CRASHES) + self._own_crashes

    @property
    def blamed(self) -> bool:
        """See `outbox.ports.Delivery`."""
        return self.arrival.mark is not None and self._own_crashes > 0

    @property
    def _own_crashes(self) -> int:
        """Since it became this entry of the queue."""
        count = read_count(self.arrival.headers, DELIVERY_COUNT)
        return max(0, count - self._settlement.survivals(self)) if count else 0

    @property
    def message_id(self) -> str:
        """Its id; "" if it has none that can be read. A copy of it must have the same."""
        try:
            return self.message.id
        except MalformedMessageError:
            return self.arrival.properties.message_id or ""

    @property
    def routing_key(self) -> str:
        """What it was first sent with, as far as that can be read."""
        arrived_with = self.arrival.method.routing_key
        try:
            return read_routing_key(self.arrival.headers, arrived_with)
        except MalformedMessageError:
            return arrived_with

    @property
    def expires_at(self) -> "datetime | None":
        """Its deadline, as far as that can be read."""
        try:
            return self.message.expires_at
        except MalformedMessageError:
            return None

    async def isolate(self) -> bool:
        """See `outbox.ports.Delivery`."""
        if self.arrival.postponed:
            return False
        self._require_unsettled()
        if self.arrival.mark is None:
            await self._settlement.isolate(self)
            return False
        self._alone = True
        await self._settlement.begin_alone(self)
        return True

    async def settle(self, outcome: DeliveryOutcome) -> None:
        """See `outbox.ports.Delivery`."""
        if self._alone:
            self._alone = False
            self._settlement.end_alone(self)
        self._require_unsettled()
        self.arrival.settling = True
        await self._settle(outcome)

    async def _settle(self, outcome: DeliveryOutcome) -> None:
        match outcome:
            case Done():
                self.ack()
            case Retry(delay, failure):
                await self._settlement.retry(self, delay, failure)
            case Postponed(delay):
                await self._settlement.postpone(self, delay)
            case Dead(cause, failure):
                await self._settlement.bury(self, cause, failure)
            case Returned():
                await self._settlement.give_back(self)
            case _:
                assert_never(outcome)

    def ack(self) -> None:
        """The broker may forget it. Raises `StaleDeliveryError`."""
        self.source.ack(self.arrival.tag)
        self.settled = True

    def give_back(self) -> None:
        """The broker shall deliver it again. Raises `StaleDeliveryError`."""
        self.source.give_back(self.arrival.tag)
        self.settled = True

    def reject(self) -> None:
        """The broker shall dead-letter it. Raises `StaleDeliveryError`."""
        self.source.reject(self.arrival.tag)
        self.settled = True

    async def pause(self, seconds: float) -> None:
        """Waits before another try. Raises `StaleDeliveryError` as soon as the delivery is no longer ours."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.source.ended.wait(), seconds)
        self.source.require_open()

    def _require_unsettled(self) -> None:
        if self.settled:
            raise StaleDeliveryError("the delivery was settled before")
        if self.arrival.postponed:
            raise StaleDeliveryError("the message was sent away while another ran alone, and comes again")
        self.source.require_open()
